"""Giving a key a value, and telling of it what Redis tells: `new`, `overwritten`, `type_changed`."""

from penstock.engine.context import Context
from penstock.storage.keyspace import Value, type_name


def create(ctx: Context, key: bytes, value: Value) -> None:
    """Put a value where `ctx.value` found none; no time of expiry of an overdue key outlives it."""
    ctx.db.persist(key)
    ctx.put(key, value)
    ctx.event("n", b"new", key)


def overwrite(ctx: Context, key: bytes, value: Value, keeps_expiry: bool = False) -> None:
    """Put a value whatever is there, without a time of expiry unless that is to be kept."""
    old = ctx.value(key)
    if old is None:
        create(ctx, key, value)
        return
    if not keeps_expiry:
        ctx.db.persist(key)
    ctx.put(key, value)
    tell_overwritten(ctx, key, old, value)


def tell_overwritten(ctx: Context, key: bytes, old: Value, new: Value) -> None:
    ctx.event("o", b"overwritten", key)
    if type_name(old) != type_name(new):
        ctx.event("c", b"type_changed", key)


def delete(ctx: Context, key: bytes) -> bool:
    """Remove a key at a request's wish, and tell of it; whether there was one."""
    if ctx.value(key) is None:
        return False
    ctx.engine.free_lazily(ctx.remove(key))
    ctx.event("g", b"del", key)
    ctx.dirty += 1
    return True
