"""The base class of lists, hashes, sets and sorted sets, and how their sizes are counted.

Penstock is built for streams; these types are kept simple: mostly Python's own containers and sortedcontainers. An
empty collection must not stay in a database: the command that removes its last part also removes the key.
"""

from collections.abc import Iterator
from typing import Final, Self, TypeAlias

PART_OVERHEAD: Final = 41  # bytes: a pointer to the part, and the header of its bytes object

MOST_BITS: Final = 40  # of a size: parts of a value, or bytes of a string
SizeCounts: TypeAlias = list[int]
"""How many values have a size of so many bits (`int.bit_length`): sizes from one power of two to the next."""


class Counted:
    """A value whose size may change in place. `counts`: where a database counts it; None if it never was in one.

    What changes the size by one calls `recount` where a size passes a power of two, other changes call it always.
    """

    __slots__ = ("counts",)

    counts: SizeCounts | None

    def __len__(self) -> int:
        raise NotImplementedError

    def recount(self, before: int, after: int) -> None:
        """The size has changed, and may have passed a power of two. O(1)."""
        counts = self.counts
        if counts is not None and before ^ after > before & after:  # the highest bit is another
            counts[before.bit_length()] -= 1
            counts[after.bit_length()] += 1


def no_counts() -> SizeCounts:
    return [0] * (MOST_BITS + 1)


class Collection(Counted):
    """A value with many parts: items, fields or members. In the costs, n is the number of parts."""

    __slots__ = ()

    def copy(self) -> Self:
        """A copy that shares nothing that can change (COPY). O(n)."""
        raise NotImplementedError

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of the first parts. O(1)."""
        raise NotImplementedError

    def parts(self) -> Iterator[bytes]:
        """The contents as bytes, in an order that is the same for equal values (DEBUG DIGEST). O(n log n)."""
        raise NotImplementedError
