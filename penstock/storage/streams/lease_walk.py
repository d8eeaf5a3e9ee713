"""A group's owned entries in time order from a delivery time on, deleted pending entries included.

A walk over what was delivered at a time must not begin at the oldest entry, which may wait for long.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Final, TypeAlias

from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending_block import FIRST_NUMBER, IN_ID_ORDER, PendingBlock
from penstock.storage.streams.pending_list import PendingList

TimedSlot: TypeAlias = tuple[int, int, int, PendingBlock, int]  # time, rank of the source, position; then block, slot

BY_ID: Final = 0  # the rank of entries in id order


def owned_after(pending: PendingList, after_ms: int, from_id: StreamId) -> Iterator[TimedSlot]:
    """Entries with an owner that were delivered after a time. Those in id order must have ids from `from_id` on.

    Nothing may change while walking. O(log n), then O(1) amortized for each entry.
    """
    order = pending.order
    beginning = (after_ms + 1, 0, 0)
    return merge(
        _in_id_order(pending, after_ms, from_id),
        _recent(pending, after_ms),
        _by_cell(pending, order.out_of_order.irange(beginning)),
        _by_cell(pending, order.deleted_pending.irange(beginning)),
        key=itemgetter(0, 1, 2),
    )


def _in_id_order(pending: PendingList, after_ms: int, from_id: StreamId) -> Iterator[TimedSlot]:
    for block in pending.blocks_from(from_id):
        owners, times = block.owners, block.times
        first = block.segment.lower_bound(from_id) if block.first_id < from_id else 0
        for slot in range(first, len(owners)):
            if owners[slot] >= FIRST_NUMBER and block.place(slot) == IN_ID_ORDER and times[slot] > after_ms:
                yield times[slot], BY_ID, block.id_at(slot), block, slot


def _recent(pending: PendingList, after_ms: int) -> Iterator[TimedSlot]:
    first = bisect_right(pending.order.recent.times, after_ms)
    for index, block, start, stop in pending.recent_runs(first):
        for slot in range(start, stop):
            yield block.times[slot], 1, index + slot - start, block, slot


def _by_cell(pending: PendingList, cells: Iterable[tuple[int, int, StreamId]]) -> Iterator[TimedSlot]:
    for time_ms, serial, entry_id in cells:
        found = pending.find(entry_id)
        assert found is not None, "a queued id is pending"
        yield time_ms, 2, serial, *found
