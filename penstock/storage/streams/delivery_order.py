"""Time order: the order in which XREADGROUP CLAIM walks a group's pending entries.

First the NACK zone, in order of release; then by delivery time, ties in order of arrival. The common case needs no
queue: entries that `>` delivers while the clock does not step back are in time order *by id*, and stay where they
are (`IN_ID_ORDER`). What leaves that order is queued:

* `zone`: released entries, in order of release;
* `recent`: entries whose new time is not below the last one queued, in order of arrival (columns, so that a history
  read of a hundred entries is a few slices);
* `odd`: the others (IDLE and TIME set by a client, a clock that stepped back), sorted.

A slot's place says where it is: IN_ID_ORDER; its serial in `recent` (or, if it is RELEASED, in `zone`); ODD and its
serial in `odd`. A queue's cell counts only while its slot still has that place.
An entry may be delivered in id order only if its time is above all queued times: so at a tie, ids come first.
"""

from array import array
from typing import Final

from sortedcontainers import SortedList

from penstock.storage.streams.columns import repeated
from penstock.storage.streams.ids import HALF, StreamId

OUT_OF_ORDER: Final = 1 << 63  # in a place: it is one in `odd`
FROM_ID_ORDER: Final = 0  # the serial, in `odd`, of an entry that left the order of ids only because ids went back
TRIMMED_AT: Final = 1024  # cells of the past that a queue keeps before it lets them go


class Arrivals:
    """Ids and times in order of arrival; the cell of serial s is at index s - base.

    `stale` counts cells whose slots have moved on; `walked` is an index before which no cell can be claimed.
    """

    __slots__ = ("base", "ms", "seq", "stale", "times", "walked")

    def __init__(self) -> None:
        self.base = 1
        self.ms: array[int] = array("Q")
        self.seq: array[int] = array("Q")
        self.times: array[int] = array("Q")
        self.stale = 0
        self.walked = 0

    def __len__(self) -> int:
        return len(self.ms)

    def add(self, entry_id: StreamId, time_ms: int) -> int:
        """Queue one id; its serial."""
        self.ms.append(entry_id >> 64)
        self.seq.append(entry_id & HALF)
        self.times.append(time_ms)
        return self.base + len(self.ms) - 1

    def add_run(self, ms: "array[int]", seq: "array[int]", time_ms: int) -> "array[int]":
        """Queue several ids of one time; their serials."""
        serial = self.base + len(self.ms)
        self.ms.extend(ms)
        self.seq.extend(seq)
        self.times.extend(repeated(time_ms, len(ms)))
        return array("Q", range(serial, serial + len(ms)))

    def set_last_times(self, count: int, time_ms: int) -> None:
        """The ids queued last came at another time, not an earlier one."""
        self.times[len(self.times) - count :] = repeated(time_ms, count)

    def add_cells(self, other: "Arrivals", start: int, stop: int) -> "array[int]":
        """Queue what stands in [start, stop) of another queue; their serials."""
        serial = self.base + len(self.ms)
        self.ms.extend(other.ms[start:stop])
        self.seq.extend(other.seq[start:stop])
        self.times.extend(other.times[start:stop])
        return array("Q", range(serial, serial + stop - start))

    def id_at(self, index: int) -> StreamId:
        return self.ms[index] << 64 | self.seq[index]

    def wants_rebuild(self) -> bool:
        return self.stale > TRIMMED_AT and 2 * self.stale > len(self.ms)

    def copy(self) -> "Arrivals":
        twin = Arrivals()
        twin.base, twin.stale, twin.walked = self.base, self.stale, self.walked
        twin.ms, twin.seq, twin.times = self.ms[:], self.seq[:], self.times[:]
        return twin


class TimeOrder:
    """The queues of one group, and how far the order by id reaches.

    Invariants: `recent` ascends by time; every slot in id order has an id <= `natural_id`, a time <= `natural_ms`,
    and such slots ascend by time as they do by id.
    """

    __slots__ = (
        "deleted_pending",
        "nack_zone",
        "natural_id",
        "natural_ms",
        "out_of_order",
        "queued_ms",
        "recent",
        "serial",
        "walked",
    )

    def __init__(self) -> None:
        self.natural_id: StreamId = -1
        self.natural_ms = 0
        self.queued_ms = -1  # the highest time that was ever queued
        self.walked: StreamId = 0  # no slot in id order below this can be claimed
        self.nack_zone = Arrivals()
        self.recent = Arrivals()
        self.out_of_order: SortedList[tuple[int, int, StreamId]] = SortedList()  # (time, serial, id)
        # out of `odd`: their entries are gone
        self.deleted_pending: SortedList[tuple[int, int, StreamId]] = SortedList()
        self.serial = 0  # the last one given in `odd`

    def takes_by_id(self, entry_id: StreamId, time_ms: int) -> bool:
        """Whether an entry (and those of higher ids at the same time) may stand in id order."""
        return entry_id > self.natural_id and time_ms >= self.natural_ms and time_ms > self.queued_ms

    def note_by_id(self, last_id: StreamId, time_ms: int) -> None:
        self.natural_id = last_id
        self.natural_ms = time_ms

    def takes_as_recent(self, time_ms: int) -> bool:
        times = self.recent.times
        return not times or time_ms >= times[-1]

    def queue(self, entry_id: StreamId, time_ms: int) -> int:
        """Queue one entry by its time; its place."""
        self.queued_ms = max(self.queued_ms, time_ms)
        if self.takes_as_recent(time_ms):
            return self.recent.add(entry_id, time_ms)
        self.serial += 1
        self.out_of_order.add((time_ms, self.serial, entry_id))
        return OUT_OF_ORDER | self.serial

    def leave(self, place: int, time_ms: int, entry_id: StreamId, released: bool) -> None:
        """A slot gives up its place."""
        if released:
            self.nack_zone.stale += 1
        elif place >= OUT_OF_ORDER:
            cell = (time_ms, place ^ OUT_OF_ORDER, entry_id)
            (self.out_of_order if cell in self.out_of_order else self.deleted_pending).remove(cell)
        elif place:
            self.recent.stale += 1

    def copy(self) -> "TimeOrder":
        twin = TimeOrder()
        twin.natural_id, twin.natural_ms, twin.queued_ms = self.natural_id, self.natural_ms, self.queued_ms
        twin.walked, twin.serial = self.walked, self.serial
        twin.nack_zone, twin.recent = self.nack_zone.copy(), self.recent.copy()
        twin.out_of_order, twin.deleted_pending = SortedList(self.out_of_order), SortedList(self.deleted_pending)
        return twin

    def memory_usage(self) -> int:
        """Bytes, roughly."""
        return (
            1000
            + 24 * (len(self.nack_zone) + len(self.recent))
            + 250 * (len(self.out_of_order) + len(self.deleted_pending))
        )
