"""Sets that are packed, beside a dict of their members."""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.engine.arguments import is_integer
from penstock.storage.types.packed_table import MOST_ENTRIES
from penstock.storage.types.set_forms.packed_parts import LONGEST_PACKED, MOST_PACKED
from penstock.storage.types.sets import Form, Set, SetLimits
from tests.support.seeds import examples

ALIKE = [b"", b"\0", b"\1", b"\1a", b"a", b"aa", b"a\1a", b"\2aa", b"12", b"-3", b"\xff", b"0"]
NAMES = st.one_of(
    st.sampled_from(ALIKE),
    st.binary(max_size=2),
    st.integers(-30, 30).map(lambda number: b"%d" % number),
    st.binary(min_size=62, max_size=66),
)
SOME = st.lists(NAMES, min_size=1, max_size=6)
INTSET = 512  # integers
LIMITS = [SetLimits(INTSET, 128, 64, is_integer), SetLimits(5, 8, 3, is_integer), SetLimits(0, 0, 0, is_integer)]


def is_packed(held: Set) -> bool:
    return held._many is None


class BesideADict(RuleBasedStateMachine):
    """Whatever is done to a set is done to a dict, too, which has the order that the set's form promises."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = LIMITS[0]
        self.held = Set()
        self.held.take_form(Form.INTSET)
        self.plain: dict[bytes, None] = {}

    def added(self, members: list[bytes]) -> int:
        """Add to the dict: a set of integers is in ascending order when the first other member comes."""
        before = len(self.plain)
        for member in members:
            if self.held.form is Form.INTSET and not is_integer(member) and all(map(is_integer, self.plain)):
                self.plain = dict.fromkeys(sorted(self.plain, key=int))
            self.plain[member] = None
        return len(self.plain) - before

    @rule(members=SOME, limits=st.sampled_from(LIMITS), extra=st.sampled_from([0, 200, 1100]))
    def start_anew(self, members: list[bytes], limits: SetLimits, extra: int) -> None:
        self.limits = limits
        members = [*members, *(b"%d" % number for number in range(extra))]
        self.held, self.plain = Set(), {}
        self.held.take_form(limits.form_for(members[0], len(members)))
        self.added(members)
        self.held = Set.made(members, limits)

    @rule(members=SOME)
    def add(self, members: list[bytes]) -> None:
        self.held.expect(len(members), self.limits)
        assert self.added(members) == self.held.add(members, self.limits)

    @rule(room=st.integers(-2, 3), most=st.sampled_from([MOST_PACKED, INTSET, MOST_ENTRIES]), at_once=st.booleans())
    def fill(self, room: int, most: int, at_once: bool) -> None:
        """Up to a limit of a form, or over it."""
        members = [b"%d" % number for number in range(100, 100 + max(most - room - len(self.held), 0))]
        for some in [members] if at_once else [[member] for member in members]:
            assert self.added(some) == self.held.add(some, self.limits)

    @rule(kept=st.integers(0, 3))
    def remove_most(self, kept: int) -> None:
        self.remove(list(self.plain)[kept:])

    @rule(member=NAMES)
    def add_one(self, member: bytes) -> None:
        assert self.added([member]) == self.held.add_one(member, self.limits)

    @rule(members=SOME)
    def remove(self, members: list[bytes]) -> None:
        there = [member for member in dict.fromkeys(members) if member in self.plain]
        for member in there:
            del self.plain[member]
        assert self.held.remove(members) == len(there)

    @rule(at=st.integers(0, 20))
    def remove_known(self, at: int) -> None:
        members = list(self.plain)
        if members:
            self.remove([members[at % len(members)]])

    @rule()
    def choose_form(self) -> None:
        if self.plain:
            self.held.choose_form(self.limits)

    @rule()
    def rebuild(self) -> None:
        self.held.rebuild(self.limits)

    @rule(form=st.sampled_from([Form.LISTPACK, Form.HASHTABLE]))
    def take_form(self, form: Form) -> None:
        if self.held.form is Form.INTSET:
            self.plain = dict.fromkeys(self.held.listed())
        self.held.take_form(form)

    @rule()
    def copy(self) -> None:
        self.held = self.held.copy()

    @rule(seed=st.integers(0, 5))
    def take_any(self, seed: int) -> None:
        if self.plain:
            assert self.held.random_member(Random(seed)) in self.plain

    @rule(members=SOME, many=st.sampled_from([0, 20]))
    def compare(self, members: list[bytes], many: int) -> None:
        asked = members + list(self.plain)[:3] + [b"%d" % number for number in range(many)]
        assert self.held.common(asked) == [member for member in asked if member in self.plain]
        assert self.held.missing(asked) == [member for member in asked if member not in self.plain]

    @invariant()
    def it_holds_the_same(self) -> None:
        if self.plain:
            self.held.check()
        assert len(self.held) == len(self.plain)
        listed = self.held.listed()
        assert set(listed) == set(self.held.members()) == set(self.plain)
        if self.held.form is Form.INTSET:
            assert listed == sorted(self.plain, key=int)
        elif self.held.form is Form.LISTPACK:
            assert listed == list(self.plain)
        else:
            self.plain = dict.fromkeys(listed)  # the order means nothing
        self.held.in_order().check(self.plain)
        assert all(self.held.has(name) == (name in self.plain) for name in [*ALIKE, *self.plain])


TestBesideADict = BesideADict.TestCase
TestBesideADict.settings = settings(max_examples=examples(40))


def test_every_member_of_a_packed_set_may_be_the_random_one() -> None:
    held, chance = Set([b"a", b"", b"ccc"]), Random(1)

    assert is_packed(held)
    assert {held.random_member(chance) for _ in range(100)} == {b"a", b"", b"ccc"}


def test_few_short_members_are_packed_until_one_too_many_comes() -> None:
    held = Set([b"%d" % number for number in range(MOST_PACKED - 1)])
    assert held.add([b"last", b"3"]) == 1
    assert is_packed(held)

    assert held.add([b"one more", b"4", b"another"]) == 2

    assert not is_packed(held)
    assert set(held.listed()) == {
        *[b"%d" % number for number in range(MOST_PACKED - 1)],
        b"last",
        b"one more",
        b"another",
    }


def test_a_long_member_is_not_packed() -> None:
    held = Set([b"m" * LONGEST_PACKED])
    assert is_packed(held)

    assert held.add([b"n" * (LONGEST_PACKED + 1)]) == 1

    assert not is_packed(held)


def test_a_set_of_integers_grows_and_shrinks_through_all_widths() -> None:
    numbers = [5, -5, 32767, -32768, 32768, -(2**31), 2**31, 2**63 - 1, -(2**63), 10**18, -(10**18)]
    held = Set.made([b"7"], LIMITS[0])

    for number in numbers:
        assert held.add_one(b"%d" % number, LIMITS[0])
        held.check()

    assert is_packed(held)
    assert [int(member) for member in held.listed()] == sorted([7, *numbers])
    assert not any(map(held.has, [b"", b"-", b"07", b"-0", b"9223372036854775808", b"-32769", b"x"]))
    assert held.remove([b"%d" % number for number in numbers]) == len(numbers)
    assert held.listed() == [b"7"]


@pytest.mark.parametrize(("first", "width"), [(0, 2), (-100_000, 4), (2**40, 8)])
def test_an_integer_takes_as_many_bytes_as_the_largest_needs(first: int, width: int) -> None:
    held = Set.made([b"%d" % number for number in range(first, first + 16)], LIMITS[0])
    size = held.memory_usage()

    held.remove([b"%d" % (first + 3)])

    assert size - held.memory_usage() == width


@pytest.mark.skipif(not MOST_ENTRIES, reason="the plain build has dicts")
@pytest.mark.parametrize("count", [200, MOST_ENTRIES])
def test_some_hundred_members_take_little_memory(count: int) -> None:
    held = Set.made([b"member:%03d" % number for number in range(count)], LIMITS[0])

    assert held.memory_usage() < 400 + count * 20


@pytest.mark.skipif(not MOST_ENTRIES, reason="the plain build has dicts")
def test_members_that_are_there_do_not_make_a_full_table_grow() -> None:
    members = [b"member:%04d" % number for number in range(MOST_ENTRIES)]
    held = Set.made(members, LIMITS[0])
    size = held.memory_usage()

    assert held.add(members, LIMITS[0]) == 0

    assert held.memory_usage() == size
