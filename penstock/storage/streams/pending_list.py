"""The pending list of a group: blocks beside the segments, walked by id or in order of time."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

from sortedcontainers import SortedDict

from penstock.storage.streams.block_list import BlockList
from penstock.storage.streams.columns import common_length
from penstock.storage.streams.delivery_order import FROM_ID_ORDER, Arrivals, TimeOrder
from penstock.storage.streams.ids import HALF, IdColumns, StreamId
from penstock.storage.streams.pending_block import FIRST_NUMBER, IN_ID_ORDER, NOT_PENDING, RELEASED, PendingBlock

Held: TypeAlias = tuple[PendingBlock, int]  # a pending entry in hand: its block and slot
HeldRun: TypeAlias = tuple[PendingBlock, int, int]  # several: the pending slots [start, stop) of a block
_Timed: TypeAlias = tuple[int, int, int, PendingBlock, int]  # time, rank of its source, position there, block, slot


class PendingList(BlockList):
    """All that is pending, in blocks.

    One bisect finds the block, one the slot, for live and deleted pending entries alike. Where XSETID let ids go
    back, pending
    entries above the new last id are *rewound pending entries*: each in a block of its own, until their id is appended
    again.

    Invariants: every block has pending slots; `rewound pending entries` are deleted pending entries, by id; `pending`
    and `released` count slots over
    all blocks and rewound pending entries; what has an owner has a place in `order`, what is released one in its zone.
    """

    __slots__ = ("_next_block", "_next_slot", "order", "pending", "released", "rewound")

    def __init__(self) -> None:
        super().__init__()
        self.rewound: SortedDict[StreamId, PendingBlock] = SortedDict()
        self.pending = 0
        self.released = 0
        self.order = TimeOrder()
        self._next_block: PendingBlock | None = None  # where the next one to be acknowledged mostly is
        self._next_slot = 0

    # -- finding ----------------------------------------------------------------------------------------------------

    def find(self, entry_id: StreamId) -> Held | None:
        """The pending entry of an id."""
        if self.rewound:
            rewound_block = self.rewound.get(entry_id)
            if rewound_block is not None:
                return rewound_block, 0
        place = bisect_right(self.firsts, entry_id) - 1
        if place < 0:
            return None
        block = self.blocks[place]
        slot = block.find(entry_id)
        return None if slot < 0 else (block, slot)

    def _near(self, entry_id: StreamId) -> Held | None:
        """As `find`, of an id that is mostly the one behind the last that went, or the first delivered last."""
        block, slot = self._next_block, self._next_slot
        if (
            block is not None
            and slot < len(block.owners)
            and block.owners[slot]
            and block.id_at(slot) == entry_id
            and not self.rewound
        ):
            return block, slot
        return self.find(entry_id)

    def walk(self, start: StreamId) -> Iterator[Held]:
        """The pending entries from an id on, ascending by id. What is found must not change while walking."""
        if self.rewound:
            return merge(self._walk_blocks(start), self._walk_strays(start), key=id_of)
        return self._walk_blocks(start)

    def _walk_blocks(self, start: StreamId) -> Iterator[Held]:
        for block in self.blocks_from(start):
            first = block.segment.lower_bound(start) if block.first_id < start else 0
            for slot in block.slots(first):
                yield block, slot

    def _walk_strays(self, start: StreamId) -> Iterator[Held]:
        for entry_id in self.rewound.irange(start):
            yield self.rewound[entry_id], 0

    def walk_runs(self, start: StreamId) -> Iterator[HeldRun]:
        """As `walk`, neighbours together, whoever owns them. What was yielded may change while walking."""
        if self.rewound:
            for block, slot in list(self.walk(start)):
                yield block, slot, slot + 1
            return
        for block in self.blocks_from(start):
            first = block.segment.lower_bound(start) if block.first_id < start else 0
            for from_slot, to_slot in block.pending_runs(first):
                yield block, from_slot, to_slot

    def held_run(self, wanted: IdColumns, at: int) -> HeldRun | None:
        """The pending entry of the id at a place, with those behind it that the next ids name.

        None where that id is not pending.
        """
        held = self._near(wanted.ms[at] << 64 | wanted.seq[at])
        if held is None:
            return None
        block, start = held
        most = min(len(wanted.ms) - at, len(block.owners) - start)
        if most == 1:
            return block, start, start + 1
        segment = block.segment
        length = common_length(segment.ms, segment.seq, start, wanted.ms, wanted.seq, at, most)
        return block, start, block.end_of_pending(start, start + length)

    def smallest_id(self) -> StreamId:
        """The lowest pending id; there must be one."""
        ids = [self.blocks[0].id_at(self.blocks[0].first_pending())] if self.blocks else []
        return min(ids + list(self.rewound)[:1])

    def largest_id(self) -> StreamId:
        """The highest pending id; there must be one."""
        ids = [self.blocks[-1].id_at(self.blocks[-1].last_pending())] if self.blocks else []
        return max(ids + list(self.rewound)[-1:])

    # -- time order -------------------------------------------------------------------------------------------------

    def claimable(self, min_idle_ms: int, now_ms: int, most: int) -> list[Held]:
        """What XREADGROUP CLAIM may take, in its order: live pending entries that have idled long enough.

        Released ones come first and have idled since 1970; a delivery time in the future counts as idle for ever.
        Deleted pending entries are passed over and do not count.
        """
        found: list[Held] = []
        if min_idle_ms <= now_ms and self.released:
            for held in self._claimable_cells(self.order.nack_zone, True):
                if len(found) >= most:
                    return found
                found.append(held)
        for time_ms, _, _, block, slot in self._owned_in_time_order():
            if len(found) >= most or (now_ms - time_ms) & HALF < min_idle_ms:
                break
            found.append((block, slot))
        return found

    def oldest_live_ms(self) -> int:
        """The delivery time of the first live entry in time order; -1 where nothing live is pending."""
        if self.released and next(self._claimable_cells(self.order.nack_zone, True), None) is not None:
            return 0
        first = next(self._owned_in_time_order(), None)
        return -1 if first is None else first[0]

    def _owned_in_time_order(self) -> Iterator[_Timed]:
        """Live entries that have an owner. At equal times the id order came first, `odd` last (see timeorder.py)."""
        if len(self.order.recent) == self.order.recent.stale and not self.order.out_of_order:
            return self._timed_by_id()
        return merge(self._timed_by_id(), self._timed_recent(), self._timed_odd(), key=itemgetter(0, 1, 2))

    def _timed_by_id(self) -> Iterator[_Timed]:
        order = self.order
        first_found = False
        for block in self.blocks_from(order.walked):
            segment, owners, places = block.segment, block.owners, block.places
            for slot in range(segment.lower_bound(order.walked) if not first_found else 0, len(owners)):
                if owners[slot] < FIRST_NUMBER or (places is not None and places[slot]) or not segment.is_live(slot):
                    continue
                if not first_found:
                    first_found = True
                    order.walked = block.id_at(slot)
                yield block.times[slot], 0, block.id_at(slot), block, slot
        if not first_found:
            order.walked = max(order.walked, order.natural_id + 1)

    def _timed_recent(self) -> Iterator[_Timed]:
        recent = self.order.recent
        for block, slot in self._claimable_cells(recent, False):
            yield block.times[slot], 1, block.place(slot), block, slot

    def _timed_odd(self) -> Iterator[_Timed]:
        order = self.order
        for cell in list(order.out_of_order):
            held = self.find(cell[2])
            assert held is not None, "a cell of odd is taken out with its slot"
            block, slot = held
            if block.segment.is_live(slot):
                yield (*_rank(cell), block, slot)
            elif cell in order.out_of_order:
                order.out_of_order.remove(cell)
                order.deleted_pending.add(cell)

    def _claimable_cells(self, arrivals: Arrivals, released: bool) -> Iterator[Held]:
        """The live entries of a queue in order, from where the last walk found its first one."""
        first_found = False
        for index, held in self._cells(arrivals, arrivals.walked, released):
            block, slot = held
            if block.segment.is_live(slot):
                if not first_found:
                    first_found = True
                    arrivals.walked = index
                yield held
        if not first_found:
            arrivals.walked = len(arrivals)

    def _cells(self, arrivals: Arrivals, start: int, released: bool) -> Iterator[tuple[int, Held]]:
        """The cells of a queue that still count, with their index: deleted pending entries too."""
        for index, block, from_slot, to_slot in self._cell_runs(arrivals, start, released):
            for slot in range(from_slot, to_slot):
                yield index + slot - from_slot, (block, slot)

    def _cell_runs(
        self, arrivals: Arrivals, start: int, released: bool
    ) -> Iterator[tuple[int, PendingBlock, int, int]]:
        """As `_cells`, neighbours in both queue and block together: the first one's index, its slot, the last's end."""
        index = start
        while index < len(arrivals):
            place = self._place_of(arrivals.id_at(index))
            if place is None:
                index += 1
                continue
            block, slot = place
            # A rewound pending entry's id may have a slot, too, where it is pending no more.
            length = 1
            if not self.rewound:
                most = min(len(arrivals) - index, len(block.owners) - slot)
                segment = block.segment
                length = common_length(segment.ms, segment.seq, slot, arrivals.ms, arrivals.seq, index, most)
                length = self._in_block(block, slot, length)
            for from_slot, to_slot in _counting(block, slot, slot + length, arrivals.base + index - slot, released):
                yield index + from_slot - slot, block, from_slot, to_slot
            index += length

    def _in_block(self, block: PendingBlock, slot: int, length: int) -> int:
        """How many of the slots from one on, whose own id is found in this block, have ids that are.

        After ids went back the next block may have begun below the ids that this one's segment once had.
        """
        following = bisect_right(self.firsts, block.first_id)
        if following < len(self.firsts) and self.firsts[following] <= block.id_at(slot + length - 1):
            return block.segment.lower_bound(self.firsts[following]) - slot
        return length

    def _place_of(self, entry_id: StreamId) -> Held | None:
        """Where an id's slot is, pending or not, if there is a block for it."""
        if self.rewound:
            return self.find(entry_id)
        place = bisect_right(self.firsts, entry_id) - 1
        if place < 0:
            return None
        block = self.blocks[place]
        slot = block.segment.find(entry_id)
        return None if slot < 0 or slot >= len(block.owners) else (block, slot)

    def nack_zone(self) -> list[Held]:
        """All released entries in order of release, deleted pending entries too."""
        return [held for _, held in self._cells(self.order.nack_zone, 0, True)]

    def in_time_order(self) -> list[Held]:
        """All entries that have an owner, in time order, deleted pending entries too."""
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

    def recent_runs(self) -> Iterator[tuple[int, PendingBlock, int, int]]:
        """What is queued by arrival, in order, deleted pending entries too: the first one's index.

        Then neighbours in a block.
        """
        return self._cell_runs(self.order.recent, 0, False)

    def _found(self, entry_id: StreamId) -> Held:
        held = self.find(entry_id)
        assert held is not None, "a queued id is pending"
        return held


def _rank(cell: tuple[int, int, StreamId]) -> tuple[int, int, int]:
    """Where a cell of `odd` or `deleted pending entries` stands among others: its time, the rank of its source.

    Its place there.
    """
    time_ms, serial, entry_id = cell
    return (time_ms, 0, entry_id) if serial == FROM_ID_ORDER else (time_ms, 2, serial)


def in_runs(taken: list[Held]) -> list[HeldRun]:
    """Pending entries in hand, in their order, neighbours in a block together."""
    runs: list[HeldRun] = []
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


def _counting(block: PendingBlock, start: int, stop: int, ahead: int, released: bool) -> list[tuple[int, int]]:
    """The slots of [start, stop) that have the place of their cell, whose serial is `ahead` more, as runs."""
    places, owners = block.places, block.owners
    if places is None:
        return []
    if places[start:stop] == array("Q", range(start + ahead, stop + ahead)):
        whose = owners[start:stop]
        if not whose.count(NOT_PENDING) and whose.count(RELEASED) == (stop - start if released else 0):
            return [(start, stop)]
    return [
        (slot, slot + 1)
        for slot in range(start, stop)
        if places[slot] == slot + ahead and owners[slot] and (owners[slot] == RELEASED) == released
    ]


def total_of(runs: list[HeldRun]) -> int:
    """How many pending entries runs have together."""
    return sum([stop - start for _, start, stop in runs])


def each_of(runs: list[HeldRun]) -> list[Held]:
    """The pending entries of runs, one by one."""
    return [(block, slot) for block, start, stop in runs for slot in range(start, stop)]


def time_and_id(held: Held) -> tuple[int, StreamId]:
    """What a pending entry of a copy is sorted by."""
    return held[0].times[held[1]], held[0].id_at(held[1])


def id_of(held: Held) -> StreamId:
    return held[0].id_at(held[1])
