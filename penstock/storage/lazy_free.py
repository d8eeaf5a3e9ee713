"""What deleted streams leave behind, let go bit by bit, so that no client waits for a million entries to be freed."""

from typing import Final, TypeAlias

from penstock.storage.keyspace import Value
from penstock.storage.streams.listpack_nodes import Node
from penstock.storage.streams.pending_block import PendingBlock
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream

SMALL: Final = 64  # segments of a stream that goes at once
A_STEP: Final = 100  # objects, well below a millisecond

Part: TypeAlias = list[Segment] | list[Node] | list[PendingBlock] | dict[bytes, Value]


class LazyFree:
    """Parts of values that nobody can reach any more, and whole databases: `parts`, the last of which goes first."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def take(self, value: Value | dict[bytes, Value]) -> None:
        """Take over a value that was deleted, if it is large, or all of a database; nobody else may have it."""
        if isinstance(value, dict):
            self.parts.append(value)
            return
        if not isinstance(value, Stream) or len(value.segments) <= SMALL:
            return
        for group in value.groups.values():
            self.parts += [consumer.owned_blocks.blocks for consumer in group.consumers.values()]
            self.parts.append(group.blocks)
        self.parts += [value.nodes, value.segments]

    def free_lazily(self) -> None:
        """Free some of what there is."""
        part = self.parts[-1]
        if not part:
            self.parts.pop()
        elif isinstance(part, dict):
            for _ in range(min(A_STEP, len(part))):
                self.take(part.popitem()[1])
        else:
            del part[-A_STEP:]
