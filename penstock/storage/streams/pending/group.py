"""A consumer group: its read position, its consumers and its pending entries."""

from array import array
from typing import TYPE_CHECKING, Final

from sortedcontainers import SortedDict, SortedList

from penstock.native.columns import WIDE, counts_up
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.ids import IdColumns, StreamId, halves
from penstock.storage.streams.pending.block_list import memory_of_blocks
from penstock.storage.streams.pending.consumer import Consumer, memory_of_consumers
from penstock.storage.streams.pending.delivery_order import FROM_ID_ORDER, OUT_OF_ORDER, ArrivalQueue
from penstock.storage.streams.pending.pending_block import (
    COUNT_UP,
    FIRST_NUMBER,
    IN_ID_ORDER,
    NOT_PENDING,
    RELEASED,
    PendingBlock,
)
from penstock.storage.streams.pending.pending_list import (
    PendingList,
    PendingRun,
    PendingSlot,
    each_of,
    id_of,
    time_and_id,
    total_of,
)
from penstock.storage.streams.segment import deleted_entry

if TYPE_CHECKING:
    from penstock.storage.streams.segment import Segment, SegmentRun

UNKNOWN: Final = -1  # entries-read cannot be computed, because entries were deleted


class Group(PendingList):
    """A pending list with its consumers and its read position.

    Invariants: each consumer's `pending` counts the entries that it owns; its `owned_blocks` are the blocks in which it
    owns any. `numbers[i]` is the consumer that the owner columns of the blocks call i.

    In the costs, b is the number of the group's blocks, c of its consumers, n of its pending entries. A block has at
    most 128 slots. Changing one entry's place in time order costs O(1), or O(log n) for an entry that is out of order.
    """

    __slots__ = (
        "_emptied", "_free_numbers", "consumers", "entries_read", "last_ms", "last_seq", "name", "numbers", "policy",
        "read_segment", "read_slot", "redeliveries",
    )  # fmt: skip

    def __init__(self, name: bytes, last_id: StreamId, entries_read: int) -> None:
        super().__init__()
        self.name = name
        self.last_ms, self.last_seq = halves(last_id)
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.numbers: list[Consumer | None] = [None] * FIRST_NUMBER
        self._free_numbers: list[int] = []
        self._emptied: PendingBlock | None = None  # the last block that became empty, kept until it is used again
        self.read_segment: Segment | None = None  # where the entry of last_id is, if `>` handed it out
        self.read_slot = 0
        self.redeliveries = 0  # deliveries after an entry's first, since the process has the group; not stored
        self.policy: GroupPolicy | None = None

    # -- the read position ------------------------------------------------------------------------------------------

    @property
    def last_id(self) -> StreamId:
        """The last-delivered id: `>` goes on behind it. An object of its own; its halves cost nothing."""
        return self.last_ms << 64 | self.last_seq

    @last_id.setter
    def last_id(self, last_id: StreamId) -> None:
        self.last_ms, self.last_seq = halves(last_id)
        self.read_segment = None

    def read_up_to(self, segment: "Segment", slot: int) -> None:
        """Set the last-delivered id to that of an entry. O(1)."""
        self.last_ms, self.last_seq = segment.ms[slot], segment.seq[slot]
        self.read_segment, self.read_slot = segment, slot

    def has_reached(self, ms: int, seq: int) -> bool:
        """Whether the last-delivered id is this one or a higher one."""
        return self.last_ms > ms or (self.last_ms == ms and self.last_seq >= seq)

    # -- consumers --------------------------------------------------------------------------------------------------

    def consumers_by_name(self) -> list[Consumer]:
        """In ascending byte order, as Redis lists them. O(c log c)."""
        if len(self.consumers) == 1:
            return list(self.consumers.values())
        return [self.consumers[name] for name in sorted(self.consumers)]

    def add_consumer(self, name: bytes, now_ms: int) -> Consumer:
        """Create a consumer; the name must be new. O(1)."""
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
        """Remove a consumer and its pending entries; returns how many those were.

        O(slots of its blocks + rewound pending entries), and O(b) more for each block that it empties.
        """
        lost = consumer.pending
        for block in [*consumer.owned_blocks.blocks, *self.rewound.values()]:
            for start, stop in block.runs_of(consumer.number, 0, len(block.owners)):
                self.forget_run(block, start, stop)
        del self.consumers[consumer.name]
        self.numbers[consumer.number] = None
        self._free_numbers.append(consumer.number)  # no slot has this number any more
        return lost

    def owner_name(self, pending_slot: PendingSlot) -> bytes:
        """The owner's name; empty for a released entry. O(1)."""
        return self.name_of(pending_slot[0].owners[pending_slot[1]])

    def name_of(self, owner: int) -> bytes:
        """The name of an owner in a block's column; empty for RELEASED. O(1)."""
        consumer = self.numbers[owner]
        return b"" if consumer is None else consumer.name

    def owned(self, consumer: Consumer, start: StreamId, max_count: int) -> list[PendingRun]:
        """At most `max_count` of a consumer's pending entries from an id on, ascending.

        Visits only blocks in which it owns entries: O(log b + blocks visited + runs returned); and, if there are
        rewound pending entries, all of them from `start` on.
        """
        found: list[PendingRun] = []
        left = min(consumer.pending, max_count)
        blocks, number, is_one_each = consumer.owned_blocks.blocks, consumer.number, consumer.owns_one_each()
        index = consumer.owned_blocks.index_from(start)
        first = blocks[index].slot_from(start) if index < len(blocks) else 0
        while left > 0 and index < len(blocks):
            block = blocks[index]
            index += 1
            if is_one_each:
                slot = block.first_of(number, first)
                if slot >= 0:
                    found.append((block, slot, slot + 1))
                    left -= 1
            else:
                for from_slot, to_slot in block.runs_of(number, first, left):
                    found.append((block, from_slot, to_slot))
                    left -= to_slot - from_slot
            first = 0  # further blocks begin behind `start`
        return self._with_rewound(found, consumer, start, max_count) if self.rewound else found

    def _with_rewound(
        self, found: list[PendingRun], consumer: Consumer, start: StreamId, max_count: int
    ) -> list[PendingRun]:
        rewound = [(block, slot) for block, slot in self._walk_rewound(start) if block.owners[0] == consumer.number]
        merged = sorted(each_of(found) + rewound, key=id_of)[:max_count]
        return [(block, slot, slot + 1) for block, slot in merged]

    # -- delivering -------------------------------------------------------------------------------------------------

    def deliver(self, runs: "list[SegmentRun]", consumer: Consumer, now_ms: int) -> None:
        """New entries (live, ascending) become pending with `consumer`, delivered once, now.

        An entry that is already pending (XGROUP SETID set the group back) changes its owner and starts again with count
        1. O(1) for each entry; O(log b) for each run, or O(b) if its block must be created between others.
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

    def force(self, segment: "Segment", slot: int, consumer: Consumer, time_ms: int, count: int) -> PendingSlot:
        """Make a live entry pending (XCLAIM FORCE); it must not be pending.

        O(log b), or O(b) if its block must be created between others.
        """
        block = self._block_of(segment)
        self._fill(block, slot, slot + 1, consumer, time_ms, count)
        return block, slot

    def force_run(
        self, segment: "Segment", start: int, stop: int, consumer: Consumer, time_ms: int, count: int
    ) -> None:
        """Make slots pending that were not (a snapshot). The entries may be deleted ones. Costs as `force`."""
        self._fill(self._block_of(segment), start, stop, consumer, time_ms, count)

    def force_released(self, segment: "Segment", slot: int, count: int) -> PendingRun:
        """Make a live entry pending without an owner (XNACK FORCE); it must not be pending. Costs as `force`."""
        block = self._block_of(segment)
        block.fill(slot, slot + 1, RELEASED, 0, count)
        self.pending += 1
        self.released += 1
        block.set_place(slot, self.order.nack_zone.add(segment.ms[slot], segment.seq[slot], 0))
        return block, slot, slot + 1

    def _block_of(self, segment: "Segment") -> PendingBlock:
        """The block of a segment, created if there is none. The caller must then fill a slot in it."""
        if self.blocks and self.blocks[-1].segment is segment:
            return self.blocks[-1]
        block, self._emptied = self._emptied, None
        if block is None or block.segment is not segment:
            index = self.index_of(segment.first_id)
            if index >= 0 and self.blocks[index].segment is segment:
                return self.blocks[index]
            block = PendingBlock(segment)
        self.add(block)
        return block

    def _fill(self, block: PendingBlock, start: int, stop: int, consumer: Consumer, time_ms: int, count: int) -> None:
        length = stop - start
        block.fill(start, stop, consumer.number, time_ms, count)
        self._next_block, self._next_slot = block, start
        self.pending += length
        consumer.pending += length
        if block.owner_counts[consumer.number] == length:
            consumer.owned_blocks.add(block)
        order, segment = self.order, block.segment
        ms, seq = segment.ms[start], segment.seq[start]
        if order.fits_id_order(ms, seq, time_ms):
            if length > 1:
                ms, seq = segment.ms[stop - 1], segment.seq[stop - 1]
            order.extend_id_order(ms, seq, time_ms)
        else:
            self._queue_run(block, start, stop, time_ms)

    def _queue_run(self, block: PendingBlock, start: int, stop: int, time_ms: int) -> None:
        """Queue slots with one time, none of which is in a queue."""
        order, segment = self.order, block.segment
        if order.fits_recent(time_ms):
            block.set_places(start, order.recent.add_run(segment.ms[start:stop], segment.seq[start:stop], time_ms))
            order.queued_ms = max(order.queued_ms, time_ms)
        else:
            for slot in range(start, stop):
                block.set_place(slot, order.queue(segment.ms[slot], segment.seq[slot], time_ms))

    # -- changing hands ---------------------------------------------------------------------------------------------

    def give(self, pending_slot: PendingSlot, consumer: Consumer, time_ms: int, count: int) -> None:
        """Set the owner (perhaps the same one), delivery time and count of a pending entry; it leaves the NACK zone.

        Amortized O(1); O(log n) if the entry is or becomes out of order; O(b) if a consumer's list of blocks changes.
        """
        block, slot = pending_slot
        self._leave_order(block, slot)
        former = block.owners[slot]
        if former != consumer.number:
            block.change_owner(slot, consumer.number)
            self._lost(block, former, 1)
            self._gained(block, consumer, 1)
        block.times[slot] = time_ms
        if count > block.counts[slot]:
            self.redeliveries += 1
        block.counts[slot] = count
        self._settle(block, slot, time_ms)

    def give_all(self, runs: list[PendingRun], consumer: Consumer, time_ms: int, count_change: int) -> None:
        """As `give` for every slot of each run, in order, by slices.

        `count_change` is the new delivery count, or COUNT_UP or KEEP_COUNT. O(1) for each slot of a run, by slices; a
        run in which an entry is out of order costs O(log n) for each slot.
        """
        if self._stay_last_in_time(runs, time_ms):
            for block, start, stop in runs:
                self._hand_over(block, start, stop, consumer, time_ms, count_change)
            return
        for block, start, stop in runs:
            if stop - start == 1:
                self.give((block, start), consumer, time_ms, block.next_count(start, count_change))
                continue
            self._leave_order_together(block, start, stop)
            self._hand_over(block, start, stop, consumer, time_ms, count_change)
            self._queue_run(block, start, stop, time_ms)
        if self.order.recent.wants_rebuild():
            self.order.recent = self._rebuilt(self.order.recent, False)

    def give_again(self, runs: list[PendingRun], consumer: Consumer, time_ms: int) -> None:
        """As `give_all` with COUNT_UP, for entries that the consumer owns: it reads its history. Costs the same."""
        if not self._stay_last_in_time(runs, time_ms):
            self.give_all(runs, consumer, time_ms, COUNT_UP)
            return
        for block, start, stop in runs:
            block.set_times(start, stop, time_ms)
            block.change_counts(start, stop, COUNT_UP)
            self.redeliveries += stop - start

    def _hand_over(
        self, block: PendingBlock, start: int, stop: int, consumer: Consumer, time_ms: int, count_change: int
    ) -> None:
        """Set the owner, time and counts of a run; its places in time order stay."""
        taken = self._lose(block, block.change_owners(start, stop, consumer.number))
        if taken:
            self._gained(block, consumer, taken)
        block.set_times(start, stop, time_ms)
        if count_change == COUNT_UP:
            self.redeliveries += stop - start
        block.change_counts(start, stop, count_change)

    def _stay_last_in_time(self, runs: list[PendingRun], time_ms: int) -> bool:
        """Set the time of these runs' cells in `recent`, if they are its last ones, in this order, and may stay there.

        Returns whether they are: so it is for a consumer that reads its history, or claims, again and again.
        """
        recent, total = self.order.recent, total_of(runs)
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
        recent.set_last_times(total, time_ms)
        self.order.queued_ms = max(self.order.queued_ms, time_ms)
        return True

    def release(self, run: PendingRun, count_change: int) -> None:
        """XNACK: remove the owner of the entries and append them to the NACK zone, in order.

        `count_change` is the new delivery count, or COUNT_DOWN or KEEP_COUNT. Costs as `give_all`.
        """
        block, start, stop = run
        self._leave_order_together(block, start, stop)
        self.released += self._lose(block, block.change_owners(start, stop, RELEASED))
        block.times[start:stop] = array(WIDE, bytes(8 * (stop - start)))
        block.change_counts(start, stop, count_change)
        nack_zone, segment = self.order.nack_zone, block.segment
        block.set_places(start, nack_zone.add_run(segment.ms[start:stop], segment.seq[start:stop], 0))
        if nack_zone.wants_rebuild():
            self.order.nack_zone = self._rebuilt(nack_zone, True)

    def _leave_order_together(self, block: PendingBlock, start: int, stop: int) -> None:
        """Remove the slots of a run from their queues."""
        if block.places is None:
            return
        if self.policy is not None and self.released:
            self.policy.leave_run(block, start, stop)
        places = block.places[start:stop]
        unqueued = places.count(IN_ID_ORDER)
        if unqueued == stop - start:
            return
        if max(places) >= OUT_OF_ORDER:
            for slot in range(start, stop):
                self._leave_order(block, slot)
            return
        released = block.owners[start:stop].count(RELEASED) if self.released else 0
        self.order.nack_zone.stale += released
        self.order.recent.stale += stop - start - released - unqueued

    def _lose(self, block: PendingBlock, lost: list[tuple[int, int]]) -> int:
        """Call `_lost` for each (owner, count); returns the total."""
        taken = 0
        for owner, count in lost:
            self._lost(block, owner, count)
            taken += count
        return taken

    def _lost(self, block: PendingBlock, owner: int, count: int) -> None:
        """An owner lost `count` slots of a block; the block's own counts are already up to date."""
        consumer = self.numbers[owner]
        if consumer is None:
            self.released -= count
            return
        consumer.pending -= count
        if owner not in block.owner_counts:
            consumer.owned_blocks.drop(block)

    def _gained(self, block: PendingBlock, consumer: Consumer, count: int) -> None:
        """A consumer gained `count` slots of a block; the block's own counts are already up to date."""
        consumer.pending += count
        if block.owner_counts[consumer.number] == count and not self._is_rewound(block):
            consumer.owned_blocks.add(block)

    def _is_rewound(self, block: PendingBlock) -> bool:
        return bool(self.rewound) and self.rewound.get(block.first_id) is block

    def _settle(self, block: PendingBlock, slot: int, time_ms: int) -> None:
        order = self.order
        segment = block.segment
        block.set_place(slot, order.queue(segment.ms[slot], segment.seq[slot], time_ms))
        if order.recent.wants_rebuild():
            order.recent = self._rebuilt(order.recent, False)

    def _leave_order(self, block: PendingBlock, slot: int) -> None:
        place = block.place(slot)
        if place == IN_ID_ORDER:
            return
        if self.released and block.owners[slot] == RELEASED:
            if self.policy is not None:
                self.policy.leave(block.id_at(slot))
            self.order.nack_zone.stale += 1
        elif place < OUT_OF_ORDER:
            self.order.recent.stale += 1
        else:
            self.order.remove(block.times[slot], place, block.id_at(slot))

    def _rebuilt(self, arrivals: ArrivalQueue, released: bool) -> ArrivalQueue:
        """A queue without its stale cells. The places of the other slots are changed to match."""
        fresh = ArrivalQueue()
        for index, block, start, stop in self._cell_runs(arrivals, 0, released):
            block.set_places(start, fresh.add_cells(arrivals, index, index + stop - start))
        return fresh

    # -- removing ---------------------------------------------------------------------------------------------------

    def forget(self, block: PendingBlock, slot: int) -> None:
        """Remove a pending entry: it was acknowledged or deleted, or its consumer was deleted.

        O(1); O(log n) if it was out of order; O(b) if its block becomes empty.
        """
        self._leave_order(block, slot)
        if self.policy is not None:
            self.policy.forget_run(block, slot, slot + 1)
        owner = block.owners[slot]
        block.free(slot)
        self._lost(block, owner, 1)
        self.pending -= 1
        if not block.pending:
            self._remove(block)

    def _remove(self, block: PendingBlock) -> None:
        if self._is_rewound(block):
            del self.rewound[block.first_id]
        else:
            self.drop(block)
            self._emptied = block

    def acknowledge_all(self, wanted: IdColumns) -> bytes:
        """As `acknowledge` for each id, in order; returns one byte for each, 1 where the id was pending.

        O(log b) for each run of neighbours, O(1) for each id, and O(b) for each block that becomes empty.
        """
        acknowledged: list[bytes] = []
        at, count = 0, len(wanted)
        while at < count:
            run = self.pending_run(wanted, at)
            if run is None:
                acknowledged.append(b"\0")
                at += 1
                continue
            block, start, stop = run
            acknowledged.append(b"\1" * (stop - start))
            at += stop - start
            self.forget_run(block, start, stop)
            self._next_block, self._next_slot = block, stop
        return acknowledged[0] if len(acknowledged) == 1 else b"".join(acknowledged)

    def forget_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `forget` for the slots of a run, by slices."""
        if stop - start == 1:
            self.forget(block, start)
            return
        self._leave_order_together(block, start, stop)
        if self.policy is not None:
            self.policy.forget_run(block, start, stop)
        self._lose(block, block.change_owners(start, stop, NOT_PENDING))
        self.pending -= stop - start
        if not block.pending:
            self._remove(block)

    def acknowledge(self, ms: int, seq: int) -> bool:
        """Remove an id from the pending list, whichever consumer has it; returns whether it was there.

        O(1) for the id after the last one removed, which is the usual case; else O(log b). Then as `forget`.
        """
        pending_slot = self._near(ms, seq)
        if pending_slot is None:
            return False
        block, slot = pending_slot
        self.forget(block, slot)
        self._next_block, self._next_slot = block, slot + 1
        return True

    # -- XSETID to a lower id ---------------------------------------------------------------------------------------

    def rewind_above(self, last_id: StreamId) -> None:
        """XSETID lowered the last id: make the pending entries above `last_id` rewound pending entries.

        The ids above `last_id` may be appended again. All their entries are deleted, so these are deleted pending
        entries. They leave the blocks. O(log b), and O(log n + b) for each of them.
        """
        for block, slot in list(self._walk_blocks(last_id + 1)):
            entry_id = block.id_at(slot)
            rewound_block = PendingBlock(deleted_entry(entry_id))
            rewound_block.fill(0, 1, block.owners[slot], block.times[slot], block.counts[slot])
            place = block.place(slot)
            if place == IN_ID_ORDER:  # it keeps its rank in time order, as a deleted pending entry
                place = OUT_OF_ORDER | FROM_ID_ORDER
                self.order.deleted_pending.add((block.times[slot], FROM_ID_ORDER, entry_id))
            rewound_block.set_place(0, place)
            owner = self.numbers[block.owners[slot]]
            block.free(slot)
            if owner is not None and owner.number not in block.owner_counts:
                owner.owned_blocks.drop(block)
            if not block.pending:
                self.drop(block)
            self.rewound[entry_id] = rewound_block

    def revive(self, entry_id: StreamId, segment: "Segment", slot: int) -> None:
        """An id is appended again: if it is the id of a rewound pending entry, move that into a block. O(log n + b)."""
        rewound_block = self.rewound.pop(entry_id, None)
        if rewound_block is None:
            return
        block = self._block_of(segment)
        block.fill(slot, slot + 1, rewound_block.owners[0], rewound_block.times[0], rewound_block.counts[0])
        owner = self.numbers[rewound_block.owners[0]]
        if owner is not None and block.owner_counts[owner.number] == 1:
            owner.owned_blocks.add(block)
        place = rewound_block.place(0)
        block.set_place(slot, place)
        if place >= OUT_OF_ORDER:
            cell = (rewound_block.times[0], place ^ OUT_OF_ORDER, entry_id)
            if cell in self.order.deleted_pending:
                self.order.deleted_pending.remove(cell)
                self.order.out_of_order.add(cell)
                self.order.queued_ms = max(self.order.queued_ms, cell[0])
        self.order.nack_zone.claimable_from = self.order.recent.claimable_from = 0

    # -- the whole group --------------------------------------------------------------------------------------------

    def copy(self, twins: "dict[int, Segment]") -> "Group":
        """A copy of the group beside copied segments; `twins` maps the id() of a segment to its copy.

        O(slots of the blocks + n log n).
        """
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
            for number in block.owner_counts:
                owner = twin.numbers[number]
                if owner is not None:
                    owner.owned_blocks.add(block)
        twin.rewound = SortedDict({entry_id: block.copy(block.segment) for entry_id, block in self.rewound.items()})
        twin.pending, twin.released, twin.order = self.pending, self.released, self.order.copy()
        twin.policy = None if self.policy is None else self.policy.copy()
        twin._sort_ties()
        return twin

    def _sort_ties(self) -> None:
        """Sort entries with equal times by id, which is their order after COPY (Redis 8.6.3)."""
        timed = self.in_time_order()
        wanted = sorted(timed, key=time_and_id)
        if timed == wanted:
            return
        order = self.order
        order.recent, order.out_of_order, order.deleted_pending = ArrivalQueue(), SortedList(), SortedList()
        for block, slot in wanted:
            ms, seq = block.segment.ms[slot], block.segment.seq[slot]
            block.set_place(slot, order.recent.add(ms, seq, block.times[slot]))
            order.queued_ms = max(order.queued_ms, block.times[slot])

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of some blocks and a consumer. O(1)."""
        policy = 0 if self.policy is None else self.policy.memory_usage()
        size = memory_of_consumers(self.consumers, len(self.consumers)) + memory_of_blocks(self.blocks)
        return 1200 + size + 1500 * len(self.rewound) + policy + self.order.memory_usage()

    def check(self) -> None:
        """Assert the invariants. O(n log n + b c)."""
        self.check_order()
        owned: dict[int, int] = {}
        for block in [*self.blocks, *self.rewound.values()]:
            block.check()
            for owner, count in block.owner_counts.items():
                owned[owner] = owned.get(owner, 0) + count
        assert self.pending == sum(owned.values()), "pending is miscounted"
        assert self.released == owned.pop(RELEASED, 0), "released is miscounted"
        for consumer in self.consumers.values():
            assert self.numbers[consumer.number] is consumer
            assert consumer.pending == owned.pop(consumer.number, 0), "a consumer is miscounted"
            consumer.owned_blocks.check_order()
            mine = [block for block in self.blocks if consumer.number in block.owner_counts]
            assert consumer.owned_blocks.blocks == mine, "a consumer's blocks are others"
        assert not owned, "a slot has no consumer"
        for entry_id, block in self.rewound.items():
            assert block.first_id == entry_id and not block.segment.is_live(0)
        zone = self.check_delivery_order()
        if self.policy is not None:
            self.policy.check()
            assert self.policy.ready.keys() <= zone, "an entry that is not released has a moment"
