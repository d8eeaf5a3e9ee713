"""A consumer group: how far it has read, its consumers, and what it has delivered but nobody acknowledged."""

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedDict, SortedList

from penstock.storage.streams.block_list import BlockList
from penstock.storage.streams.columns import repeated
from penstock.storage.streams.delivery_order import FROM_ID_ORDER, OUT_OF_ORDER, Arrivals
from penstock.storage.streams.ids import IdColumns, StreamId
from penstock.storage.streams.pending_block import FIRST_NUMBER, IN_ID_ORDER, NOT_PENDING, RELEASED, PendingBlock
from penstock.storage.streams.pending_list import (
    Held,
    HeldRun,
    PendingList,
    each_of,
    id_of,
    time_and_id,
    total_of,
)
from penstock.storage.streams.segment import deleted_entry

if TYPE_CHECKING:
    from penstock.storage.streams.segment import Segment
    from penstock.storage.streams.stream import Run

MAX_COUNT: Final = 2**63 - 1  # where delivery counts stay
UNKNOWN: Final = -1  # entries-read: deletions made it unknowable
NEVER: Final = -1  # active time of a consumer that never got anything
COUNT_ON: Final = -1  # instead of a delivery count: one more than before
KEEP_COUNT: Final = -2  # instead of a delivery count: as before
COUNT_BACK: Final = -3  # instead of a delivery count: one less than before


class Consumer:
    """One reader of a group. Times are unix ms; `pending` counts what it owns, `owning` has its blocks.

    No rewound pending entries.
    """

    __slots__ = ("active_ms", "name", "number", "owning", "pending", "seen_ms")

    def __init__(self, name: bytes, number: int, now_ms: int) -> None:
        self.name = name
        self.number = number
        self.seen_ms = now_ms
        self.active_ms = NEVER
        self.pending = 0
        self.owning = BlockList()


class Group(PendingList):
    """A pending list with its consumers, and how far they have read.

    Invariants: each consumer's `pending` counts what it owns, and its `owning` has the blocks with any of it.
    """

    __slots__ = (
        "_emptied",
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
        self._emptied: PendingBlock | None = None  # the last block that went, for a worker who keeps up fills it again
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
        for block in [*consumer.owning.blocks, *self.rewound.values()]:
            for start, stop in block.runs_of(consumer.number, 0, len(block.owners)):
                self.forget_run(block, start, stop)
        del self.consumers[consumer.name]
        self.numbers[consumer.number] = None
        self._free_numbers.append(consumer.number)  # no slot has it any more
        return lost

    def owner_name(self, held: Held) -> bytes:
        """The owner's name; empty for a released entry."""
        return self.name_of(held[0].owners[held[1]])

    def name_of(self, owner: int) -> bytes:
        """The name of an owner in a block's column; empty for RELEASED."""
        consumer = self.numbers[owner]
        return b"" if consumer is None else consumer.name

    def owned(self, consumer: Consumer, start: StreamId, most: int) -> list[HeldRun]:
        """At most `most` of a consumer's pending entries from an id on, ascending.

        Only blocks in which it owns something are looked at.
        """
        found: list[HeldRun] = []
        left = min(consumer.pending, most)
        owning = consumer.owning
        place = owning.place_from(start)
        while left > 0 and place < len(owning.blocks):
            block = owning.blocks[place]
            place += 1
            first = block.segment.lower_bound(start) if block.first_id < start else 0
            for from_slot, to_slot in block.runs_of(consumer.number, first, left):
                found.append((block, from_slot, to_slot))
                left -= to_slot - from_slot
        return self._with_strays(found, consumer, start, most) if self.rewound else found

    def _with_strays(self, found: list[HeldRun], consumer: Consumer, start: StreamId, most: int) -> list[HeldRun]:
        rewound = [held for held in self._walk_strays(start) if held[0].owners[0] == consumer.number]
        merged = sorted(each_of(found) + rewound, key=id_of)[:most]
        return [(block, slot, slot + 1) for block, slot in merged]

    # -- delivering -------------------------------------------------------------------------------------------------

    def deliver(self, runs: "list[Run]", consumer: Consumer, now_ms: int) -> None:
        """New entries (live, ascending) become pending with `consumer`, delivered once, now.

        One that is pending already (the group was set back) changes owner and starts again.
        """
        for segment, start, stop in runs:
            block = self._block_of(segment)
            if block.is_free(start, stop):
                self._fill(block, start, stop, consumer, now_ms, 1)
                continue
            for slot in range(start, stop):
                if slot < len(block.owners) and block.owners[slot]:
                    self.give((block, slot), consumer, now_ms, 1)
                else:
                    self._fill(block, slot, slot + 1, consumer, now_ms, 1)

    def force(self, segment: "Segment", slot: int, consumer: Consumer, time_ms: int, count: int) -> Held:
        """Make a live entry pending that was not (XCLAIM FORCE)."""
        block = self._block_of(segment)
        self._fill(block, slot, slot + 1, consumer, time_ms, count)
        return block, slot

    def force_released(self, segment: "Segment", slot: int, count: int) -> HeldRun:
        """Make a live entry pending that was not, owned by nobody (XNACK FORCE)."""
        block = self._block_of(segment)
        block.fill(slot, slot + 1, RELEASED, 0, count)
        self.pending += 1
        self.released += 1
        block.set_place(slot, self.order.nack_zone.add(block.id_at(slot), 0))
        return block, slot, slot + 1

    def _block_of(self, segment: "Segment") -> PendingBlock:
        """The block beside a segment, made where there is none: something must be filled in at once."""
        if self.blocks and self.blocks[-1].segment is segment:
            return self.blocks[-1]
        place = bisect_right(self.firsts, segment.first_id)
        if place and self.blocks[place - 1].segment is segment:
            return self.blocks[place - 1]
        block = self._emptied
        if block is None or block.segment is not segment:
            block = PendingBlock(segment)
        self.add(block)
        return block

    def _fill(self, block: PendingBlock, start: int, stop: int, consumer: Consumer, time_ms: int, count: int) -> None:
        length = stop - start
        block.fill(start, stop, consumer.number, time_ms, count)
        self._next_block, self._next_slot = block, start
        self.pending += length
        consumer.pending += length
        if block.held[consumer.number] == length:
            consumer.owning.add(block)
        order = self.order
        if order.takes_by_id(block.id_at(start), time_ms):
            order.note_by_id(block.id_at(stop - 1), time_ms)
        else:
            self._queue_run(block, start, stop, time_ms)

    def _queue_run(self, block: PendingBlock, start: int, stop: int, time_ms: int) -> None:
        """Queue slots of one time, all out of any queue."""
        order = self.order
        if order.takes_as_recent(time_ms):
            segment = block.segment
            block.set_places(start, order.recent.add_run(segment.ms[start:stop], segment.seq[start:stop], time_ms))
            order.queued_ms = max(order.queued_ms, time_ms)
        else:
            for slot in range(start, stop):
                block.set_place(slot, order.queue(block.id_at(slot), time_ms))

    # -- changing hands ---------------------------------------------------------------------------------------------

    def give(self, held: Held, consumer: Consumer, time_ms: int, count: int) -> None:
        """A pending entry changes owner (or keeps it), delivery time and count; it leaves the NACK zone."""
        block, slot = held
        self._leave_order(block, slot)
        former = block.owners[slot]
        if former != consumer.number:
            block.change_owner(slot, consumer.number)
            self._lost(block, former, 1)
            self._gained(block, consumer, 1)
        block.times[slot] = time_ms
        block.counts[slot] = count
        self._settle(block, slot, time_ms)

    def give_all(self, runs: list[HeldRun], consumer: Consumer, time_ms: int, counting: int) -> None:
        """As `give` for every slot of each run, in order, by slices.

        `counting` is the delivery count that they get, or COUNT_ON (one more than before) or KEEP_COUNT.
        """
        if self._are_last_in_time(runs, time_ms):
            self.order.recent.set_last_times(total_of(runs), time_ms)
            self.order.queued_ms = max(self.order.queued_ms, time_ms)
            for block, start, stop in runs:
                self._hand_over(block, start, stop, consumer, time_ms, counting)
            return
        for block, start, stop in runs:
            if stop - start == 1:
                self.give((block, start), consumer, time_ms, _next_count(block.counts[start], counting))
                continue
            self._leave_order_together(block, start, stop)
            self._hand_over(block, start, stop, consumer, time_ms, counting)
            self._queue_run(block, start, stop, time_ms)
        if self.order.recent.wants_rebuild():
            self.order.recent = self._rebuilt(self.order.recent, False)

    def _hand_over(
        self, block: PendingBlock, start: int, stop: int, consumer: Consumer, time_ms: int, counting: int
    ) -> None:
        """A run changes owner, time and counts, wherever it stands in time order."""
        taken = self._lose(block, block.change_owners(start, stop, consumer.number))
        if taken:
            self._gained(block, consumer, taken)
        block.times[start:stop] = repeated(time_ms, stop - start)
        _count_run(block, start, stop, counting)

    def _are_last_in_time(self, runs: list[HeldRun], time_ms: int) -> bool:
        """Whether the slots of these runs, in this order, are the last ones queued by arrival, and may stay there.

        A consumer that reads its history, or claims, again and again finds them there.
        """
        recent = self.order.recent
        serial = recent.base + len(recent) - total_of(runs)
        if not runs or serial < recent.base or time_ms < recent.times[-1]:
            return False
        for block, start, stop in runs:
            places = block.places
            if places is None or places[start] != serial or (self.released and RELEASED in block.owners[start:stop]):
                return False
            if places[start:stop] != array("Q", range(serial, serial + stop - start)):
                return False
            serial += stop - start
        return True

    def release(self, run: HeldRun, counting: int) -> None:
        """XNACK: nobody owns the entries any more; they go to the end of the NACK zone, in order.

        `counting` is the delivery count that they get, or COUNT_BACK (one less than before) or KEEP_COUNT.
        """
        block, start, stop = run
        self._leave_order_together(block, start, stop)
        self.released += self._lose(block, block.change_owners(start, stop, RELEASED))
        block.times[start:stop] = array("Q", bytes(8 * (stop - start)))
        _count_run(block, start, stop, counting)
        nack_zone, segment = self.order.nack_zone, block.segment
        block.set_places(start, nack_zone.add_run(segment.ms[start:stop], segment.seq[start:stop], 0))
        if nack_zone.wants_rebuild():
            self.order.nack_zone = self._rebuilt(nack_zone, True)

    def _leave_order_together(self, block: PendingBlock, start: int, stop: int) -> None:
        """Take the slots of a run out of time order."""
        if block.places is None:
            return
        places = block.places[start:stop]
        if max(places) >= OUT_OF_ORDER:
            for slot in range(start, stop):
                self._leave_order(block, slot)
            return
        released = block.owners[start:stop].count(RELEASED) if self.released else 0
        self.order.nack_zone.stale += released
        self.order.recent.stale += stop - start - released - places.count(IN_ID_ORDER)

    def _lose(self, block: PendingBlock, lost: list[tuple[int, int]]) -> int:
        """Owners have so many slots of a block less, which the block knows already; how many in all."""
        taken = 0
        for owner, count in lost:
            self._lost(block, owner, count)
            taken += count
        return taken

    def _lost(self, block: PendingBlock, owner: int, count: int) -> None:
        """An owner has so many slots of a block less, which the block knows already."""
        consumer = self.numbers[owner]
        if consumer is None:
            self.released -= count
            return
        consumer.pending -= count
        if owner not in block.held:
            consumer.owning.drop(block)

    def _gained(self, block: PendingBlock, consumer: Consumer, count: int) -> None:
        """A consumer has so many slots of a block more, which the block knows already."""
        consumer.pending += count
        if block.held[consumer.number] == count and not self._is_stray(block):
            consumer.owning.add(block)

    def _is_stray(self, block: PendingBlock) -> bool:
        return bool(self.rewound) and self.rewound.get(block.first_id) is block

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
            block.set_places(start, fresh.add_cells(arrivals, index, index + stop - start))
        return fresh

    # -- going ------------------------------------------------------------------------------------------------------

    def forget(self, block: PendingBlock, slot: int) -> None:
        """A pending entry is pending no more: acknowledged, deleted, or its consumer is gone."""
        self._leave_order(block, slot)
        owner = block.owners[slot]
        block.free(slot)
        self._lost(block, owner, 1)
        self.pending -= 1
        if not block.pending:
            self._remove(block)

    def _remove(self, block: PendingBlock) -> None:
        if self._is_stray(block):
            del self.rewound[block.first_id]
        else:
            self.drop(block)
            self._emptied = block

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
            self.forget_run(block, start, stop)
            self._next_block, self._next_slot = block, stop
        return bytes(gone)

    def forget_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `forget` for the slots of a run."""
        if stop - start == 1:
            self.forget(block, start)
            return
        self._leave_order_together(block, start, stop)
        self._lose(block, block.change_owners(start, stop, NOT_PENDING))
        self.pending -= stop - start
        if not block.pending:
            self._remove(block)

    def acknowledge(self, entry_id: StreamId) -> bool:
        """Take an id out of the pending list, whoever owns it; whether it was there."""
        held = self._near(entry_id)
        if held is None:
            return False
        block, slot = held
        self.forget(block, slot)
        self._next_block, self._next_slot = block, slot + 1
        return True

    # -- ids that go back -------------------------------------------------------------------------------------------

    def stray_above(self, last_id: StreamId) -> None:
        """The ids above `last_id` may be appended again: their pending entries, all deleted pending entries.

        Leave the blocks.
        """
        for block, slot in list(self._walk_blocks(last_id + 1)):
            entry_id = block.id_at(slot)
            rewound_block = PendingBlock(deleted_entry(entry_id))
            rewound_block.fill(0, 1, block.owners[slot], block.times[slot], block.counts[slot])
            place = block.place(slot)
            if place == IN_ID_ORDER:  # it keeps its place, among the deleted pending entries
                place = OUT_OF_ORDER | FROM_ID_ORDER
                self.order.deleted_pending.add((block.times[slot], FROM_ID_ORDER, entry_id))
            rewound_block.set_place(0, place)
            owner = self.numbers[block.owners[slot]]
            block.free(slot)
            if owner is not None and owner.number not in block.held:
                owner.owning.drop(block)
            if not block.pending:
                self.drop(block)
            self.rewound[entry_id] = rewound_block

    def revive(self, entry_id: StreamId, segment: "Segment", slot: int) -> None:
        """An id was appended again: if a rewound pending entry has it, that pending entry is live once more."""
        rewound_block = self.rewound.pop(entry_id, None)
        if rewound_block is None:
            return
        block = self._block_of(segment)
        block.fill(slot, slot + 1, rewound_block.owners[0], rewound_block.times[0], rewound_block.counts[0])
        owner = self.numbers[rewound_block.owners[0]]
        if owner is not None and block.held[owner.number] == 1:
            owner.owning.add(block)
        place = rewound_block.place(0)
        block.set_place(slot, place)
        if place >= OUT_OF_ORDER:
            cell = (rewound_block.times[0], place ^ OUT_OF_ORDER, entry_id)
            if cell in self.order.deleted_pending:
                self.order.deleted_pending.remove(cell)
                self.order.out_of_order.add(cell)
                self.order.queued_ms = max(self.order.queued_ms, cell[0])
        self.order.nack_zone.walked = self.order.recent.walked = 0

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
        for block in twin.blocks:
            for number in block.held:
                owner = twin.numbers[number]
                if owner is not None:
                    owner.owning.add(block)
        twin.rewound = SortedDict({entry_id: block.copy(block.segment) for entry_id, block in self.rewound.items()})
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
        order.recent, order.out_of_order, order.deleted_pending = Arrivals(), SortedList(), SortedList()
        for block, slot in wanted:
            block.set_place(slot, order.recent.add(block.id_at(slot), block.times[slot]))
            order.queued_ms = max(order.queued_ms, block.times[slot])

    def memory_usage(self) -> int:
        """Bytes, by the group's own accounts."""
        blocks = sum(block.memory_usage() for block in self.blocks) + 1500 * len(self.rewound)
        consumers = sum(450 + len(one.name) + 18 * len(one.owning.blocks) for one in self.consumers.values())
        return 1200 + blocks + consumers + self.order.memory_usage()

    def check(self) -> None:
        """Assert the invariants."""
        self.check_order()
        owned: dict[int, int] = {}
        for block in [*self.blocks, *self.rewound.values()]:
            block.check()
            for owner, count in block.held.items():
                owned[owner] = owned.get(owner, 0) + count
        assert self.pending == sum(owned.values()), "pending is miscounted"
        assert self.released == owned.pop(RELEASED, 0), "released is miscounted"
        for consumer in self.consumers.values():
            assert self.numbers[consumer.number] is consumer
            assert consumer.pending == owned.pop(consumer.number, 0), "a consumer is miscounted"
            consumer.owning.check_order()
            mine = [block for block in self.blocks if consumer.number in block.held]
            assert consumer.owning.blocks == mine, "a consumer's blocks are others"
        assert not owned, "a slot has no consumer"
        for entry_id, block in self.rewound.items():
            assert block.first_id == entry_id and not block.segment.is_live(0)
        timed = self.in_time_order()
        assert len(timed) == self.pending - self.released, "an owned entry is not in time order"
        assert [block.times[slot] for block, slot in timed] == sorted(block.times[slot] for block, slot in timed)
        assert len(self.nack_zone()) == self.released, "a released entry is not in the zone"


def _count_run(block: PendingBlock, start: int, stop: int, counting: int) -> None:
    """The delivery counts of a run, by `counting`."""
    if counting == KEEP_COUNT:
        return
    counts = block.counts[start:stop]
    first = counts[0]
    if counting >= 0 or counts.count(first) == len(counts):
        block.counts[start:stop] = repeated(_next_count(first, counting), len(counts))
    else:
        block.counts[start:stop] = array("Q", [_next_count(count, counting) for count in counts])


def _next_count(count: int, counting: int) -> int:
    """What a delivery count becomes, by `counting` (see Group.give_all and Group.release)."""
    if counting >= 0:
        return counting
    if counting == COUNT_BACK:
        return max(count - 1, 0)
    return count if counting == KEEP_COUNT else min(count + 1, MAX_COUNT)
