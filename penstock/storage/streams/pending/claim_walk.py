"""Live pending entries in delivery order: what XREADGROUP CLAIM goes through, entry by entry.

A walk begins before its first entry. `advance` goes to the next one and says whether there is one; `block`, `slot` and
`time_ms` are the entry's then. Nothing may change while walking. These are no generators: in the compiled build, the
frames and tuples of three generators that are merged cost more than the rest of a claim.
"""

from typing import TYPE_CHECKING

from penstock.storage.streams.pending.delivery_order import FROM_ID_ORDER, ArrivalQueue
from penstock.storage.streams.pending.pending_block import (
    FIRST_NUMBER,
    IN_ID_ORDER,
    NOT_PENDING,
    RELEASED,
    PendingBlock,
)
from penstock.storage.streams.segment import MOST_SLOTS

if TYPE_CHECKING:
    from penstock.storage.streams.pending.pending_list import PendingList


class EntryWalk:
    """One source of entries. `rank` is its rank among entries with one delivery time (see delivery_order.py)."""

    __slots__ = ("block", "pending", "rank", "slot", "time_ms")

    block: PendingBlock  # not set before `advance`

    def __init__(self, pending: "PendingList", rank: int) -> None:
        self.pending = pending
        self.rank = rank
        self.slot = 0
        self.time_ms = 0

    def advance(self) -> bool:
        raise NotImplementedError

    def is_before(self, other: "EntryWalk") -> bool:
        """Whether this walk's entry comes before that of another walk."""
        if self.time_ms != other.time_ms:
            return self.time_ms < other.time_ms
        if self.rank != other.rank:
            return self.rank < other.rank
        return self.block.id_at(self.slot) < other.block.id_at(other.slot)


class IdWalk(EntryWalk):
    """Entries in id order that have an owner.

    The first one is remembered in `claimable_from`: O(slots visited from the last one on).
    """

    __slots__ = ("_index", "_is_noted", "_next_slot")

    def __init__(self, pending: "PendingList") -> None:
        super().__init__(pending, 0)
        start = pending.order.claimable_from
        self._index = pending.index_from(start)
        self._next_slot = pending.blocks[self._index].slot_from(start) if pending.blocks else 0
        self._is_noted = False

    def advance(self) -> bool:
        blocks = self.pending.blocks
        while self._index < len(blocks):
            block = blocks[self._index]
            owners, places, segment = block.owners, block.places, block.segment
            for slot in range(self._next_slot, len(owners)):
                if (places is not None and places[slot] != IN_ID_ORDER) or owners[slot] < FIRST_NUMBER:
                    continue
                if segment.is_live(slot):
                    self.block, self.slot, self.time_ms = block, slot, block.times[slot]
                    self._next_slot = slot + 1
                    if not self._is_noted:
                        self._is_noted = True
                        self.pending.order.claimable_from = block.id_at(slot)
                    return True
            self._index += 1
            self._next_slot = 0
        if not self._is_noted:
            order = self.pending.order
            order.claimable_from = max(order.claimable_from, order.id_order_end + 1)
        return False


class QueueWalk(EntryWalk):
    """The valid cells of a queue: of the NACK zone (`released`), or of `recent`.

    The first one is remembered in the queue's `claimable_from`: O(cells visited from the last one on), O(log b) for
    each run of cells that are neighbours in a block.
    """

    __slots__ = ("_arrivals", "_index", "_is_noted", "_run_ahead", "_run_block", "_run_stop", "_takes_released")

    def __init__(self, pending: "PendingList", arrivals: ArrivalQueue, released: bool) -> None:
        super().__init__(pending, 1)
        self._arrivals = arrivals
        self._takes_released = released
        self._index = arrivals.claimable_from
        self._is_noted = False
        # the cells before _run_stop are those of the slots of one block; a cell is _run_ahead of its slot
        self._run_block: PendingBlock | None = None
        self._run_stop = 0
        self._run_ahead = 0

    def advance(self) -> bool:
        arrivals = self._arrivals
        while self._index < len(arrivals.ms):
            index = self._index
            if index >= self._run_stop:
                # often no entry but the first is wanted, to be compared with another walk's
                most = MOST_SLOTS if self._run_stop else 1
                length, self._run_block, slot = self.pending.cells_at(arrivals, index, most)
                self._run_stop = index + length
                self._run_ahead = index - slot
            self._index += 1
            block = self._run_block
            if block is None or block.places is None:
                continue
            slot = index - self._run_ahead
            if block.places[slot] != arrivals.base + index:
                continue
            owner = block.owners[slot]
            if owner == NOT_PENDING or (owner == RELEASED) != self._takes_released or not block.segment.is_live(slot):
                continue
            self.block, self.slot, self.time_ms = block, slot, block.times[slot]
            if not self._is_noted:
                self._is_noted = True
                arrivals.claimable_from = index
            return True
        if not self._is_noted:
            arrivals.claimable_from = len(arrivals.ms)
        return False


class OutOfOrderWalk(EntryWalk):
    """The entries in `out_of_order`; those that were deleted are moved to `deleted_pending`. O(k) for k entries."""

    __slots__ = ("_cells", "_index")

    def __init__(self, pending: "PendingList") -> None:
        super().__init__(pending, 2)
        self._cells = list(pending.order.out_of_order)
        self._index = 0

    def advance(self) -> bool:
        order = self.pending.order
        while self._index < len(self._cells):
            cell = self._cells[self._index]
            self._index += 1
            time_ms, serial, entry_id = cell
            pending_slot = self.pending.find(entry_id)
            assert pending_slot is not None, "a cell is removed together with its slot"
            block, slot = pending_slot
            if block.segment.is_live(slot):
                self.block, self.slot, self.time_ms = block, slot, time_ms
                self.rank = 0 if serial == FROM_ID_ORDER else 2
                return True
            order.out_of_order.remove(cell)
            order.deleted_pending.add(cell)
        return False


class TimeWalk:
    """All entries with an owner, in time order. At equal times: id order, then `recent`, then `out_of_order`."""

    __slots__ = ("_current", "_walks", "block", "slot", "time_ms")

    block: PendingBlock  # not set before `advance`

    def __init__(self, pending: "PendingList") -> None:
        self.slot = 0
        self.time_ms = 0
        self._current: EntryWalk | None = None
        self._walks: list[EntryWalk] = []  # those with an entry
        order = pending.order
        self._begin(IdWalk(pending))
        if len(order.recent.ms) > order.recent.stale:
            self._begin(QueueWalk(pending, order.recent, False))
        if order.out_of_order:
            self._begin(OutOfOrderWalk(pending))

    def _begin(self, walk: EntryWalk) -> None:
        if walk.advance():
            self._walks.append(walk)

    def advance(self) -> bool:
        """O(1) amortized, as that of the walk that has the next entry."""
        walks, current = self._walks, self._current
        if current is not None and not current.advance():
            walks.remove(current)
        if not walks:
            self._current = None
            return False
        next_walk = walks[0]
        for walk in walks:
            if walk is not next_walk and walk.is_before(next_walk):
                next_walk = walk
        self._current = next_walk
        self.block, self.slot, self.time_ms = next_walk.block, next_walk.slot, next_walk.time_ms
        return True
