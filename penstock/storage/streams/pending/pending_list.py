"""The pending entries list (PEL) of a group: blocks parallel to the segments, walked by id or in time order."""

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, TypeAlias

from sortedcontainers import SortedDict

from penstock.native.columns import common_length, counts_up
from penstock.storage.streams.ids import HALF, IdColumns, StreamId
from penstock.storage.streams.pending.block_list import BlockList
from penstock.storage.streams.pending.claim_walk import QueueWalk, TimeWalk
from penstock.storage.streams.pending.delivery_order import FROM_ID_ORDER, ArrivalQueue, DeliveryOrder
from penstock.storage.streams.pending.pending_block import (
    FIRST_NUMBER,
    IN_ID_ORDER,
    NOT_PENDING,
    RELEASED,
    PendingBlock,
)
from penstock.storage.streams.segment import MOST_SLOTS

PendingSlot: TypeAlias = tuple[PendingBlock, int]  # a pending entry: its block and slot
PendingRun: TypeAlias = tuple[PendingBlock, int, int]  # several: the pending slots [start, stop) of a block

NONE_LIVE: Final = -1  # in place of a delivery time


class PendingList(BlockList):
    """All pending entries of a group, in blocks.

    An entry is found by one bisect for the block and one for the slot, whether the entry is live or deleted. After
    XSETID lowered the stream's last id, the pending entries above it are *rewound pending entries*: each in a block of
    its own, in `rewound`, until its id is appended again.

    Invariants: every block has pending slots; rewound pending entries are deleted pending entries; `pending` and
    `released` count slots in all blocks and in `rewound`; every entry with an owner has a place in `order`, and every
    released entry one in its NACK zone.

    In the costs, b is the number of blocks. A block has at most 128 slots.
    """

    __slots__ = ("_next_block", "_next_slot", "order", "pending", "released", "rewound")

    def __init__(self) -> None:
        super().__init__()
        self.rewound: SortedDict[StreamId, PendingBlock] = SortedDict()
        self.pending = 0
        self.released = 0
        self.order = DeliveryOrder()
        self._next_block: PendingBlock | None = None  # the slot that is probably acknowledged next
        self._next_slot = 0

    # -- finding ----------------------------------------------------------------------------------------------------

    def find(self, entry_id: StreamId) -> PendingSlot | None:
        """The block and slot of a pending id; None if it is not pending. O(log b)."""
        return self._find(entry_id >> 64, entry_id & HALF)

    def _find(self, ms: int, seq: int) -> PendingSlot | None:
        """As `find`, for an id in two halves."""
        found = self._slot_of(ms, seq)
        return None if found is None or found[0].owners[found[1]] == NOT_PENDING else found

    def _near(self, ms: int, seq: int) -> PendingSlot | None:
        """As `find`, but first tries the cached slot: the one after the last removal, or the first one delivered."""
        block, slot = self._next_block, self._next_slot
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

    def walk(self, start: StreamId) -> Iterator[PendingSlot]:
        """The pending entries from an id on, ascending by id. They must not change while walking.

        O(log b) for each block, and O(1) for each slot and each rewound pending entry.
        """
        if self.rewound:
            return merge(self._walk_blocks(start), self._walk_rewound(start), key=id_of)
        return self._walk_blocks(start)

    def _walk_blocks(self, start: StreamId) -> Iterator[PendingSlot]:
        for block in self.blocks_from(start):
            first = block.slot_from(start)
            for slot in block.slots(first):
                yield block, slot

    def _walk_rewound(self, start: StreamId) -> Iterator[PendingSlot]:
        for entry_id in self.rewound.irange(start):
            yield self.rewound[entry_id], 0

    def walk_runs(self, start: StreamId) -> Iterator[PendingRun]:
        """As `walk`, in runs of neighbours, which may have several owners. Runs already yielded may change."""
        if self.rewound:
            for block, slot in list(self.walk(start)):
                yield block, slot, slot + 1
            return
        for block in self.blocks_from(start):
            first = block.slot_from(start)
            for from_slot, to_slot in block.pending_runs(first):
                yield block, from_slot, to_slot

    def pending_run(self, wanted: IdColumns, at: int) -> PendingRun | None:
        """The pending entry with the id wanted[at], and the ones after it as far as they have the next wanted ids.

        None if wanted[at] is not pending. O(1) for the cached next slot, else O(log b); then O(length of the run).
        """
        pending_slot = self._near(wanted.ms[at], wanted.seq[at])
        if pending_slot is None:
            return None
        block, start = pending_slot
        max_count = min(len(wanted.ms) - at, len(block.owners) - start)
        if max_count == 1:
            return block, start, start + 1
        segment = block.segment
        length = common_length(segment.ms, segment.seq, start, wanted.ms, wanted.seq, at, max_count)
        return block, start, block.end_of_pending(start, start + length)

    def first(self) -> PendingSlot:
        """The pending entry with the lowest id; there must be one. O(slots of a block), for r rewound ones O(log r)."""
        if not self.blocks:
            return self.rewound.peekitem(0)[1], 0
        block = self.blocks[0]
        found = block, block.next_pending(0)
        return min(found, (self.rewound.peekitem(0)[1], 0), key=id_of) if self.rewound else found

    def last(self) -> PendingSlot:
        """As `first`, with the highest id. O(slots of a block), for r rewound ones O(log r)."""
        if not self.blocks:
            return self.rewound.peekitem(-1)[1], 0
        block = self.blocks[-1]
        found = block, block.last_pending()
        return max(found, (self.rewound.peekitem(-1)[1], 0), key=id_of) if self.rewound else found

    # -- delivery order ---------------------------------------------------------------------------------------------

    def claimable(self, min_idle_ms: int, now_ms: int, max_count: int) -> list[PendingSlot]:
        """What XREADGROUP CLAIM may take, in delivery order: live pending entries idle for at least min_idle_ms.

        A released entry counts as idle since 1970, an entry with a delivery time in the future as idle for ever.
        Deleted pending entries are skipped and do not count.

        O(slots visited), from the first slot that can be claimed, which is cached; O(k) more for k entries out of
        order.
        """
        found: list[PendingSlot] = []
        if min_idle_ms <= now_ms and self.released:
            zone = QueueWalk(self, self.order.nack_zone, True)
            while len(found) < max_count and zone.advance():
                found.append((zone.block, zone.slot))
        walk = TimeWalk(self)
        while len(found) < max_count and walk.advance():
            if 0 <= now_ms - walk.time_ms < min_idle_ms:
                break
            found.append((walk.block, walk.slot))
        return found

    def oldest_live_ms(self) -> int:
        """The delivery time of the first live entry in delivery order: 0 if it is released, NONE_LIVE if there is none.

        Costs as `claimable` for one entry.
        """
        if self.released and QueueWalk(self, self.order.nack_zone, True).advance():
            return 0
        return self.oldest_owned_ms()

    def oldest_owned_ms(self) -> int:
        """As `oldest_live_ms`, for entries that have an owner."""
        walk = TimeWalk(self)
        return walk.time_ms if walk.advance() else NONE_LIVE

    def live_in_time_order(self) -> Iterator[tuple[int, PendingBlock, int]]:
        """Delivery time, block and slot of the live entries with an owner, in time order."""
        walk = TimeWalk(self)
        while walk.advance():
            yield walk.time_ms, walk.block, walk.slot

    def _cells(self, arrivals: ArrivalQueue, start: int, released: bool) -> Iterator[tuple[int, PendingSlot]]:
        """The valid cells of a queue: index, block and slot. Includes deleted pending entries."""
        for index, block, from_slot, to_slot in self._cell_runs(arrivals, start, released):
            for slot in range(from_slot, to_slot):
                yield index + slot - from_slot, (block, slot)

    def _cell_runs(
        self, arrivals: ArrivalQueue, start: int, released: bool
    ) -> Iterator[tuple[int, PendingBlock, int, int]]:
        """As `_cells`, in runs that are neighbours in the queue and in a block: first index, block, first slot, end."""
        index = start
        while index < len(arrivals):
            length, block, slot = self.cells_at(arrivals, index, MOST_SLOTS)
            if block is not None:
                ahead = arrivals.base + index - slot
                for from_slot, to_slot in _matching_runs(block, slot, slot + length, ahead, released):
                    yield index + from_slot - slot, block, from_slot, to_slot
            index += length

    def cells_at(self, arrivals: ArrivalQueue, index: int, most: int) -> tuple[int, PendingBlock | None, int]:
        """The slots of at most `most` cells of a queue, valid or not, from an index on: how many, block and first slot.

        One cell and no block if no block covers its id. O(cells).
        """
        first = self._slot_of(arrivals.ms[index], arrivals.seq[index])
        if first is None:
            return 1, None, 0
        block, slot = first
        # With rewound pending entries, one id may be in two blocks, so runs cannot be compared by slices.
        max_count = 1 if self.rewound else min(len(arrivals) - index, len(block.owners) - slot, most)
        if max_count == 1:
            return 1, block, slot
        segment = block.segment
        length = common_length(segment.ms, segment.seq, slot, arrivals.ms, arrivals.seq, index, max_count)
        return self._in_block(block, slot, length), block, slot

    def _in_block(self, block: PendingBlock, slot: int, length: int) -> int:
        """How many of the `length` slots from `slot` on hold ids that a lookup finds in this block.

        After XSETID lowered the last id, the next block may begin at an id below some of this segment's old ids.
        """
        following = bisect_right(self.firsts, block.first_id)
        if following < len(self.firsts) and self.firsts[following] <= block.id_at(slot + length - 1):
            return block.segment.lower_bound(self.firsts[following]) - slot
        return length

    def _slot_of(self, ms: int, seq: int) -> PendingSlot | None:
        """The block and slot of an id, pending or not; None if no block covers it."""
        entry_id = ms << 64 | seq
        if self.rewound:
            rewound_block = self.rewound.get(entry_id)
            if rewound_block is not None:
                return rewound_block, 0
        index = self.index_of(entry_id)
        if index < 0:
            return None
        block = self.blocks[index]
        slot = block.segment.slot_of(ms, seq)
        return None if slot < 0 or slot >= len(block.owners) else (block, slot)

    def nack_zone(self) -> list[PendingSlot]:
        """All released entries in order of release, deleted pending entries included. O(cells of the zone)."""
        return [pending_slot for _, pending_slot in self._cells(self.order.nack_zone, 0, True)]

    def in_time_order(self) -> list[PendingSlot]:
        """All entries with an owner, in time order, deleted pending entries included.

        O(slots of all blocks), and O(log b) for each queued entry.
        """
        by_id = (
            (block.times[slot], 0, block.id_at(slot), block, slot)
            for block, slot in self._walk_blocks(0)
            if block.owners[slot] >= FIRST_NUMBER and block.place(slot) == IN_ID_ORDER
        )
        recent = (
            (block.times[slot], 1, index, block, slot)
            for index, (block, slot) in self._cells(self.order.recent, 0, False)
        )
        out_of_order = ((*_rank(cell), *self._found(cell[2])) for cell in self.order.out_of_order)
        deleted_pending = ((*_rank(cell), *self._found(cell[2])) for cell in self.order.deleted_pending)
        return [
            (cell[3], cell[4]) for cell in merge(by_id, recent, out_of_order, deleted_pending, key=itemgetter(0, 1, 2))
        ]

    def recent_runs(self, start: int = 0) -> Iterator[tuple[int, PendingBlock, int, int]]:
        """The entries queued in `recent` from an index on, in order, deleted pending entries included.

        As runs of neighbours in a block: index of the first cell, block, first slot, end.
        """
        return self._cell_runs(self.order.recent, start, False)

    def _found(self, entry_id: StreamId) -> PendingSlot:
        pending_slot = self.find(entry_id)
        assert pending_slot is not None, "a queued id is pending"
        return pending_slot

    def check_delivery_order(self) -> set[StreamId]:
        """Assert what concerns delivery order; returns the ids of the NACK zone. O(n log n)."""
        timed = self.in_time_order()
        assert len(timed) == self.pending - self.released, "an owned entry is not in time order"
        owned_ms = [block.times[slot] for block, slot in timed if block.segment.is_live(slot)]
        assert self.oldest_owned_ms() == next(iter(owned_ms), NONE_LIVE), "the oldest entry is another"
        assert [block.times[slot] for block, slot in timed] == sorted(block.times[slot] for block, slot in timed)
        zone = {block.id_at(slot) for block, slot in self.nack_zone()}
        assert len(zone) == self.released, "a released entry is not in the zone"
        return zone


def _rank(cell: tuple[int, int, StreamId]) -> tuple[int, int, int]:
    """The sort key of a cell of `out_of_order` or `deleted_pending`: time, rank of its source, position there."""
    time_ms, serial, entry_id = cell
    return (time_ms, 0, entry_id) if serial == FROM_ID_ORDER else (time_ms, 2, serial)


def in_runs(taken: list[PendingSlot]) -> list[PendingRun]:
    """Pending entries in runs: consecutive slots of one block are joined. The order stays. O(entries)."""
    runs: list[PendingRun] = []
    last: PendingBlock | None = None
    start = stop = 0
    for block, slot in taken:
        if block is last and slot == stop:
            stop += 1
            continue
        if last is not None:
            runs.append((last, start, stop))
        last, start, stop = block, slot, slot + 1
    if last is not None:
        runs.append((last, start, stop))
    return runs


def _matching_runs(block: PendingBlock, start: int, stop: int, ahead: int, released: bool) -> list[tuple[int, int]]:
    """The slots of [start, stop) whose place equals slot + `ahead`, as runs: those whose queue cells are valid.

    `released` says which queue: the NACK zone, or `recent`.
    """
    places, owners = block.places, block.owners
    if places is None:
        return []
    if counts_up(places, start, stop, start + ahead):
        run_owners = owners[start:stop]
        if not run_owners.count(NOT_PENDING) and run_owners.count(RELEASED) == (stop - start if released else 0):
            return [(start, stop)]
    return [
        (slot, slot + 1)
        for slot in range(start, stop)
        if places[slot] == slot + ahead and owners[slot] and (owners[slot] == RELEASED) == released
    ]


def total_of(runs: list[PendingRun]) -> int:
    """The number of pending entries in runs. O(runs)."""
    total = 0
    for _, start, stop in runs:
        total += stop - start
    return total


def each_of(runs: list[PendingRun]) -> list[PendingSlot]:
    """The pending entries of runs, one by one. O(entries)."""
    return [(block, slot) for block, start, stop in runs for slot in range(start, stop)]


def time_and_id(pending_slot: PendingSlot) -> tuple[int, StreamId]:
    """The sort key for a copied group: delivery time, then id."""
    return pending_slot[0].times[pending_slot[1]], pending_slot[0].id_at(pending_slot[1])


def id_of(pending_slot: PendingSlot) -> StreamId:
    """The id of a pending entry. O(1)."""
    return pending_slot[0].id_at(pending_slot[1])
