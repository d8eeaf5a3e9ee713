"""A stream put together from what a snapshot holds: live entries in order, nodes, groups with their pending entries.

Pending entries may be of ids without an entry. Segments are made when all of those are known: such an id gets a
slot, marked deleted, among the slots of the live ones.
"""

from bisect import bisect_right
from itertools import pairwise
from typing import Final

from penstock.storage.streams.entry_run import EntryRun
from penstock.storage.streams.ids import HALF, ID_BYTES, StreamId
from penstock.storage.streams.listpack_nodes import Node
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import UNKNOWN, Group
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream

NO_OWNER_YET: Final = 0  # the owner of a pending entry that no consumer claimed so far
NO_OWNER: Final = -1  # it was released
NOTHING: Final = b""  # the bytes of a deleted entry
MOST_MERGED: Final = 8192  # entries that are held before they become segments


def in_ids(texts: bytes) -> list[bytes]:
    """Ids that stand one behind the other, each of ID_BYTES."""
    return [texts[at : at + ID_BYTES] for at in range(0, len(texts), ID_BYTES)]


class NotAStream(Exception):
    """The data are not a valid stream; the text says why."""


class LoadedConsumer:
    """A consumer as it is in the file. Times are unix ms."""

    __slots__ = ("active_ms", "name", "seen_ms")

    def __init__(self, name: bytes, seen_ms: int) -> None:
        self.name = name
        self.seen_ms = seen_ms
        self.active_ms = seen_ms


class LoadedGroup:
    """A group as it is in the file: pending entries as columns, in the file's order.

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

    def add_pending(self, entry_ids: list[bytes], times_ms: list[int], counts: list[int]) -> bool:
        """Pending entries; False where an id has one already."""
        first = len(self.ids)
        self._places.update(zip(entry_ids, range(first, first + len(entry_ids)), strict=True))
        self.ids += entry_ids
        self.times += times_ms
        self.counts += counts
        self.owners += [NO_OWNER_YET] * len(entry_ids)
        return len(self._places) == len(self.ids)

    def own(self, entry_ids: list[bytes], number: int) -> bool:
        """Give pending entries to a consumer; False if one is not pending or already has an owner."""
        places, owners = self._places, self.owners
        for entry_id in entry_ids:
            place = places.get(entry_id, -1)
            if place < 0 or owners[place] != NO_OWNER_YET:
                return False
            owners[place] = number
        return True

    def release(self, entry_ids: list[bytes]) -> bool:
        """No consumer has these pending entries, which were released last, in this order; False as in `own`."""
        if not self.own(entry_ids, NO_OWNER):
            return False
        self.released += [self._places[entry_id] for entry_id in entry_ids]
        return True


class StreamBuilder:
    """Takes entries in ascending order, then groups. `stream` has its counters set by the caller.

    `run` has the last entries; `take_full_run` is to be called after something was appended to it.
    """

    __slots__ = ("_count", "_firsts", "_segments", "nodes", "run", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.nodes: list[Node] = stream.nodes
        self.run = EntryRun()
        self._count = 0  # of the entries in segments
        self._segments: list[Segment] = []  # those without live entries, too
        self._firsts: list[StreamId] = []

    def __len__(self) -> int:
        return self._count + self.run.count

    def add_all(self, ms: list[int], seq: list[int], entries: list[bytes]) -> bool:
        """Live entries, at least one; False where an id is not above the one before it."""
        if not self.run.add_all(ms, seq, entries):
            return False
        self.take_full_run()
        return True

    def take_full_run(self) -> None:
        """Make segments of the run if it is long enough."""
        if self.run.is_full():
            self._take_run()

    def _take_run(self) -> None:
        self._count += self.run.count
        self._segments += self.run.take_segments()

    def finished(self, groups: list[LoadedGroup], estimates_reads: bool) -> Stream:
        """The stream; NotAStream where the parts do not fit.  O(n log n) in what is pending, O(n) in the entries.

        estimates_reads: how far the groups have read is not known, but for what their last id tells.
        """
        stream = self.stream
        last_id = stream.last_id
        assert self.run.last_id <= last_id, "the caller has set a last id that is at least the last entry's"
        self._take_run()
        stream.length = self._count
        pending = sorted(dict.fromkeys([entry_id for group in groups for entry_id in group.ids]))  # in order, as a rule
        absent = self._absent(pending)
        if absent:
            self._merge(absent)
        self._give_segments()
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
        absent: list[bytes] = []
        at = 0
        for segment in self._segments:
            texts = in_ids(segment.id_bytes(0, len(segment)))
            stop = bisect_right(pending, texts[-1], at)
            if pending[at:stop] != texts:
                held = set(texts)
                absent += [text for text in pending[at:stop] if text not in held]
            at = stop
        return [int.from_bytes(text, "big") for text in absent + pending[at:]]

    def _merge(self, absent: list[StreamId]) -> None:
        """Give absent ids, which ascend, slots among those of the live entries, marked deleted.  O(entries)."""
        segments, self._segments = self._segments, []
        run = EntryRun()
        at, count = 0, len(absent)
        for segment in segments:
            if at == count or absent[at] > segment.last_id:
                self._take_merged(run)
                self._segments.append(segment)
                continue
            for slot, entry in enumerate(segment.entry_list(0, len(segment))):
                entry_id = segment.id_at(slot)
                while at < count and absent[at] < entry_id:
                    run.add(absent[at] >> 64, absent[at] & HALF, NOTHING)
                    at += 1
                run.add(entry_id >> 64, entry_id & HALF, entry)
            if run.count > MOST_MERGED:
                self._take_merged(run)
        for entry_id in absent[at:]:
            run.add(entry_id >> 64, entry_id & HALF, NOTHING)
        self._take_merged(run)

    def _take_merged(self, run: EntryRun) -> None:
        for segment in run.take_segments():
            segment.deleted = bytearray([begin == end for begin, end in pairwise(segment.offsets)])
            segment.live -= sum(segment.deleted)
            self._segments.append(segment)

    def _give_segments(self) -> None:
        """The stream gets its segments; the last one takes more entries if it is not full."""
        stream = self.stream
        for segment in self._segments:
            self._firsts.append(segment.first_id)
            if segment.live:
                stream.segments.append(segment)
                stream.firsts.append(segment.first_id)
            else:
                segment.drop()
        if self._segments and self._segments[-1].live:
            self._segments[-1].reopen()

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
        if NO_OWNER_YET in loaded.owners:
            raise NotAStream("a group has a pending entry that no consumer has")
        self._fill_in(group, loaded, consumers)
        for place in loaded.released:
            segment, slot = self._slot_of(int.from_bytes(loaded.ids[place], "big"))
            group.pel.force_released(segment, slot, loaded.counts[place])
        return group

    def _fill_in(self, group: Group, loaded: LoadedGroup, consumers: list[Consumer]) -> None:
        """Fill in the owned entries in order of delivery, equal times in order of ids; equal neighbours together."""
        ids, times, counts, owners = loaded.ids, loaded.times, loaded.counts, loaded.owners
        owned = [place for place, owner in enumerate(owners) if owner != NO_OWNER]
        owned.sort(key=ids.__getitem__)
        owned.sort(key=times.__getitem__)
        segment: Segment | None = None
        start = stop = first = 0  # a run of slots, and the place of its first entry
        for place in owned:
            entry_id = int.from_bytes(ids[place], "big")
            if (
                segment is not None
                and stop < len(segment.ms)
                and segment.ms[stop] << 64 | segment.seq[stop] == entry_id
                and times[place] == times[first]
                and owners[place] == owners[first]
                and counts[place] == counts[first]
            ):
                stop += 1
                continue
            if segment is not None:
                group.pel.force(segment, start, stop, consumers[owners[first] - 1], times[first], counts[first])
            segment, start = self._slot_of(entry_id)
            stop, first = start + 1, place
        if segment is not None:
            group.pel.force(segment, start, stop, consumers[owners[first] - 1], times[first], counts[first])
