"""The hash at a key, without the fields whose time has passed.

Redis hides an overdue field, and removes it when it happens to meet it or by and by. Here whoever looks into a hash
removes all that are overdue, before anything else; the tick removes those that nobody meets. A removal is logged as
`HDEL`, told as `hexpired`, and takes the key with the last field (Redis 8.6.3).
"""

from penstock.commands.common.overwriting import create
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.field_expiry import expire_fields
from penstock.storage.keyspace import Value
from penstock.storage.types.hashes import Hash


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
