"""A consumer group: how far it has read, its consumers, and what it has delivered but nobody acknowledged."""

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedDict, SortedList

from penstock.storage import segments
from penstock.storage.ids import IdColumns, StreamId
from penstock.storage.pending import FIRST_NUMBER, IN_ID_ORDER, RELEASED, PendingBlock
from penstock.storage.pendinglist import Held, HeldRun, PendingList, time_and_id
from penstock.storage.timeorder import FROM_ID_ORDER, Arrivals

if TYPE_CHECKING:
    from penstock.storage.segments import Segment
    from penstock.storage.streams import Run

MAX_COUNT: Final = 2**63 - 1  # where delivery counts stay
UNKNOWN: Final = -1  # entries-read: deletions made it unknowable
NEVER: Final = -1  # active time of a consumer that never got anything
COUNT_ON: Final = -1  # instead of a delivery count: one more than before
KEEP_COUNT: Final = -2  # instead of a delivery count: as before


class Consumer:
    """One reader of a group. Times are unix ms; `pending` counts what it owns."""

    __slots__ = ("active_ms", "name", "number", "pending", "seen_ms")

    def __init__(self, name: bytes, number: int, now_ms: int) -> None:
        self.name = name
        self.number = number
        self.seen_ms = now_ms
        self.active_ms = NEVER
        self.pending = 0


class Group(PendingList):
    """A pending list with its consumers, and how far they have read.

    Invariant: each consumer's `pending` counts what it owns.
    """

    __slots__ = (
        "_free_numbers",
        "consumers",
        "entries_read",
        "last_id",
        "name",
        "numbers",
        "read_segment",
        "read_slot",
    )

    def __init__(self, name: bytes, last_id: StreamId, entries_read: int) -> None:
        super().__init__()
        self.name = name
        self.last_id = last_id
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.numbers: list[Consumer | None] = [None] * FIRST_NUMBER
        self._free_numbers: list[int] = []
        self.read_segment: Segment | None = None  # where `>` stopped, if the last-delivered id is still that slot's
        self.read_slot = 0

    # -- consumers --------------------------------------------------------------------------------------------------

    def consumers_by_name(self) -> list[Consumer]:
        """In ascending byte order, as Redis lists them."""
        return [self.consumers[name] for name in sorted(self.consumers)]

    def add_consumer(self, name: bytes, now_ms: int) -> Consumer:
        """A consumer that does not exist yet."""
        if self._free_numbers:
            number = self._free_numbers.pop()
        else:
            number = len(self.numbers)
            self.numbers.append(None)
        consumer = Consumer(name, number, now_ms)
        self.numbers[number] = consumer
        self.consumers[name] = consumer
        return consumer

    def remove_consumer(self, consumer: Consumer) -> int:
        """Take a consumer away with what it owns, which is lost to the group; how many pending entries that was."""
        lost = consumer.pending
        for block in [*self.blocks, *self.strays.values()]:
            for start, stop in block.runs_of(consumer.number, 0, len(block.owners)):
                self._forget_run(block, start, stop)
        del self.consumers[consumer.name]
        self.numbers[consumer.number] = None
        self._free_numbers.append(consumer.number)  # no slot has it any more
        return lost

    def owner_name(self, held: Held) -> bytes:
        """The owner's name; empty for a released entry."""
        consumer = self.numbers[held[0].owners[held[1]]]
        return b"" if consumer is None else consumer.name

    def owned(self, consumer: Consumer, start: StreamId, most: int) -> list[HeldRun]:
        """At most `most` of a consumer's pending entries from an id on, ascending.

        Blocks in which it owns nothing are passed over by one look each.
        """
        if self.strays:
            mine = (held for held in self.walk(start) if held[0].owners[held[1]] == consumer.number)
            return [(block, slot, slot + 1) for (block, slot), _ in zip(mine, range(most), strict=False)]
        found: list[HeldRun] = []
        number = consumer.number
        left = min(consumer.pending, most)
        place = max(bisect_right(self.firsts, start) - 1, 0)
        while left > 0 and place < len(self.blocks):
            block = self.blocks[place]
            place += 1
            if number not in block.held:
                continue
            first = block.segment.lower_bound(start) if block.first_id < start else 0
            for from_slot, to_slot in block.runs_of(number, first, left):
                found.append((block, from_slot, to_slot))
                left -= to_slot - from_slot
        return found

    # -- delivering -------------------------------------------------------------------------------------------------

    def deliver(self, runs: "list[Run]", consumer: Consumer, now_ms: int) -> None:
        """New entries (live, ascending) become pending with `consumer`, delivered once, now.

        One that is pending already (the group was set back) changes owner and starts again.
        """
        for run in runs:
            block = self._block_of(run.segment)
            if block.is_free(run.start, run.stop):
                self._fill(block, run.start, run.stop, consumer, now_ms, 1)
                continue
            for slot in range(run.start, run.stop):
                if slot < len(block.owners) and block.owners[slot]:
                    self.give((block, slot), consumer, now_ms, 1)
                else:
                    self._fill(block, slot, slot + 1, consumer, now_ms, 1)

    def force(self, segment: "Segment", slot: int, consumer: Consumer, time_ms: int, count: int) -> Held:
        """Make a live entry pending that was not (XCLAIM FORCE)."""
        block = self._block_of(segment)
        self._fill(block, slot, slot + 1, consumer, time_ms, count)
        return block, slot

    def force_released(self, segment: "Segment", slot: int, count: int) -> None:
        """Make a live entry pending that was not, owned by nobody (XNACK FORCE)."""
        block = self._block_of(segment)
        block.fill(slot, slot + 1, RELEASED, 0, count)
        self.pending += 1
        self.released += 1
        block.set_place(slot, self.order.zone.add(block.id_at(slot), 0) << 1)

    def _block_of(self, segment: "Segment") -> PendingBlock:
        """The block beside a segment, made where there is none: something must be filled in at once."""
        if self.blocks and self.blocks[-1].segment is segment:
            return self.blocks[-1]
        first_id = segment.first_id
        place = bisect_right(self.firsts, first_id)
        if place and self.blocks[place - 1].segment is segment:
            return self.blocks[place - 1]
        block = PendingBlock(segment)
        self.firsts.insert(place, first_id)
        self.blocks.insert(place, block)
        return block

    def _fill(self, block: PendingBlock, start: int, stop: int, consumer: Consumer, time_ms: int, count: int) -> None:
        block.fill(start, stop, consumer.number, time_ms, count)
        self.pending += stop - start
        consumer.pending += stop - start
        order = self.order
        if order.takes_by_id(block.id_at(start), time_ms):
            order.note_by_id(block.id_at(stop - 1), time_ms)
        else:
            self._queue_run(block, start, stop, time_ms)

    def _queue_run(self, block: PendingBlock, start: int, stop: int, time_ms: int) -> None:
        """Queue slots of one time, all out of any queue."""
        order = self.order
        block.set_place(start, 1)  # the column exists from here on
        assert block.places is not None, "set_place made it"
        if order.takes_as_recent(time_ms):
            serial = order.recent.add_run(block.segment.ms[start:stop], block.segment.seq[start:stop], time_ms)
            block.places[start:stop] = array("Q", range(serial << 1, (serial + stop - start) << 1, 2))
            order.queued_ms = max(order.queued_ms, time_ms)
        else:
            for slot in range(start, stop):
                block.places[slot] = order.queue(block.id_at(slot), time_ms)

    # -- changing hands ---------------------------------------------------------------------------------------------

    def give(self, held: Held, consumer: Consumer, time_ms: int, count: int) -> None:
        """A pending entry changes owner (or keeps it), delivery time and count; it leaves the NACK zone."""
        block, slot = held
        self._leave_order(block, slot)
        former = self.numbers[block.owners[slot]]
        if former is None:
            self.released -= 1
            consumer.pending += 1
        elif former is not consumer:
            former.pending -= 1
            consumer.pending += 1
        block.change_owner(slot, consumer.number)
        block.times[slot] = time_ms
        block.counts[slot] = count
        self._settle(block, slot, time_ms)

    def release(self, held: Held, count: int) -> None:
        """XNACK: nobody owns the entry any more; it goes to the end of the NACK zone."""
        block, slot = held
        self._leave_order(block, slot)
        former = self.numbers[block.owners[slot]]
        if former is not None:
            former.pending -= 1
            self.released += 1
        block.change_owner(slot, RELEASED)
        block.times[slot] = 0
        block.counts[slot] = count
        block.set_place(slot, self.order.zone.add(block.id_at(slot), 0) << 1)
        if self.order.zone.wants_rebuild():
            self.order.zone = self._rebuilt(self.order.zone, True)

    def give_all(self, runs: list[HeldRun], consumer: Consumer, time_ms: int, counting: int) -> None:
        """As `give` for every slot of each run, in order: slices, where the slots of a run have one owner.

        `counting` is the delivery count that they get, or COUNT_ON (one more than before) or KEEP_COUNT.
        """
        for block, start, stop in runs:
            if stop - start > 1 and self._leave_order_alike(block, start, stop):
                block.times[start:stop] = array("Q", (time_ms,)) * (stop - start)
                self._count_run(block, start, stop, counting)
                self._change_owner_of_run(block, start, stop, consumer)
                self._queue_run(block, start, stop, time_ms)
            else:
                for slot in range(start, stop):
                    self.give((block, slot), consumer, time_ms, _next_count(block.counts[slot], counting))
        if self.order.recent.wants_rebuild():
            self.order.recent = self._rebuilt(self.order.recent, False)

    def _leave_order_alike(self, block: PendingBlock, start: int, stop: int) -> bool:
        """Take the slots of a run out of time order together; False, and nothing done, where that is not easy."""
        owner = block.owners[start]
        if owner == RELEASED or not block.is_run_of(owner, start, stop):
            return False
        if block.places is not None:
            places = block.places[start:stop]
            first = places[0]
            one_after_another = array("Q", range(first, first + 2 * len(places), 2))
            if (first & 1 or places != one_after_another) and any(place & 1 for place in places):
                return False
            self.order.recent.stale += stop - start - places.count(IN_ID_ORDER)
        return True

    def _count_run(self, block: PendingBlock, start: int, stop: int, counting: int) -> None:
        if counting == KEEP_COUNT:
            return
        counts = block.counts[start:stop]
        top = max(counts)
        if counting >= 0 or top == min(counts):
            block.counts[start:stop] = array("Q", (_next_count(top, counting),)) * (stop - start)
        else:
            block.counts[start:stop] = array("Q", [_next_count(count, counting) for count in counts])

    def _change_owner_of_run(self, block: PendingBlock, start: int, stop: int, consumer: Consumer) -> None:
        former = self.numbers[block.owners[start]]
        if former is not None and former is not consumer:
            former.pending -= stop - start
            consumer.pending += stop - start
            block.free_run(start, stop)
            block.take_run(start, stop, consumer.number)

    def _settle(self, block: PendingBlock, slot: int, time_ms: int) -> None:
        order = self.order
        block.set_place(slot, order.queue(block.id_at(slot), time_ms))
        if order.recent.wants_rebuild():
            order.recent = self._rebuilt(order.recent, False)

    def _leave_order(self, block: PendingBlock, slot: int) -> None:
        released = block.owners[slot] == RELEASED
        self.order.leave(block.place(slot), block.times[slot], block.id_at(slot), released)

    def _rebuilt(self, arrivals: Arrivals, released: bool) -> Arrivals:
        """A queue without its stale cells; the places of the others change with it."""
        fresh = Arrivals()
        for index, block, start, stop in self._cell_runs(arrivals, 0, released):
            assert block.places is not None, "a queued slot has a place"
            count = stop - start
            serial = fresh.add_cells(arrivals, index, index + count)
            block.places[start:stop] = array("Q", range(serial << 1, (serial + count) << 1, 2))
        return fresh

    # -- going ------------------------------------------------------------------------------------------------------

    def forget(self, block: PendingBlock, slot: int) -> None:
        """A pending entry is pending no more: acknowledged, deleted, or its consumer is gone."""
        self._leave_order(block, slot)
        consumer = self.numbers[block.owners[slot]]
        if consumer is None:
            self.released -= 1
        else:
            consumer.pending -= 1
        self.pending -= 1
        block.free(slot)
        if not block.pending:
            self._remove(block)

    def _remove(self, block: PendingBlock) -> None:
        first_id = block.first_id
        if self.strays and self.strays.get(first_id) is block:
            del self.strays[first_id]
            return
        place = bisect_right(self.firsts, first_id) - 1
        del self.firsts[place]
        del self.blocks[place]

    def acknowledge_all(self, wanted: IdColumns) -> bytes:
        """As `acknowledge` for each, in order: a byte for each, 1 where it was pending."""
        gone = bytearray(len(wanted))
        at = 0
        while at < len(wanted):
            run = self.held_run(wanted, at)
            if run is None:
                at += 1
                continue
            block, start, stop = run
            count = stop - start
            gone[at : at + count] = b"\1" * count
            at += count
            self._forget_run(block, start, stop)
        return bytes(gone)

    def _forget_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `forget` for slots of one owner."""
        consumer = self.numbers[block.owners[start]]
        if stop - start == 1 or consumer is None or not self._leave_order_alike(block, start, stop):
            for slot in range(start, stop):
                self.forget(block, slot)
            return
        consumer.pending -= stop - start
        self.pending -= stop - start
        block.free_run(start, stop)
        if not block.pending:
            self._remove(block)

    def acknowledge(self, entry_id: StreamId) -> bool:
        """Take an id out of the pending list, whoever owns it; whether it was there."""
        held = self.find(entry_id)
        if held is None:
            return False
        self.forget(*held)
        return True

    # -- ids that go back -------------------------------------------------------------------------------------------

    def stray_above(self, last_id: StreamId) -> None:
        """The ids above `last_id` may be appended again: their pending entries, all ghosts, leave the blocks."""
        for block, slot in list(self._walk_blocks(last_id + 1)):
            entry_id = block.id_at(slot)
            stray = PendingBlock(segments.ghost(entry_id))
            stray.fill(0, 1, block.owners[slot], block.times[slot], block.counts[slot])
            place = block.place(slot)
            if place == IN_ID_ORDER:  # it keeps its place, among the ghosts
                place = FROM_ID_ORDER << 1 | 1
                self.order.ghosts.add((block.times[slot], FROM_ID_ORDER, entry_id))
            stray.set_place(0, place)
            block.free(slot)
            if not block.pending:
                self._remove(block)
            self.strays[entry_id] = stray

    def revive(self, entry_id: StreamId, segment: "Segment", slot: int) -> None:
        """An id was appended again: if a stray has it, that pending entry is live once more."""
        stray = self.strays.pop(entry_id, None)
        if stray is None:
            return
        block = self._block_of(segment)
        block.fill(slot, slot + 1, stray.owners[0], stray.times[0], stray.counts[0])
        place = stray.place(0)
        block.set_place(slot, place)
        if place & 1:
            cell = (stray.times[0], place >> 1, entry_id)
            if cell in self.order.ghosts:
                self.order.ghosts.remove(cell)
                self.order.odd.add(cell)
                self.order.queued_ms = max(self.order.queued_ms, cell[0])
        self.order.zone.walked = self.order.recent.walked = 0

    # -- the whole --------------------------------------------------------------------------------------------------

    def copy(self, twins: "dict[int, Segment]") -> "Group":
        """A group of equal content beside copied segments, which are found by the id() of their originals."""
        twin = Group(self.name, self.last_id, self.entries_read)
        twin.numbers = [None] * len(self.numbers)
        for consumer in self.consumers.values():
            other = Consumer(consumer.name, consumer.number, consumer.seen_ms)
            other.active_ms, other.pending = consumer.active_ms, consumer.pending
            twin.consumers[other.name] = twin.numbers[other.number] = other
        twin._free_numbers = self._free_numbers[:]
        twin.firsts = self.firsts[:]
        twin.blocks = [block.copy(twins.get(id(block.segment), block.segment)) for block in self.blocks]
        twin.strays = SortedDict({entry_id: block.copy(block.segment) for entry_id, block in self.strays.items()})
        twin.pending, twin.released, twin.order = self.pending, self.released, self.order.copy()
        twin._sort_ties()
        return twin

    def _sort_ties(self) -> None:
        """A copy's entries of equal time stand in order of their ids, in whichever they came (Redis 8.6.3, COPY)."""
        timed = self.in_time_order()
        wanted = sorted(timed, key=time_and_id)
        if timed == wanted:
            return
        order = self.order
        order.recent, order.odd, order.ghosts = Arrivals(), SortedList(), SortedList()
        for block, slot in wanted:
            block.set_place(slot, order.recent.add(block.id_at(slot), block.times[slot]) << 1)
            order.queued_ms = max(order.queued_ms, block.times[slot])

    def memory_usage(self) -> int:
        """Bytes, by the group's own accounts."""
        blocks = sum(block.memory_usage() for block in self.blocks) + 1500 * len(self.strays)
        return 1200 + blocks + sum(300 + len(name) for name in self.consumers) + self.order.memory_usage()

    def check(self) -> None:
        """Assert the invariants."""
        assert self.firsts == [block.first_id for block in self.blocks] == sorted(set(self.firsts))
        owned: dict[int, int] = {}
        for block in [*self.blocks, *self.strays.values()]:
            block.check()
            for owner, count in block.held.items():
                owned[owner] = owned.get(owner, 0) + count
        assert self.pending == sum(owned.values()), "pending is miscounted"
        assert self.released == owned.pop(RELEASED, 0), "released is miscounted"
        for consumer in self.consumers.values():
            assert self.numbers[consumer.number] is consumer
            assert consumer.pending == owned.pop(consumer.number, 0), "a consumer is miscounted"
        assert not owned, "a slot has no consumer"
        for entry_id, block in self.strays.items():
            assert block.first_id == entry_id and not block.segment.is_live(0)
        timed = self.in_time_order()
        assert len(timed) == self.pending - self.released, "an owned entry is not in time order"
        assert [block.times[slot] for block, slot in timed] == sorted(block.times[slot] for block, slot in timed)
        assert len(self.zone()) == self.released, "a released entry is not in the zone"


def _next_count(count: int, counting: int) -> int:
    """What a delivery count becomes, by `counting` (see Group.give_all)."""
    if counting >= 0:
        return counting
    return count if counting == KEEP_COUNT else min(count + 1, MAX_COUNT)
