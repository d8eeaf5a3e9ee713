"""The hash at a key, without the fields whose time has passed.

Redis hides an overdue field, and removes it when it happens to meet it or by and by. Here whoever looks into a hash
removes all that are overdue, before anything else; the tick removes those that nobody meets. A removal is logged as
`HDEL`, told as `hexpired`, and takes the key with the last field (Redis 8.6.3).
"""

from typing import Final

from penstock.commands.common.overwriting import create
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.storage.keyspace import Value
from penstock.storage.types.hashes import Hash

FIELDS_A_LINE: Final = 1000  # of the log, and the most that one tick removes from one database


def hash_at(ctx: Context, key: bytes) -> Hash | None:
    """The hash at a key that may be about to change, None where there is none; WRONGTYPE for anything else."""
    return _shown(ctx, key, ctx.value(key))


def read_hash(ctx: Context, key: bytes) -> Hash | None:
    """As `hash_at`, for a command that only reads: hits and misses are counted."""
    return _shown(ctx, key, ctx.read(key))


def hash_made(ctx: Context, key: bytes) -> Hash:
    """As `hash_at`; where there is no key, one is made, to which something must be added at once."""
    found = hash_at(ctx, key)
    if found is None:
        found = Hash()
        create(ctx, key, found)
    return found


def tell_changed(ctx: Context, key: bytes, found: Hash, event: bytes, changes: int = 1) -> None:
    """Fields were set, removed or got another time: watchers hear of it. The log's line is the caller's."""
    ctx.touch(key)
    ctx.event("h", event, key)
    ctx.dirty += changes
    if found.due is not None:
        ctx.db.note_fields(key, found)


def remove_if_empty(ctx: Context, key: bytes, found: Hash) -> bool:
    """Remove the key of a hash that has lost its last field; whether it has."""
    if found.fields:
        return False
    ctx.remove(key)
    ctx.event("g", b"del", key)
    return True


# -- overdue fields --------------------------------------------------------------------------------------------------


def _shown(ctx: Context, key: bytes, value: Value | None) -> Hash | None:
    if value is None:
        return None
    if not isinstance(value, Hash):
        raise refusals.wrong_type()
    if value.due is None or value.first_due_ms() >= ctx.now_ms or ctx.session.privileged:
        return value  # a log's replay sees a field until its HDEL
    if ctx.engine.writes_paused(ctx.now_ms):
        return _without_overdue(value, ctx.now_ms)
    expire_fields(ctx, key, value, len(value.expires))
    return value if value.fields else None


def _without_overdue(found: Hash, now_ms: int) -> Hash | None:
    """What is shown of a hash while nothing may be changed: a copy."""
    shown = found.copy()
    shown.remove(shown.overdue(now_ms, len(shown)))
    return shown if shown.fields else None


def expire_fields(ctx: Context, key: bytes, found: Hash, most: int) -> int:
    """Remove at most `most` fields whose time has passed, and tell of it; how many there were."""
    overdue = found.overdue(ctx.now_ms, most)
    found.remove(overdue)
    for start in range(0, len(overdue), FIELDS_A_LINE):
        ctx.log(b"HDEL", key, *overdue[start : start + FIELDS_A_LINE])
    tell_changed(ctx, key, found, b"hexpired", 0)
    remove_if_empty(ctx, key, found)
    ctx.engine.statistics.expired_subkeys += len(overdue)
    return len(overdue)


def expire_overdue(ctx: Context) -> None:
    """Remove overdue fields of the context's database, those of the longest overdue hash first: a part of the tick."""
    left = FIELDS_A_LINE
    while left and ctx.db.fields_due.first_ms() < ctx.now_ms:
        key = ctx.db.fields_due.order[0][1]
        found = ctx.db.values[key]
        assert isinstance(found, Hash), "only hashes have fields"
        count = expire_fields(ctx, key, found, left)
        ctx.engine.statistics.expired_subkeys_active += count
        left -= count
        ctx.effects.end_unit()
