"""What the values of many parts have in common: lists, hashes, sets and sorted sets.

Streams are what Penstock is built for; these are built plainly, from Python's own containers and sortedcontainers.
An empty collection is no value: who takes the last part away removes the key.
"""

from collections.abc import Iterator
from typing import Final, Self

PART_OVERHEAD: Final = 41  # bytes: a pointer to the part, and the head of its bytes object


class Collection:
    """One value of many parts."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    def copy(self) -> Self:
        """The same value again, with nothing shared that changes (COPY)."""
        raise NotImplementedError

    def memory_usage(self) -> int:
        """Bytes held, by estimate."""
        raise NotImplementedError

    def parts(self) -> Iterator[bytes]:
        """All that tells this value from another of its type, in an order that equal values share (DEBUG DIGEST)."""
        raise NotImplementedError
