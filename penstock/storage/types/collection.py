"""The base class of lists, hashes, sets and sorted sets.

Penstock is built for streams; these types are kept simple: mostly Python's own containers and sortedcontainers. An
empty collection must not stay in a database: the command that removes its last part also removes the key.
"""

from collections.abc import Iterator
from typing import Final, Self

PART_OVERHEAD: Final = 41  # bytes: a pointer to the part, and the header of its bytes object


class Collection:
    """A value with many parts: items, fields or members. In the costs, n is the number of parts."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def copy(self) -> Self:
        """A copy that shares nothing that can change (COPY). O(n)."""
        raise NotImplementedError

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of the first parts. O(1)."""
        raise NotImplementedError

    def parts(self) -> Iterator[bytes]:
        """The contents as bytes, in an order that is the same for equal values (DEBUG DIGEST). O(n log n)."""
        raise NotImplementedError
