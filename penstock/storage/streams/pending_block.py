"""Pending blocks: the pending entries of one group within one segment, as columns beside its slots."""

from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final

from penstock.storage.streams.columns import owner_column, repeated
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.segment import Segment

NOT_PENDING: Final = 0  # in the owner column: the slot is not pending
RELEASED: Final = 1  # pending without an owner: released by XNACK
FIRST_NUMBER: Final = 2  # consumers are numbered from here on

IN_ID_ORDER: Final = 0  # in the place column: the slot's place in time order is its id's (see timeorder.py)


class PendingBlock:
    """One group's pending entries in one segment. Slot i speaks of the segment's slot i.

    Columns: `owners` (NOBODY, RELEASED or a consumer's number), `times` (delivery, unix ms), `counts` (deliveries),
    and, once a slot left the order of ids, `places` (its place in the group's time order). The entry of a pending
    slot may be gone (a deleted pending entry): the block keeps the segment's ids alive.

    Invariants: the columns are of one length, at most the segment's; `pending` counts the slots with an owner or
    released; `held` counts them by owner, without zeros; `first_id` is the segment's.
    """

    __slots__ = ("counts", "first_id", "held", "owners", "pending", "places", "segment", "times")

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.first_id: StreamId = segment.first_id  # one int, which every list of blocks shares
        self.owners: array[int] = array("I")
        self.times: array[int] = array("Q")
        self.counts: array[int] = array("Q")
        self.places: array[int] | None = None
        self.pending = 0
        self.held: dict[int, int] = {}

    def id_at(self, slot: int) -> StreamId:
        return self.segment.ms[slot] << 64 | self.segment.seq[slot]

    def find(self, entry_id: StreamId) -> int:
        """The slot of a pending id; -1 if it is not pending here."""
        slot = self.segment.find(entry_id)
        if slot < 0 or slot >= len(self.owners) or not self.owners[slot]:
            return -1
        return slot

    def place(self, slot: int) -> int:
        return IN_ID_ORDER if self.places is None else self.places[slot]

    def set_place(self, slot: int, place: int) -> None:
        if self.places is None:
            if place == IN_ID_ORDER:
                return
            self.places = array("Q", bytes(8 * len(self.owners)))
        self.places[slot] = place

    def set_places(self, start: int, places: "array[int]") -> None:
        """The places of the slots from `start` on."""
        if self.places is None:
            self.places = array("Q", bytes(8 * len(self.owners)))
        self.places[start : start + len(places)] = places

    def reach(self, length: int) -> None:
        """Make the columns long enough for `length` slots."""
        missing = length - len(self.owners)
        if missing > 0:
            self.owners.frombytes(bytes(4 * missing))
            self.times.frombytes(bytes(8 * missing))
            self.counts.frombytes(bytes(8 * missing))
            if self.places is not None:
                self.places.frombytes(bytes(8 * missing))

    def is_free(self, start: int, stop: int) -> bool:
        """Whether none of the slots [start, stop) is pending."""
        return start >= len(self.owners) or not self.pending or not any(self.owners[start:stop])

    def fill(self, start: int, stop: int, owner: int, time_ms: int, count: int) -> None:
        """Make the free slots [start, stop) pending, alike, in id order: three slices, whatever their number."""
        length = stop - start
        if length == 1 and start == len(self.owners) and self.places is None:
            self.owners.append(owner)
            self.times.append(time_ms)
            self.counts.append(count)
            self.pending += 1
            self.held[owner] = self.held.get(owner, 0) + 1
            return
        self.reach(start)
        self.owners[start:stop] = owner_column(owner, length)
        self.times[start:stop] = repeated(time_ms, length)
        self.counts[start:stop] = repeated(count, length)
        if self.places is not None:
            self.places[start:stop] = array("Q", bytes(8 * length))
        self.pending += length
        self.held[owner] = self.held.get(owner, 0) + length

    def is_run_of(self, owner: int, start: int, stop: int) -> bool:
        """Whether one owner has all of the slots [start, stop)."""
        return self.owners[start:stop].count(owner) == stop - start

    def is_of_equals(self, start: int, stop: int) -> bool:
        """Whether all of the slots [start, stop) have one owner, one time and one count."""
        length = stop - start
        return (
            self.owners[start:stop].count(self.owners[start]) == length
            and self.counts[start:stop].count(self.counts[start]) == length
            and self.times[start:stop].count(self.times[start]) == length
        )

    def change_owner(self, slot: int, owner: int) -> None:
        """Give a pending slot to another owner."""
        former = self.owners[slot]
        if former != owner:
            self._leave(former)
            self.owners[slot] = owner
            self.held[owner] = self.held.get(owner, 0) + 1

    def free(self, slot: int) -> None:
        """A slot is pending no more."""
        self._leave(self.owners[slot])
        self.owners[slot] = NOT_PENDING
        self.pending -= 1

    def change_owners(self, start: int, stop: int, owner: int) -> list[tuple[int, int]]:
        """Give the pending slots [start, stop) to one owner, or free them; which others lost how many of them."""
        length = stop - start
        owners = self.owners[start:stop]
        first = owners[0]
        if owners.count(first) == length:
            if first == owner:
                return []
            lost = [(first, length)]
            taken = length
        else:
            lost = [(former, count) for former, count in Counter(owners).items() if former != owner]
            taken = sum([count for _, count in lost])
        self.owners[start:stop] = owner_column(owner, length)
        for former, count in lost:
            self._leave(former, count)
        if owner == NOT_PENDING:
            self.pending -= taken
        else:
            self.held[owner] = self.held.get(owner, 0) + taken
        return lost

    def _leave(self, owner: int, count: int = 1) -> None:
        left = self.held[owner] - count
        if left:
            self.held[owner] = left
        else:
            del self.held[owner]

    def slots(self, start: int = 0) -> list[int]:
        """The pending slots from `start` on, ascending."""
        owners = self.owners
        return [slot for slot in range(start, len(owners)) if owners[slot]]

    def runs(self, start: int = 0) -> Iterator[tuple[int, int]]:
        """The pending slots from `start` on as runs [from, to), each of one owner. What was yielded may change."""
        owners = self.owners
        while start < len(owners):
            owner = owners[start]
            if owner:
                stop = self._end_of_run(owner, start, len(owners))
                yield start, stop
                start = stop
            else:
                start += 1

    def pending_runs(self, start: int = 0) -> Iterator[tuple[int, int]]:
        """As `runs`, whoever the owners are."""
        owners = self.owners
        while start < len(owners):
            if not owners[start]:
                start += 1
                continue
            stop = self.end_of_pending(start, len(owners))
            yield start, stop
            start = stop

    def end_of_pending(self, start: int, limit: int) -> int:
        """Where the pending slots that begin at `start` end, at `limit` at the latest."""
        return self.owners.index(NOT_PENDING, start, limit) if NOT_PENDING in self.owners[start:limit] else limit

    def runs_of(self, owner: int, start: int, most: int) -> list[tuple[int, int]]:
        """At most `most` slots of one owner from `start` on, as runs [from, to)."""
        found: list[tuple[int, int]] = []
        left = min(self.held.get(owner, 0), most)
        owners = self.owners
        while left > 0:
            try:
                start = owners.index(owner, start)
            except ValueError:
                break
            stop = self._end_of_run(owner, start, min(start + left, len(owners)))
            found.append((start, stop))
            left -= stop - start
            start = stop
        return found

    def _end_of_run(self, owner: int, start: int, limit: int) -> int:
        """Where an owner's run that begins at `start` ends, at `limit` at the latest."""
        if self.is_run_of(owner, start, limit):
            return limit
        owners = self.owners
        stop = start + 1
        while owners[stop] == owner:
            stop += 1
        return stop

    def first_pending(self) -> int:
        """The first pending slot; there must be one."""
        raw = self.owners.tobytes()
        return (len(raw) - len(raw.lstrip(b"\0"))) // 4

    def last_pending(self) -> int:
        """The last pending slot; there must be one."""
        raw = self.owners.tobytes()
        return (len(raw.rstrip(b"\0")) - 1) // 4

    def copy(self, segment: Segment) -> "PendingBlock":
        """The same columns beside another segment of the same ids."""
        twin = PendingBlock(segment)
        twin.owners, twin.times, twin.counts = self.owners[:], self.times[:], self.counts[:]
        twin.places = None if self.places is None else self.places[:]
        twin.pending, twin.held = self.pending, dict(self.held)
        return twin

    def memory_usage(self) -> int:
        """Bytes of the columns and what holds them."""
        return 500 + len(self.owners) * (20 if self.places is None else 28)

    def check(self) -> None:
        """Assert the invariants."""
        assert self.first_id == self.segment.first_id
        assert len(self.owners) == len(self.times) == len(self.counts) <= len(self.segment)
        assert self.places is None or len(self.places) == len(self.owners)
        counted: dict[int, int] = {}
        for owner in self.owners:
            if owner:
                counted[owner] = counted.get(owner, 0) + 1
        assert counted == self.held, "owners are miscounted"
        assert self.pending == sum(counted.values()) > 0, "an empty block was kept"
