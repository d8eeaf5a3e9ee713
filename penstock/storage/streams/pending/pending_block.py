"""Pending blocks: the pending entries of one group in one segment, as columns parallel to the segment's slots."""

import sys
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeAlias

from penstock.native import columns
from penstock.native.build import IS_COMPILED
from penstock.native.columns import WIDE, append_both, fill, is_constant, little_endian, owner_column, repeated
from penstock.storage.streams.ids import StreamId, text_of
from penstock.storage.streams.segment import Segment

NOT_PENDING: Final = 0  # in the owner column: the slot is not pending
RELEASED: Final = 1  # in the owner column: pending without an owner, released by XNACK
FIRST_NUMBER: Final = 2  # the number of a group's first consumer

IN_ID_ORDER: Final = 0  # in the place column: the entry is not queued, its id gives its order (see delivery_order.py)
NO_SLOT: Final = -1
OWNER_BYTES: Final = 4  # of a number in the owner column

MAX_COUNT: Final = 2**63 - 1  # delivery counts stop here
USUAL_COUNT: Final = 2**61  # counts below this one are no objects in the compiled build
COUNT_UP: Final = -1  # in place of a delivery count: add one
KEEP_COUNT: Final = -2  # in place of a delivery count: leave it
COUNT_DOWN: Final = -3  # in place of a delivery count: subtract one


class PendingBlock:
    """One group's pending entries in one segment. Slot i of the columns is slot i of the segment.

    Columns: `owners` (NOT_PENDING, RELEASED or a consumer's number), `times` (delivery, unix ms), `counts` (deliveries)
    and, once a slot is not in id order, `places` (see delivery_order.py). The entry of a pending slot may be deleted (a
    deleted pending entry): the block still needs the segment's ids.

    Invariants: the columns have one length, at most the segment's; `pending` counts the slots that are not NOT_PENDING;
    `owner_counts` counts them by owner, without zeros; `first_id` is the segment's.

    Example. A segment holds 1-0, 2-0, 3-0, 4-0. Consumer 2 read the first three at time 100; 1-0 was acknowledged and
    2-0 claimed by consumer 3 at time 200. The fourth slot was never delivered, so the columns end before it:

        slot      0            1     2
        owners    NOT_PENDING  3     2
        times     100          200   100      (slot 0: an old value, not read)
        counts    1            2     1
        places    IN_ID_ORDER  1     IN_ID_ORDER

    pending is 2, owner_counts is {2: 1, 3: 1}, and 2-0 has serial 1 in the group's queue `recent`.

    A segment has at most 128 slots, so a cost of O(slots) is bounded.
    """

    __slots__ = ("counts", "first_id", "owner_counts", "owners", "pending", "places", "segment", "times")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.first_id: StreamId = segment.first_id  # kept: all lists of blocks share this one int object
        self.owners: array[int] = array("I")
        self.times: array[int] = array(WIDE)
        self.counts: array[int] = array(WIDE)
        self.places: array[int] | None = None
        self.pending = 0
        self.owner_counts: dict[int, int] = {}

    def id_at(self, slot: int) -> StreamId:
        """The id of a slot. O(1)."""
        return self.segment.ms[slot] << 64 | self.segment.seq[slot]

    def id_text(self, slot: int) -> bytes:
        """The text of a slot's id. O(1)."""
        return text_of(self.segment.ms[slot], self.segment.seq[slot])

    def slot_from(self, entry_id: StreamId) -> int:
        """The segment's first slot with an id of at least `entry_id`; its length if there is none. O(log slots)."""
        return self.segment.lower_bound(entry_id) if entry_id and self.first_id < entry_id else 0

    def place(self, slot: int) -> int:
        """The place of a slot in time order (see delivery_order.py). O(1)."""
        return IN_ID_ORDER if self.places is None else self.places[slot]

    def set_place(self, slot: int, place: int) -> None:
        """Set the place of a slot. O(1); O(slots) for the first slot that is not in id order."""
        if self.places is None:
            if place == IN_ID_ORDER:
                return
            self.places = array(WIDE, bytes(8 * len(self.owners)))
        self.places[slot] = place

    def set_places(self, start: int, places: "array[int]") -> None:
        """Set the places of the slots from `start` on. O(slots)."""
        if self.places is None:
            self.places = array(WIDE, bytes(8 * len(self.owners)))
        self.places[start : start + len(places)] = places

    def extend_to(self, length: int) -> None:
        """Extend the columns to `length` slots. O(slots added)."""
        missing = length - len(self.owners)
        if missing > 0:
            self.owners.frombytes(bytes(4 * missing))
            self.times.frombytes(bytes(8 * missing))
            self.counts.frombytes(bytes(8 * missing))
            if self.places is not None:
                self.places.frombytes(bytes(8 * missing))

    def is_free(self, start: int, stop: int) -> bool:
        """Whether none of the slots [start, stop) is pending. O(slots)."""
        return start >= len(self.owners) or not self.pending or not any(self.owners[start:stop])

    def fill(self, start: int, stop: int, owner: int, time_ms: int, count: int) -> None:
        """Make the free slots [start, stop) pending with one owner, time and count, in id order. O(slots)."""
        length = stop - start
        if length == 1 and start == len(self.owners) and self.places is None:
            self.owners.append(owner)
            append_both(self.times, self.counts, time_ms, count)
            self.pending += 1
            self.owner_counts[owner] = self.owner_counts.get(owner, 0) + 1
            return
        self.extend_to(start)
        owners, times, counts = owner_column(owner, length), repeated(time_ms, length), repeated(count, length)
        if start == len(self.owners):  # quicker than a slice's assignment
            self.owners += owners
            self.times += times
            self.counts += counts
        else:
            self.owners[start:stop] = owners
            self.times[start:stop] = times
            self.counts[start:stop] = counts
        if self.places is not None:
            self.places[start:stop] = array(WIDE, bytes(8 * length))
        self.pending += length
        self.owner_counts[owner] = self.owner_counts.get(owner, 0) + length

    def are_released(self, start: int, stop: int) -> bool:
        """Whether none of the pending slots [start, stop) has an owner. O(slots)."""
        return self.is_run_of(RELEASED, start, stop)

    def is_run_of(self, owner: int, start: int, stop: int) -> bool:
        """Whether one owner has all of the slots [start, stop), at least one. O(slots)."""
        return self.owners[start] == owner and (
            stop - start == 1 or self._is_one_owners() or is_constant(self.owners[start:stop])
        )

    def is_uniform(self, start: int, stop: int) -> bool:
        """Whether all of the slots [start, stop) have one owner, one time and one count. O(slots)."""
        return (
            (self._is_one_owners() or is_constant(self.owners[start:stop]))
            and is_constant(self.counts[start:stop])
            and is_constant(self.times[start:stop])
        )

    def _is_one_owners(self) -> bool:
        """Whether all slots are pending and have one owner. O(1)."""
        return self.pending == len(self.owners) and len(self.owner_counts) == 1

    def change_owner(self, slot: int, owner: int) -> None:
        """Change the owner of a pending slot. O(1)."""
        former = self.owners[slot]
        if former != owner:
            self._leave(former)
            self.owners[slot] = owner
            self.owner_counts[owner] = self.owner_counts.get(owner, 0) + 1

    def set_times(self, start: int, stop: int, time_ms: int) -> None:
        """Set the delivery time of the slots [start, stop). O(slots)."""
        fill(self.times, start, stop, time_ms)

    def next_count(self, slot: int, count_change: int) -> int:
        """The delivery count of a slot, changed by `count_change`. O(1)."""
        return _next_count(self.counts[slot], count_change)

    def change_counts(self, start: int, stop: int, count_change: int) -> None:
        """Set the delivery counts of the slots [start, stop) to `count_change`, or as COUNT_UP says. O(slots)."""
        if count_change == KEEP_COUNT:
            return
        counts = self.counts
        if count_change >= 0 or stop - start == 1 or is_constant(counts[start:stop]):
            fill(counts, start, stop, _next_count(counts[start], count_change))
        else:
            counts[start:stop] = array(WIDE, [_next_count(count, count_change) for count in counts[start:stop]])

    def free(self, slot: int) -> None:
        """Make a pending slot NOT_PENDING. O(1)."""
        self._leave(self.owners[slot])
        self.owners[slot] = NOT_PENDING
        self.pending -= 1

    def change_owners(self, start: int, stop: int, owner: int) -> list[tuple[int, int]]:
        """Change the owner of the pending slots [start, stop) (NOT_PENDING frees them). O(slots).

        Returns for each former owner how many of the slots it lost.
        """
        if self.owner_counts.get(owner, 0) == self.pending or self.is_run_of(owner, start, stop):
            return []  # no other consumer owns any here, or not of these
        length = stop - start
        first = self.owners[start]
        if length == 1:
            self.owners[start] = owner
            lost, taken = [(first, 1)], 1
        elif len(self.owner_counts) == 1:
            self.owners[start:stop] = owner_column(owner, length)
            lost, taken = [(first, length)], length
        else:
            owners = self.owners[start:stop]
            self.owners[start:stop] = owner_column(owner, length)
            if is_constant(owners):
                lost, taken = [(first, length)], length
            else:
                lost = [(former, count) for former, count in Counter(owners).items() if former != owner]
                taken = sum([count for _, count in lost])
        for former, count in lost:
            self._leave(former, count)
        if owner == NOT_PENDING:
            self.pending -= taken
        else:
            self.owner_counts[owner] = self.owner_counts.get(owner, 0) + taken
        return lost

    def _leave(self, owner: int, count: int = 1) -> None:
        """Subtract slots from an owner's count."""
        left = self.owner_counts[owner] - count
        if left:
            self.owner_counts[owner] = left
        else:
            del self.owner_counts[owner]

    def slots(self, start: int = 0) -> list[int]:
        """The pending slots from `start` on, ascending. O(slots)."""
        owners = self.owners
        return [slot for slot in range(start, len(owners)) if owners[slot]]

    def runs(self, start: int = 0) -> Iterator[tuple[int, int]]:
        """The pending slots from `start` on as runs [from, to), each with one owner. O(slots).

        Slots that were already yielded may change.
        """
        owners = self.owners
        while start < len(owners):
            owner = owners[start]
            if owner:
                stop = self._end_of_run(owner, start, len(owners))
                yield start, stop
                start = stop
            else:
                start += 1

    def pending_runs(self, start: int) -> Iterator[tuple[int, int]]:
        """As `runs`, but a run may have several owners."""
        owners = self.owners
        while start < len(owners):
            if not owners[start]:
                start += 1
                continue
            stop = self.end_of_pending(start, len(owners))
            yield start, stop
            start = stop

    def end_of_pending(self, start: int, limit: int) -> int:
        """The end of the run of pending slots that begins at `start`, at most `limit`. O(slots)."""
        if self.pending == len(self.owners):
            return limit
        if IS_COMPILED:
            first = columns.first_of(little_endian(self.owners), NOT_PENDING, start)
            return limit if first < 0 or first > limit else first
        owners = self.owners[start:limit]
        if is_constant(owners) or NOT_PENDING not in owners:
            return limit
        return start + owners.index(NOT_PENDING)

    def first_of(self, owner: int, start: int) -> int:
        """An owner's first slot from `start` on; NO_SLOT if it has none. O(slots)."""
        if IS_COMPILED:
            return columns.first_of(little_endian(self.owners), owner, start)
        runs = self.runs_of(owner, start, 1)
        return runs[0][0] if runs else NO_SLOT

    def runs_of(self, owner: int, start: int, max_count: int) -> list[tuple[int, int]]:
        """At most `max_count` slots of one owner from `start` on, as runs [from, to). O(slots)."""
        found: list[tuple[int, int]] = []
        left = min(self.owner_counts.get(owner, 0), max_count)
        if left <= 0:
            return found
        owners = self.owners
        if IS_COMPILED:
            return columns.runs_of(little_endian(owners), owner, start, left)
        raw, wanted = owners.tobytes(), owner.to_bytes(OWNER_BYTES, sys.byteorder)
        at = OWNER_BYTES * start
        while left > 0:
            at = raw.find(wanted, at)
            if at < 0:
                break
            if at % OWNER_BYTES:  # bytes of two owners
                at += 1
                continue
            start = at // OWNER_BYTES
            stop = self._end_of_run(owner, start, min(start + left, len(owners)))
            found.append((start, stop))
            left -= stop - start
            at = OWNER_BYTES * stop
        return found

    def _end_of_run(self, owner: int, start: int, limit: int) -> int:
        """The end of an owner's run that begins at `start`, at most `limit`."""
        if self.is_run_of(owner, start, limit):
            return limit
        owners = self.owners
        stop = start + 1
        while owners[stop] == owner:
            stop += 1
        return stop

    def first_pending(self) -> int:
        """The first pending slot; there must be one. O(slots)."""
        if self.owners[0]:
            return 0
        raw = self.owners.tobytes()
        return (len(raw) - len(raw.lstrip(b"\0"))) // OWNER_BYTES

    def last_pending(self) -> int:
        """The last pending slot; there must be one. O(slots)."""
        if self.owners[-1]:
            return len(self.owners) - 1
        raw = self.owners.tobytes()
        return (len(raw.rstrip(b"\0")) - 1) // OWNER_BYTES

    def copy(self, segment: Segment) -> "PendingBlock":
        """A copy beside another segment with the same ids. O(slots)."""
        copied = PendingBlock(segment)
        copied.owners, copied.times, copied.counts = self.owners[:], self.times[:], self.counts[:]
        copied.places = None if self.places is None else self.places[:]
        copied.pending, copied.owner_counts = self.pending, dict(self.owner_counts)
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes, with its place in the lists of its owners. O(1)."""
        return 500 + 18 * len(self.owner_counts) + len(self.owners) * (20 if self.places is None else 28)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.first_id == self.segment.first_id
        assert len(self.owners) == len(self.times) == len(self.counts) <= len(self.segment)
        assert self.places is None or len(self.places) == len(self.owners)
        counted: dict[int, int] = {}
        for owner in self.owners:
            if owner:
                counted[owner] = counted.get(owner, 0) + 1
        assert counted == self.owner_counts, "owners are miscounted"
        assert self.pending == sum(counted.values()) > 0, "an empty block was kept"


def _next_count(count: int, count_change: int) -> int:
    """The new value of a delivery count (see COUNT_UP and the others)."""
    if count_change >= 0:
        return count_change
    if count_change == COUNT_DOWN:
        return max(count - 1, 0)
    if count_change == KEEP_COUNT:
        return count
    return count + 1 if count < USUAL_COUNT else min(count + 1, MAX_COUNT)


PendingSlot: TypeAlias = tuple[PendingBlock, int]  # a pending entry: its block and slot
PendingRun: TypeAlias = tuple[PendingBlock, int, int]  # several: the pending slots [start, stop) of a block


def in_runs(taken: list[PendingSlot]) -> list[PendingRun]:
    """Pending entries in runs: consecutive slots of one block are joined. The order stays. O(entries)."""
    runs: list[PendingRun] = []
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


def total_of(runs: list[PendingRun]) -> int:
    """The number of pending entries in runs. O(runs)."""
    total = 0
    for _, start, stop in runs:
        total += stop - start
    return total


def each_of(runs: list[PendingRun]) -> list[PendingSlot]:
    """The pending entries of runs, one by one. O(entries)."""
    return [(block, slot) for block, start, stop in runs for slot in range(start, stop)]


def id_of(pending_slot: PendingSlot) -> StreamId:
    """The id of a pending entry. O(1)."""
    return pending_slot[0].id_at(pending_slot[1])
