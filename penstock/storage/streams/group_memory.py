"""Estimates of the memory of a group's parts, from the sizes of some of them."""

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


def of_consumers(names: list[bytes], owned: list[int], count: int) -> int:
    """Bytes of `count` consumers, by the names of some, and in how many blocks each of these owns entries. O(1)."""
    size = 450 * len(names) + sum(map(len, names)) + 18 * sum(owned)
    return size * count // len(names) if names else 0
