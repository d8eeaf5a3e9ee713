"""Snapshots of an embedded server's keys, to go back to."""

from penstock.engine.engine import Engine
from penstock.engine.session import NO_CLIENT
from penstock.errors import UsageError
from penstock.storage.keyspace import Value

Keys = list[tuple[dict[bytes, Value], dict[bytes, int]]]


class Snapshot:
    """The keys of all databases at one moment, with their times of expiry, and the function libraries."""

    def __init__(self, engine: Engine) -> None:
        self.keys: Keys = [(_copies(dict(db.values.items())), dict(db.expires)) for db in engine.keyspace.databases]
        self.libraries = dict(engine.keyspace.libraries)


def _copies(values: dict[bytes, Value]) -> dict[bytes, Value]:
    return {key: value if isinstance(value, bytes) else value.copy() for key, value in values.items()}


def restore(engine: Engine, snapshot: Snapshot) -> None:
    """Replace all keys by those of a snapshot, which can be used again. Watchers and blocked readers learn of it.

    Rules of users, rename-command, a pause and maxmemory do not matter. UsageError if a library is refused.
    """
    ctx = engine.server.context
    now_us = engine.clock.now_us()
    ctx.begin(NO_CLIENT, now_us)
    libraries = [[b"FUNCTION", b"LOAD", code] for code in snapshot.libraries.values()]
    for request in [[b"FLUSHALL"], [b"FUNCTION", b"FLUSH"], *libraries]:
        _, refusal = engine.replay(ctx, [request], 0)
        if refusal:
            raise UsageError(f"restore: {refusal.decode(errors='replace').strip()}")
    for index, (values, expires) in enumerate(snapshot.keys):
        ctx.select(index)
        for key, value in _copies(values).items():
            ctx.put(key, value)
        for key, when_ms in expires.items():
            ctx.db.expire_at(key, when_ms)
    ctx.select(0)
    engine.serve_ready(now_us)
