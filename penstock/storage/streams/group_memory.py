"""An estimate of the memory of a group's pending blocks, from the sizes of some of them."""

from typing import Final

from penstock.storage.streams.pending_block import PendingBlock

PARTS_SAMPLED: Final = 32  # blocks, or consumers


def of_blocks(blocks: list[PendingBlock]) -> int:
    """Bytes of pending blocks. O(1)."""
    count, size = len(blocks), 0
    sampled = blocks if count <= PARTS_SAMPLED else blocks[:: count // PARTS_SAMPLED]
    for block in sampled:
        size += block.memory_usage()
    return size * count // len(sampled) if count > len(sampled) else size
