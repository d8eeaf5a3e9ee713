"""A consumer of a group."""

from collections.abc import Iterable
from typing import Final

from penstock.storage.streams.pending.block_list import BlockList

NEVER: Final = -1  # active time of a consumer that never received an entry


class Consumer:
    """One consumer of a group. Times are unix ms; `pending` counts the entries that it owns.

    `owned_blocks` lists the blocks with these entries. Rewound pending entries are counted but are not in these blocks.
    """

    __slots__ = ("active_ms", "name", "number", "owned_blocks", "pending", "seen_ms")

    def __init__(self, name: bytes, number: int, now_ms: int) -> None:
        self.name = name
        self.number = number
        self.seen_ms = now_ms
        self.active_ms = NEVER
        self.pending = 0
        self.owned_blocks = BlockList()

    def copy(self) -> "Consumer":
        """A copy for a copied group, still without its blocks."""
        copied = Consumer(self.name, self.number, self.seen_ms)
        copied.active_ms, copied.pending = self.active_ms, self.pending
        return copied

    def owns_one_each(self) -> bool:
        """Whether it owns one entry in each of its blocks, as a consumer of few entries often does. O(1)."""
        return self.pending == len(self.owned_blocks.blocks)


def memory_of_consumers(names: Iterable[bytes], count: int) -> int:
    """An estimate of the bytes of `count` consumers, named as long as the first; blocks count for themselves. O(1)."""
    for name in names:
        return (450 + len(name)) * count
    return 0
