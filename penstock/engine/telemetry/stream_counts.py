"""The metrics' values of streams, groups and consumers, collected as plain tuples.

The event loop collects them, so everything that a thread can compute later is left to it, also the conversion into
named tuples, which takes five times as long: StreamCounts._make(one).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from penstock.engine.memory.value_sizes import memory_usage
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending import claim_walk
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.stream import Stream


class StreamCounts(NamedTuple):
    """One stream."""

    db_index: int
    key: bytes
    length: int
    nodes: int
    groups: int
    last_id: StreamId
    max_deleted_id: StreamId
    first_id: StreamId
    entries_added: int
    parts: int  # groups, consumers and pending entries
    memory: int  # in bytes, by estimate


class GroupCounts(NamedTuple):
    """One group of a stream. `entries_read` is UNKNOWN, and `lag` None, if they cannot be computed."""

    db_index: int
    key: bytes
    name: bytes
    consumers: int
    pending: int
    released: int
    last_delivered_id: StreamId
    entries_read: int
    lag: int | None
    oldest_ms: (
        int  # when the pending entry that waits longest was delivered, unix time; claim_walk.NONE_LIVE if there is none
    )
    redeliveries: int
    dead_letters: int
    now_ms: int

    @property
    def oldest_idle_ms(self) -> int:
        return 0 if self.oldest_ms == claim_walk.NONE_LIVE else max(self.now_ms - self.oldest_ms, 0)


class ConsumerCounts(NamedTuple):
    """One consumer of a group."""

    db_index: int
    key: bytes
    group: bytes
    name: bytes
    pending: int
    seen_ms: int
    now_ms: int

    @property
    def idle_ms(self) -> int:
        return max(self.now_ms - self.seen_ms, 0)


StreamTuple: TypeAlias = tuple[int, bytes, int, int, int, StreamId, StreamId, StreamId, int, int, int]
GroupTuple: TypeAlias = tuple[int, bytes, bytes, int, int, int, StreamId, int, int | None, int, int, int, int]
LENGTH: Final = 2  # places in a StreamTuple
LAST_ID: Final = 5
ENTRIES_ADDED: Final = 8
PARTS: Final = 9
MEMORY: Final = 10
ConsumersTuple: TypeAlias = tuple[int, bytes, bytes, list[Consumer], int]  # as ConsumerCounts, of several consumers
KnownStreams: TypeAlias = dict[int, dict[bytes, StreamTuple]]  # what was collected before, by database and key


class StreamTuples:
    """The collected counts, and how many groups and consumers were left out: more than `most_parts` of them.

    The memory of a stream in `known` that has grown and lost nothing since is not estimated again: that is a third of
    the work.
    """

    def __init__(self, most_parts: int, known: KnownStreams) -> None:
        self._known = known
        self.streams: list[StreamTuple] = []
        self.groups: list[GroupTuple] = []
        self.consumers: list[ConsumersTuple] = []
        self.groups_left_out = 0
        self.consumers_left_out = 0
        self._groups_left = most_parts
        self._consumers_left = most_parts

    def collect(self, db_index: int, streams: list[tuple[bytes, Stream]], now_ms: int) -> None:
        """Collect some streams of a database. O(groups + consumers)."""
        known = self._known.get(db_index, {})
        add_group, add_consumers = self.groups.append, self.consumers.append
        for key, stream in streams:
            groups = stream.groups
            parts = len(groups)
            for group in islice(groups.values(), self._groups_left):
                name, consumers, policy = group.name, group.consumers, group.policy
                parts += len(consumers) + group.pel.count
                add_group(
                    (
                        db_index,
                        key,
                        name,
                        len(consumers),
                        group.pel.count,
                        group.pel.order.released,
                        group.last_id,
                        group.entries_read,
                        stream.lag(group),
                        claim_walk.oldest_owned_ms(group.pel.order) if group.pel.count else claim_walk.NONE_LIVE,
                        group.pel.redeliveries,
                        0 if policy is None else policy.dead_lettered,
                        now_ms,
                    )
                )
                add_consumers((db_index, key, name, list(islice(consumers.values(), self._consumers_left)), now_ms))
                self._consumers_left -= len(consumers)
                if self._consumers_left < 0:
                    self.consumers_left_out -= self._consumers_left
                    self._consumers_left = 0
            self._groups_left -= len(groups)
            if self._groups_left < 0:
                self.groups_left_out -= self._groups_left
                self._groups_left = 0
            before = known.get(key)
            if before is not None and (
                before[LENGTH] == stream.length
                and before[ENTRIES_ADDED] == stream.entries_added
                and before[LAST_ID] == stream.last_id
                and before[PARTS] == parts
            ):
                memory = before[MEMORY]
            else:
                memory = memory_usage(key, stream)
            self.streams.append(
                (
                    db_index,
                    key,
                    stream.length,
                    len(stream.nodes),
                    len(groups),
                    stream.last_id,
                    stream.max_deleted_id,
                    stream.first_id,
                    stream.entries_added,
                    parts,
                    memory,
                )
            )

    def counts_of_consumers(self) -> Iterator[ConsumerCounts]:
        """The counts of each consumer as they are now; a thread may ask."""
        for db_index, key, group, consumers, now_ms in self.consumers:
            for one in consumers:
                yield ConsumerCounts(db_index, key, group, one.name, one.pending, one.seen_ms, now_ms)

    def by_key(self) -> KnownStreams:
        """The streams that were collected, for the next time; a thread may ask."""
        found: KnownStreams = {}
        for one in self.streams:
            found.setdefault(one[0], {})[one[1]] = one
        return found
