"""Sets: members in an order that means nothing, and is yet the same whenever it is shown.

A small one is packed into one bytes object: integers of one width (packed_integers.py), or texts (packed_members.py).
Once it has too many members or a long one, it has a table of them (member_table.py), for good.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from random import Random
from typing import Final

from penstock.native.class_marks import mypyc_attr
from penstock.storage.types.collection import MOST_AT_REST, SET_MARK, Timed
from penstock.storage.types.scan_order import HashOrder
from penstock.storage.types.set_forms import packed_integers, packed_members
from penstock.storage.types.set_forms.member_table import MemberTable
from penstock.storage.types.set_forms.packed_integers import MOST_INTEGERS
from penstock.storage.types.set_forms.packed_parts import EMPTY, LONGEST_PACKED, MOST_PACKED

MOST_WALKED: Final = 16  # members that are looked for by a walk each; for more a table is made
TIME_BYTES: Final = 200  # of a member's time of expiry, about
OWN_BYTES: Final = 128  # of the object and the bytes object of the few, about


class Form(Enum):
    """In which form Redis keeps a set; the values are as OBJECT ENCODING has them."""

    INTSET = b"intset"
    LISTPACK = b"listpack"
    HASHTABLE = b"hashtable"


FORMS: Final = tuple(Form)  # by the mark of a text at rest, above SET_MARK


class SetLimits:
    """Up to how many integers, and how many members of which length, a set is kept in a small form."""

    __slots__ = ("integers", "is_integer", "length", "members")

    def __init__(self, integers: int, members: int, length: int, is_integer: Callable[[bytes], bool]) -> None:
        self.integers = integers
        self.members = members
        self.length = length
        self.is_integer = is_integer

    def form_for(self, first: bytes, count: int) -> Form:
        """The form in which a set with this first member begins, of so many that are to be added."""
        if self.is_integer(first) and count <= self.integers:
            return Form.INTSET
        return Form.LISTPACK if count <= self.members else Form.HASHTABLE


@mypyc_attr(acyclic=True)
class Set(Timed):
    """Members, in the order in which they came.

    form: as Redis would keep it. SSCAN and OBJECT ENCODING follow this, and the order in which members are told: that
    of an intset is ascending, that of a listpack the order in which they came, that of a hash table means nothing. A
    set only outgrows forms: one that was large stays large.

    Invariants: where `_many` is None, `_few` has `_count` members, packed, as integers if the form is an intset; else
    `_few` is empty, `_count` 0. In the costs, n is the number of members; while packed, what costs O(1) is a walk over
    the few.
    """

    __slots__ = ("_count", "_few", "_form", "_many")

    def __init__(self, members: Iterable[bytes] = ()) -> None:
        """In the form for large sets; `made` chooses one."""
        self.counts = None
        self.due = None
        self._few = EMPTY
        self._count = 0
        self._many: MemberTable | None = None
        self._form = Form.HASHTABLE
        if members:
            self._many = MemberTable(members, True)  # until `choose_form` finds that the order means something
            self._pack()

    @property
    def form(self) -> Form:
        return self._form

    def take_form(self, form: Form) -> None:
        """Have another form; all members must be integers for an intset. O(1); O(n log n) of a table, of integers."""
        if form is not self._form and (self._many is not None or Form.INTSET in (self._form, form)):
            members = self.listed()
            self._few, self._count = EMPTY, 0
            self._many = MemberTable(members, True)
            self._form = form
            self._pack()
            self._scatter()
        self._form = form

    def _scatter(self) -> None:
        """In a table, the order of the members means nothing where the form is that of large sets."""
        if self._form is Form.HASHTABLE and self._many is not None:
            self._many.scatter()

    @staticmethod
    def made(members: list[bytes], limits: SetLimits, form: Form | None = None) -> "Set":
        """A set of at least one member. form: the one it begins with, where it is not chosen by their number."""
        made = Set()
        made._form = limits.form_for(members[0], len(members)) if form is None else form
        made.add(members, limits)
        return made

    def choose_form(self, limits: SetLimits) -> None:
        """Choose the form by the members, where their history is not known: read from a file."""
        members = self.members()
        count = len(members)
        is_listpack = self._form is Form.LISTPACK  # as it was read
        if not is_listpack and count <= limits.integers and all(map(limits.is_integer, members)):
            self.take_form(Form.INTSET)
        else:
            is_small = count <= limits.members and all(len(member) <= limits.length for member in members)
            self.take_form(Form.LISTPACK if is_small else Form.HASHTABLE)
            self._scatter()

    def __len__(self) -> int:
        return self._count if self._many is None else len(self._many)

    def copy(self) -> "Set":
        copied = Set()
        copied._few, copied._count = self._few, self._count
        copied._many = None if self._many is None else self._many.copy()
        copied._form = self._form
        if self.due is not None:
            copied.due = self.due.copy()
        return copied

    def at_rest(self, most: int) -> bytes:
        """Its text at rest, of at most so many bytes; empty if it is too large, or has room for times of expiry."""
        if self._many is not None or self.due is not None or len(self._few) + 2 > most or self._count > MOST_AT_REST:
            return b""
        return b"%c%c%b" % (SET_MARK + FORMS.index(self._form), self._count, self._few)

    @staticmethod
    def woken(text: bytes) -> "Set":
        """The set that has this text at rest."""
        made = Set()
        made._form = FORMS[text[0] - SET_MARK]
        made._count = text[1]
        made._few = text[2:]
        return made

    def memory_usage(self) -> int:
        size = len(self.expires) * TIME_BYTES
        return size + (OWN_BYTES + len(self._few) if self._many is None else self._many.memory_usage())

    def parts(self) -> Iterator[bytes]:
        yield from sorted(self.members())
        for member, when_ms in sorted(self.expires.items()):
            yield member
            yield b"%d" % when_ms

    def _pack(self) -> None:
        """Pack the members of a table, where they are few."""
        many = self._many
        if many is None:
            return
        count = len(many)
        few: bytes | None = None
        if self._form is Form.INTSET:
            if count <= MOST_INTEGERS:
                few = packed_integers.packed(many.listed())
        elif count <= MOST_PACKED:
            few = packed_members.packed(many.listed())
        if few is not None:
            self._few, self._count = few, count
            self._many = None

    def table(self) -> MemberTable:
        """The members in a table, where they are from now on. O(1), O(n) while packed."""
        if self._many is None:
            self._many = MemberTable(self._few_members(), self._form is not Form.HASHTABLE)
            self._few, self._count = EMPTY, 0
        return self._many

    def _few_members(self) -> list[bytes]:
        """The packed members, in order. O(n)."""
        if self._form is Form.INTSET:
            return packed_integers.members_of(self._few)
        return packed_members.members_of(self._few)

    # -- changing ---------------------------------------------------------------------------------------------------

    def add(self, members: Iterable[bytes], limits: SetLimits | None = None) -> int:
        """Add members; how many are new. limits: needed while the form is a small one."""
        before = len(self)
        many_at_once = self._many is None and isinstance(members, list) and len(members) > MOST_WALKED
        if many_at_once:
            self.table()
        rest = iter(members)
        for member in rest:
            if self._many is not None and self._form is Form.HASHTABLE:
                self._many.add(member)
                self._many.add_all(rest)
            else:
                self._put(member, limits)
        if many_at_once:
            self._pack()
        after = len(self)
        self.recount(before, after)
        return after - before

    def add_one(self, member: bytes, limits: SetLimits) -> bool:
        """Add the one member of a request; whether it is new. O(1)."""
        self.expect(1, limits)
        if not self._put(member, limits):
            return False
        count = len(self)
        if not count & count - 1:
            self.recount(count - 1, count)
        return True

    def expect(self, count: int, limits: SetLimits) -> None:
        """Take note that a request adds so many members, be they new or not: Redis makes room for all of them. O(1)."""
        if count > (limits.integers if self._form is Form.INTSET else limits.members):
            self.take_form(Form.HASHTABLE)

    def _put(self, member: bytes, limits: SetLimits | None) -> bool:
        """Add a member to a set, which changes its form where it does not fit; whether it is new."""
        if self._many is not None:
            if self._form is Form.HASHTABLE:
                return self._many.add(member)
        elif self._form is Form.INTSET and self._count < MOST_INTEGERS:
            assert limits is not None, "a small set may outgrow its form"
            few = packed_integers.with_member(self._few, member) if self._count < limits.integers else None
            if few is not None:
                if few is self._few:
                    return False
                self._few = few
                self._count += 1
                return True
        if self.has(member):
            return False
        if self._form is not Form.HASHTABLE:
            assert limits is not None, "a small set may outgrow its form"
            self._outgrow(member, limits)
        self._add_new(member)
        return True

    def _outgrow(self, member: bytes, limits: SetLimits) -> None:
        """Change a small form where a new member does not fit into it."""
        count = len(self)
        if self._form is Form.INTSET:
            if limits.is_integer(member):
                if count >= limits.integers:
                    self.take_form(Form.HASHTABLE)
            else:
                self.leave_integers(limits)
        if self._form is Form.LISTPACK and (count >= limits.members or len(member) > limits.length):
            self.take_form(Form.HASHTABLE)

    def leave_integers(self, limits: SetLimits) -> None:
        """Change the form of a set of integers to that of other small sets, where they fit into it. O(n log n)."""
        longest = max(map(len, self.members()), default=0)
        self.take_form(Form.LISTPACK if longest <= limits.length else Form.HASHTABLE)

    def _add_new(self, member: bytes) -> None:
        """Add a member that is not there, and not one more packed integer."""
        is_for_few = self._many is None and self._form is not Form.INTSET and self._count < MOST_PACKED
        if is_for_few and len(member) <= LONGEST_PACKED:
            self._few = packed_members.with_member(self._few, member)
            self._count += 1
        else:
            self.table().add(member)

    def remove(self, members: Iterable[bytes]) -> int:
        """Take members out; how many were there."""
        removed = 0
        for member in members:
            if self.due is not None:
                self.due.drop(member)
            if self._many is not None:
                removed += self._many.remove(member)
                continue
            is_intset = self._form is Form.INTSET
            left = (
                packed_integers.without(self._few, member) if is_intset else packed_members.without(self._few, member)
            )
            if len(left) < len(self._few):
                self._few = left
                self._count -= 1
                removed += 1
        self.recount(len(self) + removed, len(self))
        return removed

    def take_out(self, members: Iterable[bytes]) -> list[bytes]:
        """As `remove`; returns those that were there, in order."""
        return [member for member in members if self.remove((member,))]

    def rebuild(self, limits: SetLimits) -> None:
        """Make a large set a small one if it has few members left, when Redis would rebuild its table. O(n)."""
        if self._form is not Form.HASHTABLE or len(self) > limits.members:
            return
        if all(len(member) <= limits.length for member in self.members()):
            self.take_form(Form.LISTPACK)

    # -- reading ----------------------------------------------------------------------------------------------------

    def has(self, member: bytes) -> bool:
        """Whether it is a member. O(1)."""
        if self._many is not None:
            return self._many.has(member)
        if self._form is Form.INTSET:
            return packed_integers.has(self._few, member)
        return packed_members.has(self._few, member)

    def common(self, members: list[bytes]) -> list[bytes]:
        """Those of other members that it has, too, in their order. O(members)."""
        if self._many is not None:
            return self._many.common(members)
        if len(members) <= MOST_WALKED:
            return [member for member in members if self.has(member)]
        here = dict.fromkeys(self._few_members())
        return [member for member in members if member in here]

    def missing(self, members: list[bytes]) -> list[bytes]:
        """Those of other members that it does not have, in their order. O(members)."""
        if self._many is not None:
            return self._many.missing(members)
        if len(members) <= MOST_WALKED:
            return [member for member in members if not self.has(member)]
        here = dict.fromkeys(self._few_members())
        return [member for member in members if member not in here]

    def members(self) -> dict[bytes, None]:
        """The members in order, not to be changed: valid until the next change. O(1), O(n) while packed."""
        return dict.fromkeys(self._few_members()) if self._many is None else self._many.members()

    def listed(self) -> list[bytes]:
        """The members in the order of replies: integers by size in an intset, others in the order of insertion."""
        if self._many is None:
            return self._few_members()
        listed = self._many.listed()
        if self._form is Form.INTSET:
            listed.sort(key=int)
        return listed

    def random_member(self, chance: Random) -> bytes:
        """Any member, each with the same chance. O(1); O(n), 10 ns each, for the first one of a table."""
        if self._many is not None:
            return self._many.any_of(chance)
        index = chance.choice(range(self._count))
        if self._form is Form.INTSET:
            return packed_integers.member_at(self._few, index)
        return packed_members.member_at(self._few, index)

    def in_order(self) -> HashOrder:
        """The members in the order of their hashes: valid until the next change. As MemberTable.in_order."""
        return HashOrder(self.members(), 0) if self._many is None else self._many.in_order()

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self), "an empty set is no value"
        if self.due is not None:
            self.due.check()
            assert self.due.times.keys() <= self.members().keys(), "an expiry without a member"
        if self._many is not None:
            assert not self._few and not self._count, "the members are in one form"
            self._many.check()
            return
        most = MOST_INTEGERS if self._form is Form.INTSET else MOST_PACKED
        assert len(self.members()) == self._count <= most, "each member is packed once"
