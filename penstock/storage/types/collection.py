"""The base class of lists, hashes, sets and sorted sets, and how their sizes are counted.

Penstock is built for streams; these types are kept simple: mostly Python's own containers and sortedcontainers. An
empty collection must not stay in a database: the command that removes its last part also removes the key.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Self, TypeAlias

from penstock.native.class_marks import mypyc_attr
from penstock.storage.deadlines import NEVER, Deadlines

PART_OVERHEAD: Final = 41  # bytes: a pointer to the part, and the header of its bytes object

# The first byte of the text of a collection at rest (values_at_rest.py); sets and sorted sets add which form they have.
LIST_MARK: Final = 1
SET_MARK: Final = 2
SORTED_SET_MARK: Final = 5
MOST_AT_REST: Final = 255  # members: their number is a byte of the text

MOST_BITS: Final = 40  # of a size: parts of a value, or bytes of a string
SizeCounts: TypeAlias = list[int]
"""How many values have a size of so many bits (`int.bit_length`): sizes from one power of two to the next."""


@mypyc_attr(acyclic=True)
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


@mypyc_attr(acyclic=True)
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


@mypyc_attr(acyclic=True)
class Timed(Collection):
    """A value whose parts may have a time of expiry: a hash's fields, a set's members.

    `due` has the parts with a time, once a request gave one; each of them is a part.
    """

    __slots__ = ("due",)

    due: Deadlines | None

    @property
    def expires(self) -> dict[bytes, int]:
        """The times of expiry by part, in unix ms. O(1)."""
        return {} if self.due is None else self.due.times

    def has(self, part: bytes) -> bool:
        raise NotImplementedError

    def take_out(self, parts: Iterable[bytes]) -> list[bytes]:
        """Remove parts with their times of expiry; returns those that existed, in order."""
        raise NotImplementedError

    def keep_times(self) -> Deadlines:
        """The times of expiry, for which there is room from now on (Redis converts a small value for it). O(1)."""
        if self.due is None:
            self.due = Deadlines()
        return self.due

    def expire_at(self, part: bytes, when_ms: int) -> None:
        """Set the time of expiry of an existing part. O(log n)."""
        self.keep_times().set(part, when_ms)

    def persist(self, part: bytes) -> bool:
        """Remove a part's time of expiry; returns whether it had one. O(log n)."""
        return self.due is not None and self.due.drop(part)

    def first_due_ms(self) -> int:
        """When the first part is due; NEVER if none is. O(1)."""
        return NEVER if self.due is None else self.due.first_ms()

    def overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """At most `max_count` parts past their time of expiry, the earliest first. O(max_count)."""
        return [] if self.due is None else self.due.overdue(now_ms, max_count)
