"""How times of expiry of a hash's fields are logged, for the Redis version that must be able to load the log.

Redis has these times from 7.4 on, and HSETEX from 8.0 on. For an older version they are not logged; there is only the
HDEL when a field expires, and a server that loads the log before that does not know when it would have expired.
"""

from penstock.engine.context import Context
from penstock.storage.types.hashes import Hash


def log_expiry(ctx: Context, key: bytes, when_ms: int, condition: bytes, fields: list[bytes]) -> None:
    """Log that fields got a time of expiry; `condition` is NX, XX, GT, LT or empty."""
    if ctx.effects.log is not None and ctx.effects.compat.field_expiry:
        named = (condition,) if condition else ()
        ctx.log(b"HPEXPIREAT", key, b"%d" % when_ms, *named, b"FIELDS", b"%d" % len(fields), *fields)


def log_persist(ctx: Context, key: bytes, fields: list[bytes]) -> None:
    """Log that fields lost their times of expiry."""
    if ctx.effects.compat.field_expiry:
        ctx.log(b"HPERSIST", key, b"FIELDS", b"%d" % len(fields), *fields)


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
            log_expiry(ctx, key, when_ms, b"", [field])
