"""Sets: members whose order means nothing, and is yet the same whenever it is told."""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.random_index import IndexedNames
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members measured for the estimate of memory_usage


class Form(Enum):
    """In which form Redis keeps a set; the values are as OBJECT ENCODING has them."""

    INTSET = b"intset"
    LISTPACK = b"listpack"
    HASHTABLE = b"hashtable"


class SetLimits:
    """Up to how many integers, and how many members of which length, a set is kept in a small form."""

    __slots__ = ("integers", "is_integer", "length", "members")

    def __init__(self, integers: int, members: int, length: int, is_integer: Callable[[bytes], bool]) -> None:
        self.integers = integers
        self.members = members
        self.length = length
        self.is_integer = is_integer

    def form_for(self, first: bytes, count: int) -> Form:
        """The form in which a set begins whose first member this is, of so many that are to be added."""
        if self.is_integer(first) and count <= self.integers:
            return Form.INTSET
        return Form.LISTPACK if count <= self.members else Form.HASHTABLE


class Set(Collection):
    """Members, in the order in which they came.

    form: as Redis would keep it; there is one form here, but the order in which members are told, SSCAN and OBJECT
    ENCODING follow this. A set only outgrows forms: one that was large stays large.

    `scan_order` is created by the first SSCAN of a large set and dropped at the end of the scan; `indexed` is created
    when a random member is first needed. Invariant: both, if they are there, have every member. In the costs, n is the
    number of members.
    """

    __slots__ = ("form", "indexed", "members", "scan_order")

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        """In the form for large sets; `made` chooses one."""
        self.members: dict[bytes, None] = dict.fromkeys(members)
        self.form = Form.HASHTABLE
        self.scan_order: HashOrder | None = None
        self.indexed: IndexedNames | None = None

    @staticmethod
    def made(members: list[bytes], limits: SetLimits, form: Form | None = None) -> "Set":
        """A set of at least one member. form: the one it begins with, where it is not chosen by their number."""
        made = Set()
        made.form = limits.form_for(members[0], len(members)) if form is None else form
        made.add(members, limits)
        return made

    def settle(self, limits: SetLimits) -> None:
        """Choose the form by the members, where their history is not known: read from a file."""
        count = len(self.members)
        is_listpack = self.form is Form.LISTPACK  # as it was read
        if not is_listpack and count <= limits.integers and all(map(limits.is_integer, self.members)):
            self.form = Form.INTSET
        else:
            is_small = count <= limits.members and all(len(member) <= limits.length for member in self.members)
            self.form = Form.LISTPACK if is_small else Form.HASHTABLE

    def __len__(self) -> int:
        return len(self.members)

    def copy(self) -> "Set":
        copied = Set(self.members)
        copied.form = self.form
        return copied

    def memory_usage(self) -> int:
        count = len(self.members)
        sampled = [len(member) for member in islice(self.members, SAMPLED)]
        beside = 60 if self.scan_order is not None else 0
        beside += 100 if self.indexed is not None else 0
        return 250 + count * (PART_OVERHEAD + 50 + beside) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from sorted(self.members)

    # -- changing ---------------------------------------------------------------------------------------------------

    def add(self, members: Iterable[bytes], limits: SetLimits | None = None) -> int:
        """Add members; how many are new. limits: needed while the form is a small one."""
        before = len(self.members)
        rest = iter(members)
        if self.form is not Form.HASHTABLE:
            assert limits is not None, "a small set may outgrow its form"
            for member in rest:
                if not self._add_small(member, limits):
                    break
        if self.scan_order is None and self.indexed is None:
            self.members.update(dict.fromkeys(rest))
        else:
            for member in rest:
                self._add_one(member)
        return len(self.members) - before

    def add_one(self, member: bytes, limits: SetLimits) -> bool:
        """Add the one member of a request; whether it is new. O(1)."""
        self.expect(1, limits)
        if member in self.members:
            return False
        if self.form is Form.HASHTABLE:
            self._add_one(member)
        else:
            self._add_small(member, limits)
        return True

    def expect(self, count: int, limits: SetLimits) -> None:
        """Take note that a request adds so many members, be they new or not: Redis makes room for all of them. O(1)."""
        if count > (limits.integers if self.form is Form.INTSET else limits.members):
            self.form = Form.HASHTABLE

    def _add_small(self, member: bytes, limits: SetLimits) -> bool:
        """Add one to a set in a small form, which changes where it does not fit; whether it still is a small one."""
        if member in self.members:
            return True
        count = len(self.members)
        if self.form is Form.INTSET:
            if limits.is_integer(member):
                if count >= limits.integers:
                    self.form = Form.HASHTABLE
            else:
                self.members = dict.fromkeys(self.listed())
                longest = max(map(len, self.members), default=0)
                self.form = Form.LISTPACK if longest <= limits.length else Form.HASHTABLE
        if self.form is Form.LISTPACK and (count >= limits.members or len(member) > limits.length):
            self.form = Form.HASHTABLE
        self._add_one(member)
        return self.form is not Form.HASHTABLE

    def _add_one(self, member: bytes) -> None:
        if member in self.members:
            return
        self.members[member] = None
        if self.scan_order is not None:
            self.scan_order.add(member)
        if self.indexed is not None:
            self.indexed.add(member)

    def remove(self, members: Iterable[bytes]) -> int:
        """Take members out; how many were there."""
        before = len(self.members)
        for member in members:
            if member not in self.members:
                continue
            del self.members[member]
            if self.scan_order is not None:
                self.scan_order.remove(member)
            if self.indexed is not None:
                self.indexed.remove(member)
        return before - len(self.members)

    def rebuild(self, limits: SetLimits) -> None:
        """What Redis does with a large set that has lost most of its members: it may be a small one again. O(n)."""
        if self.form is not Form.HASHTABLE or len(self.members) > limits.members:
            return
        if all(len(member) <= limits.length for member in self.members):
            self.form = Form.LISTPACK

    # -- reading ----------------------------------------------------------------------------------------------------

    def listed(self) -> list[bytes]:
        """The members as they are told: integers by size while the form is an intset, others as they came."""
        return sorted(self.members, key=int) if self.form is Form.INTSET else list(self.members)

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
