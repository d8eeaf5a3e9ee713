"""Frees large deleted values in small steps, so that no client waits until a million entries are freed."""

from typing import Final, TypeAlias

from penstock.storage.keyspace import Value
from penstock.storage.streams.listpack_nodes import Node
from penstock.storage.streams.pending_block import PendingBlock
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream

SMALL_SEGMENTS: Final = 64  # a stream with no more segments is freed at once
OBJECTS_PER_STEP: Final = 100  # takes well below a millisecond

Part: TypeAlias = list[Segment] | list[Node] | list[PendingBlock] | dict[bytes, Value]


class LazyFree:
    """Parts of deleted values and whole databases that wait to be freed: `parts`, last in, first out."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def take(self, value: Value | dict[bytes, Value]) -> None:
        """Take over a deleted value, if it is large, or all values of a database.

        The caller must have no other reference. O(groups + consumers) for a large stream, else O(1).
        """
        if isinstance(value, dict):
            self.parts.append(value)
            return
        if not isinstance(value, Stream) or len(value.segments) <= SMALL_SEGMENTS:
            return
        for group in value.groups.values():
            self.parts += [consumer.owned_blocks.blocks for consumer in group.consumers.values()]
            self.parts.append(group.blocks)
        self.parts += [value.nodes, value.segments]

    def free_lazily(self) -> None:
        """Free the next OBJECTS_PER_STEP objects; `parts` must not be empty."""
        part = self.parts[-1]
        if not part:
            self.parts.pop()
        elif isinstance(part, dict):
            for _ in range(min(OBJECTS_PER_STEP, len(part))):
                self.take(part.popitem()[1])
        else:
            del part[-OBJECTS_PER_STEP:]
