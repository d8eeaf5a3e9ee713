"""What a hash's fields with times of expiry leave in the log, in the words that its readers know.

Redis knows times of expiry of fields from 7.4 on, HSETEX from 8.0 on. For an older one they are not written: a field's
end is in the log as the HDEL that comes when its time is over, and a server that loads the log before knows of none.
"""

from penstock.engine.context import Context
from penstock.storage.types.hashes import Hash


def log_expiry(ctx: Context, key: bytes, when_ms: int, condition: bytes, fields: list[bytes]) -> None:
    """Fields got a time; `condition` (NX, XX, GT, LT) may be empty."""
    if ctx.effects.dialect.field_expiry:
        named = (condition,) if condition else ()
        ctx.log(b"HPEXPIREAT", key, b"%d" % when_ms, *named, b"FIELDS", b"%d" % len(fields), *fields)


def log_persist(ctx: Context, key: bytes, fields: list[bytes]) -> None:
    """Fields lost their times."""
    if ctx.effects.dialect.field_expiry:
        ctx.log(b"HPERSIST", key, b"FIELDS", b"%d" % len(fields), *fields)


def log_setting(ctx: Context, key: bytes, found: Hash, request: list[bytes], pairs: list[bytes]) -> None:
    """Fields were set by an HSETEX, whose words `request` has, or what comes to it.

    In old words: HSET, which takes a field's time away, and then the times as they are now.
    """
    if ctx.effects.dialect.field_setting:
        ctx.log_request(request)
        return
    ctx.log(b"HSET", key, *pairs)
    for field in pairs[::2]:
        when_ms = found.expires.get(field)
        if when_ms is not None:
            log_expiry(ctx, key, when_ms, b"", [field])
