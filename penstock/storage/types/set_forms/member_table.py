"""The members of a large set: packed where they are some hundred short ones (packed_table.py), else a dict.

A small set has its members in one bytes object (packed_members.py, packed_integers.py); sets.py chooses. The dict is
the oracle of the other forms.
"""

from collections.abc import Iterable
from itertools import filterfalse, islice
from random import Random
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD
from penstock.storage.types.packed_table import MOST_ENTRIES, PackedTable, fits
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members measured for the estimate of memory_usage
NO_VALUE: Final = b""


class MemberTable:
    """Members, and what finds them for a scan and by chance.

    is_ordered: they stay in the order in which they came; so they are in a dict.

    `scan_order` is created when a large set is first scanned or a random member of a dict first needed, and dropped at
    the end of a scan if only that needed it. Invariants: the members are in `_packed`, or that is None and they are in
    `_members`. `scan_order`, if it is there, has every member. In the costs, n is the number of members.
    """

    __slots__ = ("_members", "_packed", "scan_order")

    def __init__(self, members: Iterable[bytes], is_ordered: bool) -> None:
        self.scan_order: HashOrder | None = None
        self._packed: PackedTable | None = None
        self._members: dict[bytes, None] = dict.fromkeys(members)
        if not is_ordered:
            self.scatter()

    def scatter(self) -> None:
        """The order of the members means nothing from now on: pack them where they are few and short. O(n)."""
        members = self._members
        if self._packed is None and len(members) <= MOST_ENTRIES and all(map(fits, members)):
            packed = self._packed = PackedTable(True)
            for member in members:
                packed.put(member, NO_VALUE)
            self._members = {}

    def _unpack(self) -> None:
        """Have the members in the dict from now on. O(n)."""
        if self._packed is not None:
            self._members = dict.fromkeys(self._packed.texts())
            self._packed = None

    def __len__(self) -> int:
        return len(self._members) if self._packed is None else len(self._packed)

    def copy(self) -> "MemberTable":
        copied = MemberTable(self._members, True)
        copied._packed = None if self._packed is None else self._packed.copy()
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of the first members. O(1)."""
        beside = len(self) * 15 if self.scan_order is not None else 0
        if self._packed is not None:
            return 250 + beside + self._packed.memory_usage()
        count = len(self._members)
        sampled = [len(member) for member in islice(self._members, SAMPLED)]
        return 250 + beside + count * (PART_OVERHEAD + 50) + sum(sampled) * count // max(len(sampled), 1)

    # -- changing ---------------------------------------------------------------------------------------------------

    def add(self, member: bytes) -> bool:
        """Add a member; whether it is new. O(1)."""
        packed = self._packed
        if packed is not None and (not fits(member) or (len(packed) >= MOST_ENTRIES and not packed.has(member))):
            self._unpack()
        if self._packed is not None:
            if not self._packed.put(member, NO_VALUE):
                return False
        elif member in self._members:
            return False
        else:
            self._members[member] = None
        if self.scan_order is not None:
            self.scan_order.add(member)
        return True

    def add_all(self, members: Iterable[bytes]) -> None:
        """As `add`, for each."""
        if self.scan_order is None and self._packed is None:
            self._members.update(dict.fromkeys(members))
            return
        for member in members:
            self.add(member)

    def remove(self, member: bytes) -> bool:
        """Take a member out; whether it was there. O(1)."""
        if self._packed is not None:
            if not self._packed.remove(member):
                return False
        elif member in self._members:
            del self._members[member]
        else:
            return False
        if self.scan_order is not None:
            self.scan_order.remove(member)
        return True

    # -- reading ----------------------------------------------------------------------------------------------------

    def has(self, member: bytes) -> bool:
        """Whether it is a member. O(1)."""
        return member in self._members if self._packed is None else self._packed.has(member)

    def common(self, members: list[bytes]) -> list[bytes]:
        """Those of other members that are here, too, in their order. O(members)."""
        return list(filter(self._members.__contains__ if self._packed is None else self._packed.has, members))

    def missing(self, members: list[bytes]) -> list[bytes]:
        """Those of other members that are not here, in their order. O(members)."""
        return list(filterfalse(self._members.__contains__ if self._packed is None else self._packed.has, members))

    def members(self) -> dict[bytes, None]:
        """The members in order, not to be changed: valid until the next change. O(1), O(n) while packed."""
        return self._members if self._packed is None else dict.fromkeys(self._packed.texts())

    def listed(self) -> list[bytes]:
        """The members in order, in a list of the caller's own. O(n)."""
        return list(self._members) if self._packed is None else self._packed.texts()

    def any_of(self, chance: Random) -> bytes:
        """Any member, each with the same chance. O(1); O(n), 10 ns each, for the first one of a dict."""
        if self._packed is not None:
            return self._packed.text_at(chance.choice(range(len(self._packed))))
        return self.in_order().any_of(chance)

    def in_order(self) -> HashOrder:
        """The members in the order of their hashes. O(n), 10 ns each, when first called; then it is kept up to date."""
        if self.scan_order is None:
            self.scan_order = HashOrder(self.members(), 0)
        return self.scan_order

    def check(self) -> None:
        """Assert the invariants."""
        if self._packed is not None:
            assert not self._members, "the members are in one form"
            self._packed.check()
        if self.scan_order is not None:
            self.scan_order.check(self.members())
