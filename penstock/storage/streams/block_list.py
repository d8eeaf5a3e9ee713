"""Blocks in order: all that a group has pending, or those in which one consumer owns something."""

from bisect import bisect_right
from collections.abc import Iterator

from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending_block import PendingBlock


class BlockList:
    """Pending blocks, ascending, found by the first id of their segment.

    Invariant: `firsts` holds the first ids of `blocks`, ascending.
    """

    __slots__ = ("blocks", "firsts")

    def __init__(self) -> None:
        self.firsts: list[StreamId] = []
        self.blocks: list[PendingBlock] = []

    def place_from(self, start: StreamId) -> int:
        """The place of the first block that may have slots of ids from `start` on."""
        return max(bisect_right(self.firsts, start) - 1, 0)

    def blocks_from(self, start: StreamId) -> Iterator[PendingBlock]:
        """The blocks that may have slots of ids from `start` on. Blocks may come and go while walking."""
        place = self.place_from(start)
        while place < len(self.blocks):
            block = self.blocks[place]
            yield block
            place = bisect_right(self.firsts, block.first_id)

    def add(self, block: PendingBlock) -> None:
        """A block that is not here."""
        firsts, first_id = self.firsts, block.first_id
        if not firsts or first_id > firsts[-1]:
            firsts.append(first_id)
            self.blocks.append(block)
            return
        place = bisect_right(firsts, first_id)
        firsts.insert(place, first_id)
        self.blocks.insert(place, block)

    def drop(self, block: PendingBlock) -> None:
        """Take a block out, if it is here."""
        place = bisect_right(self.firsts, block.first_id) - 1
        if place >= 0 and self.blocks[place] is block:
            del self.firsts[place]
            del self.blocks[place]

    def check_order(self) -> None:
        """Assert the invariant."""
        assert self.firsts == [block.first_id for block in self.blocks] == sorted(set(self.firsts))
