"""Parked requests: readers that wait for a key, first come first served.

A write names the keys it touched; after the whole request (or EXEC) the engine serves the parked readers of
each ready key in the order in which they parked (Redis 8.6.3). Nobody else's command is run: of a group's
plain readers only as many are tried as there is something for, and what Redis's fruitless second run of the others
leaves behind is written down in one go.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from penstock.engine.session import Session
from penstock.engine.table.command_table import Row
from penstock.storage.keyspace import Keyspace
from penstock.storage.streams.group import Group
from penstock.storage.streams.stream import Stream

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

FOREVER_MS: Final = 2**63 - 1


class Parked:
    """One request that waits. `deadline_ms` 0 means for ever.

    group: the consumer group of an XREADGROUP; None for readers who are simply tried again (XREAD, BLPOP).
    claims: the reader may find something in the pending list (XREADGROUP CLAIM).
    kind: the type of value that it waits for; a key of another type does not wake it.
    heeds_loss: it must hear of the key's deletion and of another type at the key (XREADGROUP).
    """

    __slots__ = (
        "args", "claimable_ms", "claims", "consumer", "db_index", "deadline_ms", "group", "heeds_loss", "keys",
        "kind", "postponed", "row", "serial", "session", "since_ms", "timeout_reply",
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        row: Row,
        args: list[bytes],
        db_index: int,
        keys: list[bytes],
        deadline_ms: int,
        timeout_reply: bytes,
    ) -> None:
        self.session = session
        self.row = row
        self.args = args
        self.db_index = db_index
        self.keys = keys
        self.deadline_ms = deadline_ms
        self.timeout_reply = timeout_reply
        self.group: bytes | None = None
        self.consumer = b""
        self.claims = False
        self.kind: type = Stream
        self.heeds_loss = False
        self.postponed = False  # by CLIENT PAUSE: it is run when the pause ends
        self.serial = 0
        self.since_ms = session.last_ms  # when it was parked
        self.claimable_ms = 0  # when a CLAIM reader is to be tried again

    def is_plain(self) -> bool:
        """Whether it waits for a group's new entries in one stream, like others do."""
        return self.group is not None and not self.claims and len(self.keys) == 1

    def __lt__(self, other: "Parked") -> bool:
        """Only so that heaps may hold it: first come first served."""
        return self.serial < other.serial

    def __hash__(self) -> int:
        """Itself, as ever; a compiled class that has an order would have no hash without it."""
        return id(self)


class Queue:
    """The parked requests of one key, with serial numbers in the order in which they came.

    `plain` are readers of this key alone that wait for new entries of a group: what one of them does not find, none
    of the group does. All others are `special`: each is tried by itself, in this order; `heeding` of them must hear of
    the key's loss.
    """

    __slots__ = ("heeding", "lost", "passed_group", "passed_ms", "plain", "special")

    def __init__(self) -> None:
        self.special: dict[Parked, int] = {}
        self.heeding = 0
        self.plain: dict[bytes, dict[Parked, int]] = {}
        self.passed_ms: dict[bytes, int] = {}  # by group: when its plain readers were last passed over
        self.passed_group: dict[bytes, Group] = {}  # by name: the group in which their consumers are known to exist
        self.lost: dict[bytes, set[bytes]] = {}  # by group: deleted consumers that still have a reader here

    def is_empty(self) -> bool:
        return not self.special and not self.plain


class Waiters:
    """Who waits for what, and until when."""

    __slots__ = ("_claims", "_deadlines", "_keyspace", "_serial", "by_key", "parked", "ready")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._serial = 0
        self.parked: set[Parked] = set()
        self.by_key: dict[tuple[int, bytes], Queue] = {}
        self.ready: dict[tuple[int, bytes], None] = {}  # in the order in which they became ready
        self._deadlines: list[tuple[int, int, Parked]] = []  # a heap; what is no longer parked stays until it is seen
        self._claims: list[tuple[int, int, Parked]] = []  # a heap, likewise

    def __len__(self) -> int:
        """Parked requests."""
        return len(self.parked)

    # -- coming and going -------------------------------------------------------------------------------------------

    def add(self, parked: Parked) -> None:
        self.parked.add(parked)
        self._serial += 1
        parked.serial = self._serial
        for key in parked.keys:
            place = (parked.db_index, key)
            queue = self.by_key.get(place)
            if queue is None:
                queue = self.by_key[place] = Queue()
            if parked.is_plain():
                assert parked.group is not None, "a plain reader reads for a group"
                queue.plain.setdefault(parked.group, {})[parked] = parked.serial
            elif parked not in queue.special:
                queue.special[parked] = parked.serial
                queue.heeding += parked.heeds_loss
        if parked.deadline_ms:
            self._deadlines = _pushed(self._deadlines, parked.deadline_ms, parked, len(self.parked))

    def forget(self, parked: Parked) -> None:
        """A request waits no more: served, timed out, or its client is gone."""
        if parked not in self.parked:
            return
        self.parked.discard(parked)
        for key in parked.keys:
            place = (parked.db_index, key)
            queue = self.by_key.get(place)
            if queue is None:
                continue  # a key that was named twice
            if parked.group is not None and parked in queue.plain.get(parked.group, ()):
                self._settle(place, queue, parked)
                del queue.plain[parked.group][parked]
                if not queue.plain[parked.group]:
                    del queue.plain[parked.group]
            if queue.special.pop(parked, None) is not None:
                queue.heeding -= parked.heeds_loss
            if queue.is_empty():
                del self.by_key[place]

    # -- ready keys -------------------------------------------------------------------------------------------------

    def signal(self, db_index: int, key: bytes) -> None:
        """Something happened to a key that its parked readers may care for."""
        if (db_index, key) in self.by_key:
            self.ready[(db_index, key)] = None

    def next_ready(self) -> tuple[int, bytes]:
        place = next(iter(self.ready))
        del self.ready[place]
        return place

    def serve(self, engine: "Engine", db_index: int, key: bytes, now_us: int) -> None:
        """Try the parked readers of a key, first come first served, until each kind finds nothing more."""
        place = (db_index, key)
        queue = self.by_key.get(place)
        if queue is None:
            return
        turns = [_first(readers) for readers in queue.plain.values()]
        heapify(turns)
        specials = iter(list(queue.special))
        self._add_special(turns, queue, specials, place, now_us)
        while turns:
            _, parked = heappop(turns)
            if parked not in self.parked:
                continue
            served = engine.retry(parked, now_us)
            if not parked.is_plain():
                if not served:
                    self._to_tails(parked, key)
                self._add_special(turns, queue, specials, place, now_us)
                continue
            assert parked.group is not None, "a plain reader reads for a group"
            readers = queue.plain.get(parked.group)
            if readers is None:
                continue
            if served:
                heappush(turns, _first(readers))
            else:
                self._pass_over(engine, queue, parked, now_us)

    def _add_special(
        self,
        turns: list[tuple[int, Parked]],
        queue: Queue,
        specials: Iterator[Parked],
        place: tuple[int, bytes],
        now_us: int,
    ) -> None:
        """The next special reader takes its turn, if there still is something of its kind at the key."""
        db_index, key = place
        db = self._keyspace.databases[db_index]
        value = None if now_us // 1000 > db.expires.get(key, FOREVER_MS) else db.values.get(key)
        if value is None and not queue.heeding:
            return
        kind = type(value)
        for parked in specials:
            if parked in queue.special and (parked.kind is kind or parked.heeds_loss):
                heappush(turns, (queue.special[parked], parked))
                return

    def _to_tails(self, parked: Parked, tried: bytes) -> None:
        """A reader of several keys that was tried in vain goes behind everybody at its other keys, as in Redis.

        At the key that was tried, everybody behind it is tried in vain as well: the order stays.
        """
        self._serial += 1
        for key in parked.keys:
            if key != tried:
                special = self.by_key[(parked.db_index, key)].special
                del special[parked]
                special[parked] = self._serial

    def _pass_over(self, engine: "Engine", queue: Queue, parked: Parked, now_us: int) -> None:
        """What a fruitless second run of all of a group's plain readers leaves behind, without running them."""
        assert parked.group is not None, "a plain reader reads for a group"
        queue.passed_ms[parked.group] = now_us // 1000
        names = queue.lost.pop(parked.group, set())
        stream = self._keyspace.databases[parked.db_index].values.get(parked.keys[0])
        group = stream.groups.get(parked.group) if isinstance(stream, Stream) else None
        if group is not None and queue.passed_group.get(parked.group) is not group:
            # Another stream or group took the place of the one they parked at (RENAME, COPY, a transaction).
            queue.passed_group[parked.group] = group
            names = {reader.consumer for reader in queue.plain[parked.group]}
        elif names:
            names &= {reader.consumer for reader in queue.plain[parked.group]}  # those whose readers still wait
        for name in sorted(names):
            engine.make_consumer(parked.db_index, parked.keys[0], parked.group, name, now_us)

    # -- seen times -------------------------------------------------------------------------------------------------

    def consumer_deleted(self, db_index: int, key: bytes, group: bytes, name: bytes) -> None:
        """A consumer was deleted; if it has a reader here, the next event at the key makes it anew."""
        queue = self.by_key.get((db_index, key))
        if queue is not None and any(parked.consumer == name for parked in queue.plain.get(group, ())):
            queue.lost.setdefault(group, set()).add(name)

    def settle_databases(self, one: int, other: int) -> None:
        """As `settle`, for every key of two databases: they are about to change places."""
        for db_index, key in self.by_key:
            if db_index in (one, other):
                self.settle(db_index, key)

    def settle(self, db_index: int, key: bytes) -> None:
        """Write down when the consumers of a key's parked readers were last seen.

        For somebody who wants to know, and before the stream leaves the key, which is where they are looked for.
        """
        place = (db_index, key)
        queue = self.by_key.get(place)
        if queue is not None:
            for readers in queue.plain.values():
                for parked in readers:
                    self._settle(place, queue, parked)

    def _settle(self, place: tuple[int, bytes], queue: Queue, parked: Parked) -> None:
        assert parked.group is not None, "a plain reader reads for a group"
        passed_ms = queue.passed_ms.get(parked.group, 0)
        if passed_ms <= parked.since_ms:
            return
        stream = self._keyspace.databases[place[0]].values.get(place[1])
        group = stream.groups.get(parked.group) if isinstance(stream, Stream) else None
        consumer = group.consumers.get(parked.consumer) if group is not None else None
        if consumer is not None:
            consumer.seen_ms = max(consumer.seen_ms, passed_ms)

    # -- time -------------------------------------------------------------------------------------------------------

    def claimable_at(self, parked: Parked, when_ms: int) -> None:
        """Look again at a CLAIM reader's keys at a time; 0: nothing to wait for."""
        parked.claimable_ms = when_ms
        if when_ms:
            self._claims = _pushed(self._claims, when_ms, parked, len(self.parked))

    def signal_claimable(self, now_ms: int) -> None:
        """Signal the keys of CLAIM readers whose time has come."""
        while self._claims and self._claims[0][0] <= now_ms:
            when_ms, _, parked = heappop(self._claims)
            if parked in self.parked and parked.claimable_ms == when_ms:
                for key in parked.keys:
                    self.signal(parked.db_index, key)

    def overdue(self, now_ms: int) -> list[Parked]:
        """The requests whose deadline has come, the earliest first."""
        found: list[Parked] = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            parked = heappop(self._deadlines)[2]
            if parked in self.parked:
                found.append(parked)
        return found

    def next_ms(self) -> int:
        """When the next deadline or CLAIM wake-up is due; 0: never."""
        if not self._deadlines and not self._claims:
            return 0
        while self._deadlines and self._deadlines[0][2] not in self.parked:
            heappop(self._deadlines)
        while self._claims and self._claims[0][2] not in self.parked:
            heappop(self._claims)
        due = [heap[0][0] for heap in (self._deadlines, self._claims) if heap]
        return min(due, default=0)


def _first(readers: dict[Parked, int]) -> tuple[int, Parked]:
    parked = next(iter(readers))
    return readers[parked], parked


def _pushed(
    heap: list[tuple[int, int, Parked]], when_ms: int, parked: Parked, live: int
) -> list[tuple[int, int, Parked]]:
    """A heap with one more moment, and without the dead ones once they are most of it."""
    heappush(heap, (when_ms, parked.serial, parked))
    if len(heap) > 2 * live + 1024:
        heap = [moment for moment in heap if moment[2].session.parked is moment[2]]
        heapify(heap)
    return heap
