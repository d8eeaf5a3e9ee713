"""A group's pending entries in time order, in runs of equal neighbours: used to write a new base file.

A million pending entries make some thousands of runs. The rewrite child that walks them therefore creates few objects
and writes to few of the memory pages that it shares with the server.
"""

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import TypeAlias

from penstock.storage.streams.pending.pending_block import FIRST_NUMBER, IN_ID_ORDER, PendingBlock
from penstock.storage.streams.pending.pending_list import PendingList, PendingRun

_TimedRun: TypeAlias = tuple[int, int, int, PendingBlock, int, int]  # time, rank of the source, position; then a run


def runs_in_time_order(pending: PendingList) -> Iterator[PendingRun]:
    """As `PendingList.in_time_order`, in runs with one owner, one time and one count. Nothing may change meanwhile.

    O(n) in the slots of the group's blocks; if entries are out of order, all n are first put in one list.
    """
    order = pending.order
    if order.out_of_order or order.deleted_pending:  # one of those may come between the entries of a run
        for block, slot in pending.in_time_order():
            yield block, slot, slot + 1
        return
    for timed in merge(_by_id(pending), _by_arrival(pending), key=itemgetter(0, 1, 2)):
        yield timed[3:]


def _by_id(pending: PendingList) -> Iterator[_TimedRun]:
    """The runs in id order. At equal times they come before queued entries (see delivery_order.py)."""
    for block in pending.blocks:
        for from_slot, to_slot in block.runs():
            if block.owners[from_slot] >= FIRST_NUMBER:
                for start, stop in _equal_runs(block, from_slot, to_slot):
                    for first, end in _unqueued(block, start, stop):
                        yield block.times[first], 0, block.id_at(first), block, first, end


def _by_arrival(pending: PendingList) -> Iterator[_TimedRun]:
    """The runs queued in `recent`, in order of arrival."""
    for index, block, from_slot, to_slot in pending.recent_runs():
        for start, stop in _equal_runs(block, from_slot, to_slot):
            yield block.times[start], 1, index + start - from_slot, block, start, stop


def _equal_runs(block: PendingBlock, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The pending slots [start, stop) as runs with one owner, one time and one count."""
    if block.is_uniform(start, stop):
        yield start, stop
        return
    owners, times, counts = block.owners, block.times, block.counts
    while start < stop:
        owner, time_ms, count = owners[start], times[start], counts[start]
        end = start + 1
        while end < stop and times[end] == time_ms and counts[end] == count and owners[end] == owner:
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
