"""Sets that are packed, beside a table of their members."""

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.engine.arguments import is_integer
from penstock.storage.types.set_forms.packed_parts import LONGEST_PACKED, MOST_PACKED
from penstock.storage.types.sets import Form, Set, SetLimits

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


class BesideATable(RuleBasedStateMachine):
    """Whatever is done to a set that may be packed is done to one that has a table from its start, too."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = LIMITS[0]
        self.held, self.plain = Set(), Set()
        self.plain.table()
        self.held.form = self.plain.form = Form.INTSET

    @rule(members=SOME, limits=st.sampled_from(LIMITS))
    def start_anew(self, members: list[bytes], limits: SetLimits) -> None:
        self.limits = limits
        self.held, self.plain = Set.made(members, limits), Set()
        self.plain.form = limits.form_for(members[0], len(members))
        self.plain.table()
        self.plain.add(members, limits)

    @rule(members=SOME)
    def add(self, members: list[bytes]) -> None:
        for each in (self.held, self.plain):
            each.expect(len(members), self.limits)
        assert self.held.add(members, self.limits) == self.plain.add(members, self.limits)

    @rule(room=st.integers(-2, 3), most=st.sampled_from([MOST_PACKED, INTSET]), at_once=st.booleans())
    def fill(self, room: int, most: int, at_once: bool) -> None:
        """Up to a limit of the packed form or of the intset, or over it."""
        members = [b"%d" % number for number in range(100, 100 + max(most - room - len(self.held), 0))]
        for some in [members] if at_once else [[member] for member in members]:
            assert self.held.add(some, self.limits) == self.plain.add(some, self.limits)

    @rule(kept=st.integers(0, 3))
    def remove_most(self, kept: int) -> None:
        self.remove(self.plain.listed()[kept:])

    @rule(member=NAMES)
    def add_one(self, member: bytes) -> None:
        assert self.held.add_one(member, self.limits) == self.plain.add_one(member, self.limits)

    @rule(members=SOME)
    def remove(self, members: list[bytes]) -> None:
        assert self.held.remove(members) == self.plain.remove(members)

    @rule(at=st.integers(0, 20))
    def remove_known(self, at: int) -> None:
        members = self.plain.listed()
        if members:
            self.remove([members[at % len(members)]])

    @rule()
    def settle(self) -> None:
        if len(self.plain):
            self.held.settle(self.limits)
            self.plain.settle(self.limits)

    @rule()
    def rebuild(self) -> None:
        self.held.rebuild(self.limits)
        self.plain.rebuild(self.limits)

    @rule()
    def copy(self) -> None:
        self.held = self.held.copy()

    @rule(seed=st.integers(0, 5))
    def take_any(self, seed: int) -> None:
        if len(self.held):
            assert self.held.random_member(Random(seed)) in self.plain.members()

    @rule(members=SOME, many=st.sampled_from([0, 20]))
    def compare(self, members: list[bytes], many: int) -> None:
        asked = members + self.plain.listed()[:3] + [b"%d" % number for number in range(many)]
        assert self.held.common(asked) == self.plain.common(asked)
        assert self.held.missing(asked) == self.plain.missing(asked)

    @invariant()
    def it_holds_the_same(self) -> None:
        if len(self.plain):
            self.held.check()
            self.plain.check()
        assert len(self.held) == len(self.plain)
        assert self.held.form is self.plain.form
        assert self.held.listed() == self.plain.listed()
        assert list(self.held.members()) == list(self.plain.members())
        self.held.in_order().check(self.plain.members())
        assert all(self.held.has(name) == self.plain.has(name) for name in [*ALIKE, *self.plain.members()])


TestBesideATable = BesideATable.TestCase


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
    assert held.listed() == [*[b"%d" % number for number in range(MOST_PACKED - 1)], b"last", b"one more", b"another"]


def test_a_long_member_is_not_packed() -> None:
    held = Set([b"m" * LONGEST_PACKED])
    assert is_packed(held)

    assert held.add([b"n" * (LONGEST_PACKED + 1)]) == 1

    assert not is_packed(held)
