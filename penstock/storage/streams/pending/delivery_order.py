"""Delivery order: the order in which XREADGROUP CLAIM walks a group's pending entries.

First the NACK zone, in order of release; then entries with an owner by delivery time (*time order*), ties in order of
arrival. Most entries need no queue: as long as the clock does not step back, the entries that `>` delivers are in
time order if they are read by id. They stay in place (IN_ID_ORDER). Other entries are in one of three queues:

* `nack_zone`: released entries, in order of release;
* `recent`: entries with a new delivery time not below the last one queued, in order of arrival. It has columns, so
  that reading a history of a hundred entries again takes a few slices;
* `out_of_order`: the others, sorted by time: the client set IDLE or TIME, or the clock stepped back.

The place of a slot says where the entry is queued: IN_ID_ORDER; its serial in `recent` (in `nack_zone` if it is
RELEASED); or OUT_OF_ORDER | its serial in `out_of_order`. A cell of a queue is valid only while its slot still has
that place. An entry may be added in id order only if its time is above all queued times, so at equal times the
entries in id order come first.

Example. Entries 1-0, 2-0 and 3-0 are delivered at time 100: all three are in id order. 1-0 is claimed at 200: it gets
serial 1 in `recent`. 2-0 is claimed with TIME 150, below 200: it goes to `out_of_order` as (150, 1, 2-0). 3-0 is
released by XNACK: it gets serial 1 in `nack_zone`. A walk now meets 3-0 (NACK zone), 2-0 (150), 1-0 (200).
"""

from array import array
from collections.abc import Iterator
from typing import Final

from sortedcontainers import SortedList

from penstock.native.columns import WIDE, append_both, counts_up, fill, numbered, repeated
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.pending_block import (
    IN_ID_ORDER,
    NOT_PENDING,
    RELEASED,
    PendingBlock,
    PendingRun,
    PendingSlot,
    total_of,
)
from penstock.storage.streams.pending.pending_index import PendingIndex
from penstock.storage.streams.segment import MOST_SLOTS

OUT_OF_ORDER: Final = 1 << 63  # flag in a place: the other bits are a serial in `out_of_order`
FROM_ID_ORDER: Final = 0  # in place of a serial: the entry left id order only because XSETID lowered the last id
TRIMMED_AT: Final = 1024  # stale cells that a queue keeps before it is rebuilt
NO_ID: Final = -1  # below every id: no entry is in id order yet
NO_TIME: Final = -1  # below every time: nothing was queued yet


class PendingQueue:
    """A queue of ids and times in order of arrival. The cell with serial s is at index s - base.

    `stale` counts the cells of slots that have another place by now. No cell before the index `claimable_from` can be
    claimed.
    """

    __slots__ = ("base", "claimable_from", "ms", "seq", "stale", "times")

    def __init__(self) -> None:
        self.base = 1
        self.ms: array[int] = array(WIDE)
        self.seq: array[int] = array(WIDE)
        self.times: array[int] = array(WIDE)
        self.stale = 0
        self.claimable_from = 0

    def __len__(self) -> int:
        return len(self.ms)

    def add(self, ms: int, seq: int, time_ms: int) -> int:
        """Queue one id, given in halves; returns its serial. Amortized O(1)."""
        self.ms.append(ms)
        append_both(self.times, self.seq, time_ms, seq)
        return self.base + len(self.ms) - 1

    def add_run(self, ms: "array[int]", seq: "array[int]", time_ms: int) -> "array[int]":
        """Queue several ids with one time; returns their serials. O(ids)."""
        serial = self.base + len(self.ms)
        self.ms.extend(ms)
        self.seq.extend(seq)
        self.times.extend(repeated(time_ms, len(ms)))
        return numbered(serial, len(ms))

    def add_cells(self, other: "PendingQueue", start: int, stop: int) -> "array[int]":
        """Queue the cells [start, stop) of another queue; returns their serials. O(stop - start)."""
        serial = self.base + len(self.ms)
        self.ms.extend(other.ms[start:stop])
        self.seq.extend(other.seq[start:stop])
        self.times.extend(other.times[start:stop])
        return numbered(serial, stop - start)

    def wants_rebuild(self) -> bool:
        """Whether more than half of the cells, and more than TRIMMED_AT, are stale. O(1)."""
        return self.stale > TRIMMED_AT and 2 * self.stale > len(self.ms)

    def copy(self) -> "PendingQueue":
        """A copy that shares nothing. O(cells)."""
        copied = PendingQueue()
        copied.base, copied.stale, copied.claimable_from = self.base, self.stale, self.claimable_from
        copied.ms, copied.seq, copied.times = self.ms[:], self.seq[:], self.times[:]
        return copied


class DeliveryOrder:
    """The queues of one group, and how far the id order reaches.

    Invariants: every entry with an owner has a place in id order, in `recent` or in `out_of_order`, every released one
    in the NACK zone. `recent` ascends by time; every slot in id order has an id <= `id_order_end`, whose halves are
    `last_ms` (NO_ID: there is none) and `last_seq`, and a time <= `id_order_end_ms`; such slots ascend both by id and
    by time; `recent` and `out_of_order` are empty while `queued_ms` is NO_TIME.

    In the costs, b is the number of the group's blocks, n of its pending entries. Changing one entry's place costs
    O(1), or O(log n) for an entry that is out of order.
    """

    __slots__ = (
        "by_id", "claimable_from", "deleted_pending", "id_order_end_ms", "last_ms", "last_seq", "nack_zone",
        "out_of_order", "queued_ms", "recent", "released", "serial",
    )  # fmt: skip

    def __init__(self, by_id: PendingIndex) -> None:
        self.by_id = by_id
        self.last_ms = NO_ID
        self.last_seq = 0
        self.id_order_end_ms = 0
        self.queued_ms = NO_TIME  # the highest time ever queued
        self.claimable_from: StreamId = 0  # no slot in id order below this id can be claimed
        self.nack_zone = PendingQueue()
        self.released = 0  # the number of entries in the NACK zone
        self.recent = PendingQueue()
        self.out_of_order: SortedList[tuple[int, int, StreamId]] = SortedList()  # (time, serial, id)
        # cells moved here from `out_of_order` once their entries were deleted
        self.deleted_pending: SortedList[tuple[int, int, StreamId]] = SortedList()
        self.serial = 0  # the last one used in `out_of_order`

    @property
    def id_order_end(self) -> StreamId:
        """The highest id that was added in id order; NO_ID if none was. O(1)."""
        return NO_ID if self.last_ms == NO_ID else self.last_ms << 64 | self.last_seq

    def add(self, block: PendingBlock, start: int, stop: int, time_ms: int) -> None:
        """Slots became pending with an owner at one time: they are in id order, if they may be, else queued."""
        segment = block.segment
        ms, seq = segment.ms[start], segment.seq[start]
        is_above = ms > self.last_ms or (ms == self.last_ms and seq > self.last_seq)
        if not is_above or time_ms < self.id_order_end_ms or time_ms <= self.queued_ms:
            self.queue_run(block, start, stop, time_ms)
            return
        if stop - start > 1:
            ms, seq = segment.ms[stop - 1], segment.seq[stop - 1]
        self.last_ms, self.last_seq, self.id_order_end_ms = ms, seq, time_ms

    def queue(self, block: PendingBlock, slot: int, time_ms: int) -> None:
        """Queue a slot that is in no queue. O(1) in `recent`, else O(log n) in `out_of_order`."""
        ms, seq = block.segment.ms[slot], block.segment.seq[slot]
        if time_ms > self.queued_ms:
            self.queued_ms = time_ms
        if self._fits_recent(time_ms):
            block.set_place(slot, self.recent.add(ms, seq, time_ms))
            return
        self.serial += 1
        self.out_of_order.add((time_ms, self.serial, ms << 64 | seq))
        block.set_place(slot, OUT_OF_ORDER | self.serial)

    def queue_run(self, block: PendingBlock, start: int, stop: int, time_ms: int) -> None:
        """As `queue` for several slots with one time, by slices in `recent`."""
        if self._fits_recent(time_ms):
            segment = block.segment
            block.set_places(start, self.recent.add_run(segment.ms[start:stop], segment.seq[start:stop], time_ms))
            self.queued_ms = max(self.queued_ms, time_ms)
            return
        for slot in range(start, stop):
            self.queue(block, slot, time_ms)

    def _fits_recent(self, time_ms: int) -> bool:
        """Whether an entry with this time may be appended to `recent`. O(1)."""
        times = self.recent.times
        return not times or time_ms >= times[-1]

    def release(self, block: PendingBlock, start: int, stop: int) -> None:
        """Append slots that are in no queue to the NACK zone."""
        segment = block.segment
        block.set_places(start, self.nack_zone.add_run(segment.ms[start:stop], segment.seq[start:stop], 0))
        self.released += stop - start

    def leave(self, block: PendingBlock, slot: int) -> None:
        """Remove a slot from its queue; its owner is still the one that it had there."""
        place = block.place(slot)
        if place == IN_ID_ORDER:
            return
        if self.released and block.owners[slot] == RELEASED:
            self.nack_zone.stale += 1
            self.released -= 1
        elif place < OUT_OF_ORDER:
            self.recent.stale += 1
        else:
            cell = (block.times[slot], place ^ OUT_OF_ORDER, block.id_at(slot))
            (self.out_of_order if cell in self.out_of_order else self.deleted_pending).remove(cell)

    def leave_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `leave` for several slots, by slices."""
        if block.places is None:
            return
        places = block.places[start:stop]
        unqueued = places.count(IN_ID_ORDER)
        if unqueued == stop - start:
            return
        if max(places) >= OUT_OF_ORDER:
            for slot in range(start, stop):
                self.leave(block, slot)
            return
        released = block.owners[start:stop].count(RELEASED) if self.released else 0
        self.nack_zone.stale += released
        self.released -= released
        self.recent.stale += stop - start - released - unqueued

    def stay_last(self, runs: list[PendingRun], time_ms: int) -> bool:
        """Set the time of these runs' cells in `recent`, if they are its last ones, in this order, and may stay there.

        Returns whether they are: so it is for a consumer that reads its history, or claims, again and again.
        """
        recent, total = self.recent, total_of(runs)
        serial = recent.base + len(recent) - total
        if not runs or serial < recent.base or time_ms < recent.times[-1]:
            return False
        for block, start, stop in runs:
            places = block.places
            if places is None or (self.released and RELEASED in block.owners[start:stop]):
                return False
            if not counts_up(places, start, stop, serial):
                return False
            serial += stop - start
        fill(recent.times, len(recent) - total, len(recent), time_ms)
        self.queued_ms = max(self.queued_ms, time_ms)
        return True

    def drop_stale(self) -> None:
        """Rebuild a queue that has too many stale cells. Amortized O(1) for each cell that became stale."""
        if self.recent.stale <= TRIMMED_AT and self.nack_zone.stale <= TRIMMED_AT:
            return
        if self.recent.wants_rebuild():
            self.recent = self._rebuilt(self.recent, False)
        if self.nack_zone.wants_rebuild():
            self.nack_zone = self._rebuilt(self.nack_zone, True)

    def _rebuilt(self, queue: PendingQueue, released: bool) -> PendingQueue:
        """A queue without its stale cells. The places of the other slots are changed to match."""
        fresh = PendingQueue()
        for index, block, start, stop in self.cell_runs(queue, 0, released):
            block.set_places(start, fresh.add_cells(queue, index, index + stop - start))
        return fresh

    def rewind(self, block: PendingBlock, slot: int, rewound_block: PendingBlock) -> None:
        """An entry moves into a block of its own, as a deleted pending entry, and keeps its rank in time order."""
        place = block.place(slot)
        if place == IN_ID_ORDER:
            place = OUT_OF_ORDER | FROM_ID_ORDER
            self.deleted_pending.add((block.times[slot], FROM_ID_ORDER, rewound_block.first_id))
        rewound_block.set_place(0, place)

    def revive(self, rewound_block: PendingBlock, block: PendingBlock, slot: int) -> None:
        """A rewound pending entry moves into a block, because its id was appended again."""
        place = rewound_block.place(0)
        block.set_place(slot, place)
        if place >= OUT_OF_ORDER:
            cell = (rewound_block.times[0], place ^ OUT_OF_ORDER, rewound_block.first_id)
            if cell in self.deleted_pending:
                self.deleted_pending.remove(cell)
                self.out_of_order.add(cell)
                self.queued_ms = max(self.queued_ms, cell[0])
        self.nack_zone.claimable_from = self.recent.claimable_from = 0

    def cell_runs(
        self, queue: PendingQueue, start: int, released: bool
    ) -> Iterator[tuple[int, PendingBlock, int, int]]:
        """The valid cells of a queue in runs of neighbours in a block: index, block, first slot, end.

        Includes deleted pending entries.
        """
        index = start
        while index < len(queue):
            length, block, slot = self.by_id.slots_of(queue.ms, queue.seq, index, MOST_SLOTS)
            if block is not None:
                ahead = queue.base + index - slot
                for from_slot, to_slot in _matching_runs(block, slot, slot + length, ahead, released):
                    yield index + from_slot - slot, block, from_slot, to_slot
            index += length

    def in_nack_zone(self) -> list[PendingSlot]:
        """All released entries in order of release, deleted pending entries included. O(cells of the zone)."""
        runs = self.cell_runs(self.nack_zone, 0, True)
        return [(block, slot) for _, block, start, stop in runs for slot in range(start, stop)]

    def slot_of(self, cell: tuple[int, int, StreamId]) -> PendingSlot:
        """The entry of a cell of `out_of_order` or `deleted_pending`. O(log b)."""
        found = self.by_id.find(cell[2])
        assert found is not None, "a cell is removed together with its slot"
        return found

    def sort(self, timed: list[PendingSlot]) -> None:
        """Bring all entries with an owner into another order, which ascends by time."""
        self.recent, self.out_of_order, self.deleted_pending = PendingQueue(), SortedList(), SortedList()
        for block, slot in timed:
            self.queue(block, slot, block.times[slot])

    def copy(self, by_id: PendingIndex) -> "DeliveryOrder":
        """The same order of a copied index. O(cells)."""
        copied = DeliveryOrder(by_id)
        copied.last_ms, copied.last_seq, copied.id_order_end_ms = self.last_ms, self.last_seq, self.id_order_end_ms
        copied.queued_ms = self.queued_ms
        copied.claimable_from, copied.serial = self.claimable_from, self.serial
        copied.released = self.released
        copied.nack_zone, copied.recent = self.nack_zone.copy(), self.recent.copy()
        copied.out_of_order, copied.deleted_pending = SortedList(self.out_of_order), SortedList(self.deleted_pending)
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes; without what XSETID put into `deleted_pending` before anything was queued. O(1)."""
        size = 1000 + 24 * len(self.nack_zone.ms)
        if self.queued_ms != NO_TIME:
            size += 24 * len(self.recent.ms) + 250 * (len(self.out_of_order) + len(self.deleted_pending))
        return size


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
