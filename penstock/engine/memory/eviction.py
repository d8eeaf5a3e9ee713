"""Which keys go when memory is short, by maxmemory-policy: chosen from a few at random, as Redis does."""

from typing import Final

from penstock.engine.memory import recency
from penstock.engine.memory.value_sizes import key_bytes
from penstock.engine.server_state import ServerState
from penstock.engine.session import NO_CLIENT
from penstock.storage.keyspace import Database

POOL: Final = 16  # candidates that are remembered from one choice to the next
MOST_AT_ONCE: Final = 1000  # keys that one request makes go; the next goes on


class Evictor:
    """Chooses keys and removes them. `_pool` holds (how well it may go, database, key), the best last."""

    __slots__ = ("_pool", "_server", "_turn")

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._pool: list[tuple[int, int, bytes]] = []
        self._turn = 0  # the database that a random key is taken from next

    def evict(self, excess: int) -> tuple[int, bool]:
        """Remove keys until so many bytes are free, by estimate; how many are, and whether there are more to remove.

        Each is logged as a DEL of its own and published as `evicted` (Redis 8.6.3).
        """
        server = self._server
        policy = server.settings.text("maxmemory-policy")
        freed = 0
        if policy == "noeviction" or server.conditions.evicts_nothing(server.clock.now_us() // 1000):
            return 0, False
        ctx = server.context
        session, db_index, now_us = ctx.session, ctx.db_index, ctx.now_us
        ctx.begin(NO_CLIENT, now_us)
        is_unfinished = True
        for _ in range(MOST_AT_ONCE):
            if freed >= excess:
                break
            found = self._choose(policy, ctx.now_ms)
            if found is None:
                is_unfinished = False
                break
            ctx.select(found[0])
            key = found[1]
            freed += key_bytes(ctx.db, key)
            ctx.remove(key)
            ctx.log(b"DEL", key)
            server.effects.end_unit()
            ctx.event("e", b"evicted", key)
            server.statistics.evicted += 1
        ctx.begin(session, now_us)
        ctx.select(db_index)
        return freed, is_unfinished

    def _choose(self, policy: str, now_ms: int) -> tuple[int, bytes] | None:
        """A database and a key of it; None where no key may go."""
        of_all, _, by = policy.partition("-")
        if by == "ttl":
            return self._soonest()
        if by == "random":
            return self._random(of_all == "allkeys", now_ms)
        for db_index, db in enumerate(self._server.keyspace.databases):
            for key in self._sampled(db, of_all == "allkeys", now_ms):
                candidate = (self._worth_going(by, db_index, key, now_ms), db_index, key)
                if candidate[1:] not in [held[1:] for held in self._pool]:
                    self._pool.append(candidate)
        self._pool = sorted(self._pool)[-POOL:]
        while self._pool:
            _, db_index, key = self._pool.pop()
            db = self._server.keyspace.databases[db_index]
            if key in (db.values if of_all == "allkeys" else db.expires) and key not in db.blessed:
                return db_index, key
        return None

    def _worth_going(self, by: str, db_index: int, key: bytes, now_ms: int) -> int:
        uses = recency.uses_of(self._server)
        assert uses is not None, "the policy has a context that notes uses"
        if by == "lfu":
            decay = self._server.settings.number("lfu-decay-time")
            return recency.MOST - uses.frequency(db_index, key, now_ms, decay)
        return uses.idle_ms(db_index, key, now_ms)

    def _soonest(self) -> tuple[int, bytes] | None:
        """The key that expires first; nothing is left to chance here. O(1), O(blessed keys) where some are."""
        heads: list[tuple[float, bytes, int]] = []
        for index, db in enumerate(self._server.keyspace.databases):
            if not db.expires:
                continue
            if not db.blessed.keys:
                heads.append((*db.expiries.soonest(), index))
                continue
            first = next(((when_ms, key) for when_ms, key in db.expiries.order if key not in db.blessed), None)
            if first is not None:
                heads.append((*first, index))
        if not heads:
            return None
        _, key, db_index = min(heads)
        return db_index, key

    def _random(self, of_all: bool, now_ms: int) -> tuple[int, bytes] | None:
        databases = self._server.keyspace.databases
        for _ in databases:
            self._turn = (self._turn + 1) % len(databases)
            db = databases[self._turn]
            if db.values if of_all else db.expires:
                found = _unblessed(db, of_all, [self._any_of(db, of_all, now_ms)])
                if found:
                    return self._turn, found[0]
        return None

    def _sampled(self, db: Database, of_all: bool, now_ms: int) -> list[bytes]:
        count = len(db.values) if of_all else len(db.expires)
        most = self._server.settings.number("maxmemory-samples")
        if count <= most:
            return _unblessed(db, of_all, list(db.values if of_all else db.expires))
        return _unblessed(db, of_all, [self._any_of(db, of_all, now_ms) for _ in range(most)])

    def _any_of(self, db: Database, of_all: bool, now_ms: int) -> bytes:
        if of_all:
            return db.in_order(now_ms).any_of(self._server.chance)
        return db.expiries.any_of(self._server.chance)


def _unblessed(db: Database, of_all: bool, drawn: list[bytes]) -> list[bytes]:
    """Those of some keys that may go; if none of them, another one, where there is one. O(keys) then."""
    if not db.blessed.keys:
        return drawn
    found = [key for key in drawn if key not in db.blessed]
    if found:
        return found
    other = next((key for key in (db.values if of_all else db.expires) if key not in db.blessed), None)
    return [] if other is None else [other]
