"""A hash or a set without the parts that have expired.

Redis hides an expired field or member, and removes it when a command meets it or later in the background. Here every
command that reads such a value first removes all its expired parts; the cron removes the rest. The removal of fields is
logged as `HDEL`, sends the event `hexpired`, and removes the key with the last field (Redis 8.6.3); that of members is
like it.
"""

from typing import TypeVar

from penstock.engine.context import Context
from penstock.engine.part_expiry import expire_parts
from penstock.storage.types.collection import Timed

Parts = TypeVar("Parts", bound=Timed)


def live(ctx: Context, key: bytes, found: Parts) -> Parts | None:
    """The value at a key without its expired parts; None where none is left."""
    if found.due is None or found.first_due_ms() >= ctx.now_ms or ctx.session.privileged:
        return found  # in the log's replay, a part exists until its removal
    if ctx.conditions.keeps_expired(ctx.now_ms):
        return without_expired(found, ctx.now_ms)
    expire_parts(ctx, key, found, len(found.expires))
    return found if len(found) else None


def without_expired(found: Parts, now_ms: int) -> Parts | None:
    """A copy without the expired parts, for use while they must stay."""
    if found.first_due_ms() >= now_ms:
        return found
    shown = found.copy()
    shown.take_out(shown.overdue(now_ms, len(shown)))
    return shown if len(shown) else None
