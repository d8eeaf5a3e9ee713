"""Sets and deletes keys and sends Redis's keyspace events for it: `new`, `overwritten`, `type_changed`, `del`."""

from penstock.engine.context import Context
from penstock.storage.keyspace import Value, type_name


def create(ctx: Context, key: bytes, value: Value) -> None:
    """Add a key that `ctx.value` did not find. Removes the time of expiry that an expired value may have left."""
    ctx.db.persist(key)
    ctx.put(key, value)
    ctx.event("n", b"new", key)


def overwrite(ctx: Context, key: bytes, value: Value, keeps_expiry: bool = False) -> None:
    """Set a key to a value. Its time of expiry is removed unless `keeps_expiry`."""
    if not ctx.has(key):
        create(ctx, key, value)
        return
    old = ctx.value(key) if ctx.key_events.letters else None
    if not keeps_expiry and ctx.db.expires:
        ctx.db.persist(key)
    ctx.put(key, value)
    if old is not None:
        notify_overwritten(ctx, key, old, value)


def notify_overwritten(ctx: Context, key: bytes, old: Value, new: Value) -> None:
    if not ctx.key_events.letters:
        return
    ctx.event("o", b"overwritten", key)
    if type_name(old) != type_name(new):
        ctx.event("c", b"type_changed", key)


def delete(ctx: Context, key: bytes, is_lazy: bool = False) -> bool:
    """DEL of one key, with its keyspace event; returns whether it existed. is_lazy: it counts as freed lazily."""
    if not ctx.has(key):
        return False
    value = ctx.remove(key)
    if is_lazy:
        ctx.count_lazily_freed(value)
    ctx.free_lazily(value)
    ctx.event("g", b"del", key)
    ctx.dirty += 1
    return True


def delete_past(ctx: Context, key: bytes) -> bool:
    """Delete a key that was given a time in the past, and log it; returns whether it existed.

    Redis publishes `del` (8.6.3); in Valkey it has expired (9.1.2).
    """
    if not ctx.speaks_valkey():
        existed = delete(ctx, key)
    elif existed := ctx.has(key):
        ctx.end_expired(key, ctx.remove(key))
        ctx.dirty += 1
    if existed:
        ctx.log(b"DEL", key)
    return existed
