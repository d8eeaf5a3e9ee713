"""Sets: members without an order."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.random_index import IndexedNames
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members measured for the estimate of memory_usage


class Set(Collection):
    """Members.

    `scan_order` is created by the first SSCAN of a large set and dropped at the end of the scan; `indexed` is created
    when a random member is first needed. Invariant: both, if they are there, have every member. In the costs, n is the
    number of members.
    """

    __slots__ = ("indexed", "members", "scan_order")

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        self.members: set[bytes] = set(members)
        self.scan_order: HashOrder | None = None
        self.indexed: IndexedNames | None = None

    def __len__(self) -> int:
        return len(self.members)

    def copy(self) -> "Set":
        return Set(self.members)

    def memory_usage(self) -> int:
        count = len(self.members)
        sampled = [len(member) for member in islice(self.members, SAMPLED)]
        beside = 60 if self.scan_order is not None else 0
        beside += 100 if self.indexed is not None else 0
        return 250 + count * (PART_OVERHEAD + 50 + beside) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from sorted(self.members)

    def add(self, members: Iterable[bytes]) -> int:
        """Add members; returns how many are new. O(1) for each, O(log n) during a scan."""
        before = len(self.members)
        if self.scan_order is None and self.indexed is None:
            self.members.update(members)
            return len(self.members) - before
        for member in members:
            if member in self.members:
                continue
            self.members.add(member)
            if self.scan_order is not None:
                self.scan_order.add(member)
            if self.indexed is not None:
                self.indexed.add(member)
        return len(self.members) - before

    def remove(self, members: Iterable[bytes]) -> int:
        """Remove members; returns how many existed. O(1) for each, O(log n) during a scan."""
        before = len(self.members)
        if self.scan_order is None and self.indexed is None:
            self.members.difference_update(members)
            return before - len(self.members)
        for member in members:
            if member not in self.members:
                continue
            self.members.remove(member)
            if self.scan_order is not None:
                self.scan_order.remove(member)
            if self.indexed is not None:
                self.indexed.remove(member)
        return before - len(self.members)

    def by_index(self) -> IndexedNames:
        """The members by index, to choose random ones. O(n) when first called; then it is kept up to date."""
        if self.indexed is None:
            self.indexed = IndexedNames(self.members)
        return self.indexed

    def check(self) -> None:
        """Assert the invariants."""
        assert self.members, "an empty set is no value"
        if self.scan_order is not None:
            self.scan_order.check(self.members)
        if self.indexed is not None:
            self.indexed.check(self.members)
