"""Delivery order: the order in which XREADGROUP CLAIM walks a group's pending entries.

First the NACK zone, in order of release; then entries with an owner by delivery time (*time order*), ties in order of
arrival. Most entries need no queue: as long as the clock does not step back, the entries that `>` delivers are in
time order if they are read by id. They stay in place (IN_ID_ORDER). Other entries are in one of three queues:

* `nack_zone`: released entries, in order of release;
* `recent`: entries whose new delivery time is not below the last one queued, in order of arrival. It has columns, so
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
from typing import Final

from sortedcontainers import SortedList

from penstock.native.columns import WIDE, append_both, fill, numbered, repeated
from penstock.storage.streams.ids import StreamId

OUT_OF_ORDER: Final = 1 << 63  # flag in a place: the other bits are a serial in `out_of_order`
FROM_ID_ORDER: Final = 0  # in place of a serial: the entry left id order only because XSETID lowered the last id
TRIMMED_AT: Final = 1024  # stale cells that a queue keeps before it is rebuilt
NO_ID: Final = -1  # below every id: no entry is in id order yet
NO_TIME: Final = -1  # below every time: nothing was queued yet


class ArrivalQueue:
    """A queue of ids and times in order of arrival. The cell with serial s is at index s - base.

    `stale` counts the cells whose slots have another place by now. No cell before the index `claimable_from` can be
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

    def set_last_times(self, count: int, time_ms: int) -> None:
        """Give the last `count` cells another time, which is not earlier than theirs. O(count)."""
        fill(self.times, len(self.times) - count, len(self.times), time_ms)

    def add_cells(self, other: "ArrivalQueue", start: int, stop: int) -> "array[int]":
        """Queue the cells [start, stop) of another queue; returns their serials. O(stop - start)."""
        serial = self.base + len(self.ms)
        self.ms.extend(other.ms[start:stop])
        self.seq.extend(other.seq[start:stop])
        self.times.extend(other.times[start:stop])
        return numbered(serial, stop - start)

    def id_at(self, index: int) -> StreamId:
        """The id of the cell at an index. O(1)."""
        return self.ms[index] << 64 | self.seq[index]

    def wants_rebuild(self) -> bool:
        """Whether more than half of the cells, and more than TRIMMED_AT, are stale. O(1)."""
        return self.stale > TRIMMED_AT and 2 * self.stale > len(self.ms)

    def copy(self) -> "ArrivalQueue":
        """A copy that shares nothing. O(cells)."""
        twin = ArrivalQueue()
        twin.base, twin.stale, twin.claimable_from = self.base, self.stale, self.claimable_from
        twin.ms, twin.seq, twin.times = self.ms[:], self.seq[:], self.times[:]
        return twin


class DeliveryOrder:
    """The queues of one group, and how far the id order reaches.

    Invariants: `recent` ascends by time; every slot in id order has an id <= `id_order_end`, whose halves are `last_ms`
    (NO_ID: there is none) and `last_seq`, and a time <= `id_order_end_ms`; such slots ascend both by id and by time;
    `recent` and `out_of_order` are empty while `queued_ms` is NO_TIME.
    """

    __slots__ = (
        "claimable_from",
        "deleted_pending",
        "id_order_end_ms",
        "last_ms",
        "last_seq",
        "nack_zone",
        "out_of_order",
        "queued_ms",
        "recent",
        "serial",
    )

    def __init__(self) -> None:
        self.last_ms = NO_ID
        self.last_seq = 0
        self.id_order_end_ms = 0
        self.queued_ms = NO_TIME  # the highest time ever queued
        self.claimable_from: StreamId = 0  # no slot in id order below this id can be claimed
        self.nack_zone = ArrivalQueue()
        self.recent = ArrivalQueue()
        self.out_of_order: SortedList[tuple[int, int, StreamId]] = SortedList()  # (time, serial, id)
        # cells moved here from `out_of_order` once their entries were deleted
        self.deleted_pending: SortedList[tuple[int, int, StreamId]] = SortedList()
        self.serial = 0  # the last one used in `out_of_order`

    @property
    def id_order_end(self) -> StreamId:
        """The highest id that was added in id order; NO_ID if none was. O(1)."""
        return NO_ID if self.last_ms == NO_ID else self.last_ms << 64 | self.last_seq

    def fits_id_order(self, ms: int, seq: int, time_ms: int) -> bool:
        """Whether an entry (and entries with higher ids and the same time) may be added in id order. O(1)."""
        is_above = ms > self.last_ms or (ms == self.last_ms and seq > self.last_seq)
        return is_above and time_ms >= self.id_order_end_ms and time_ms > self.queued_ms

    def extend_id_order(self, ms: int, seq: int, time_ms: int) -> None:
        """Entries up to this id, delivered at `time_ms`, were added in id order. O(1)."""
        self.last_ms, self.last_seq, self.id_order_end_ms = ms, seq, time_ms

    def fits_recent(self, time_ms: int) -> bool:
        """Whether an entry with this time may be appended to `recent`. O(1)."""
        times = self.recent.times
        return not times or time_ms >= times[-1]

    def queue(self, ms: int, seq: int, time_ms: int) -> int:
        """Queue one entry by its time; returns its place. O(1) in `recent`, else O(log n) in `out_of_order`."""
        if time_ms > self.queued_ms:
            self.queued_ms = time_ms
        if self.fits_recent(time_ms):
            return self.recent.add(ms, seq, time_ms)
        self.serial += 1
        self.out_of_order.add((time_ms, self.serial, ms << 64 | seq))
        return OUT_OF_ORDER | self.serial

    def remove(self, time_ms: int, place: int, entry_id: StreamId) -> None:
        """Remove the cell of a slot that is out of order and changes its place. O(log n)."""
        cell = (time_ms, place ^ OUT_OF_ORDER, entry_id)
        (self.out_of_order if cell in self.out_of_order else self.deleted_pending).remove(cell)

    def copy(self) -> "DeliveryOrder":
        """A copy that shares nothing. O(cells)."""
        twin = DeliveryOrder()
        twin.last_ms, twin.last_seq, twin.id_order_end_ms = self.last_ms, self.last_seq, self.id_order_end_ms
        twin.queued_ms = self.queued_ms
        twin.claimable_from, twin.serial = self.claimable_from, self.serial
        twin.nack_zone, twin.recent = self.nack_zone.copy(), self.recent.copy()
        twin.out_of_order, twin.deleted_pending = SortedList(self.out_of_order), SortedList(self.deleted_pending)
        return twin

    def memory_usage(self) -> int:
        """An estimate in bytes; without what XSETID put into `deleted_pending` before anything was queued. O(1)."""
        size = 1000 + 24 * len(self.nack_zone.ms)
        if self.queued_ms != NO_TIME:
            size += 24 * len(self.recent.ms) + 250 * (len(self.out_of_order) + len(self.deleted_pending))
        return size
