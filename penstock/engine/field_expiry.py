"""Overdue fields of hashes: removed, logged as HDEL, published as `hexpired` (Redis 8.6.3)."""

from typing import Final

from penstock.engine.context import Context
from penstock.storage.types.hashes import Hash

FIELDS_A_LINE: Final = 1000  # of the log, and the most that one tick removes from one database


def notify_changed(ctx: Context, key: bytes, found: Hash, event: bytes, changes: int = 1) -> None:
    """Fields were set, removed or got another time: watchers are notified. The log's line is the caller's."""
    ctx.touch(key)
    ctx.event("h", event, key)
    ctx.dirty += changes
    if found.due is not None:
        ctx.db.note_fields(key, found)


def remove_if_empty(ctx: Context, key: bytes, found: Hash) -> bool:
    """Remove the key of a hash that has lost its last field; whether it has."""
    if len(found):
        return False
    ctx.remove(key)
    ctx.event("g", b"del", key)
    return True


def expire_fields(ctx: Context, key: bytes, found: Hash, most: int) -> int:
    """Remove at most `most` fields past their time, and publish it; how many there were."""
    overdue = found.overdue(ctx.now_ms, most)
    found.remove(overdue)
    for start in range(0, len(overdue), FIELDS_A_LINE):
        ctx.log(b"HDEL", key, *overdue[start : start + FIELDS_A_LINE])
    notify_changed(ctx, key, found, b"hexpired", 0)
    remove_if_empty(ctx, key, found)
    ctx.statistics.expired_subkeys += len(overdue)
    return len(overdue)


def expire_overdue(ctx: Context) -> None:
    """Remove overdue fields of the context's database, those of the longest overdue hash first: a part of the tick."""
    left = FIELDS_A_LINE
    while left and ctx.db.fields_due.first_ms() < ctx.now_ms:
        _, key = ctx.db.fields_due.order.first()
        found = ctx.db.values[key]
        assert isinstance(found, Hash), "only hashes have fields"
        count = expire_fields(ctx, key, found, left)
        ctx.statistics.expired_subkeys_active += count
        left -= count
        ctx.effects.end_unit()
