"""Sorted sets beside a plain dictionary that is sorted anew for every question."""

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.storage.pair_order import MOST
from penstock.storage.types.packed_table import MOST_ENTRIES
from penstock.storage.types.set_forms.ordered_pairs import OrderedPairs
from penstock.storage.types.set_forms.packed_parts import LONGEST_PACKED, MOST_PACKED
from penstock.storage.types.set_forms.pair_ranges import lex_range, score_range
from penstock.storage.types.set_forms.score_table import MOST as LONGEST_CHUNK
from penstock.storage.types.set_forms.score_table import ScoreTable
from penstock.storage.types.sorted_sets import LexBound, ScoreBound, SortedSet
from tests.support.seeds import examples

MEMBERS = st.sampled_from([b"", b"a", b"aa", b"ab", b"b", b"c", b"\xff", b"\xff\xff", b"B", b"\0"])
SCORES = st.sampled_from([0.0, -0.0, 1.0, 1.5, -1.0, inf, -inf, 5e-324, -5e-324, 1e308])
SCORE_BOUNDS = st.builds(ScoreBound, SCORES, st.booleans())
LEX_BOUNDS = st.builds(LexBound, MEMBERS, st.booleans(), st.sampled_from([0, 0, 0, -1, 1]))
PAIRS = st.dictionaries(MEMBERS, SCORES)


def in_order(scores: Any) -> Any:
    return sorted((score, member) for member, score in scores.items())


class BesideADictionary(RuleBasedStateMachine):
    """Whatever is done to a sorted set is done to a dictionary, too."""

    def __init__(self) -> None:
        super().__init__()
        self.held = SortedSet()
        self.naive: dict[Any, Any] = {}

    @rule(member=MEMBERS, score=SCORES)
    def put(self, member: Any, score: Any) -> None:
        assert self.held.put(member, score) == self.naive.get(member)
        self.naive[member] = score

    @rule(member=MEMBERS)
    def remove(self, member: Any) -> None:
        assert self.held.remove(member) == (self.naive.pop(member, None) is not None)

    @rule(start=st.integers(0, 12), length=st.integers(0, 12))
    def take(self, start: Any, length: Any) -> None:
        stop = min(start + length, len(self.naive))
        expected = in_order(self.naive)[start:stop]

        assert self.held.pop_range(min(start, stop), stop) == expected

        self.naive = {member: score for member, score in self.naive.items() if (score, member) not in expected}

    @rule(count=st.integers(1, 4))
    def walk(self, count: Any) -> None:
        place, met = -1, []
        while place:
            some, place = self.held.walk(max(place, 0), count)
            met += some

        assert sorted(met) == sorted(self.naive)

    @rule()
    def walk_in_part(self) -> None:
        self.held.walk(0, 1)

    @invariant()
    def it_holds_the_same(self) -> None:
        self.held.check()
        assert list(self.held.pairs()) == in_order(self.naive)
        assert [self.held.rank(member) for _, member in in_order(self.naive)] == list(range(len(self.naive)))


TestBesideADictionary = BesideADictionary.TestCase


class ManyBesideADictionary(BesideADictionary):
    """The same with so many members that their order has several chunks, sooner or later."""

    def __init__(self) -> None:
        super().__init__()
        for number in range(MOST - 3):
            self.put(b"%d" % number, float(number % 7))


TestManyBesideADictionary = ManyBesideADictionary.TestCase
TestManyBesideADictionary.settings = settings(max_examples=examples(10), stateful_step_count=20, deadline=None)


# -- packed ----------------------------------------------------------------------------------------------------------

ALIKE = [b"", b"\0", b"\1", b"\2", b"\1a", b"\1\1", b"aa", b"aaa", b"\0\0\0\0\0\0\0\0\2aa", b"\xff", b"\xff\xff"]
NAMES = st.one_of(st.sampled_from(ALIKE), st.binary(max_size=3), st.binary(min_size=62, max_size=66))
DOUBLES = st.one_of(SCORES, st.floats(allow_nan=False), st.integers(-3, 3).map(float))
BOUNDS = st.builds(ScoreBound, DOUBLES, st.booleans())


def exact(pairs: Any) -> Any:
    """With the sign of a zero."""
    return [(score.hex(), member) for score, member in pairs]


class PackedBesideContainers(RuleBasedStateMachine):
    """Whatever is done to a sorted set that may be packed is done to one of Python's containers, too."""

    def __init__(self) -> None:
        super().__init__()
        self.held = SortedSet()
        self.plain = OrderedPairs()

    def known(self, at: int) -> bytes:
        members = sorted(self.plain.scores)
        return members[at % len(members)] if members else b"none"

    @rule(member=NAMES, score=DOUBLES)
    def put_over(self, member: bytes, score: float) -> None:
        old = self.held.score(member)
        assert old == self.plain.scores.get(member)
        self.held.put_over(member, score, old)
        self.plain.put_over(member, score, old)

    @rule(member=NAMES, score=DOUBLES)
    def put(self, member: bytes, score: float) -> None:
        assert self.held.put(member, score) == self.plain.put(member, score)

    @rule(room=st.integers(-2, 3), most=st.sampled_from([MOST_PACKED, MOST_ENTRIES]), score=DOUBLES)
    def fill(self, room: int, most: int, score: float) -> None:
        """Up to the limit of a packed form, or over it."""
        for number in range(most - room - len(self.held)):
            self.put(b"n%d" % number, score)

    @rule(count=st.sampled_from([MOST_PACKED, MOST_PACKED + 1, MOST_ENTRIES, MOST_ENTRIES + 1]))
    def fill_at_once(self, count: int) -> None:
        self.start_anew()
        self.held.unpack()
        for number in range(count):
            self.put(b"m%d" % number, number % 7 - 3.0)
        self.held.pack()

    @rule(kept=st.integers(0, 3))
    def pop_down(self, kept: int) -> None:
        self.pop(kept, len(self.held))

    @rule(at=st.integers(0, 20), score=DOUBLES)
    def change(self, at: int, score: float) -> None:
        self.put(self.known(at), score)

    @rule(member=NAMES)
    def remove(self, member: bytes) -> None:
        assert self.held.remove(member) == self.plain.remove(member)

    @rule(at=st.integers(0, 20))
    def remove_known(self, at: int) -> None:
        self.remove(self.known(at))

    @rule(start=st.integers(0, 20), length=st.integers(0, 4))
    def pop(self, start: int, length: int) -> None:
        assert exact(self.held.pop_range(start, start + length)) == exact(self.plain.pop_range(start, start + length))

    @rule(start=st.integers(0, 20), length=st.integers(0, 20))
    def read(self, start: int, length: int) -> None:
        assert exact(self.held.pairs_at(start, start + length)) == exact(list(self.plain.order)[start : start + length])

    @rule(low=BOUNDS, high=BOUNDS)
    def find_scores(self, low: ScoreBound, high: ScoreBound) -> None:
        assert self.held.score_range(low, high) == score_range(self.plain, low, high)

    @rule(low=DOUBLES, high=BOUNDS)
    def remove_scores(self, low: float, high: ScoreBound) -> None:
        start, stop = score_range(self.plain, ScoreBound(low, False), high)
        self.pop(start, min(stop - start, 3))

    @rule()
    def copy(self) -> None:
        self.held = self.held.copy()

    @rule()
    def read_again(self) -> None:
        self.held = SortedSet(self.held.pairs())

    @rule()
    def start_anew(self) -> None:
        self.held, self.plain = SortedSet(), OrderedPairs()

    @rule(start=st.integers(0, 2))
    def walk(self, start: int) -> None:
        assert sorted(self.held.copy().walk(0, 2 * max(MOST_PACKED, MOST_ENTRIES))[0]) == sorted(self.plain.scores)

    @invariant()
    def it_holds_the_same(self) -> None:
        self.held.check()
        order = self.plain.order
        assert len(self.held) == len(order)
        assert exact(self.held.pairs()) == exact(order)
        assert self.held.scores() == self.plain.scores
        assert sorted(self.held.members()) == sorted(self.plain.scores)
        assert [self.held.score(member) for _, member in order] == [score for score, _ in order]
        assert [self.held.rank(member) for _, member in order] == list(range(len(order)))
        assert all(self.held.score(name) == self.plain.scores.get(name) for name in ALIKE)


TestPackedBesideContainers = PackedBesideContainers.TestCase


class TableBesideContainers(RuleBasedStateMachine):
    """Whatever is done to a table of scores is done to Python's containers, too."""

    def __init__(self) -> None:
        super().__init__()
        self.held = ScoreTable([])
        self.plain = OrderedPairs()

    @rule(member=NAMES, score=DOUBLES)
    def put(self, member: bytes, score: float) -> None:
        old = self.held.score(member)
        assert old == self.plain.score(member)
        self.held.put_over(member, score, old)
        self.plain.put_over(member, score, old)

    @rule(count=st.integers(1, 5 * LONGEST_CHUNK), step=st.sampled_from([-1.5, 0.0, 1.0]), first=DOUBLES)
    def fill(self, count: int, step: float, first: float) -> None:
        for number in range(count):
            self.put(b"n%d" % number, first + number * step)

    @rule(at=st.integers(0, 200), count=st.integers(1, 100))
    def remove_some(self, at: int, count: int) -> None:
        for _, member in self.plain.part(at, at + count):
            assert self.held.remove(member) and self.plain.remove(member)

    @rule(member=NAMES)
    def remove(self, member: bytes) -> None:
        assert self.held.remove(member) == self.plain.remove(member)

    @rule(start=st.integers(0, 200), length=st.integers(0, 70))
    def pop(self, start: int, length: int) -> None:
        assert exact(self.held.pop_range(start, start + length)) == exact(self.plain.pop_range(start, start + length))

    @rule(start=st.integers(0, 200), length=st.integers(0, 70))
    def read(self, start: int, length: int) -> None:
        found = self.held.part(start, start + length)
        assert exact(found) == exact(self.plain.part(start, start + length))
        assert exact(self.held.at(range(start, start + len(found)))) == exact(found)

    @rule(low=BOUNDS, high=BOUNDS)
    def find_scores(self, low: ScoreBound, high: ScoreBound) -> None:
        assert score_range(self.held, low, high) == score_range(self.plain, low, high)

    @rule(low=LEX_BOUNDS, high=LEX_BOUNDS, backwards=st.booleans())
    def find_members(self, low: LexBound, high: LexBound, backwards: bool) -> None:
        assert lex_range(self.held, low, high, backwards) == lex_range(self.plain, low, high, backwards)

    @rule(member=NAMES, score=DOUBLES)
    def find_place(self, member: bytes, score: float) -> None:
        assert self.held.below(score, member) == self.plain.below(score, member)

    @rule()
    def copy(self) -> None:
        before, self.held = self.held, self.held.copy()
        before.put_over(b"in the other alone", 0.5, before.score(b"in the other alone"))

    @rule()
    def make_anew(self) -> None:
        self.held = ScoreTable(list(self.held))

    @rule(count=st.integers(1, 40))
    def walk(self, count: int) -> None:
        self.held.walk(0, count)

    @invariant()
    def it_holds_the_same(self) -> None:
        self.held.check()
        assert exact(self.held) == exact(self.plain) and exact(self.held.backwards()) == exact(self.plain.backwards())
        assert self.held.by_member() == self.plain.scores and len(self.held) == len(self.plain)


TestTableBesideContainers = TableBesideContainers.TestCase
TestTableBesideContainers.settings = settings(max_examples=examples(30), stateful_step_count=30, deadline=None)


def is_packed(held: SortedSet) -> bool:
    return held._many is None


def test_few_short_members_are_packed_until_one_too_many_comes() -> None:
    held = SortedSet()
    for number in range(MOST_PACKED):
        held.put(b"%d" % number, float(-number))
    assert is_packed(held)
    held.put(b"3", 7.0)
    assert is_packed(held)

    held.put(b"one more", 0.5)

    assert not is_packed(held)
    assert held.pairs_at(MOST_PACKED - 2, MOST_PACKED + 1) == [(0.0, b"0"), (0.5, b"one more"), (7.0, b"3")]


def test_a_long_member_is_not_packed() -> None:
    held = SortedSet([(1.0, b"m" * LONGEST_PACKED)])
    assert is_packed(held)

    held.put(b"n" * (LONGEST_PACKED + 1), 0.0)

    assert not is_packed(held)
    assert not is_packed(SortedSet(held.pairs()))


def lies_between(score: Any, low: Any, high: Any) -> Any:
    above = score > low.score if low.excludes else score >= low.score
    return above and (score < high.score if high.excludes else score <= high.score)


@given(PAIRS, SCORE_BOUNDS, SCORE_BOUNDS)
def test_a_range_of_scores_holds_what_lies_between_its_bounds(scores: Any, low: Any, high: Any) -> None:
    held = SortedSet([(score, member) for member, score in scores.items()])
    start, stop = held.score_range(low, high)

    assert held.pairs_at(start, stop) == [pair for pair in in_order(scores) if lies_between(pair[0], low, high)]


@given(st.sets(MEMBERS), LEX_BOUNDS, LEX_BOUNDS, st.booleans())
def test_a_range_of_bytes_holds_what_lies_between_its_bounds(members: Any, low: Any, high: Any, backwards: Any) -> None:
    held = SortedSet([(2.5, member) for member in members])
    start, stop = held.lex_range(low, high, backwards)

    between = [member for member in sorted(members) if low.allows_from(member) and high.allows_to(member)]
    assert [member for _, member in held.pairs_at(start, stop)] == between


def lex(word: Any) -> Any:
    return LexBound(word[1:], word[:1] == b"(")


@pytest.mark.parametrize(
    ("low", "high", "backwards", "members"),
    [
        (b"[a", b"[z", False, [b"b", b"a", b"d", b"c"]),
        (b"[c", b"[z", False, [b"d", b"c"]),
        (b"[b", b"(d", False, [b"b", b"a"]),
        (b"[a", b"[b", False, [b"b", b"a"]),
        (b"[a", b"[c", True, [b"c", b"d", b"a", b"b"]),
        (b"[b", b"[c", True, [b"c", b"d"]),
        (b"[c", b"[z", True, [b"c", b"d"]),
        (b"[e", b"[z", False, []),
        (b"(c", b"[z", False, []),
        (b"[a", b"(b", True, []),
        (b"[a", b"[b", True, [b"a", b"b"]),
    ],
)
def test_a_range_of_bytes_in_a_set_of_unequal_scores_is_what_redis_makes_of_a_small_one(
    low: bytes, high: bytes, backwards: bool, members: Any
) -> None:
    held = SortedSet([(1.0, b"b"), (2.0, b"a"), (3.0, b"d"), (4.0, b"c")])
    start, stop = held.lex_range(lex(low), lex(high), backwards)

    found = held.pairs_at(start, stop)
    assert [member for _, member in (reversed(found) if backwards else found)] == members


def test_a_copy_shares_nothing_that_changes() -> None:
    held = SortedSet([(1.0, b"a")])
    copied = held.copy()

    copied.put(b"b", 2.0)
    copied.put(b"a", 3.0)

    assert list(held.pairs()) == [(1.0, b"a")]
    assert list(copied.pairs()) == [(2.0, b"b"), (3.0, b"a")]


def test_equal_sets_have_equal_parts() -> None:
    one, other = SortedSet([(1.0, b"a"), (2.0, b"b")]), SortedSet([(2.0, b"b"), (1.0, b"a")])

    assert list(one.parts()) == list(other.parts())


def test_a_set_of_more_members_uses_more_memory() -> None:
    few, many = SortedSet([(1.0, b"a")]), SortedSet([(1.0, b"%d" % number) for number in range(1000)])

    assert many.memory_usage() > few.memory_usage() + 10_000


@pytest.mark.skipif(not MOST_ENTRIES, reason="the plain build has Python's containers")
@pytest.mark.parametrize("count", [MOST_PACKED + 1, 200, MOST_ENTRIES])
def test_some_hundred_members_take_little_memory(count: int) -> None:
    held = SortedSet([(float(number), b"member:%03d" % number) for number in range(count - 1)])
    held.put(b"one more", 0.5)

    assert held.memory_usage() < 700 + count * 50
