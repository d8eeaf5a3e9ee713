"""How many values of each type a database has, by size in powers of two: kept as they change (INFO keysizes)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from penstock.storage.types.collection import Counted, SizeCounts, no_counts
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet

if TYPE_CHECKING:
    from penstock.storage.keyspace import Value


KINDS: Final[tuple[type, ...]] = (LargeString, List, Set, SortedSet, Hash)  # streams and arrays Redis does not count
NONE: Final = no_counts()


class TypeSizes:
    """The counts of each of KINDS, with all strings as LargeString; made for the first value of a type.

    A value that may change in place has the counts of its type, and keeps them right.
    """

    __slots__ = ("_counts", "strings")

    def __init__(self) -> None:
        self.strings: SizeCounts = no_counts()
        self._counts: dict[type, SizeCounts] = {LargeString: self.strings}

    def by_type(self) -> list[SizeCounts]:
        """The counts of strings, lists, sets, sorted sets and hashes. O(1)."""
        return [self._counts.get(kind, NONE) for kind in KINDS]

    def resize_string(self, before: int, after: int) -> None:
        """A string took the place of another one. O(1)."""
        if before ^ after > before & after:  # the highest bit is another
            self.strings[before.bit_length()] -= 1
            self.strings[after.bit_length()] += 1

    def add(self, value: Value) -> None:
        """Count a value. O(1)."""
        if isinstance(value, bytes):
            self.strings[len(value).bit_length()] += 1
        elif isinstance(value, Counted):
            kind = type(value)
            counts = self._counts.get(kind)
            if counts is None and kind in KINDS:
                counts = self._counts[kind] = no_counts()
            if counts is not None:
                counts[len(value).bit_length()] += 1
                value.counts = counts

    def know(self, value: Value) -> None:
        """A value that is counted already is another object now. O(1)."""
        if isinstance(value, Counted):
            value.counts = self._counts[type(value)]

    def drop(self, value: Value) -> None:
        """Count a value no more. It is not changed any more, or counted already under another key. O(1)."""
        if isinstance(value, bytes):
            self.strings[len(value).bit_length()] -= 1
        elif isinstance(value, Counted):
            counts = self._counts.get(type(value))
            if counts is not None:
                counts[len(value).bit_length()] -= 1

    def replace(self, before: Value, after: Value) -> None:
        """A value took the place of another one. O(1)."""
        if isinstance(before, bytes) and isinstance(after, bytes):
            self.resize_string(len(before), len(after))
        elif before is not after:
            self.drop(before)
            self.add(after)

    def check(self, values: Iterable[Value]) -> None:
        """Assert that these values are counted, and no other."""
        recounted = [no_counts() for _ in KINDS]
        for value in values:
            if isinstance(value, bytes):
                recounted[0][len(value).bit_length()] += 1
            elif isinstance(value, Counted) and type(value) in KINDS:
                recounted[KINDS.index(type(value))][len(value).bit_length()] += 1
        assert self.by_type() == recounted, "sizes were counted wrong"

    def check_known(self, value: Value) -> None:
        """Assert that an object knows where it is counted."""
        if isinstance(value, Counted) and type(value) in KINDS:
            assert value.counts is self._counts[type(value)], "a value does not know where it is counted"
