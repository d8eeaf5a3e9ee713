"""How HSETEX is logged, for the Redis version that must be able to load the log: Redis has it from 8.0 on."""

from penstock.commands.common.part_expiry import log_expiry
from penstock.commands.hashes.hash_access import FIELDS
from penstock.engine.context import Context
from penstock.storage.types.hashes import Hash


def log_setting(ctx: Context, key: bytes, found: Hash, request: list[bytes], pairs: list[bytes]) -> None:
    """Log that fields were set by an HSETEX (its words are in `request`) or an equivalent command.

    For an older Redis: HSET, which removes a field's time of expiry, and then the present times.
    """
    if ctx.effects.compat.field_setting:
        ctx.log_request(request)
        return
    ctx.log(b"HSET", key, *pairs)
    for field in pairs[::2]:
        when_ms = found.expires.get(field)
        if when_ms is not None:
            log_expiry(ctx, key, found, FIELDS, when_ms, b"", [field])
