"""Live pending entries in delivery order: what XREADGROUP CLAIM goes through, entry by entry.

A walk begins before its first entry. `advance` goes to the next one and says whether there is one; `block`, `slot` and
`time_ms` are the entry's then. Nothing may change while walking. These are no generators: in the compiled build, the
frames and tuples of three generators that are merged cost more than the rest of a claim.
"""

from collections.abc import Iterator
from typing import Final

from penstock.storage.streams.pending.delivery_order import FROM_ID_ORDER, DeliveryOrder, PendingQueue
from penstock.storage.streams.pending.pending_block import (
    FIRST_NUMBER,
    IN_ID_ORDER,
    NOT_PENDING,
    RELEASED,
    PendingBlock,
    PendingSlot,
)
from penstock.storage.streams.segment import MOST_SLOTS

NONE_LIVE: Final = -1  # in place of a delivery time


class EntryWalk:
    """One source of entries. `rank` is its rank among entries with one delivery time (see delivery_order.py)."""

    __slots__ = ("block", "order", "rank", "slot", "time_ms")

    block: PendingBlock  # not set before `advance`

    def __init__(self, order: DeliveryOrder, rank: int) -> None:
        self.order = order
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
    """Entries in id order that have an owner. Blocks behind the end of the id order have none, and are not visited.

    The first one is remembered in `claimable_from`: O(slots visited from the last one on).
    """

    __slots__ = ("_end", "_index", "_is_noted", "_next_slot")

    def __init__(self, order: DeliveryOrder) -> None:
        super().__init__(order, 0)
        start, all_blocks = order.claimable_from, order.by_id.all_blocks
        self._index = all_blocks.index_from(start)
        self._next_slot = all_blocks.blocks[self._index].slot_from(start) if all_blocks.blocks else 0
        self._is_noted = False
        self._end = order.id_order_end

    def advance(self) -> bool:
        blocks = self.order.by_id.all_blocks.blocks
        while self._index < len(blocks) and blocks[self._index].first_id <= self._end:
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
                        self.order.claimable_from = block.id_at(slot)
                    return True
            self._index += 1
            self._next_slot = 0
        if not self._is_noted:
            self.order.claimable_from = max(self.order.claimable_from, self.order.id_order_end + 1)
        return False


class QueueWalk(EntryWalk):
    """The valid cells of a queue: of the NACK zone (`released`), or of `recent`.

    The first one is remembered in the queue's `claimable_from`: O(cells visited from the last one on), O(log b) for
    each run of cells that are neighbours in a block.
    """

    __slots__ = ("_index", "_is_noted", "_queue", "_run_ahead", "_run_block", "_run_stop", "_takes_released")

    def __init__(self, order: DeliveryOrder, queue: PendingQueue, released: bool) -> None:
        super().__init__(order, 1)
        self._queue = queue
        self._takes_released = released
        self._index = queue.claimable_from
        self._is_noted = False
        # the cells before _run_stop are those of the slots of one block; a cell is _run_ahead of its slot
        self._run_block: PendingBlock | None = None
        self._run_stop = 0
        self._run_ahead = 0

    def advance(self) -> bool:
        queue = self._queue
        while self._index < len(queue.ms):
            index = self._index
            if index >= self._run_stop:
                # often no entry but the first is wanted, to be compared with another walk's
                most = MOST_SLOTS if self._run_stop else 1
                length, self._run_block, slot = self.order.by_id.slots_of(queue.ms, queue.seq, index, most)
                self._run_stop = index + length
                self._run_ahead = index - slot
            self._index += 1
            block = self._run_block
            if block is None or block.places is None:
                continue
            slot = index - self._run_ahead
            if block.places[slot] != queue.base + index:
                continue
            owner = block.owners[slot]
            if owner == NOT_PENDING or (owner == RELEASED) != self._takes_released or not block.segment.is_live(slot):
                continue
            self.block, self.slot, self.time_ms = block, slot, block.times[slot]
            if not self._is_noted:
                self._is_noted = True
                queue.claimable_from = index
            return True
        if not self._is_noted:
            queue.claimable_from = len(queue.ms)
        return False


class OutOfOrderWalk(EntryWalk):
    """The entries in `out_of_order`; those that were deleted are moved to `deleted_pending`. O(k) for k entries."""

    __slots__ = ("_cells", "_index")

    def __init__(self, order: DeliveryOrder) -> None:
        super().__init__(order, 2)
        self._cells = list(order.out_of_order)
        self._index = 0

    def advance(self) -> bool:
        order = self.order
        while self._index < len(self._cells):
            cell = self._cells[self._index]
            self._index += 1
            block, slot = order.slot_of(cell)
            if block.segment.is_live(slot):
                self.block, self.slot, self.time_ms = block, slot, cell[0]
                self.rank = 0 if cell[1] == FROM_ID_ORDER else 2
                return True
            order.out_of_order.remove(cell)
            order.deleted_pending.add(cell)
        return False


class TimeWalk:
    """All entries with an owner, in time order. At equal times: id order, then `recent`, then `out_of_order`."""

    __slots__ = ("_current", "_walks", "block", "slot", "time_ms")

    block: PendingBlock  # not set before `advance`

    def __init__(self, order: DeliveryOrder) -> None:
        self.slot = 0
        self.time_ms = 0
        self._current: EntryWalk | None = None
        self._walks: list[EntryWalk] = []  # those with an entry
        self._begin(IdWalk(order))
        if len(order.recent.ms) > order.recent.stale:
            self._begin(QueueWalk(order, order.recent, False))
        if order.out_of_order:
            self._begin(OutOfOrderWalk(order))

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


def claimable(order: DeliveryOrder, min_idle_ms: int, now_ms: int, max_count: int) -> list[PendingSlot]:
    """The entries that XREADGROUP CLAIM may take, in delivery order: live pending ones idle for min_idle_ms or longer.

    A released entry counts as idle since 1970, an entry with a delivery time in the future as idle for ever. Deleted
    pending entries are skipped and do not count.

    O(slots visited), from the first slot that can be claimed, which is cached; O(k) more for k entries out of order.
    """
    found: list[PendingSlot] = []
    if min_idle_ms <= now_ms and order.released:
        zone = QueueWalk(order, order.nack_zone, True)
        while len(found) < max_count and zone.advance():
            found.append((zone.block, zone.slot))
    walk = TimeWalk(order)
    while len(found) < max_count and walk.advance():
        if 0 <= now_ms - walk.time_ms < min_idle_ms:
            break
        found.append((walk.block, walk.slot))
    return found


def oldest_live_ms(order: DeliveryOrder) -> int:
    """The delivery time of the first live entry in delivery order: 0 if it is released, NONE_LIVE if there is none.

    Costs as `claimable` for one entry.
    """
    if order.released and QueueWalk(order, order.nack_zone, True).advance():
        return 0
    return oldest_owned_ms(order)


def oldest_owned_ms(order: DeliveryOrder) -> int:
    """As `oldest_live_ms`, for entries that have an owner."""
    walk = TimeWalk(order)
    return walk.time_ms if walk.advance() else NONE_LIVE


def live_in_time_order(order: DeliveryOrder) -> Iterator[tuple[int, PendingBlock, int]]:
    """Delivery time, block and slot of the live entries with an owner, in time order."""
    walk = TimeWalk(order)
    while walk.advance():
        yield walk.time_ms, walk.block, walk.slot
