"""Expired parts that still lie in a hash or a set: hidden, or removed by the command that meets them.

As in Redis 8.6.3: a command that names parts and needs their values removes the expired ones of these (HGET, HINCRBY);
one that samples removes all (HRANDFIELD); one that walks over the value hides them (HGETALL); one that overwrites,
removes or counts takes them as if they had not expired (HSET, HDEL, HLEN). The cron removes the rest. The removal of
fields is logged as `HDEL`, sends the event `hexpired`, and removes the key with the last field; that of members is
like it.
"""

from collections.abc import Iterable
from typing import TypeVar

from penstock.engine.context import Context
from penstock.engine.part_expiry import expire_parts, remove_if_empty
from penstock.storage.types.collection import Timed

Parts = TypeVar("Parts", bound=Timed)


def has_expired(ctx: Context, found: Timed) -> bool:
    """Whether any part has expired. In the log's replay none has: a part exists until its removal."""
    return found.due is not None and found.first_due_ms() < ctx.now_ms and not ctx.sees_expired()


def shows(ctx: Context, found: Timed, part: bytes) -> bool:
    """Whether there is a part that has not expired."""
    return found.has(part) and not (has_expired(ctx, found) and found.expires.get(part, ctx.now_ms) < ctx.now_ms)


def shown(ctx: Context, found: Parts) -> Parts | None:
    """The value without its expired parts, a copy if there are any; None where no part is left."""
    return without_expired(found, ctx.now_ms) if has_expired(ctx, found) else found


def read_live(ctx: Context, key: bytes, found: Parts, named: Iterable[bytes]) -> Parts | None:
    """As `live`, for a command that only reads: where expired parts must stay for now, a copy without them."""
    if has_expired(ctx, found) and ctx.conditions.keeps_expired(ctx.now_ms):
        return without_expired(found, ctx.now_ms)
    return live(ctx, key, found, named)


def live(ctx: Context, key: bytes, found: Parts, named: Iterable[bytes]) -> Parts | None:
    """The value at a key after those of the named parts that have expired were removed; None where no part is left."""
    if take_expired(ctx, key, found, named) and remove_if_empty(ctx, key, found):
        return None
    return found


def take_expired(ctx: Context, key: bytes, found: Timed, named: Iterable[bytes]) -> bool:
    """Remove those of the named parts that have expired; the key stays, if empty. Whether there were any."""
    overdue = expired_among(ctx, found, named)
    if overdue:
        expire_parts(ctx, key, found, overdue)
    return bool(overdue)


def expired_among(ctx: Context, found: Timed, named: Iterable[bytes]) -> list[bytes]:
    """Those of the named parts that have expired and still lie there, each once."""
    if not has_expired(ctx, found):
        return []
    times = found.expires
    return [part for part in dict.fromkeys(named) if times.get(part, ctx.now_ms) < ctx.now_ms]


def without_expired(found: Parts, now_ms: int) -> Parts | None:
    """A copy without the expired parts, for use while they must stay."""
    if found.first_due_ms() >= now_ms:
        return found
    copied = found.copy()
    copied.take_out(copied.overdue(now_ms, len(copied)))
    return copied if len(copied) else None
