"""The members of a large set: a dict, in the order in which they came.

A small set has its members packed (packed_members.py); sets.py chooses. This form is the oracle of that one.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members measured for the estimate of memory_usage


class MemberTable:
    """Members, and what finds them for a scan and by chance.

    `scan_order` is created when a large set is first scanned or a random member of a table first needed, and dropped at
    the end of a scan if only that needed it. Invariant: if it is there, it has every member. In the costs, n is the
    number of members.
    """

    __slots__ = ("members", "scan_order")

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        self.members: dict[bytes, None] = dict.fromkeys(members)
        self.scan_order: HashOrder | None = None

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of the first members. O(1)."""
        count = len(self.members)
        sampled = [len(member) for member in islice(self.members, SAMPLED)]
        beside = 15 if self.scan_order is not None else 0
        return 250 + count * (PART_OVERHEAD + 50 + beside) + sum(sampled) * count // max(len(sampled), 1)

    def add(self, member: bytes) -> None:
        """Add a member, which may be there. O(1)."""
        if member in self.members:
            return
        self.members[member] = None
        if self.scan_order is not None:
            self.scan_order.add(member)

    def add_all(self, members: Iterable[bytes]) -> None:
        """As `add`, for each."""
        if self.scan_order is None:
            self.members.update(dict.fromkeys(members))
            return
        for member in members:
            self.add(member)

    def remove(self, member: bytes) -> bool:
        """Take a member out; whether it was there. O(1)."""
        if member not in self.members:
            return False
        del self.members[member]
        if self.scan_order is not None:
            self.scan_order.remove(member)
        return True

    def in_order(self) -> HashOrder:
        """The members in the order of their hashes. O(n), 10 ns each, when first called; then it is kept up to date."""
        if self.scan_order is None:
            self.scan_order = HashOrder(self.members, 0)
        return self.scan_order

    def check(self) -> None:
        """Assert the invariant."""
        if self.scan_order is not None:
            self.scan_order.check(self.members)
