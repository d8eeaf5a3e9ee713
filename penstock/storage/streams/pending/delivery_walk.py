"""A group's pending entries in time order, in runs of equal neighbours: used to write a new base file.

A million pending entries make some thousands of runs. The rewrite child that walks them therefore creates few objects
and writes to few of the memory pages that it shares with the server.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.delivery_order import FROM_ID_ORDER, DeliveryOrder
from penstock.storage.streams.pending.pending_block import (
    FIRST_NUMBER,
    IN_ID_ORDER,
    PendingBlock,
    PendingRun,
    PendingSlot,
    each_of,
)

_TimedRun: TypeAlias = tuple[int, int, int, PendingBlock, int, int]  # time, rank of the source, position; then a run


def runs_in_time_order(order: DeliveryOrder) -> Iterator[PendingRun]:
    """All entries with an owner in time order, deleted pending ones included. Nothing may change meanwhile.

    In runs with one owner, one time and one count. O(n log b) for n entries in the slots of b blocks.
    """
    alone = bool(order.out_of_order or order.deleted_pending)  # one of those may come between the entries of a run
    others = (_by_cell(order, order.out_of_order), _by_cell(order, order.deleted_pending))
    for timed in merge(_by_id(order, alone), _by_arrival(order, alone), *others, key=itemgetter(0, 1, 2)):
        yield timed[3:]


def in_time_order(order: DeliveryOrder) -> list[PendingSlot]:
    """As `runs_in_time_order`, entry by entry."""
    return each_of(list(runs_in_time_order(order)))


def _by_id(order: DeliveryOrder, alone: bool) -> Iterator[_TimedRun]:
    """The runs in id order. At equal times they come before queued entries (see delivery_order.py)."""
    for block in order.by_id.all_blocks.blocks:
        for from_slot, to_slot in block.runs():
            if block.owners[from_slot] >= FIRST_NUMBER:
                for start, stop in _equal_runs(block, from_slot, to_slot, alone):
                    for first, end in _unqueued(block, start, stop):
                        yield block.times[first], 0, block.id_at(first), block, first, end


def _by_arrival(order: DeliveryOrder, alone: bool) -> Iterator[_TimedRun]:
    """The runs queued in `recent`, in order of arrival."""
    for index, block, from_slot, to_slot in order.cell_runs(order.recent, 0, False):
        for start, stop in _equal_runs(block, from_slot, to_slot, alone):
            yield block.times[start], 1, index + start - from_slot, block, start, stop


def _by_cell(order: DeliveryOrder, cells: Iterable[tuple[int, int, StreamId]]) -> Iterator[_TimedRun]:
    """The entries out of order, and those that left id order, which keep their rank."""
    for cell in cells:
        time_ms, serial, entry_id = cell
        block, slot = order.slot_of(cell)
        rank, position = (0, entry_id) if serial == FROM_ID_ORDER else (2, serial)
        yield time_ms, rank, position, block, slot, slot + 1


def _equal_runs(block: PendingBlock, start: int, stop: int, alone: bool) -> Iterator[tuple[int, int]]:
    """The pending slots [start, stop) as runs with one owner, one time and one count, or each alone."""
    if not alone and block.is_uniform(start, stop):
        yield start, stop
        return
    owners, times, counts = block.owners, block.times, block.counts
    while start < stop:
        owner, time_ms, count = owners[start], times[start], counts[start]
        end = start + 1
        while not alone and end < stop and times[end] == time_ms and counts[end] == count and owners[end] == owner:
            end += 1
        yield start, end
        start = end


def _unqueued(block: PendingBlock, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The slots of [start, stop) that are in id order, as runs."""
    places = block.places
    if places is None:
        yield start, stop
        return
    while start < stop:
        if places[start] != IN_ID_ORDER:
            start += 1
            continue
        end = start + 1
        while end < stop and places[end] == IN_ID_ORDER:
            end += 1
        yield start, end
        start = end
