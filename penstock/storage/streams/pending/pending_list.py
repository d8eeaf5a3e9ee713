"""The pending entries list (PEL) of a group: what was delivered and is not acknowledged, and what becomes of it."""

from array import array
from typing import TYPE_CHECKING

from penstock.native.columns import WIDE
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.ids import IdColumns, StreamId
from penstock.storage.streams.pending import claim_walk
from penstock.storage.streams.pending.block_list import memory_of_blocks
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.delivery_order import DeliveryOrder
from penstock.storage.streams.pending.delivery_walk import in_time_order
from penstock.storage.streams.pending.pending_block import (
    COUNT_UP,
    FIRST_NUMBER,
    NOT_PENDING,
    RELEASED,
    PendingBlock,
    PendingRun,
    PendingSlot,
    each_of,
    id_of,
)
from penstock.storage.streams.pending.pending_index import PendingIndex
from penstock.storage.streams.segment import deleted_entry

if TYPE_CHECKING:
    from penstock.storage.streams.segment import Segment, SegmentRun


class PendingList:
    """Pending entries: `by_id` says where they are, `order` in which order they were delivered or released.

    `policy` follows what changes hands or goes.

    Invariants: `count` counts the slots of all blocks. `owners[i]` is the consumer that their owner columns call i; its
    `pending` counts the entries that it owns, its `owned_blocks` are the blocks in which it owns any, those of rewound
    pending entries left out.

    In the costs, b is the number of blocks, n of pending entries. A block has at most 128 slots. Changing one entry's
    place in time order costs O(1), or O(log n) for an entry that is out of order.
    """

    __slots__ = ("_free_numbers", "by_id", "count", "order", "owners", "policy", "redeliveries")

    def __init__(self) -> None:
        self.by_id = PendingIndex()
        self.order = DeliveryOrder(self.by_id)
        self.owners: list[Consumer | None] = [None] * FIRST_NUMBER
        self._free_numbers: list[int] = []
        self.count = 0
        self.redeliveries = 0  # deliveries after an entry's first, since the process has the group; not stored
        self.policy: GroupPolicy | None = None

    # -- owners -----------------------------------------------------------------------------------------------------

    def add_owner(self, name: bytes, now_ms: int) -> Consumer:
        """Create a consumer with a number of its own. O(1)."""
        if self._free_numbers:
            number = self._free_numbers.pop()
        else:
            number = len(self.owners)
            self.owners.append(None)
        consumer = Consumer(name, number, now_ms)
        self.owners[number] = consumer
        return consumer

    def remove_owner(self, consumer: Consumer) -> int:
        """Remove a consumer and its entries; returns how many those were.

        O(slots of its blocks + rewound pending entries), and O(b) more for each block that it empties.
        """
        lost = consumer.pending
        for block in [*consumer.owned_blocks.blocks, *self.by_id.rewound.values()]:
            for start, stop in block.runs_of(consumer.number, 0, len(block.owners)):
                self.forget_run(block, start, stop)
        self.owners[consumer.number] = None
        self._free_numbers.append(consumer.number)  # no slot has this number any more
        return lost

    def owner_name(self, pending_slot: PendingSlot) -> bytes:
        """The owner's name; empty for a released entry. O(1)."""
        return self.name_of(pending_slot[0].owners[pending_slot[1]])

    def name_of(self, owner: int) -> bytes:
        """The name of an owner in a block's column; empty for RELEASED. O(1)."""
        consumer = self.owners[owner]
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
        return self._with_rewound(found, consumer, start, max_count) if self.by_id.rewound else found

    def _with_rewound(
        self, found: list[PendingRun], consumer: Consumer, start: StreamId, max_count: int
    ) -> list[PendingRun]:
        rewound = [
            (block, slot) for block, slot in self.by_id.walk_rewound(start) if block.owners[0] == consumer.number
        ]
        merged = sorted(each_of(found) + rewound, key=id_of)[:max_count]
        return [(block, slot, slot + 1) for block, slot in merged]

    # -- delivering -------------------------------------------------------------------------------------------------

    def deliver(self, runs: "list[SegmentRun]", consumer: Consumer, now_ms: int) -> None:
        """New entries (live, ascending) become pending with `consumer`, delivered once, now.

        An entry that is already pending (XGROUP SETID set the group back) changes its owner and starts again with count
        1. O(1) for each entry; O(log b) for each run, or O(b) if its block must be created between others.
        """
        for segment, start, stop in runs:
            block = self.by_id.block_of(segment)
            if block.is_free(start, stop):
                self._fill(block, start, stop, consumer, now_ms, 1)
                continue
            for slot in range(start, stop):
                if slot < len(block.owners) and block.owners[slot]:
                    self.give((block, slot), consumer, now_ms, 1)
                else:
                    self._fill(block, slot, slot + 1, consumer, now_ms, 1)

    def force(
        self, segment: "Segment", start: int, stop: int, consumer: Consumer, time_ms: int, count: int
    ) -> PendingRun:
        """Make slots pending that are not (XCLAIM FORCE, a snapshot); their entries may be deleted ones.

        O(log b), or O(b) if their block must be created between others.
        """
        block = self.by_id.block_of(segment)
        self._fill(block, start, stop, consumer, time_ms, count)
        return block, start, stop

    def force_released(self, segment: "Segment", slot: int, count: int) -> PendingRun:
        """Make a live entry pending without an owner (XNACK FORCE); it must not be pending. Costs as `force`."""
        block = self.by_id.block_of(segment)
        block.fill(slot, slot + 1, RELEASED, 0, count)
        self.count += 1
        self.order.release(block, slot, slot + 1)
        return block, slot, slot + 1

    def _fill(self, block: PendingBlock, start: int, stop: int, consumer: Consumer, time_ms: int, count: int) -> None:
        length = stop - start
        block.fill(start, stop, consumer.number, time_ms, count)
        self.by_id.next_block, self.by_id.next_slot = block, start
        self.count += length
        consumer.pending += length
        if block.owner_counts[consumer.number] == length:
            consumer.owned_blocks.add(block)
        self.order.add(block, start, stop, time_ms)

    # -- changing hands ---------------------------------------------------------------------------------------------

    def give(self, pending_slot: PendingSlot, consumer: Consumer, time_ms: int, count: int) -> None:
        """Set the owner (perhaps the same one), delivery time and count of a pending entry; it leaves the NACK zone.

        Amortized O(1); O(log n) if the entry is or becomes out of order; O(b) if a consumer's list of blocks changes.
        """
        block, slot = pending_slot
        if self.policy is not None:
            self.policy.give_run(block, slot, slot + 1)
        self.order.leave(block, slot)
        former = block.owners[slot]
        if former != consumer.number:
            block.change_owner(slot, consumer.number)
            self._lost(block, former, 1)
            self._gained(block, consumer, 1)
        block.times[slot] = time_ms
        if count > block.counts[slot]:
            self.redeliveries += 1
        block.counts[slot] = count
        self.order.queue(block, slot, time_ms)
        self.order.drop_stale()

    def give_all(self, runs: list[PendingRun], consumer: Consumer, time_ms: int, count_change: int) -> None:
        """As `give` for every slot of each run, in order, by slices.

        `count_change` is the new delivery count, or COUNT_UP or KEEP_COUNT. O(1) for each slot of a run, by slices; a
        run in which an entry is out of order costs O(log n) for each slot.
        """
        if self.order.stay_last(runs, time_ms):
            for block, start, stop in runs:
                self._hand_over(block, start, stop, consumer, time_ms, count_change)
            return
        for block, start, stop in runs:
            if stop - start == 1:
                self.give((block, start), consumer, time_ms, block.next_count(start, count_change))
                continue
            if self.policy is not None:
                self.policy.give_run(block, start, stop)
            self.order.leave_run(block, start, stop)
            self._hand_over(block, start, stop, consumer, time_ms, count_change)
            self.order.queue_run(block, start, stop, time_ms)
        self.order.drop_stale()

    def give_again(self, runs: list[PendingRun], consumer: Consumer, time_ms: int) -> None:
        """As `give_all` with COUNT_UP, for entries that the consumer owns: it reads its history. Costs the same."""
        if not self.order.stay_last(runs, time_ms):
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

    def release(self, run: PendingRun, count_change: int) -> None:
        """XNACK: remove the owner of the entries and append them to the NACK zone, in order.

        `count_change` is the new delivery count, or COUNT_DOWN or KEEP_COUNT. Costs as `give_all`.
        """
        block, start, stop = run
        if self.policy is not None:
            self.policy.release_run(block, start, stop)
        self.order.leave_run(block, start, stop)
        self._lose(block, block.change_owners(start, stop, RELEASED))
        block.times[start:stop] = array(WIDE, bytes(8 * (stop - start)))
        block.change_counts(start, stop, count_change)
        self.order.release(block, start, stop)
        self.order.drop_stale()

    def _lose(self, block: PendingBlock, lost: list[tuple[int, int]]) -> int:
        """Call `_lost` for each (owner, count); returns the total."""
        taken = 0
        for owner, count in lost:
            self._lost(block, owner, count)
            taken += count
        return taken

    def _lost(self, block: PendingBlock, owner: int, count: int) -> None:
        """An owner lost `count` slots of a block; the block's own counts are already up to date."""
        consumer = self.owners[owner]
        if consumer is not None:
            consumer.pending -= count
            if owner not in block.owner_counts:
                consumer.owned_blocks.drop(block)

    def _gained(self, block: PendingBlock, consumer: Consumer, count: int) -> None:
        """A consumer gained `count` slots of a block; the block's own counts are already up to date."""
        consumer.pending += count
        if block.owner_counts[consumer.number] == count and not self.by_id.is_rewound(block):
            consumer.owned_blocks.add(block)

    # -- removing ---------------------------------------------------------------------------------------------------

    def forget(self, block: PendingBlock, slot: int) -> None:
        """Remove a pending entry: it was acknowledged or deleted, or its consumer was deleted.

        O(1); O(log n) if it was out of order; O(b) if its block becomes empty.
        """
        if self.policy is not None:
            self.policy.forget_run(block, slot, slot + 1)
        self.order.leave(block, slot)
        owner = block.owners[slot]
        block.free(slot)
        self._lost(block, owner, 1)
        self.count -= 1
        if not block.pending:
            self.by_id.remove(block)

    def acknowledge_all(self, wanted: IdColumns) -> bytes:
        """As `acknowledge` for each id, in order; returns one byte for each, 1 where the id was pending.

        O(log b) for each run of neighbours, O(1) for each id, and O(b) for each block that becomes empty.
        """
        acknowledged: list[bytes] = []
        at, count = 0, len(wanted)
        while at < count:
            run = self.by_id.pending_run(wanted, at)
            if run is None:
                acknowledged.append(b"\0")
                at += 1
                continue
            block, start, stop = run
            acknowledged.append(b"\1" * (stop - start))
            at += stop - start
            self.forget_run(block, start, stop)
            self.by_id.next_block, self.by_id.next_slot = block, stop
        return acknowledged[0] if len(acknowledged) == 1 else b"".join(acknowledged)

    def forget_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `forget` for the slots of a run, by slices."""
        if stop - start == 1:
            self.forget(block, start)
            return
        if self.policy is not None:
            self.policy.forget_run(block, start, stop)
        self.order.leave_run(block, start, stop)
        self._lose(block, block.change_owners(start, stop, NOT_PENDING))
        self.count -= stop - start
        if not block.pending:
            self.by_id.remove(block)

    def acknowledge(self, ms: int, seq: int) -> bool:
        """Remove an id from the pending list, whichever consumer has it; returns whether it was there.

        O(1) for the id after the last one removed, which is the usual case; else O(log b). Then as `forget`.
        """
        pending_slot = self.by_id.near(ms, seq)
        if pending_slot is None:
            return False
        block, slot = pending_slot
        self.forget(block, slot)
        self.by_id.next_block, self.by_id.next_slot = block, slot + 1
        return True

    # -- XSETID to a lower id ---------------------------------------------------------------------------------------

    def rewind_above(self, last_id: StreamId) -> None:
        """XSETID lowered the last id: make the pending entries above `last_id` rewound pending entries.

        The ids above `last_id` may be appended again. All their entries are deleted, so these are deleted pending
        entries. They leave the blocks. O(log b), and O(log n + b) for each of them.
        """
        for block, slot in list(self.by_id.walk_blocks(last_id + 1)):
            entry_id = block.id_at(slot)
            rewound_block = PendingBlock(deleted_entry(entry_id))
            rewound_block.fill(0, 1, block.owners[slot], block.times[slot], block.counts[slot])
            self.order.rewind(block, slot, rewound_block)
            owner = self.owners[block.owners[slot]]
            block.free(slot)
            if owner is not None and owner.number not in block.owner_counts:
                owner.owned_blocks.drop(block)
            if not block.pending:
                self.by_id.all_blocks.drop(block)
            self.by_id.rewound[entry_id] = rewound_block

    def revive(self, entry_id: StreamId, segment: "Segment", slot: int) -> None:
        """An id is appended again: if it is the id of a rewound pending entry, move that into a block. O(log n + b)."""
        rewound_block = self.by_id.rewound.pop(entry_id, None)
        if rewound_block is None:
            return
        block = self.by_id.block_of(segment)
        block.fill(slot, slot + 1, rewound_block.owners[0], rewound_block.times[0], rewound_block.counts[0])
        owner = self.owners[rewound_block.owners[0]]
        if owner is not None and block.owner_counts[owner.number] == 1:
            owner.owned_blocks.add(block)
        self.order.revive(rewound_block, block, slot)
        if self.policy is not None:
            self.policy.revive(entry_id)

    # -- the whole list ---------------------------------------------------------------------------------------------

    def copy(self, copies: "dict[int, Segment]") -> "PendingList":
        """A copy beside copied segments, with consumers of its own; `copies` maps the id() of a segment to its copy.

        O(slots of the blocks + n log n).
        """
        copied = PendingList()
        copied.by_id = self.by_id.copy(copies)
        copied.owners = [None if owner is None else owner.copy() for owner in self.owners]
        copied._free_numbers = self._free_numbers[:]
        for block in copied.by_id.all_blocks.blocks:
            for number in block.owner_counts:
                owner = copied.owners[number]
                if owner is not None:
                    owner.owned_blocks.add(block)
        copied.count, copied.order = self.count, self.order.copy(copied.by_id)
        timed = in_time_order(copied.order)
        by_id = sorted(timed, key=lambda found: (found[0].times[found[1]], id_of(found)))
        if timed != by_id:  # COPY sorts entries with equal times by id (Redis 8.6.3)
            copied.order.sort(by_id)
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes without the consumers, from the sizes of some blocks. O(1)."""
        blocks = memory_of_blocks(self.by_id.all_blocks.blocks)
        return blocks + 1500 * len(self.by_id.rewound) + self.order.memory_usage()

    def check(self) -> None:
        """Assert the invariants. O(n log n + b c) for c consumers."""
        self.by_id.check()
        owned: dict[int, int] = {}
        for block in self.by_id.every_block():
            for owner, count in block.owner_counts.items():
                owned[owner] = owned.get(owner, 0) + count
        assert self.count == sum(owned.values()), "pending is miscounted"
        assert self.order.released == owned.pop(RELEASED, 0), "released is miscounted"
        for consumer in self.owners:
            if consumer is None:
                continue
            assert self.owners[consumer.number] is consumer
            assert consumer.pending == owned.pop(consumer.number, 0), "a consumer is miscounted"
            consumer.owned_blocks.check_order()
            mine = [block for block in self.by_id.all_blocks.blocks if consumer.number in block.owner_counts]
            assert consumer.owned_blocks.blocks == mine, "a consumer's blocks are others"
        assert not owned, "a slot has no consumer"
        timed = in_time_order(self.order)
        assert len(timed) == self.count - self.order.released, "an owned entry is not in time order"
        times = [block.times[slot] for block, slot in timed]
        assert times == sorted(times)
        oldest_ms = next(
            (block.times[slot] for block, slot in timed if block.segment.is_live(slot)), claim_walk.NONE_LIVE
        )
        assert claim_walk.oldest_owned_ms(self.order) == oldest_ms, "the oldest entry is another"
        zone = {id_of(found) for found in self.order.in_nack_zone()}
        assert len(zone) == self.order.released, "a released entry is not in the zone"
        if self.policy is not None:
            self.policy.check()
            assert self.policy.ready.keys() <= zone, "an entry that is not released has a moment"
