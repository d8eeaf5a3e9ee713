"""The hash at a key, without the fields that have expired.

Redis hides an expired field, and removes it when a command meets it or later in the background. Here every command
that reads a hash first removes all its expired fields; the cron removes the rest. A removal is logged as `HDEL`, sends
the event `hexpired`, and removes the key with the last field (Redis 8.6.3).
"""

from penstock.commands.common.overwriting import create
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.field_expiry import expire_fields
from penstock.storage.keyspace import Value
from penstock.storage.types.hashes import Hash


def hash_at(ctx: Context, key: bytes) -> Hash | None:
    """The hash at a key, for a command that may change it; None if there is no key.

    ReplyError WRONGTYPE for another type.
    """
    return _shown(ctx, key, ctx.value(key))


def read_hash(ctx: Context, key: bytes) -> Hash | None:
    """As `hash_at`, for a command that only reads: counts a hit or a miss."""
    return _shown(ctx, key, ctx.read(key))


def hash_or_new(ctx: Context, key: bytes) -> Hash:
    """As `hash_at`, but creates a missing key; the caller must then add a field."""
    found = hash_at(ctx, key)
    if found is None:
        found = Hash()
        create(ctx, key, found)
    return found


def note_size(ctx: Context, found: Hash, words: list[bytes]) -> None:
    """Take note whether Redis keeps the hash as a large one, now that these fields and values were set."""
    if not found.is_large:
        found.outgrow(words, ctx.form_limits.hash_fields, ctx.form_limits.hash_bytes)


# -- expired fields --------------------------------------------------------------------------------------------------


def _shown(ctx: Context, key: bytes, value: Value | None) -> Hash | None:
    if value is None:
        return None
    if not isinstance(value, Hash):
        raise refusals.wrong_type()
    if value.due is None or value.first_due_ms() >= ctx.now_ms or ctx.session.privileged:
        return value  # in the log's replay, a field exists until its HDEL
    if ctx.conditions.keeps_expired(ctx.now_ms):
        return _without_expired(value, ctx.now_ms)
    expire_fields(ctx, key, value, len(value.expires))
    return value if len(value) else None


def _without_expired(found: Hash, now_ms: int) -> Hash | None:
    """A copy without the expired fields, for use while they must stay."""
    shown = found.copy()
    shown.remove(shown.overdue(now_ms, len(shown)))
    return shown if len(shown) else None
