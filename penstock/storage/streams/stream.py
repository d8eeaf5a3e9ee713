"""A stream: entries in order of their ids, and the groups that read them."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from penstock.storage.streams.group import Group
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.ids import HALF, MAX, ZERO, StreamId
from penstock.storage.streams.listpack_nodes import AlikeEntries, Node, NodeLimits, alike
from penstock.storage.streams.segment import Segment

KEEP_REFERENCES: Final = 0  # pending entries of a trimmed entry stay, as deleted pending entries
DELETE_REFERENCES: Final = 1  # they go with it
ACKNOWLEDGED: Final = 2  # an entry that some group still needs is not trimmed


Run: TypeAlias = tuple[Segment, int, int]  # the live slots [start, stop) of a segment


class Trim(NamedTuple):
    """What a trim is to do: `by_length` tells MAXLEN from MINID; `limit` 0 is none."""

    by_length: bool
    threshold: int  # a length, or an id
    approximate: bool
    limit: int
    references: int


class Stream:
    """Entries, groups, and the counters that XINFO shows.

    Invariants: `segments` have live entries and ascend, `firsts` holds their first ids; `nodes`
    ascend and cover all of them; `length` counts the live entries; no live entry is above `last_id`; no slot of a
    group's blocks is above `last_id` (such pending entries are rewound pending entries, see groups.py).
    """

    __slots__ = (
        "_closed",
        "entries_added",
        "firsts",
        "groups",
        "last_id",
        "length",
        "limits",
        "max_deleted_id",
        "nodes",
        "producers",
        "rewound",
        "segments",
    )  # fmt: skip

    def __init__(self, limits: NodeLimits, producers: Producers) -> None:
        self.limits = limits
        self.producers = producers
        self.segments: list[Segment] = []
        self.firsts: list[StreamId] = []
        self.nodes: list[Node] = []
        self.length = 0
        self.last_id: StreamId = ZERO
        self.max_deleted_id: StreamId = ZERO
        self.entries_added = 0
        self.groups: dict[bytes, Group] = {}
        self.rewound = False  # whether a group may hold rewound pending entries
        self._closed = False  # the last segment takes no more entries, open or not

    def groups_by_name(self) -> list[Group]:
        """In ascending byte order, as Redis lists them."""
        return [self.groups[name] for name in sorted(self.groups)]

    @property
    def first_id(self) -> StreamId:
        """The oldest live entry's id; 0-0 where there is none."""
        if not self.segments:
            return ZERO
        head = self.segments[0]
        return head.id_at(head.first_live())

    # -- appending --------------------------------------------------------------------------------------------------

    def next_id(self, now_ms: int) -> StreamId | None:
        """The id that `*` stands for; None when there is none left."""
        if now_ms > self.last_id >> 64:
            return now_ms << 64
        return None if self.last_id == MAX else self.last_id + 1

    def next_id_of(self, ms: int) -> StreamId | None:
        """The id that `<ms>-*` stands for; None when it would not be above the last one."""
        last_ms = self.last_id >> 64
        if ms > last_ms:
            return ms << 64
        return None if ms < last_ms or self.last_id & HALF == HALF else self.last_id + 1

    def append(self, entry_id: StreamId, entry: bytes, fields: list[bytes]) -> None:
        """Append an entry, given as the bytes to send and as its fields and values; the id must be above last_id."""
        assert entry_id > self.last_id, "ids ascend"
        size = sum([len(word) for word in fields])
        nodes = self.nodes
        if not nodes or not nodes[-1].has_room(size, self.limits):
            nodes.append(Node(entry_id))
        nodes[-1].add(entry_id, fields, size)
        segment = self._open_segment(entry_id)
        segment.append(entry_id, entry)
        self.length += 1
        self.last_id = entry_id
        self.entries_added += 1
        if self.rewound:
            for group in self.groups.values():
                group.revive(entry_id, segment, len(segment) - 1)
        if segment.is_full():
            segment.seal()

    def append_run(self, first_id: StreamId, entries: list[bytes], fields: list[list[bytes]]) -> None:
        """As `append` for entries whose ids follow one another from `first_id` on, all of one millisecond.

        No rewound pending entry may be there.
        """
        run = alike(fields)
        if run is not None:
            self.append_alike(first_id, entries, run)
            return
        for at, entry in enumerate(entries):
            self.append(first_id + at, entry, fields[at])

    def append_alike(self, first_id: StreamId, entries: list[bytes], run: AlikeEntries) -> None:
        """As `append_run` for entries of the same field names."""
        assert first_id > self.last_id and not self.rewound, "ids ascend, and nothing is to be revived"
        count = len(entries)
        self._note_in_nodes(first_id, run)
        at = 0
        while at < count:
            segment = self._open_segment(first_id + at)
            at += segment.append_run(first_id + at, entries, at)
            if segment.is_full():
                segment.seal()
        self.length += count
        self.last_id = first_id + count - 1
        self.entries_added += count

    def _note_in_nodes(self, first_id: StreamId, run: AlikeEntries) -> None:
        nodes, limits = self.nodes, self.limits
        at, count = 0, len(run)
        while at < count:
            taken = nodes[-1].add_run(first_id + at, run, at, limits) if nodes else 0
            if taken:
                at += taken
                continue
            size = run.words_sizes[at]
            if not nodes or not nodes[-1].has_room(size, limits):
                nodes.append(Node(first_id + at))
            nodes[-1].add(first_id + at, run.fields(at), size)
            at += 1

    def _open_segment(self, next_id: StreamId) -> Segment:
        """The segment that takes the next entry."""
        segments = self.segments
        if segments and not segments[-1].sealed and not self._closed:
            return segments[-1]
        segment = Segment()
        segments.append(segment)
        self.firsts.append(next_id)
        self._closed = False
        return segment

    # -- reading ----------------------------------------------------------------------------------------------------

    def runs(self, start: StreamId, end: StreamId, most: int) -> list[Run]:
        """The live entries of [start, end] as runs of slots, oldest first, `most` entries at the most."""
        found: list[Run] = []
        segments = self.segments
        is_open = end >= self.last_id
        place = max(bisect_right(self.firsts, start) - 1, 0)
        while place < len(segments) and most > 0:
            segment = segments[place]
            if self.firsts[place] > end:
                break
            first = segment.lower_bound(start) if self.firsts[place] < start else 0
            stop = len(segment.ms) if is_open or segment.last_id <= end else segment.lower_bound(end + 1)
            if segment.dead is None:
                if first < segment.first:
                    first = segment.first
                if stop - first > most:
                    stop = first + most
                if first < stop:
                    found.append((segment, first, stop))
                    most -= stop - first
            else:
                for from_slot, to_slot in segment.runs(first, stop, most):
                    found.append((segment, from_slot, to_slot))
                    most -= to_slot - from_slot
            place += 1
        return found

    def unread(self, group: Group, most: int) -> list[Run]:
        """The live entries behind the group's last-delivered id, `most` at the most.

        Mostly they begin in the slot behind the one where the group stopped reading.
        """
        last_id = group.last_id
        if last_id >= self.last_id or not self.length:
            return []
        segment, slot = group.read_segment, group.read_slot + 1
        if (
            segment is not None
            and segment.first <= slot
            and slot + most <= len(segment.ms)
            and segment.dead is None
            and segment.ms[slot - 1] << 64 | segment.seq[slot - 1] == last_id
        ):
            return [(segment, slot, slot + most)]
        return self.runs(last_id + 1, MAX, most)

    def runs_back(self, start: StreamId, end: StreamId, most: int) -> Iterator[tuple[Segment, int]]:
        """The live entries of [start, end] slot by slot, newest first, `most` at the most."""
        place = bisect_right(self.firsts, end) - 1
        while place >= 0 and most > 0:
            segment = self.segments[place]
            slot = len(segment) - 1 if segment.last_id <= end else segment.lower_bound(end + 1) - 1
            while slot >= segment.first and most > 0:
                if segment.is_live(slot):
                    if segment.id_at(slot) < start:
                        return
                    yield segment, slot
                    most -= 1
                slot -= 1
            place -= 1

    def find(self, entry_id: StreamId) -> tuple[Segment, int] | None:
        """The segment and slot of a live entry."""
        place = bisect_right(self.firsts, entry_id) - 1
        if place >= 0:
            segment = self.segments[place]
            slot = segment.find(entry_id)
            if slot >= 0 and segment.is_live(slot):
                return segment, slot
        return None

    def entry(self, entry_id: StreamId) -> bytes | None:
        """The bytes of a live entry."""
        found = self.find(entry_id)
        return None if found is None else found[0].entry(found[1])

    @property
    def last_live_id(self) -> StreamId:
        """The newest live entry's id; 0-0 where there is none."""
        if not self.segments:
            return ZERO
        tail = self.segments[-1]
        return tail.id_at(tail.last_live())

    # -- deleting ---------------------------------------------------------------------------------------------------

    def delete(self, entry_id: StreamId) -> bool:
        """Delete one entry by its id (XDEL).

        Whether it was there. Pending entries of it become deleted pending entries.
        """
        place = bisect_right(self.firsts, entry_id) - 1
        if place < 0:
            return False
        segment = self.segments[place]
        slot = segment.find(entry_id)
        if slot < 0 or not segment.is_live(slot):
            return False
        self._count_out(entry_id)
        self._kill(place, slot)
        if entry_id > self.max_deleted_id:
            self.max_deleted_id = entry_id
        return True

    def _kill(self, place: int, slot: int) -> None:
        segment = self.segments[place]
        segment.kill(slot)
        self.length -= 1
        if not segment.live:
            segment.drop()
            del self.segments[place]
            del self.firsts[place]

    def _count_out(self, entry_id: StreamId) -> None:
        """An entry is about to be deleted: its node has one less, and goes with the last one."""
        place = bisect_right(self.nodes, entry_id, key=_first_of) - 1
        node = self.nodes[place]
        if node.live == 1:
            del self.nodes[place]
            return
        node.live -= 1

    def is_referenced(self, entry_id: StreamId) -> bool:
        """Whether some group still needs an id: it has not read up to it, or holds it pending.

        (deleted pending entries included).
        """
        return any(entry_id > group.last_id or group.find(entry_id) is not None for group in self.groups.values())

    def drop_references(self, entry_id: StreamId) -> int:
        """Take an id out of every group's pending list; how many held it."""
        return sum(group.acknowledge(entry_id) for group in self.groups.values())

    # -- trimming ---------------------------------------------------------------------------------------------------

    def trim(self, trim: Trim, gone: list[StreamId]) -> int:
        """Trim from the oldest entry on, node by node; how many entries went. max_deleted_id stays.

        DELREF and ACKED trims add the ids that went to `gone`; others need not look at them.
        """
        if trim.references == KEEP_REFERENCES:
            return self._trim_nodes(trim)
        removed = 0
        place = 0
        nodes = self.nodes
        while place < len(nodes) and _goes_on(trim, self.length, removed, nodes[place]):
            node = nodes[place]
            whole = _takes_whole(trim, self.length, node)
            removed += self._trim_slots(node, trim, gone)
            if not whole:
                break
            if node.live:
                place += 1
            else:
                del nodes[place]
        return removed

    def _trim_nodes(self, trim: Trim) -> int:
        """A trim that heeds no group: its whole nodes are taken together. How many entries went."""
        removed = whole = 0
        cut: Node | None = None
        for node in self.nodes:
            length = self.length - removed
            if not _goes_on(trim, length, removed, node):
                break
            if not _takes_whole(trim, length, node):
                cut = node
                break
            removed += node.live
            whole += 1
        self._drop_head(removed)
        del self.nodes[:whole]
        if cut is not None and not trim.approximate:
            removed += self._drop_from(cut, trim)
        return removed

    def lengths_of_trims(self, trim: Trim, count: int) -> list[int]:
        """The lengths after each of so many appends, if each is followed by a trim of whole nodes to a length.

        Fewer of them than that length: then all that they add stays, and the node that is open now.
        """
        nodes, length = self.nodes, self.length
        place, last = 0, len(self.nodes) - 1
        lengths: list[int] = []
        for _ in range(count):
            length += 1
            removed = 0
            while place < last:
                node = nodes[place]
                if not _goes_on(trim, length, removed, node) or not _takes_whole(trim, length, node):
                    break
                length -= node.live
                removed += node.live
                place += 1
            lengths.append(length)
        return lengths

    def _drop_from(self, node: Node, trim: Trim) -> int:
        """What an exact trim still takes from the oldest node, which it cannot take whole.

        The node stays even if nothing live is left in it: a deleted entry at its end is not below the threshold.
        """
        if trim.by_length:
            count = self.length - trim.threshold
        else:
            count = count_of(self.runs(ZERO, trim.threshold - 1, node.live))
        node.live -= count
        return self._drop_head(count)

    def _drop_head(self, count: int) -> int:
        """Forget the `count` oldest live entries."""
        left = count
        gone = 0
        while gone < len(self.segments) and self.segments[gone].live <= left:
            left -= self.segments[gone].live
            gone += 1
        if self.groups:  # whose blocks may keep a segment's ids
            for segment in self.segments[:gone]:
                segment.drop()
        del self.segments[:gone]
        del self.firsts[:gone]
        if left:
            head = self.segments[0]
            *_, (_, stop) = head.runs(head.first, len(head), left)
            head.trim_to(stop, left)
        self.length -= count
        return count

    def _trim_slots(self, node: Node, trim: Trim, gone: list[StreamId]) -> int:
        """Go through a node entry by entry, as DELREF and ACKED trims do; how many went."""
        removed = 0
        ids = [
            segment.id_at(slot)
            for segment, start, stop in self.runs(node.first, node.last, node.live)
            for slot in range(start, stop)
        ]
        for entry_id in ids:
            if self.length <= trim.threshold if trim.by_length else entry_id >= trim.threshold:
                break
            if trim.references == ACKNOWLEDGED:
                if self.is_referenced(entry_id):
                    continue
            else:
                self.drop_references(entry_id)
            place = bisect_right(self.firsts, entry_id) - 1
            self._kill(place, self.segments[place].find(entry_id))
            gone.append(entry_id)
            removed += 1
        node.live -= removed
        return removed

    # -- ids --------------------------------------------------------------------------------------------------------

    def set_last_id(self, last_id: StreamId) -> None:
        """XSETID: the next id must be above `last_id`, which may be lower than before if no live entry is above it.

        Ids above it may then be used again, so pending entries of such ids leave the blocks: two entries of one id
        in two segments could not be told apart there.
        """
        if last_id < self.last_id:
            for group in self.groups.values():
                group.stray_above(last_id)
                self.rewound = self.rewound or bool(group.rewound)
            self._closed = True
        self.last_id = last_id

    # -- entries-read and lag (Redis 7.4.2 and later) ----------------------------------------------------------------

    def has_tombstone_from(self, entry_id: StreamId) -> bool:
        """Whether a deleted entry may lie at or after an id."""
        return self.length > 0 and self.max_deleted_id > ZERO and entry_id <= self.max_deleted_id

    def position(self, entry_id: StreamId) -> int:
        """How many entries were ever added up to an id; -1 where deletions make that unknowable."""
        if not self.entries_added:
            return 0
        if not self.length and entry_id <= self.last_id:
            return self.entries_added
        if entry_id != ZERO and entry_id < self.max_deleted_id:
            return -1
        if entry_id == self.last_id:
            return self.entries_added
        if entry_id > self.last_id:
            return -1
        first_id = self.first_id
        if self.max_deleted_id == ZERO or self.max_deleted_id < first_id:
            if entry_id < first_id:
                return self.entries_added - self.length
            if entry_id == first_id:
                return self.entries_added - self.length + 1
        return -1

    def lag(self, group: Group) -> int | None:
        """Entries that the group has yet to read; None where that is unknowable.

        It may be negative: XSETID can lower entries-added beneath a group's entries-read (Redis 8.6.3).
        """
        if not self.entries_added or not self.length:
            return 0
        first_id = self.first_id
        if group.last_id < first_id and self.max_deleted_id < first_id:
            return self.length
        if group.entries_read >= 0 and not self.has_tombstone_from(group.last_id):
            return self.entries_added - group.entries_read
        position = self.position(group.last_id)
        return None if position < 0 else self.entries_added - position

    def pass_to(self, group: Group, runs: list[Run]) -> None:
        """Move a group's last-delivered id and entries-read over new entries that it is handed (not empty)."""
        segment, start, _ = runs[0]
        first = segment.ms[start] << 64 | segment.seq[start]
        last_segment, _, stop = runs[-1]
        group.read_segment, group.read_slot = last_segment, stop - 1
        self._step(group, first)
        count = count_of(runs)
        if count == 1:
            return
        last = last_segment.id_at(stop - 1)
        if group.entries_read >= 0 and not self.has_tombstone_from(first):
            group.entries_read += count - 1  # no step from here on can meet a tombstone
            group.last_id = last
            return
        for segment, start, stop in runs:
            for slot in range(start, stop):
                if segment.id_at(slot) > first:
                    self._step(group, segment.id_at(slot))

    def _step(self, group: Group, entry_id: StreamId) -> None:
        if group.entries_read >= 0 and group.last_id >= self.first_id and not self.has_tombstone_from(group.last_id):
            group.entries_read += 1
        elif self.entries_added:
            group.entries_read = self.position(entry_id)
        group.last_id = entry_id

    # -- the whole --------------------------------------------------------------------------------------------------

    def copy(self) -> "Stream":
        """A stream of equal content; sealed bytes are shared."""
        twin = Stream(self.limits, self.producers.copy())
        places: dict[int, Segment] = {}
        for segment in self.segments:
            places[id(segment)] = segment.copy()
            twin.segments.append(places[id(segment)])
        twin.firsts = self.firsts[:]
        twin.nodes = [node.copy() for node in self.nodes]
        twin.length, twin.last_id, twin.max_deleted_id = self.length, self.last_id, self.max_deleted_id
        twin.entries_added, twin.rewound, twin._closed = self.entries_added, self.rewound, self._closed
        twin.groups = {name: group.copy(places) for name, group in self.groups.items()}
        return twin

    def memory_usage(self) -> int:
        """Bytes that the stream holds, by its own accounts: entries, ids, pending slots and their keeping."""
        slots = sum(map(len, self.segments))
        size = sum(segment.size for segment in self.segments) + slots * 20 + len(self.segments) * 600
        size += sum(34 * len(segment.parts) for segment in self.segments) + len(self.nodes) * 200 + 800
        return size + self.producers.memory_usage() + sum(group.memory_usage() for group in self.groups.values())

    def check(self) -> None:
        """Assert the invariants."""
        assert self.firsts == [segment.first_id for segment in self.segments]
        assert self.firsts == sorted(self.firsts)
        live: list[StreamId] = []
        for segment in self.segments:
            segment.check()
            assert segment.live, "an empty segment was kept"
            live += [segment.id_at(slot) for slot in range(len(segment)) if segment.is_live(slot)]
        assert live == sorted(live)
        assert len(live) == self.length == sum(node.live for node in self.nodes)
        assert not live or live[-1] <= self.last_id
        for group in self.groups.values():
            group.check()
            for block in group.blocks:
                assert all(block.id_at(slot) <= self.last_id for slot in range(len(block.owners)) if block.owners[slot])


def _first_of(node: Node) -> StreamId:
    return node.first


def _goes_on(trim: Trim, length: int, removed: int, node: Node) -> bool:
    """Whether a trim that has removed so many entries and left a stream of so many may look at the next node."""
    if trim.by_length and length <= trim.threshold:
        return False
    return not trim.limit or removed + node.live <= trim.limit


def _takes_whole(trim: Trim, length: int, node: Node) -> bool:
    """Whether nothing of the oldest node is to stay, where a stream has so many entries."""
    return length - node.live >= trim.threshold if trim.by_length else node.last < trim.threshold


def count_of(runs: list[Run]) -> int:
    """How many entries runs have together."""
    return sum([stop - start for _, start, stop in runs])
