"""The members of a large set: a dict, in the order in which they came.

A small set has its members packed (packed_members.py); sets.py chooses. This form is the oracle of that one.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD
from penstock.storage.types.random_index import IndexedNames
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members measured for the estimate of memory_usage


class MemberTable:
    """Members, and what finds them for a scan and by index.

    `scan_order` is created by the first SSCAN of a large set and dropped at the end of the scan; `indexed` is created
    when a random member is first needed. Invariant: both, if they are there, have every member. In the costs, n is the
    number of members.
    """

    __slots__ = ("indexed", "members", "scan_order")

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        self.members: dict[bytes, None] = dict.fromkeys(members)
        self.scan_order: HashOrder | None = None
        self.indexed: IndexedNames | None = None

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of the first members. O(1)."""
        count = len(self.members)
        sampled = [len(member) for member in islice(self.members, SAMPLED)]
        beside = 60 if self.scan_order is not None else 0
        beside += 100 if self.indexed is not None else 0
        return 250 + count * (PART_OVERHEAD + 50 + beside) + sum(sampled) * count // max(len(sampled), 1)

    def add(self, member: bytes) -> None:
        """Add a member, which may be there. O(1), O(log n) during a scan."""
        if member in self.members:
            return
        self.members[member] = None
        if self.scan_order is not None:
            self.scan_order.add(member)
        if self.indexed is not None:
            self.indexed.add(member)

    def add_all(self, members: Iterable[bytes]) -> None:
        """As `add`, for each."""
        if self.scan_order is None and self.indexed is None:
            self.members.update(dict.fromkeys(members))
            return
        for member in members:
            self.add(member)

    def remove(self, member: bytes) -> bool:
        """Take a member out; whether it was there. O(1), O(log n) during a scan."""
        if member not in self.members:
            return False
        del self.members[member]
        if self.scan_order is not None:
            self.scan_order.remove(member)
        if self.indexed is not None:
            self.indexed.remove(member)
        return True

    def by_index(self) -> IndexedNames:
        """The members by index. O(n) when first called; then it is kept up to date."""
        if self.indexed is None:
            self.indexed = IndexedNames(self.members)
        return self.indexed

    def check(self) -> None:
        """Assert the invariant."""
        if self.scan_order is not None:
            self.scan_order.check(self.members)
        if self.indexed is not None:
            self.indexed.check(self.members)
