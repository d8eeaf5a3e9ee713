"""Estimates of the memory of a group's parts, from the sizes of some of them."""

from collections.abc import Iterable
from typing import Final

from penstock.storage.streams.pending_block import PendingBlock

BLOCKS_SAMPLED: Final = 32


def of_blocks(blocks: list[PendingBlock]) -> int:
    """Bytes of pending blocks. O(1)."""
    count, size = len(blocks), 0
    sampled = blocks if count <= BLOCKS_SAMPLED else blocks[:: count // BLOCKS_SAMPLED]
    for block in sampled:
        size += block.memory_usage()
    return size * count // len(sampled) if count > len(sampled) else size


def of_consumers(names: Iterable[bytes], count: int) -> int:
    """Bytes of `count` consumers, with names as long as the first. Blocks count for themselves. O(1)."""
    for name in names:
        return (450 + len(name)) * count
    return 0
