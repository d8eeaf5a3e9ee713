"""A consumer group: its read position, its consumers and its pending entries."""

from typing import TYPE_CHECKING, Final

from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.ids import StreamId, halves
from penstock.storage.streams.pending.consumer import Consumer, memory_of_consumers
from penstock.storage.streams.pending.pending_block import PendingSlot
from penstock.storage.streams.pending.pending_list import PendingList

if TYPE_CHECKING:
    from penstock.storage.streams.segment import Segment

UNKNOWN: Final = -1  # entries-read cannot be computed, because entries were deleted
GROUPS_SAMPLED: Final = 16  # from which the memory of a stream's groups is estimated


class Group:
    """A read position, consumers by name, and a pending entries list whose owners they are.

    In the costs, c is the number of consumers, n of pending entries.
    """

    __slots__ = (
        "consumers", "entries_read", "last_ms", "last_seq", "name", "pel", "policy", "read_segment", "read_slot",
    )  # fmt: skip

    def __init__(self, name: bytes, last_id: StreamId, entries_read: int) -> None:
        self.name = name
        self.last_ms, self.last_seq = halves(last_id)
        self.entries_read = entries_read
        self.consumers: dict[bytes, Consumer] = {}
        self.pel = PendingList()
        self.read_segment: Segment | None = None  # where the entry of last_id is, if `>` handed it out
        self.read_slot = 0
        self.policy: GroupPolicy | None = None  # set by set_policy

    def set_policy(self, policy: GroupPolicy | None) -> None:
        """Set or unset the group's policy, which follows the pending entries from here on."""
        self.policy = self.pel.policy = policy

    @property
    def last_id(self) -> StreamId:
        """The last-delivered id, after which `>` reads. Each call makes an object; its halves cost nothing."""
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

    def is_new_again(self, found: PendingSlot) -> bool:
        """Whether a pending entry is after the last-delivered id, which XGROUP SETID has set back. O(1)."""
        segment, slot = found[0].segment, found[1]
        return not self.has_reached(segment.ms[slot], segment.seq[slot])

    def consumers_by_name(self) -> list[Consumer]:
        """In ascending byte order, as Redis lists them. O(c log c)."""
        if len(self.consumers) == 1:
            return list(self.consumers.values())
        return [self.consumers[name] for name in sorted(self.consumers)]

    def add_consumer(self, name: bytes, now_ms: int) -> Consumer:
        """Create a consumer; the name must be new. O(1)."""
        consumer = self.consumers[name] = self.pel.add_owner(name, now_ms)
        return consumer

    def remove_consumer(self, consumer: Consumer) -> int:
        """Remove a consumer and its pending entries; returns how many those were. Costs as PendingList.remove_owner."""
        del self.consumers[consumer.name]
        if self.policy is not None:
            self.policy.readers.pop(consumer.name, None)
        return self.pel.remove_owner(consumer)

    def copy(self, copies: "dict[int, Segment]") -> "Group":
        """A copy of the group beside copied segments; `copies` maps the id() of a segment to its copy.

        O(slots of the blocks + n log n).
        """
        copied = Group(self.name, self.last_id, self.entries_read)
        copied.pel = self.pel.copy(copies)
        for consumer in self.consumers.values():
            owner = copied.pel.owners[consumer.number]
            assert owner is not None, "a consumer has its number"
            copied.consumers[owner.name] = owner
        copied.set_policy(None if self.policy is None else self.policy.copy())
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of some blocks and a consumer. O(1)."""
        policy = 0 if self.policy is None else self.policy.memory_usage()
        return 1200 + memory_of_consumers(self.consumers, len(self.consumers)) + policy + self.pel.memory_usage()

    def check(self) -> None:
        """Assert the invariants. O(n log n + b c) for b blocks."""
        self.pel.check()
        owners = [owner for owner in self.pel.owners if owner is not None]
        assert {owner.name: owner for owner in owners} == self.consumers, "an owner is no consumer"
        assert self.pel.policy is self.policy, "the pending list follows another policy"


def memory_of_groups(groups: dict[bytes, Group]) -> int:
    """An estimate in bytes, from some of them. O(1)."""
    size = 0
    for sampled, group in enumerate(groups.values(), 1):
        size += group.memory_usage()
        if sampled == GROUPS_SAMPLED:
            return size * len(groups) // sampled
    return size
