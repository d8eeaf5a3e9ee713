"""Frees large deleted values in small steps, so that no client waits until a million entries are freed."""

from typing import Final, TypeAlias

from penstock.storage.key_table import KeyTable
from penstock.storage.keyspace import Value
from penstock.storage.streams.listpack_nodes import Node
from penstock.storage.streams.pending.pending_block import PendingBlock
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream
from penstock.storage.types.hashes import Hash
from penstock.storage.types.lists import LARGEST_NODE, List
from penstock.storage.types.sets import Form, Set
from penstock.storage.types.sorted_sets import SortedSet

SMALL_SEGMENTS: Final = 64  # a stream with no more segments is freed at once
LARGEST_AT_ONCE: Final = 64  # allocations that Redis frees at once, whatever asks for it
OBJECTS_PER_STEP: Final = 100  # takes well below a millisecond

Part: TypeAlias = list[Segment] | list[Node] | list[PendingBlock] | KeyTable


def effort(value: Value) -> int:
    """How many allocations Redis would have to free for a value, about: more than LARGEST_AT_ONCE it frees lazily.

    Values in a small encoding are one. O(groups) for a stream, else O(1).
    """
    if isinstance(value, List):
        return value.packed_bytes // LARGEST_NODE if value.is_quicklist else 1
    if isinstance(value, Set):
        return len(value) if value.form is Form.HASHTABLE else 1
    if isinstance(value, (Hash, SortedSet)):
        return len(value) if value.is_large else 1
    if isinstance(value, Stream):
        return 2 * len(value.nodes) + sum([1 + group.pel.count for group in value.groups.values()])
    return 1


class LazyFree:
    """Parts of deleted values and whole databases that wait to be freed: `parts`, last in, first out."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def take(self, value: Value | KeyTable) -> None:
        """Take over a deleted value, if it is large, or all values of a database.

        The caller must have no other reference. O(groups + consumers) for a large stream, else O(1).
        """
        if isinstance(value, KeyTable):
            self.parts.append(value)
            return
        if not isinstance(value, Stream) or len(value.segments) <= SMALL_SEGMENTS:
            return
        for group in value.groups.values():
            self.parts += [consumer.owned_blocks.blocks for consumer in group.consumers.values()]
            self.parts.append(group.pel.by_id.all_blocks.blocks)
        self.parts += [value.nodes, value.segments]

    def pending(self) -> int:
        """How many values wait to be freed, as INFO counts them: those of a database one by one. O(parts)."""
        return sum([len(part) if isinstance(part, KeyTable) else 1 for part in self.parts])

    def free_lazily(self) -> None:
        """Free the next OBJECTS_PER_STEP objects; `parts` must not be empty."""
        part = self.parts[-1]
        if not part:
            self.parts.pop()
        elif isinstance(part, KeyTable):
            for value in part.take_some(OBJECTS_PER_STEP):
                self.take(value)
        else:
            del part[-OBJECTS_PER_STEP:]
