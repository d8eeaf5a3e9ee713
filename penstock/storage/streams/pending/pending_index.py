"""Where the pending entries of a group are: blocks parallel to the segments, found and walked by id."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge
from itertools import takewhile
from typing import TYPE_CHECKING

from sortedcontainers import SortedDict

from penstock.native.columns import common_length
from penstock.storage.streams.ids import HALF, IdColumns, StreamId
from penstock.storage.streams.pending.block_list import BlockList
from penstock.storage.streams.pending.pending_block import NOT_PENDING, PendingBlock, PendingRun, PendingSlot, id_of

if TYPE_CHECKING:
    from penstock.storage.streams.segment import Segment


class PendingIndex:
    """All blocks of a group.

    An entry is found by one bisect for the block and one for the slot, whether the entry is live or deleted. After
    XSETID lowered the stream's last id, the pending entries above it are *rewound pending entries*: each in a block of
    its own, in `rewound`, until its id is appended again.

    Invariants: every block has pending slots; rewound pending entries are deleted pending entries.

    In the costs, b is the number of blocks. A block has at most 128 slots.
    """

    __slots__ = ("_emptied", "all_blocks", "next_block", "next_slot", "rewound")

    def __init__(self) -> None:
        self.all_blocks = BlockList()
        self.rewound: SortedDict[StreamId, PendingBlock] = SortedDict()
        self.next_block: PendingBlock | None = None  # the slot that is probably acknowledged next
        self.next_slot = 0
        self._emptied: PendingBlock | None = None  # the last block that became empty, kept until it is used again

    def find(self, entry_id: StreamId) -> PendingSlot | None:
        """The block and slot of a pending id; None if it is not pending. O(log b)."""
        return self._find(entry_id >> 64, entry_id & HALF)

    def _find(self, ms: int, seq: int) -> PendingSlot | None:
        """As `find`, for an id in two halves."""
        found = self._slot_of(ms, seq)
        return None if found is None or found[0].owners[found[1]] == NOT_PENDING else found

    def near(self, ms: int, seq: int) -> PendingSlot | None:
        """As `find`, but first tries the cached slot: the one after the last removal, or the first one delivered."""
        block, slot = self.next_block, self.next_slot
        if (
            block is not None
            and slot < len(block.owners)
            and block.owners[slot]
            and block.segment.seq[slot] == seq
            and block.segment.ms[slot] == ms
            and not self.rewound
        ):
            return block, slot
        return self._find(ms, seq)

    def pending_run(self, wanted: IdColumns, at: int) -> PendingRun | None:
        """The pending entry with the id wanted[at], and the ones after it as far as they have the next wanted ids.

        None if wanted[at] is not pending. O(1) for the cached next slot, else O(log b); then O(length of the run).
        """
        pending_slot = self.near(wanted.ms[at], wanted.seq[at])
        if pending_slot is None:
            return None
        block, start = pending_slot
        max_count = min(len(wanted.ms) - at, len(block.owners) - start)
        if max_count == 1:
            return block, start, start + 1
        segment = block.segment
        length = common_length(segment.ms, segment.seq, start, wanted.ms, wanted.seq, at, max_count)
        return block, start, block.end_of_pending(start, start + length)

    def slots_of(self, ms: "array[int]", seq: "array[int]", at: int, most: int) -> tuple[int, PendingBlock | None, int]:
        """The slots of an id, pending or not, and of those behind it in its columns as far as they are neighbours.

        How many, at most `most`; block and first slot. One and no block if no block covers the id. O(slots).
        """
        first = self._slot_of(ms[at], seq[at])
        if first is None:
            return 1, None, 0
        block, slot = first
        # With rewound pending entries, one id may be in two blocks, so runs cannot be compared by slices.
        max_count = 1 if self.rewound else min(len(ms) - at, len(block.owners) - slot, most)
        if max_count == 1:
            return 1, block, slot
        segment = block.segment
        length = common_length(segment.ms, segment.seq, slot, ms, seq, at, max_count)
        return self._in_block(block, slot, length), block, slot

    def _in_block(self, block: PendingBlock, slot: int, length: int) -> int:
        """How many of the `length` slots from `slot` on hold ids that a lookup finds in this block.

        After XSETID lowered the last id, the next block may begin at an id below some of this segment's old ids.
        """
        firsts = self.all_blocks.firsts
        following = bisect_right(firsts, block.first_id)
        if following < len(firsts) and firsts[following] <= block.id_at(slot + length - 1):
            return block.segment.lower_bound(firsts[following]) - slot
        return length

    def _slot_of(self, ms: int, seq: int) -> PendingSlot | None:
        """The block and slot of an id, pending or not; None if no block covers it."""
        entry_id = ms << 64 | seq
        if self.rewound:
            rewound_block = self.rewound.get(entry_id)
            if rewound_block is not None:
                return rewound_block, 0
        index = self.all_blocks.index_of(entry_id)
        if index < 0:
            return None
        block = self.all_blocks.blocks[index]
        slot = block.segment.slot_of(ms, seq)
        return None if slot < 0 or slot >= len(block.owners) else (block, slot)

    def walk(self, start: StreamId) -> Iterator[PendingSlot]:
        """The pending entries from an id on, ascending by id. They must not change while walking.

        O(log b) for each block, and O(1) for each slot and each rewound pending entry.
        """
        if self.rewound:
            return merge(self.walk_blocks(start), self.walk_rewound(start), key=id_of)
        return self.walk_blocks(start)

    def between(self, start: StreamId, stop: StreamId) -> list[PendingSlot]:
        """The pending entries from `start` to below `stop`, ascending. O(log b), and O(1) for each; O(1) for none."""
        return [] if start >= stop else list(takewhile(lambda found: id_of(found) < stop, self.walk(start)))

    def walk_blocks(self, start: StreamId) -> Iterator[PendingSlot]:
        """As `walk`, without rewound pending entries."""
        for block in self.all_blocks.blocks_from(start):
            first = block.slot_from(start)
            for slot in block.slots(first):
                yield block, slot

    def walk_rewound(self, start: StreamId) -> Iterator[PendingSlot]:
        """As `walk`, rewound pending entries only."""
        for entry_id in self.rewound.irange(start):
            yield self.rewound[entry_id], 0

    def walk_runs(self, start: StreamId) -> Iterator[PendingRun]:
        """As `walk`, in runs of neighbours, which may have several owners. Runs already yielded may change."""
        if self.rewound:
            for block, slot in list(self.walk(start)):
                yield block, slot, slot + 1
            return
        for block in self.all_blocks.blocks_from(start):
            first = block.slot_from(start)
            for from_slot, to_slot in block.pending_runs(first):
                yield block, from_slot, to_slot

    def first(self) -> PendingSlot:
        """The pending entry with the lowest id; there must be one. O(slots of a block), for r rewound ones O(log r)."""
        if not self.all_blocks.blocks:
            return self.rewound.peekitem(0)[1], 0
        block = self.all_blocks.blocks[0]
        found = block, block.first_pending()
        return min(found, (self.rewound.peekitem(0)[1], 0), key=id_of) if self.rewound else found

    def last(self) -> PendingSlot:
        """As `first`, with the highest id. O(slots of a block), for r rewound ones O(log r)."""
        if not self.all_blocks.blocks:
            return self.rewound.peekitem(-1)[1], 0
        block = self.all_blocks.blocks[-1]
        found = block, block.last_pending()
        return max(found, (self.rewound.peekitem(-1)[1], 0), key=id_of) if self.rewound else found

    def every_block(self) -> list[PendingBlock]:
        """All blocks, those of rewound pending entries last. O(b)."""
        return [*self.all_blocks.blocks, *self.rewound.values()]

    def block_of(self, segment: "Segment") -> PendingBlock:
        """The block of a segment, created if there is none. The caller must then fill a slot in it."""
        blocks = self.all_blocks.blocks
        if blocks and blocks[-1].segment is segment:
            return blocks[-1]
        block, self._emptied = self._emptied, None
        if block is None or block.segment is not segment:
            index = self.all_blocks.index_of(segment.first_id)
            if index >= 0 and blocks[index].segment is segment:
                return blocks[index]
            block = PendingBlock(segment)
        self.all_blocks.add(block)
        return block

    def remove(self, block: PendingBlock) -> None:
        """Remove a block that became empty."""
        if self.is_rewound(block):
            del self.rewound[block.first_id]
        else:
            self.all_blocks.drop(block)
            self._emptied = block

    def is_rewound(self, block: PendingBlock) -> bool:
        """Whether a block is that of a rewound pending entry. O(1)."""
        return bool(self.rewound) and self.rewound.get(block.first_id) is block

    def copy(self, copies: "dict[int, Segment]") -> "PendingIndex":
        """A copy beside copied segments; `copies` maps the id() of a segment to its copy. O(slots)."""
        copied = PendingIndex()
        copied.all_blocks.firsts = self.all_blocks.firsts[:]
        copied.all_blocks.blocks = [
            block.copy(copies.get(id(block.segment), block.segment)) for block in self.all_blocks.blocks
        ]
        copied.rewound = SortedDict({entry_id: block.copy(block.segment) for entry_id, block in self.rewound.items()})
        return copied

    def check(self) -> None:
        """Assert the invariants."""
        self.all_blocks.check_order()
        for block in self.every_block():
            block.check()
        for entry_id, block in self.rewound.items():
            assert block.first_id == entry_id and not block.segment.is_live(0)
