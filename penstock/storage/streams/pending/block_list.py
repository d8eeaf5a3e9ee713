"""A sorted list of pending blocks: all blocks of a group, or the blocks in which one consumer owns entries."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from penstock.storage.streams.ids import StreamId, last_at_most
from penstock.storage.streams.pending.pending_block import PendingBlock

BLOCKS_SAMPLED: Final = 32


class BlockList:
    """Pending blocks, ascending, found by the first id of their segment.

    Invariant: `firsts` holds the first ids of `blocks`, ascending. In the costs, b is the number of blocks; finding a
    block costs O(1) if it is the one found last.
    """

    __slots__ = ("_found_at", "blocks", "firsts")

    def __init__(self) -> None:
        self.firsts: list[StreamId] = []
        self.blocks: list[PendingBlock] = []
        self._found_at = 0

    def index_of(self, entry_id: StreamId) -> int:
        """The index of the last block that does not begin behind an id; -1 if all do. O(log b)."""
        self._found_at = last_at_most(self.firsts, entry_id, self._found_at)
        return self._found_at

    def index_from(self, start: StreamId) -> int:
        """The index of the first block that may have slots with ids from `start` on. O(log b), O(1) from the first."""
        if not start or not self.firsts or start <= self.firsts[0]:
            return 0
        return max(self.index_of(start), 0)

    def blocks_from(self, start: StreamId) -> Iterator[PendingBlock]:
        """The blocks that may have slots with ids from `start` on. Blocks may be added and dropped while walking.

        O(log b) per block: the next block is looked up again by its id.
        """
        index = self.index_from(start)
        while index < len(self.blocks):
            block = self.blocks[index]
            yield block
            index = bisect_right(self.firsts, block.first_id)

    def add(self, block: PendingBlock) -> None:
        """Add a block that is not in the list. O(1) at the end, which is the usual case; O(b) elsewhere."""
        firsts, first_id = self.firsts, block.first_id
        if not firsts or first_id > firsts[-1]:
            firsts.append(first_id)
            self.blocks.append(block)
            return
        index = bisect_right(firsts, first_id)
        firsts.insert(index, first_id)
        self.blocks.insert(index, block)

    def drop(self, block: PendingBlock) -> None:
        """Remove a block, if it is in the list. O(log b) to find it, then O(b) to close the gap."""
        index = self.index_of(block.first_id)
        if index >= 0 and self.blocks[index] is block:
            del self.firsts[index]
            del self.blocks[index]

    def check_order(self) -> None:
        """Assert the invariant."""
        assert self.firsts == [block.first_id for block in self.blocks] == sorted(set(self.firsts))


def memory_of_blocks(blocks: list[PendingBlock]) -> int:
    """An estimate of the bytes of pending blocks, from the sizes of some of them. O(1)."""
    count, size = len(blocks), 0
    sampled = blocks if count <= BLOCKS_SAMPLED else blocks[:: count // BLOCKS_SAMPLED]
    for block in sampled:
        size += block.memory_usage()
    return size * count // len(sampled) if count > len(sampled) else size
