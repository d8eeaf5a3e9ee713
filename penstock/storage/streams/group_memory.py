"""Estimates of the memory of a group's parts, from the sizes of some of them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.storage.streams.pending_block import PendingBlock

if TYPE_CHECKING:
    from penstock.storage.streams.group import Consumer

PARTS_SAMPLED: Final = 32  # blocks, or consumers


def of_blocks(blocks: list[PendingBlock]) -> int:
    """Bytes of pending blocks. O(1)."""
    count, size = len(blocks), 0
    sampled = blocks if count <= PARTS_SAMPLED else blocks[:: count // PARTS_SAMPLED]
    for block in sampled:
        size += block.memory_usage()
    return size * count // len(sampled) if count > len(sampled) else size


def of_consumers(consumers: "Iterable[Consumer]", count: int) -> int:
    """Bytes of `count` consumers. O(1)."""
    size = 0
    for sampled, consumer in enumerate(consumers, 1):
        size += 450 + len(consumer.name) + 18 * len(consumer.owned_blocks.blocks)
        if sampled == PARTS_SAMPLED:
            return size * count // sampled
    return size
