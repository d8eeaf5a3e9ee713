"""Blocked requests: readers that wait for a key, first come first served.

A write names the keys it touched; after the whole request (or EXEC) the engine serves the blocked readers of
each ready key in the order in which they blocked (Redis 8.6.3). No other command is run: of a group's
plain readers only as many are tried as there is something for, and what Redis's fruitless second run of the others
leaves behind is written down in one go.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.storage.keyspace import Keyspace
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream

FOREVER_MS: Final = 2**63 - 1
AT_ONCE_MS: Final = 1  # long ago
SERVED_AT_ONCE: Final = 25  # readers of streams with policies; the next tick goes on

Retry: TypeAlias = Callable[[BlockedRequest, int], bool]
"""Runs a blocked request again, at a time in unix us; whether it was served."""

MakeConsumer: TypeAlias = Callable[[BlockedRequest, int], None]
"""Makes the consumer of a reader of a group, if there is none and its user may read there; the time in unix us."""


class Queue:
    """The blocked requests of one key, with serial numbers in the order in which they came.

    `plain` are readers of this key alone that wait for new entries of a group: what one of them does not find, none of
    the group does. All others are `special`: each is tried by itself, in this order; `waking_on_loss` of them must hear
    of the key's loss.
    """

    __slots__ = ("lost", "passed_group", "passed_ms", "plain", "special", "waking_on_loss")

    def __init__(self) -> None:
        self.special: dict[BlockedRequest, int] = {}
        self.waking_on_loss = 0
        self.plain: dict[bytes, dict[BlockedRequest, int]] = {}
        self.passed_ms: dict[bytes, int] = {}  # by group: when its plain readers were last passed over
        self.passed_group: dict[bytes, Group] = {}  # by name: the group in which their consumers are known to exist
        self.lost: dict[bytes, set[bytes]] = {}  # by group: deleted consumers that still have a reader here


class Blocking:
    """The blocked requests, by what they wait for and until when."""

    __slots__ = ("_claims", "_deadlines", "_keyspace", "_serial", "blocked", "by_key", "later", "ready")

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._serial = 0
        self.blocked: set[BlockedRequest] = set()
        self.by_key: dict[tuple[int, bytes], Queue] = {}
        self.ready: dict[tuple[int, bytes], None] = {}  # in the order in which they became ready
        self.later: dict[tuple[int, bytes], None] = {}  # keys with readers that the next ticks serve
        # a heap; requests that are not blocked any more stay until they are met
        self._deadlines: list[tuple[int, int, BlockedRequest]] = []
        self._claims: list[tuple[int, int, BlockedRequest]] = []  # a heap, likewise

    def __len__(self) -> int:
        """Blocked requests."""
        return len(self.blocked)

    # -- coming and going -------------------------------------------------------------------------------------------

    def block(self, blocked: BlockedRequest) -> None:
        """A handler found nothing and may wait: its session is blocked, first come first served."""
        blocked.session.blocked = blocked
        blocked.is_plain = blocked.group is not None and not blocked.claims and len(blocked.keys) == 1
        self.blocked.add(blocked)
        self._serial += 1
        blocked.serial = self._serial
        for key in blocked.keys:
            place = (blocked.db_index, key)
            queue = self.by_key.get(place)
            if queue is None:
                queue = self.by_key[place] = Queue()
            if blocked.is_plain:
                assert blocked.group is not None, "a plain reader reads for a group"
                queue.plain.setdefault(blocked.group, {})[blocked] = blocked.serial
            elif blocked not in queue.special:
                queue.special[blocked] = blocked.serial
                queue.waking_on_loss += blocked.wakes_on_loss
        if blocked.deadline_ms:
            self._deadlines = _pushed(self._deadlines, blocked.deadline_ms, blocked, len(self.blocked))

    def leave(self, blocked: BlockedRequest, now_ms: int) -> None:
        """A request ends without being served: for IDLEGROUP, its group was read until now."""
        if blocked.group is not None:
            for key in blocked.keys:
                value = self._keyspace.databases[blocked.db_index].values.get(key)
                if isinstance(value, Stream) and value.policies is not None:
                    value.policies.note_use(blocked.group, now_ms)
        self.forget(blocked)

    def forget(self, blocked: BlockedRequest) -> None:
        """A request is not blocked any more: it was served, timed out, or its client disconnected."""
        if blocked not in self.blocked:
            return
        self.blocked.discard(blocked)
        for key in blocked.keys:
            place = (blocked.db_index, key)
            queue = self.by_key.get(place)
            if queue is None:
                continue  # a key that was named twice
            readers = None if blocked.group is None else queue.plain.get(blocked.group)
            if readers is not None and blocked.group is not None and blocked in readers:
                self._note_seen(place, queue, blocked)
                del readers[blocked]
                if not readers:
                    del queue.plain[blocked.group]
            elif queue.special.pop(blocked, None) is not None:
                queue.waking_on_loss -= blocked.wakes_on_loss
            if not queue.special and not queue.plain:
                del self.by_key[place]

    # -- ready keys -------------------------------------------------------------------------------------------------

    def signal(self, db_index: int, key: bytes) -> None:
        """Something happened to a key that its blocked readers may care for."""
        place = (db_index, key)
        if place in self.by_key and (not self.later or place not in self.later):
            self.ready[place] = None

    def next_ready(self) -> tuple[int, bytes]:
        place = next(iter(self.ready))
        del self.ready[place]
        return place

    def serve_later(self, db_index: int, key: bytes) -> None:
        """A reader of a key, blocked or not yet, has not looked at all that there is: the next tick serves the key."""
        self.later[(db_index, key)] = None

    def make_later_ready(self) -> None:
        """A tick continues with the keys that had too many readers for the tick before."""
        if self.later:
            self.ready.update(self.later)
            self.later = {}

    def serve(
        self, retry: Retry, make_consumer: MakeConsumer, db_index: int, key: bytes, now_us: int, most: int
    ) -> int:
        """Try the blocked readers of a key, first come first served, until each kind finds nothing more.

        A policy may have something for any number of them at one moment: of a stream with policies `most` are served
        now, the others later. Returns how many of `most` were served.
        """
        place = (db_index, key)
        queue = self.by_key.get(place)
        if queue is None:
            return 0
        value = self._keyspace.databases[db_index].values.get(key)
        has_policies = isinstance(value, Stream) and value.policies is not None
        count = 0
        turns: list[tuple[int, BlockedRequest]] = []
        for waiting in queue.plain.values():
            heappush(turns, _first(waiting))
        specials = iter(list(queue.special))
        if queue.special:
            self._add_special(turns, queue, specials, place, now_us)
        while turns:
            if has_policies and count >= most:
                self.later[place] = None
                break
            _, blocked = heappop(turns)
            if blocked not in self.blocked:
                continue
            served = retry(blocked, now_us)
            count += served and has_policies
            if not blocked.is_plain:
                if not served:
                    self._to_tails(blocked, key)
                self._add_special(turns, queue, specials, place, now_us)
                continue
            assert blocked.group is not None, "a plain reader reads for a group"
            readers = queue.plain.get(blocked.group)
            if readers is None:
                continue
            if served:
                heappush(turns, _first(readers))
            else:
                self._pass_over(make_consumer, queue, blocked, now_us)
        return count

    def may_take(self, blocked: BlockedRequest) -> bool:
        """Whether the next try may take something that others would have got: not one that only reads.

        A plain reader of a group without a policy takes nothing where the group has had every entry: that is what the
        last one finds. With a policy it may get what was given back.
        """
        if not blocked.row.write:
            return False
        if blocked.group is None or not blocked.is_plain:
            return True
        stream = self._keyspace.databases[blocked.db_index].values.get(blocked.keys[0])
        group = stream.groups.get(blocked.group) if isinstance(stream, Stream) else None
        if group is None or not isinstance(stream, Stream):
            return False
        return group.policy is not None or not group.has_reached(stream.last_ms, stream.last_seq)

    def _add_special(
        self,
        turns: list[tuple[int, BlockedRequest]],
        queue: Queue,
        specials: Iterator[BlockedRequest],
        place: tuple[int, bytes],
        now_us: int,
    ) -> None:
        """The next special reader takes its turn, if there still is something of its kind at the key."""
        db_index, key = place
        db = self._keyspace.databases[db_index]
        value = None if now_us // 1000 > db.expires.get(key, FOREVER_MS) else db.values.get(key)
        if value is None and not queue.waking_on_loss:
            return
        kind = type(value)
        for blocked in specials:
            if blocked in queue.special and (blocked.kind is kind or blocked.wakes_on_loss):
                heappush(turns, (queue.special[blocked], blocked))
                return

    def _to_tails(self, blocked: BlockedRequest, tried: bytes) -> None:
        """A reader of several keys that got nothing moves to the end of the queues of its other keys, as in Redis.

        At the key that was tried, later readers get nothing either, so the order does not change.
        """
        self._serial += 1
        for key in blocked.keys:
            if key != tried:
                special = self.by_key[(blocked.db_index, key)].special
                del special[blocked]
                special[blocked] = self._serial

    def _pass_over(self, make_consumer: MakeConsumer, queue: Queue, blocked: BlockedRequest, now_us: int) -> None:
        """Make the changes that a second run of all of a group's plain readers would make if they get nothing."""
        assert blocked.group is not None, "a plain reader reads for a group"
        queue.passed_ms[blocked.group] = now_us // 1000
        names = queue.lost.pop(blocked.group, set())
        stream = self._keyspace.databases[blocked.db_index].values.get(blocked.keys[0])
        group = stream.groups.get(blocked.group) if isinstance(stream, Stream) else None
        readers = queue.plain[blocked.group]
        if group is not None and queue.passed_group.get(blocked.group) is not group:
            # Another stream or group took the place of the one they blocked at (RENAME, COPY, a transaction).
            queue.passed_group[blocked.group] = group
            names = {reader.consumer for reader in readers}
        if names:
            for reader in sorted(readers, key=_consumer_of):
                if reader.consumer in names:
                    make_consumer(reader, now_us)

    # -- seen times -------------------------------------------------------------------------------------------------

    def reading_consumers(self, db_index: int, key: bytes, group: bytes) -> set[bytes]:
        """The consumers of a group that have blocked readers at a key. O(blocked readers of the key)."""
        queue = self.by_key.get((db_index, key))
        if queue is None:
            return set()
        readers = [*queue.plain.get(group, ()), *(blocked for blocked in queue.special if blocked.group == group)]
        return {blocked.consumer for blocked in readers}

    def has_reader(self, db_index: int, key: bytes, group: bytes) -> bool:
        """Whether a blocked reader of a group waits at a key. O(1), but for the readers that are not plain."""
        queue = self.by_key.get((db_index, key))
        if queue is None:
            return False
        return group in queue.plain or any(blocked.group == group for blocked in queue.special)

    def consumer_deleted(self, db_index: int, key: bytes, group: bytes, name: bytes) -> None:
        """A consumer was deleted; if it has a reader here, the next event at the key makes it anew."""
        queue = self.by_key.get((db_index, key))
        if queue is not None and any(blocked.consumer == name for blocked in queue.plain.get(group, ())):
            queue.lost.setdefault(group, set()).add(name)

    def leave_databases(self, one: int, other: int, now_ms: int) -> None:
        """As `leave_key`, for every key of two databases: they are about to change places."""
        for db_index, key in self.by_key:
            if db_index in (one, other):
                self.leave_key(db_index, key, now_ms)

    def leave_key(self, db_index: int, key: bytes, now_ms: int) -> None:
        """As `note_seen`, before a stream leaves the key or is copied: its blocked readers read until now."""
        self.note_seen(db_index, key)
        queue, stream = self.by_key.get((db_index, key)), self._keyspace.databases[db_index].values.get(key)
        if queue is not None and isinstance(stream, Stream) and stream.policies is not None:
            for group in [*queue.plain, *[blocked.group for blocked in queue.special if blocked.group is not None]]:
                stream.policies.note_use(group, now_ms)

    def note_seen(self, db_index: int, key: bytes) -> None:
        """Write down when the consumers of a key's blocked readers were last seen; it is looked for at the key."""
        place = (db_index, key)
        queue = self.by_key.get(place)
        if queue is not None:
            for readers in queue.plain.values():
                for blocked in readers:
                    self._note_seen(place, queue, blocked)

    def _note_seen(self, place: tuple[int, bytes], queue: Queue, blocked: BlockedRequest) -> None:
        assert blocked.group is not None, "a plain reader reads for a group"
        passed_ms = queue.passed_ms.get(blocked.group, 0)
        if passed_ms <= blocked.since_ms:
            return
        stream = self._keyspace.databases[place[0]].values.get(place[1])
        group = stream.groups.get(blocked.group) if isinstance(stream, Stream) else None
        consumer = group.consumers.get(blocked.consumer) if group is not None else None
        if consumer is not None:
            consumer.seen_ms = max(consumer.seen_ms, passed_ms)

    # -- time -------------------------------------------------------------------------------------------------------

    def move_deadlines(self, by_ms: int) -> None:
        """Unix time has jumped: no request waits longer or shorter by that."""
        for blocked in self.blocked:
            if blocked.deadline_ms:
                blocked.deadline_ms = max(blocked.deadline_ms + by_ms, 1)
        # The order does not change. Requests that are not blocked any more stay until they are met.
        self._deadlines = [(max(due_ms + by_ms, 1), serial, blocked) for due_ms, serial, blocked in self._deadlines]

    def claimable_at(self, blocked: BlockedRequest, when_ms: int) -> None:
        """Look again at a CLAIM reader's keys at a time; 0: nothing to wait for."""
        blocked.claimable_ms = when_ms
        if when_ms:
            self._claims = _pushed(self._claims, when_ms, blocked, len(self.blocked))

    def signal_claimable(self, now_ms: int) -> None:
        """Signal the keys of CLAIM readers that are due."""
        while self._claims and self._claims[0][0] <= now_ms:
            when_ms, _, blocked = heappop(self._claims)
            if blocked in self.blocked and blocked.claimable_ms == when_ms:
                for key in blocked.keys:
                    self.signal(blocked.db_index, key)

    def overdue(self, now_ms: int) -> list[BlockedRequest]:
        """The requests past their deadline, the earliest first."""
        found: list[BlockedRequest] = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            blocked = heappop(self._deadlines)[2]
            if blocked in self.blocked:
                found.append(blocked)
        return found

    def next_ms(self) -> int:
        """When the next deadline or CLAIM wake-up is due; 0: never."""
        if self.later:
            return AT_ONCE_MS
        if not self._deadlines and not self._claims:
            return 0
        while self._deadlines and self._deadlines[0][2] not in self.blocked:
            heappop(self._deadlines)
        while self._claims and self._claims[0][2] not in self.blocked:
            heappop(self._claims)
        due = [heap[0][0] for heap in (self._deadlines, self._claims) if heap]
        return min(due, default=0)


def _consumer_of(reader: BlockedRequest) -> bytes:
    return reader.consumer


def _first(readers: dict[BlockedRequest, int]) -> tuple[int, BlockedRequest]:
    blocked = next(iter(readers))
    return readers[blocked], blocked


def _pushed(
    heap: list[tuple[int, int, BlockedRequest]], when_ms: int, blocked: BlockedRequest, live: int
) -> list[tuple[int, int, BlockedRequest]]:
    """A heap with one more moment, and without the dead ones once they are most of it."""
    heappush(heap, (when_ms, blocked.serial, blocked))
    if len(heap) > 2 * live + 1024:
        heap = [moment for moment in heap if moment[2].session.blocked is moment[2]]
        heapify(heap)
    return heap
