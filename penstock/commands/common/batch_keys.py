"""Which keys of a batch can be worked on without a look at each request by itself, and the log of what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.context import Context
from penstock.protocol import reply
from penstock.protocol.request_batch import RequestBatch
from penstock.storage.deadlines import NEVER

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it


def current(ctx: Context, keys: list[bytes]) -> list[bytes]:
    """The keys before the first past its time of expiry, which a request removes and logs. O(keys); O(1) where no
    key's time is."""
    expires, now_ms = ctx.db.expires, ctx.now_ms
    if not expires or ctx.db.expiries.first_ms() >= now_ms:
        return keys
    for at, key in enumerate(keys):
        if expires.get(key, NEVER) < now_ms:
            return keys[:at]
    return keys


def free(ctx: Context, keys: list[bytes]) -> list[bytes]:
    """As `current`, and before the first at which a client is blocked: it is served after each request."""
    keys = current(ctx, keys)
    if ctx.blocking.by_key:
        for at, key in enumerate(keys):
            if ctx.is_awaited(key):
                return keys[:at]
    return keys


def stretch_end(keys: list[bytes], at: int) -> int:
    """Where the stretch of equal keys that begins at a place ends. O(its length)."""
    key = keys[at]
    stop: i64 = at + 1
    count: i64 = len(keys)
    while stop < count and keys[stop] == key:
        stop += 1
    return stop


def log_each(ctx: Context, batch: RequestBatch, places: list[int]) -> None:
    """Log the requests at some places of a batch as they were sent, each a unit of its own."""
    if places and ctx.effects.log is not None:
        ctx.effects.add_units(ctx.db_index, [reply.bulks(batch.request(at)) for at in places])


def log_first(ctx: Context, batch: RequestBatch, count: int) -> None:
    """As `log_each`, for the first requests of a batch."""
    if count and ctx.effects.log is not None:
        ctx.effects.add_units(ctx.db_index, batch.part(0, count).packed())
