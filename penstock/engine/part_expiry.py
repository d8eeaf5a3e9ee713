"""Overdue fields of hashes and members of sets: removed, logged, published.

Fields are logged as HDEL and published as `hexpired` (Redis 8.6.3), members as SREM and `sexpired` (Redis 8.12, the
feature's author's branch).
"""

from collections.abc import Sequence
from typing import Final

from penstock.engine.context import Context
from penstock.storage.types.collection import Timed
from penstock.storage.types.sets import Set

PARTS_A_LINE: Final = 1000  # of the log, and the most that one tick removes from one database


def removal_of(found: Timed) -> bytes:
    """The command that removes parts, which is the name of its event, too."""
    return b"SREM" if isinstance(found, Set) else b"HDEL"


def log_times(ctx: Context, found: Timed, request: list[bytes]) -> None:
    """Log a request that sets or removes times of parts.

    Redis has those of fields from 7.4 on. For an older version they are not logged; there is only the removal when a
    part expires, and a server that loads the log before that does not know when it would have expired.
    """
    if isinstance(found, Set):
        ctx.log_newer(request)
    elif ctx.effects.compat.field_expiry:
        ctx.log_request(request)


def notify_changed(ctx: Context, key: bytes, found: Timed, event: bytes, parts: Sequence[bytes], changes: int) -> None:
    """Parts were set, removed or got another time: watchers are notified. The log's line is the caller's.

    parts: as the event tells them; empty where it tells none, or no client wants them.
    """
    ctx.touch(key)
    ctx.part_event("s" if isinstance(found, Set) else "h", event, key, parts)
    ctx.dirty += changes
    if found.due is not None:
        ctx.db.note_parts(key, found)


def remove_if_empty(ctx: Context, key: bytes, found: Timed) -> bool:
    """Remove the key of a value that has lost its last part; whether it has."""
    if len(found):
        return False
    ctx.remove(key)
    ctx.event("g", b"del", key)
    return True


def expire_parts(ctx: Context, key: bytes, found: Timed, overdue: list[bytes]) -> None:
    """Remove parts past their time, log and publish it. The key stays, if empty."""
    removal = removal_of(found)
    for start in range(0, len(overdue), PARTS_A_LINE):
        ctx.log(removal, key, *overdue[start : start + PARTS_A_LINE])
    take_out_expired(ctx, key, found, overdue)


def take_out_expired(ctx: Context, key: bytes, found: Timed, overdue: list[bytes]) -> None:
    """Remove parts past their time, and publish it. The log's line is the caller's."""
    found.take_out(overdue)
    notify_changed(ctx, key, found, b"sexpired" if isinstance(found, Set) else b"hexpired", overdue, 0)
    ctx.statistics.expired_subkeys += len(overdue)


def expire_overdue(ctx: Context) -> None:
    """Remove overdue parts of the context's database, those of the longest overdue value first: a part of the tick."""
    left = PARTS_A_LINE
    while left and ctx.db.parts_due.first_ms() < ctx.now_ms:
        _, key = ctx.db.parts_due.order.first()
        found = ctx.db.values[key]
        assert isinstance(found, Timed), "only hashes and sets have parts with a time"
        overdue = found.overdue(ctx.now_ms, left)
        expire_parts(ctx, key, found, overdue)
        remove_if_empty(ctx, key, found)
        ctx.statistics.expired_subkeys_active += len(overdue)
        left -= len(overdue)
        ctx.effects.end_unit()
