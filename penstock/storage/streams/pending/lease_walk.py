"""A group's owned entries in time order from a delivery time on, deleted pending entries included.

A walk over what was delivered at a time must not begin at the oldest entry, which may wait for long. It may end at any
entry: the next walk begins behind it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, TypeAlias

from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.delivery_order import OUT_OF_ORDER, DeliveryOrder
from penstock.storage.streams.pending.pending_block import FIRST_NUMBER, IN_ID_ORDER, PendingBlock

Cell: TypeAlias = tuple[int, int, int]  # where an entry stands: time, rank of the source, position there
TimedSlot: TypeAlias = tuple[int, int, int, PendingBlock, int]  # a cell; then block, slot

BY_ID: Final = 0  # the rank of entries in id order; their positions are ids
RECENT: Final = 1
OTHERS: Final = 2  # out of order, and deleted pending entries of that kind
LAST_POSITION: Final = 2**200


def end_of(time_ms: int) -> Cell:
    """Behind all that was delivered at a time."""
    return time_ms, OTHERS, LAST_POSITION


def cell_of(order: DeliveryOrder, entry_id: StreamId, time_ms: int) -> Cell | None:
    """Where an owned entry that was delivered at a time stands; None if it does not any more. O(log b)."""
    found = order.by_id.find(entry_id)
    if found is None:
        return None
    block, slot = found
    place = block.place(slot)
    if block.owners[slot] < FIRST_NUMBER or block.times[slot] != time_ms:
        return None
    if place == IN_ID_ORDER:
        return time_ms, BY_ID, entry_id
    if place >= OUT_OF_ORDER:
        return time_ms, OTHERS, _position(place ^ OUT_OF_ORDER, entry_id)
    return time_ms, RECENT, place - order.recent.base


def owned_after(order: DeliveryOrder, after: Cell, from_id: StreamId) -> Iterator[TimedSlot]:
    """Entries with an owner that stand behind a cell. Those in id order must have ids from `from_id` on.

    Nothing may change while walking. O(log n), then O(1) amortized for each entry.
    """
    time_ms, rank, position = after
    if rank == BY_ID:
        from_id = max(from_id, position + 1)
    first_recent = bisect_right(order.recent.times, time_ms if rank == OTHERS else time_ms - 1)
    if rank == RECENT:
        first_recent = max(first_recent, position + 1)
    serial, entry_id = divmod(position + 1, 1 << 128) if rank == OTHERS else (0, 0)
    beginning = (time_ms, serial, entry_id)
    return merge(
        _in_id_order(order, time_ms if rank == BY_ID else time_ms + 1, from_id),
        _recent(order, first_recent),
        _by_cell(order, order.out_of_order.irange(beginning)),
        _by_cell(order, order.deleted_pending.irange(beginning)),
        key=itemgetter(0, 1, 2),
    )


def _in_id_order(order: DeliveryOrder, from_ms: int, from_id: StreamId) -> Iterator[TimedSlot]:
    end = order.id_order_end
    for block in order.by_id.all_blocks.blocks_from(from_id):
        if block.first_id > end:
            return
        owners, times = block.owners, block.times
        first = block.segment.lower_bound(from_id) if block.first_id < from_id else 0
        for slot in range(first, len(owners)):
            if owners[slot] >= FIRST_NUMBER and block.place(slot) == IN_ID_ORDER and times[slot] >= from_ms:
                yield times[slot], BY_ID, block.id_at(slot), block, slot


def _recent(order: DeliveryOrder, first: int) -> Iterator[TimedSlot]:
    for index, block, start, stop in order.cell_runs(order.recent, first, False):
        for slot in range(start, stop):
            yield block.times[slot], RECENT, index + slot - start, block, slot


def _by_cell(order: DeliveryOrder, cells: Iterable[tuple[int, int, StreamId]]) -> Iterator[TimedSlot]:
    for cell in cells:
        yield cell[0], OTHERS, _position(cell[1], cell[2]), *order.slot_of(cell)


def _position(serial: int, entry_id: StreamId) -> int:
    """Ascends as the cells of one time do."""
    return serial << 128 | entry_id
