"""A stream: entries in order of their ids, and the consumer groups that read them."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from penstock.storage.policies.stream_policies import StreamPolicies
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.ids import HALF, MAX, ZERO, IdHalves, IdRun, StreamId, halves, last_at_most
from penstock.storage.streams.listpack_nodes import Node, SameFieldEntries, StreamLimits, add_to_nodes, last_node_from
from penstock.storage.streams.pending.group import UNKNOWN, Group, memory_of_groups
from penstock.storage.streams.segment import Segment, SegmentRun, count_of, memory_of_segments, settle
from penstock.storage.streams.trim import ACKNOWLEDGED, KEEP_REFERENCES, Trim

SETTLED_AT_ONCE: Final = 2  # segments
SHORT_RUN: Final = 4  # entries; those of shorter runs are appended one by one, which is quicker then

NOT_JOINED: Final = -1
NO_ID_LEFT: Final[IdHalves] = (-1, -1)


class Stream:
    """Entries, groups, and the counters that XINFO shows.

    Invariants: all `segments` have live entries and ascend, `firsts` has their first ids; `nodes` ascend and cover all
    of them; `length` counts the live entries; no live entry is above `last_id`; no slot of a group's blocks is above
    `last_id` (such pending entries are rewound pending entries, see pending_index.py).

    In the costs, s is the number of segments, m of nodes, g of groups, b of pending blocks in a group.
    """

    __slots__ = (
        "_found_at", "_last_id", "_node_found", "entries_added", "firsts", "groups", "last_ms", "last_seq",
        "length", "limits", "max_deleted_id", "nodes", "policies", "producers", "rewound", "segments",
        "settled_segments",
    )  # fmt: skip

    def __init__(self, limits: StreamLimits, producers: Producers) -> None:
        self.limits = limits
        self.producers = producers
        self.policies: StreamPolicies | None = None
        self.segments: list[Segment] = []
        self.firsts: list[StreamId] = []
        self.nodes: list[Node] = []
        self.length = 0
        self.last_ms = self.last_seq = 0  # the halves of last_id
        self._last_id: StreamId = ZERO  # NOT_JOINED: not asked for since the halves changed
        self.max_deleted_id: StreamId = ZERO
        self.entries_added = 0
        self.groups: dict[bytes, Group] = {}
        self._found_at = self._node_found = 0  # the segment and the node found last
        self.settled_segments = 0  # so many, the oldest, need not be compressed any more
        self.rewound = False  # whether a group may have rewound pending entries

    def groups_by_name(self) -> list[Group]:
        """In ascending byte order, as Redis lists them. O(g log g)."""
        return [self.groups[name] for name in sorted(self.groups)]

    @property
    def first_id(self) -> StreamId:
        """The id of the oldest live entry; 0-0 if there is none. O(1)."""
        if not self.segments:
            return ZERO
        head = self.segments[0]
        if not head.first and head.deleted is None:
            return self.firsts[0]
        return head.id_at(head.first_live())

    @property
    def last_id(self) -> StreamId:
        """The highest id that an entry has had here, or that XSETID said. O(1)."""
        if self._last_id == NOT_JOINED:
            self._last_id = self.last_ms << 64 | self.last_seq
        return self._last_id

    @last_id.setter
    def last_id(self, last_id: StreamId) -> None:
        self._last_id = last_id
        self.last_ms, self.last_seq = halves(last_id)

    # -- appending --------------------------------------------------------------------------------------------------

    def next_id(self, now_ms: int) -> IdHalves:
        """The id for `*`; NO_ID_LEFT if there is none. O(1)."""
        if now_ms > self.last_ms:
            return now_ms, 0
        if self.last_seq < HALF:
            return self.last_ms, self.last_seq + 1
        return NO_ID_LEFT if self.last_ms == HALF else (self.last_ms + 1, 0)

    def next_id_of(self, ms: int) -> IdHalves:
        """The id for `<ms>-*`; NO_ID_LEFT if it would not be above the last one. O(1)."""
        if ms > self.last_ms:
            return ms, 0
        return NO_ID_LEFT if ms < self.last_ms or self.last_seq == HALF else (ms, self.last_seq + 1)

    def append(self, ms: int, seq: int, entry: bytes, fields: list[bytes]) -> None:
        """Append an entry, given as the bytes to send and as fields and values in turn. Its id must be above last_id.

        O(bytes), whatever the length of the stream; while groups have rewound pending entries, O(g) more, and
        Group.revive for each of them with this id.
        """
        assert ms > self.last_ms or (ms == self.last_ms and seq > self.last_seq), "ids ascend"
        size = 0
        for word in fields:
            size += len(word)
        nodes = self.nodes
        if not nodes or not nodes[-1].has_room(size, self.limits):
            nodes.append(Node(ms, seq))
        nodes[-1].add(ms, seq, fields, size)
        segments = self.segments
        segment = segments[-1] if segments and not segments[-1].sealed else self._new_segment(ms, seq)
        is_due = segment.append(ms, seq, entry)
        self.length += 1
        self.last_ms, self.last_seq, self._last_id = ms, seq, NOT_JOINED
        self.entries_added += 1
        if self.rewound:
            for group in self.groups.values():
                group.pel.revive(self.last_id, segment, len(segment) - 1)
        if is_due:
            self._look_at(segment)

    def append_run(self, run: IdRun, entries: list[bytes], fields: SameFieldEntries, at: int) -> None:
        """As `append` for as many entries as a run has ids, from entries[at] on, all with the same field names.

        O(entries). There must be no rewound pending entries.
        """
        ms, seq, count = run
        if count < SHORT_RUN:
            for place in range(count):
                self.append(ms, seq + place, entries[at + place], fields.fields(at + place))
            return
        assert ms > self.last_ms or (ms == self.last_ms and seq > self.last_seq), "ids ascend"
        assert not self.rewound, "nothing is to be revived"
        stop = at + count
        add_to_nodes(self.nodes, ms, seq, fields, at, stop, self.limits)
        segments = self.segments
        while at < stop:
            segment = segments[-1] if segments and not segments[-1].sealed else self._new_segment(ms, seq)
            taken = segment.append_run(ms, seq, entries, at, stop)
            at += taken
            seq += taken
            if segment.is_due():
                self._look_at(segment)
        self.length += count
        self.last_ms, self.last_seq, self._last_id = ms, seq - 1, NOT_JOINED
        self.entries_added += count

    def _look_at(self, segment: Segment) -> None:
        """The last segment is due: it is full, or worth being compressed once the stream rests. O(bytes)."""
        if not segment.goes_on():
            self._seal(segment)
        self.limits.packing.note(self)

    def _seal(self, segment: Segment) -> None:
        """The last segment takes no more entries; compress the one that is no longer among the newest. O(bytes).

        And one more if some are late, after loading or CONFIG SET.
        """
        segment.seal()
        limits = self.limits
        if limits.ready_segments:
            stop = min(len(self.segments) - limits.ready_segments, self.settled_segments + SETTLED_AT_ONCE)
            while self.settled_segments < stop:
                self.segments[self.settled_segments].compress(limits.compressor)
                self.settled_segments += 1

    def compress_next(self, newer: int) -> bool:
        """Compress the oldest segment that was not yet, and has so many newer ones; False if there is none.

        For a stream that gets few entries, see `settle`. O(bytes of a segment).
        """
        at = self.settled_segments
        if not self.limits.ready_segments or at >= len(self.segments) - newer:
            return False
        is_settled = settle(self.segments[at], self.limits.compressor)
        self.settled_segments += is_settled
        return is_settled

    def _new_segment(self, ms: int, seq: int) -> Segment:
        """A segment, whose first entry will have this id."""
        segment = Segment()
        self.segments.append(segment)
        self.firsts.append(ms << 64 | seq)
        return segment

    # -- reading ----------------------------------------------------------------------------------------------------

    def runs(self, start: StreamId, end: StreamId, max_count: int) -> list[SegmentRun]:
        """The live entries of [start, end] as runs of slots, oldest first, at most `max_count` entries.

        O(log s) to find the first, then O(1) for each segment, O(slots) for one with deleted entries.
        """
        found: list[SegmentRun] = []
        segments = self.segments
        is_open = end >= self.last_id
        index = max(self._index_of(start), 0)
        while index < len(segments) and max_count > 0:
            segment = segments[index]
            if self.firsts[index] > end:
                break
            first = segment.lower_bound(start) if self.firsts[index] < start else 0
            stop = len(segment.ms) if is_open or segment.last_id <= end else segment.lower_bound(end + 1)
            if segment.deleted is None:
                if first < segment.first:
                    first = segment.first
                if stop - first > max_count:
                    stop = first + max_count
                if first < stop:
                    found.append((segment, first, stop))
                    max_count -= stop - first
            else:
                for from_slot, to_slot in segment.runs(first, stop, max_count):
                    found.append((segment, from_slot, to_slot))
                    max_count -= to_slot - from_slot
            index += 1
        return found

    def unread(self, group: Group, max_count: int) -> list[SegmentRun]:
        """The live entries after the group's last-delivered id, at most `max_count`. As `runs`.

        O(1) if they all follow the slot where the group stopped reading, in the same segment: the usual case.
        """
        if not self.length or group.has_reached(self.last_ms, self.last_seq):
            return []
        segment, slot = group.read_segment, group.read_slot + 1
        if segment is not None and segment.first <= slot < len(segment.ms) and segment.deleted is None:
            stop, end = slot + max_count, len(segment.ms)
            if stop <= end or segment is self.segments[-1]:
                return [(segment, slot, min(stop, end))]
        return self.runs(group.last_id + 1, MAX, max_count)

    def runs_back(self, start: StreamId, end: StreamId, max_count: int) -> Iterator[tuple[Segment, int]]:
        """The live entries of [start, end], newest first, at most `max_count`. O(log s + slots visited)."""
        index = bisect_right(self.firsts, end) - 1
        while index >= 0 and max_count > 0:
            segment = self.segments[index]
            slot = len(segment) - 1 if segment.last_id <= end else segment.lower_bound(end + 1) - 1
            while slot >= segment.first and max_count > 0:
                if segment.is_live(slot):
                    if segment.id_at(slot) < start:
                        return
                    yield segment, slot
                    max_count -= 1
                slot -= 1
            index -= 1

    def _index_of(self, entry_id: StreamId) -> int:
        """The index of the segment that may have an id; -1 if it is below all. O(log s), O(1) near the last one."""
        self._found_at = last_at_most(self.firsts, entry_id, self._found_at)
        return self._found_at

    def find(self, entry_id: StreamId) -> tuple[Segment, int] | None:
        """The segment and slot of a live entry; None if there is no such entry. O(log s)."""
        index = self._index_of(entry_id)
        if index >= 0:
            segment = self.segments[index]
            slot = segment.find(entry_id)
            if slot >= 0 and segment.is_live(slot):
                return segment, slot
        return None

    def entry(self, entry_id: StreamId) -> bytes | None:
        """The bytes of a live entry; None if there is no such entry. O(log s)."""
        found = self.find(entry_id)
        return None if found is None else found[0].entry(found[1])

    @property
    def last_live_id(self) -> StreamId:
        """The id of the newest live entry; 0-0 if there is none. O(1)."""
        if not self.segments:
            return ZERO
        tail = self.segments[-1]
        return tail.id_at(tail.last_live())

    # -- deleting ---------------------------------------------------------------------------------------------------

    def delete(self, entry_id: StreamId) -> bool:
        """XDEL of one id; returns whether the entry was there. Its pending entries become deleted pending entries.

        O(log s + log m); O(s) or O(m) if its segment or node becomes empty.
        """
        index = self._index_of(entry_id)
        if index < 0:
            return False
        segment = self.segments[index]
        slot = segment.find(entry_id)
        if slot < 0 or not segment.is_live(slot):
            return False
        self._remove_from_node(entry_id)
        self._delete_slot(index, slot)
        self.max_deleted_id = max(self.max_deleted_id, entry_id)
        return True

    def _delete_slot(self, index: int, slot: int) -> None:
        segment = self.segments[index]
        self.forget_bytes([(segment, slot, slot + 1)])
        segment.delete(slot)
        self.length -= 1
        if not segment.live:
            self.drop_segment(index)

    def drop_segment(self, index: int) -> None:
        """All entries of a segment were deleted. O(s)."""
        self.segments.pop(index).drop()
        del self.firsts[index]
        if index < self.settled_segments:
            self.settled_segments -= 1

    def forget_bytes(self, runs: list[SegmentRun]) -> None:
        """Entries are about to be removed: MAXBYTES counts them no more."""
        if self.policies is not None and self.policies.byte_count is not None:
            for segment, start, stop in runs:
                self.policies.byte_count.forget(segment, start, stop)

    def _remove_from_node(self, entry_id: StreamId) -> None:
        """Subtract an entry, which is about to be deleted, from its node; a node without live entries is deleted."""
        index = self.node_index(entry_id)
        node = self.nodes[index]
        node.live -= 1
        if not node.live:
            del self.nodes[index]

    def node_index(self, entry_id: StreamId) -> int:
        """The index of the node of a live entry. O(log m); O(1) if it is the node found last."""
        self._node_found = last_node_from(self.nodes, entry_id, self._node_found)
        return self._node_found

    def is_referenced(self, entry_id: StreamId) -> bool:
        """Whether some group still needs an id: it has not read that far, or the id is pending there. O(g log b)."""
        ms, seq = halves(entry_id)
        groups = self.groups.values()
        return any(not group.has_reached(ms, seq) or group.pel.by_id.find(entry_id) is not None for group in groups)

    def drop_references(self, entry_id: StreamId) -> int:
        """Remove an id from every group's pending list; returns in how many it was. O(g log b)."""
        ms, seq = halves(entry_id)
        return sum([group.pel.acknowledge(ms, seq) for group in self.groups.values()])

    # -- trimming ---------------------------------------------------------------------------------------------------

    def trim(self, trim: Trim, removed_ids: list[StreamId]) -> int:
        """Trim from the oldest entry on, node by node; returns how many entries were removed. max_deleted_id stays.

        DELREF and ACKED trims append the removed ids to `removed_ids`; KEEPREF trims do not.

        KEEPREF: O(nodes and segments removed), then one shift of the lists, O(s + m). DELREF and ACKED: O(g log b) for
        each entry visited, and O(s) or O(m) for each segment or node that becomes empty.
        """
        if trim.references == KEEP_REFERENCES:
            return self._trim_nodes(trim)
        removed = 0
        index = 0
        nodes = self.nodes
        while index < len(nodes) and trim.continues(self.length, removed, nodes[index]):
            node = nodes[index]
            whole = trim.removes_whole(self.length, node)
            removed += self._trim_slots(node, trim, removed_ids)
            if not whole:
                break
            if node.live:
                index += 1
            else:
                del nodes[index]
        return removed

    def _trim_nodes(self, trim: Trim) -> int:
        """A KEEPREF trim: removes whole nodes, then part of one if the trim is exact. Returns the entries removed."""
        removed = whole = 0
        cut: Node | None = None
        for node in self.nodes:
            length = self.length - removed
            if not trim.continues(length, removed, node):
                break
            if not trim.removes_whole(length, node):
                cut = node
                break
            removed += node.live
            whole += 1
        if whole:
            self._drop_head(removed)
            del self.nodes[:whole]
        if cut is not None and not trim.approximate:
            removed += self._drop_from(cut, trim)
        return removed

    def _drop_from(self, node: Node, trim: Trim) -> int:
        """Exact trim: remove what must go from the oldest node, which cannot be removed whole.

        The node stays even if no entry in it is live: a deleted entry at its end is not below the threshold.
        """
        if trim.by_length:
            count = self.length - trim.threshold
        else:
            count = count_of(self.runs(ZERO, trim.threshold - 1, node.live))
        node.live -= count
        return self._drop_head(count)

    def _drop_head(self, count: int) -> int:
        """Remove the `count` oldest live entries."""
        if self.policies is not None and self.policies.byte_count is not None:
            self.forget_bytes(self.runs(ZERO, MAX, count))
        left = count
        whole = 0
        while whole < len(self.segments) and self.segments[whole].live <= left:
            left -= self.segments[whole].live
            whole += 1
        if whole:
            if self.groups:  # their blocks may refer to the segment, which then keeps its ids only
                for segment in self.segments[:whole]:
                    segment.drop()
            del self.segments[:whole]
            del self.firsts[:whole]
            self.settled_segments = max(self.settled_segments - whole, 0)
        if left:
            head = self.segments[0]
            head.trim_to(head.runs(head.first, len(head), left)[-1][1], left)
        self.length -= count
        return count

    def _trim_slots(self, node: Node, trim: Trim, removed_ids: list[StreamId]) -> int:
        """Trim a node entry by entry (DELREF and ACKED); returns how many entries were removed."""
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
            index = self._index_of(entry_id)
            self._delete_slot(index, self.segments[index].find(entry_id))
            removed_ids.append(entry_id)
            removed += 1
        node.live -= removed
        return removed

    # -- ids --------------------------------------------------------------------------------------------------------

    def set_last_id(self, last_id: StreamId) -> None:
        """XSETID. `last_id` may be lower than before, if no live entry is above it.

        Ids above it may then be used again. Two entries with one id in two segments could not be told apart in a block,
        so pending entries above `last_id` leave the blocks (Group.rewind_above), and the last segment, which may have
        such ids, takes no more entries. O(1); for a lower id as that function, and O(bytes of a segment).
        """
        if last_id < self.last_id:
            for group in self.groups.values():
                group.pel.rewind_above(last_id)
                self.rewound = self.rewound or bool(group.pel.by_id.rewound)
                if group.policy is not None:
                    group.policy.go_back_to(last_id)
            if self.policies is not None:
                self.policies.go_back_to(last_id)
            if self.segments and not self.segments[-1].sealed:
                self._seal(self.segments[-1])
        self.last_id = last_id

    # -- entries-read and lag (Redis 7.4.2 and later) ----------------------------------------------------------------

    def has_tombstones(self) -> bool:
        """Whether an entry may have been deleted among those that are left. O(1)."""
        return self.length > 0 and self.max_deleted_id > ZERO

    def has_tombstone_from(self, entry_id: StreamId) -> bool:
        """Whether a deleted entry may have this id or a higher one. O(1)."""
        return self.has_tombstones() and entry_id <= self.max_deleted_id

    def position(self, entry_id: StreamId) -> int:
        """How many entries were ever added up to an id; UNKNOWN if that cannot be computed after deletions. O(1)."""
        if not self.entries_added:
            return 0
        if not self.length and entry_id <= self.last_id:
            return self.entries_added
        if entry_id != ZERO and entry_id < self.max_deleted_id:
            return UNKNOWN
        if entry_id == self.last_id:
            return self.entries_added
        if entry_id > self.last_id:
            return UNKNOWN
        first_id = self.first_id
        if self.max_deleted_id == ZERO or self.max_deleted_id < first_id:
            if entry_id < first_id:
                return self.entries_added - self.length
            if entry_id == first_id:
                return self.entries_added - self.length + 1
        return UNKNOWN

    def lag(self, group: Group) -> int | None:
        """How many entries the group has yet to read; None if that cannot be computed. O(1).

        It may be negative: XSETID can set entries-added below a group's entries-read (Redis 8.6.3).
        """
        if not self.entries_added or not self.length:
            return 0
        first_id = self.first_id
        if group.last_id < first_id and self.max_deleted_id < first_id:
            return self.length
        if group.entries_read >= 0 and not self.has_tombstone_from(group.last_id):
            return self.entries_added - group.entries_read
        position = self.position(group.last_id)
        return None if position == UNKNOWN else self.entries_added - position

    def advance_group(self, group: Group, runs: list[SegmentRun]) -> None:
        """Set a group's last-delivered id and entries-read after it was handed new entries (at least one).

        O(runs); O(entries) if a deleted entry may be among them or entries-read is unknown.
        """
        count = count_of(runs)
        if self._counts_on(group):
            group.entries_read += count
        else:
            first = runs[0][0].id_at(runs[0][1])
            self._step(group, first)
            if group.entries_read >= 0 and not self.has_tombstone_from(first):
                group.entries_read += count - 1  # no deleted entry can be among the remaining ones
            else:
                self._step_over(group, runs)
        last_segment, _, stop = runs[-1]
        group.read_up_to(last_segment, stop - 1)

    def _counts_on(self, group: Group) -> bool:
        """Whether the group has read one more with each entry behind its last one: none of them was deleted."""
        if group.entries_read < 0:
            return False
        if self.segments:
            head = self.segments[0]
            slot = head.first_live()
            if not group.has_reached(head.ms[slot], head.seq[slot]):
                return False  # its last-delivered id is below `first_id`
        return not (self.has_tombstones() and group.last_id <= self.max_deleted_id)

    def _step_over(self, group: Group, runs: list[SegmentRun]) -> None:
        """Step from one entry to the next, of those behind the group's last one."""
        for segment, start, stop in runs:
            for slot in range(start, stop):
                if not group.has_reached(segment.ms[slot], segment.seq[slot]):
                    self._step(group, segment.id_at(slot))

    def _step(self, group: Group, entry_id: StreamId) -> None:
        if self._counts_on(group):
            group.entries_read += 1
        elif self.entries_added:
            group.entries_read = self.position(entry_id)
        group.last_id = entry_id

    # -- the whole stream -------------------------------------------------------------------------------------------

    def copy(self) -> "Stream":
        """A copy; the bytes of sealed segments are shared. O(segments' slots + nodes + groups)."""
        made = Stream(self.limits, self.producers.copy())
        places: dict[int, Segment] = {}
        for segment in self.segments:
            places[id(segment)] = segment.copy()
            made.segments.append(places[id(segment)])
        made.firsts, made.nodes = self.firsts[:], [node.copy() for node in self.nodes]
        made.length, made.last_id, made.max_deleted_id = self.length, self.last_id, self.max_deleted_id
        made.entries_added, made.rewound = self.entries_added, self.rewound
        made.settled_segments = self.settled_segments
        made.policies = None if self.policies is None else self.policies.copy()
        made.groups = {name: group.copy(places) for name, group in self.groups.items()}
        return made

    def memory_usage(self) -> int:
        """An estimate in bytes, from some of the segments, groups and blocks: entries, ids, nodes, producers. O(1)."""
        size = memory_of_segments(self.segments) + len(self.nodes) * 200 + 800
        if self.producers.pids:
            size += self.producers.memory_usage()
        if self.policies is not None:
            size += self.policies.memory_usage()
        return size + memory_of_groups(self.groups)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.firsts == [segment.first_id for segment in self.segments]
        assert self.firsts == sorted(self.firsts)
        assert all(segment.sealed for segment in self.segments[: self.settled_segments]), "it is open, and compressed"
        assert self.settled_segments <= len(self.segments)
        live: list[StreamId] = []
        for segment in self.segments:
            segment.check()
            assert segment.live, "an empty segment was kept"
            live += [segment.id_at(slot) for slot in range(len(segment)) if segment.is_live(slot)]
        assert live == sorted(live)
        assert len(live) == self.length == sum(node.live for node in self.nodes)
        assert not live or live[-1] <= self.last_id
        if self.policies is not None and self.policies.byte_count is not None:
            self.policies.byte_count.check(self.runs(ZERO, MAX, self.length))
        for group in self.groups.values():
            group.check()
            for block in group.pel.by_id.all_blocks.blocks:
                assert all(block.id_at(slot) <= self.last_id for slot in range(len(block.owners)) if block.owners[slot])
