"""A stream put together from what a snapshot holds: live entries in order, nodes, groups with their pending entries.

Pending entries may be of ids whose entry is gone. Segments are made when all of those are known: such an id gets a
slot, marked deleted, among the slots of the live ones.
"""

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final

from penstock.storage.streams.group import UNKNOWN, Consumer, Group
from penstock.storage.streams.ids import HALF, StreamId
from penstock.storage.streams.listpack_nodes import Node
from penstock.storage.streams.segment import MOST_BYTES, MOST_SLOTS, Segment
from penstock.storage.streams.stream import Stream

NOBODY_YET: Final = 0  # the owner of a pending entry that no consumer claimed so far
OF_NOBODY: Final = -1  # it was released


class NotAStream(Exception):
    """What was given cannot be a stream; the text says why."""


class LoadedConsumer:
    """A consumer as it was kept. Times are unix ms."""

    __slots__ = ("active_ms", "name", "seen_ms")

    def __init__(self, name: bytes, seen_ms: int) -> None:
        self.name = name
        self.seen_ms = seen_ms
        self.active_ms = seen_ms


class LoadedGroup:
    """A group as it was kept: pending entries as columns, in the order in which they came.

    An id is 16 bytes, big-endian, so that it can be a dict's key (see ids.py). `owners` has the consumers' numbers,
    from 1 on in the order of `consumers`; `released` the places of released entries, in order of release.
    """

    __slots__ = (
        "_places", "consumers", "counts", "entries_read", "ids", "last_id", "name", "owners", "released", "times",
    )  # fmt: skip

    def __init__(self, name: bytes, last_id: StreamId) -> None:
        self.name = name
        self.last_id = last_id
        self.entries_read = UNKNOWN
        self.ids: list[bytes] = []
        self.times: list[int] = []
        self.counts: list[int] = []
        self.owners: list[int] = []
        self.consumers: list[LoadedConsumer] = []
        self.released: list[int] = []
        self._places: dict[bytes, int] = {}

    def add_pending(self, entry_id: bytes, delivered_ms: int, count: int) -> bool:
        """A pending entry; False where the id has one already."""
        if entry_id in self._places:
            return False
        self._places[entry_id] = len(self.ids)
        self.ids.append(entry_id)
        self.times.append(delivered_ms)
        self.counts.append(count)
        self.owners.append(NOBODY_YET)
        return True

    def own(self, entry_id: bytes, number: int) -> bool:
        """A consumer has a pending entry; False where there is none, or it has an owner."""
        place = self._places.get(entry_id, -1)
        if place < 0 or self.owners[place] != NOBODY_YET:
            return False
        self.owners[place] = number
        return True

    def release(self, entry_id: bytes) -> bool:
        """Nobody has a pending entry, which is the last one to be released so far; False as in `own`."""
        if not self.own(entry_id, OF_NOBODY):
            return False
        self.released.append(self._places[entry_id])
        return True


class StreamBuilder:
    """Takes entries in ascending order, then groups. `stream` has its counters set by the caller."""

    __slots__ = ("_firsts", "_ms", "_parts", "_segments", "_seq", "nodes", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.nodes: list[Node] = stream.nodes
        self._ms: array[int] = array("Q")
        self._seq: array[int] = array("Q")
        self._parts: list[bytes] = []
        self._segments: list[Segment] = []  # those without live entries, too
        self._firsts: list[StreamId] = []

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, ms: int, seq: int, entry: bytes) -> bool:
        """A live entry; False where its id is not above the last one's."""
        if self._parts:
            last_ms = self._ms[-1]
            if ms < last_ms or (ms == last_ms and seq <= self._seq[-1]):
                return False
        self._ms.append(ms)
        self._seq.append(seq)
        self._parts.append(entry)
        return True

    def finished(self, groups: list[LoadedGroup], estimates_reads: bool) -> Stream:
        """The stream; NotAStream where the parts do not fit.  O(n log n) in what is pending, O(n) in the entries.

        estimates_reads: how far the groups have read is not known, but for what their last id tells.
        """
        stream = self.stream
        last_id = stream.last_id
        if self._parts and self._ms[-1] << 64 | self._seq[-1] > last_id:
            raise NotAStream("a stream has an entry above its last id")
        stream.length = len(self._parts)
        pending = sorted({entry_id for group in groups for entry_id in group.ids})
        absent = self._absent(pending)
        if absent:
            self._merge(absent)
        self._make_segments(absent)
        if pending:
            stream.last_id = max(last_id, int.from_bytes(pending[-1], "big"))
        for loaded in groups:
            if loaded.name in stream.groups:
                raise NotAStream("a stream has a group twice")
            stream.groups[loaded.name] = self._group(loaded)
        if stream.last_id != last_id:
            stream.set_last_id(last_id)  # what is pending above it was pending before ids went back
        if estimates_reads:
            for group in stream.groups.values():
                group.entries_read = stream.position(group.last_id)
        return stream

    # -- segments ---------------------------------------------------------------------------------------------------

    def _absent(self, pending: list[bytes]) -> list[StreamId]:
        """The pending ids, given in ascending order, that no live entry has."""
        absent: list[StreamId] = []
        ms, seq, count = self._ms, self._seq, len(self._ms)
        at = 0
        for text in pending:
            entry_id = int.from_bytes(text, "big")
            wanted_ms, wanted_seq = entry_id >> 64, entry_id & HALF
            if at < count and (ms[at] != wanted_ms or seq[at] != wanted_seq):
                at = bisect_left(ms, wanted_ms, at)
                at = bisect_left(seq, wanted_seq, at, bisect_right(ms, wanted_ms, at))
            if at < count and ms[at] == wanted_ms and seq[at] == wanted_seq:
                at += 1
            else:
                absent.append(entry_id)
        return absent

    def _merge(self, absent: list[StreamId]) -> None:
        """Give absent ids places among the live entries, with nothing as their bytes."""
        ms: array[int] = array("Q")
        seq: array[int] = array("Q")
        parts: list[bytes] = []
        at = 0
        for entry_id in absent:
            wanted_ms, wanted_seq = entry_id >> 64, entry_id & HALF
            stop = bisect_left(self._ms, wanted_ms, at)
            stop = bisect_left(self._seq, wanted_seq, stop, bisect_right(self._ms, wanted_ms, stop))
            ms += self._ms[at:stop]
            seq += self._seq[at:stop]
            parts += self._parts[at:stop]
            ms.append(wanted_ms)
            seq.append(wanted_seq)
            parts.append(b"")
            at = stop
        self._ms, self._seq, self._parts = ms + self._ms[at:], seq + self._seq[at:], parts + self._parts[at:]

    def _make_segments(self, absent: list[StreamId]) -> None:
        stream, parts = self.stream, self._parts
        at, count = 0, len(parts)
        while at < count:
            taken = parts[at : at + MOST_SLOTS]
            size = sum(map(len, taken))
            if size > MOST_BYTES:
                ends = list(accumulate(map(len, taken)))
                del taken[bisect_left(ends, MOST_BYTES) + 1 :]
                size = ends[len(taken) - 1]
            stop = at + len(taken)
            segment = Segment()
            segment.ms, segment.seq, segment.parts = self._ms[at:stop], self._seq[at:stop], taken
            segment.size = size
            segment.live = len(taken)
            if absent and b"" in taken:  # an entry that is there has bytes
                segment.deleted = bytearray([not part for part in taken])
                segment.live -= sum(segment.deleted)
            self._firsts.append(segment.first_id)
            self._segments.append(segment)
            if not segment.live:
                segment.drop()
            else:
                stream.segments.append(segment)
                stream.firsts.append(segment.first_id)
                if segment.is_full() or stop < count:
                    segment.seal()
            at = stop
        self._parts = []

    def _slot_of(self, entry_id: StreamId) -> tuple[Segment, int]:
        """Where an id has its slot, live or not; it must have one."""
        segment = self._segments[bisect_right(self._firsts, entry_id) - 1]
        return segment, segment.find(entry_id)

    # -- groups -----------------------------------------------------------------------------------------------------

    def _group(self, loaded: LoadedGroup) -> Group:
        group = Group(loaded.name, loaded.last_id, loaded.entries_read)
        consumers: list[Consumer] = []
        for kept in loaded.consumers:
            if kept.name in group.consumers:
                raise NotAStream("a group has a consumer twice")
            consumer = group.add_consumer(kept.name, kept.seen_ms)
            consumer.active_ms = kept.active_ms
            consumers.append(consumer)
        if NOBODY_YET in loaded.owners:
            raise NotAStream("a group has a pending entry that no consumer has")
        self._fill_in(group, loaded, consumers)
        for place in loaded.released:
            segment, slot = self._slot_of(int.from_bytes(loaded.ids[place], "big"))
            group.force_released(segment, slot, loaded.counts[place])
        return group

    def _fill_in(self, group: Group, loaded: LoadedGroup, consumers: list[Consumer]) -> None:
        """What has an owner, in order of delivery, ties in order of their ids; equal neighbours together."""
        ids, times, counts, owners = loaded.ids, loaded.times, loaded.counts, loaded.owners
        owned = [place for place, owner in enumerate(owners) if owner != OF_NOBODY]
        owned.sort(key=ids.__getitem__)
        owned.sort(key=times.__getitem__)
        segment: Segment | None = None
        start = stop = first = 0  # a run of slots, and the place of its first entry
        for place in owned:
            entry_id = int.from_bytes(ids[place], "big")
            if (
                segment is not None
                and stop < len(segment)
                and segment.id_at(stop) == entry_id
                and times[place] == times[first]
                and owners[place] == owners[first]
                and counts[place] == counts[first]
            ):
                stop += 1
                continue
            if segment is not None:
                group.force_run(segment, start, stop, consumers[owners[first] - 1], times[first], counts[first])
            segment, start = self._slot_of(entry_id)
            stop, first = start + 1, place
        if segment is not None:
            group.force_run(segment, start, stop, consumers[owners[first] - 1], times[first], counts[first])
