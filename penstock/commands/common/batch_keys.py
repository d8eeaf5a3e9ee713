"""Which keys of a batch can be worked on without a look at each request by itself."""

from penstock.engine.context import Context
from penstock.storage.deadlines import NEVER


def current(ctx: Context, keys: list[bytes]) -> list[bytes]:
    """The keys before the first whose time of expiry is over, which a request removes and logs. O(keys)."""
    expires, now_ms = ctx.db.expires, ctx.now_ms
    if not expires or expires.keys().isdisjoint(keys):
        return keys
    for at, key in enumerate(keys):
        if expires.get(key, NEVER) < now_ms:
            return keys[:at]
    return keys


def free(ctx: Context, keys: list[bytes]) -> list[bytes]:
    """As `current`, and before the first at which somebody is blocked: who waits is served after each request."""
    keys = current(ctx, keys)
    if ctx.engine.blocking.by_key:
        for at, key in enumerate(keys):
            if ctx.is_awaited(key):
                return keys[:at]
    return keys
