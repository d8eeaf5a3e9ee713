"""Lists beside a plain Python list that is asked the same."""

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.storage.types.list_nodes import (
    count_of,
    item_at,
    items_of,
    may_have,
    node_of,
    part_of,
    place_from_left,
    place_from_right,
)  # fmt: skip
from penstock.storage.types.lists import List
from tests.support.seeds import examples

ITEMS = [b"%d" % number for number in range(200)]
EVERYTHING = 2**63 - 1


@pytest.mark.parametrize("start", [0, 1, 99, 150, 199])
@pytest.mark.parametrize("stop", [1, 100, 151, 200])
def test_a_slice_is_what_a_plain_list_gives_and_leaves_the_list_as_it_was(start: int, stop: int) -> None:
    held = List(ITEMS)

    assert held.slice(min(start, stop), stop) == ITEMS[min(start, stop) : stop]
    assert list(held) == ITEMS


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 200, 201])
def test_items_are_popped_outermost_first(left: bool, count: int) -> None:
    held = List(ITEMS)
    ordered = ITEMS if left else ITEMS[::-1]

    assert held.pop(left, count) == ordered[:count]
    assert (list(held) if left else list(held)[::-1]) == ordered[count:]


@pytest.mark.parametrize("kept", [(0, 200), (1, 199), (0, 10), (150, 151), (30, 190), (0, 0)])
def test_a_trimmed_list_keeps_the_range(kept: tuple[int, int]) -> None:
    held = List(ITEMS)

    held.trim(*kept)

    assert list(held) == ITEMS[kept[0] : kept[1]]


def naively_removed(items: list[bytes], item: bytes, most: int, from_left: bool) -> list[bytes]:
    rest = items.copy() if from_left else items[::-1]
    for _ in range(most):
        if item in rest:
            rest.remove(item)
    return rest if from_left else rest[::-1]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("from_left", [True, False])
def test_removing_takes_the_nearest_equals(seed: int, from_left: bool) -> None:
    chance = random.Random(seed)
    items = [chance.choice((b"a", b"b", b"c")) for _ in range(chance.randrange(1, 40))]
    most = chance.randrange(0, 8)
    held = List(items)

    removed = held.remove(b"a", most, from_left)

    assert list(held) == naively_removed(items, b"a", most, from_left)
    assert removed == len(items) - len(held)


@given(
    some.lists(some.text("ab", max_size=4).map(str.encode), max_size=60), some.text("ab", max_size=4).map(str.encode)
)
def test_the_first_and_the_last_equal_item_of_a_packed_node_are_found(items: list[bytes], item: bytes) -> None:
    node = node_of(items.copy())
    assert isinstance(node, bytes)

    assert place_from_left(node, item) == (items.index(item) if item in items else -1)
    assert place_from_right(node, item) == (len(items) - 1 - items[::-1].index(item) if item in items else -1)


@pytest.mark.parametrize("seed", range(20))
def test_places_are_found_from_either_end(seed: int) -> None:
    chance = random.Random(seed)
    items = [chance.choice((b"a", b"b", b"c")) for _ in range(chance.randrange(0, 40))]
    skipped, most, longest = chance.randrange(4), chance.choice((1, 2, EVERYTHING)), chance.choice((3, 20, EVERYTHING))
    held = List(items)
    places = [place for place, item in enumerate(items) if item == b"a"]

    from_left = [place for place in places if place < longest][skipped:][:most]
    from_right = [place for place in reversed(places) if len(items) - place <= longest][skipped:][:most]
    assert held.positions(b"a", skipped, most, longest, from_left=True) == from_left
    assert held.positions(b"a", skipped, most, longest, from_left=False) == from_right


def test_a_copy_shares_nothing_that_changes() -> None:
    held = List([b"a"])
    copied = held.copy()

    held.push(False, [b"b"])

    assert list(copied.parts()) == [b"a"]


def test_the_estimate_of_memory_grows_with_what_is_held() -> None:
    few, many, large = List([b"x"] * 10), List([b"x"] * 1000), List([b"x" * 1000] * 1000)

    assert few.memory_usage() < many.memory_usage() < large.memory_usage()
    assert large.memory_usage() > 1_000_000


TEXTS = some.sampled_from([b"", b"a", b"bb", b"a" * 255, b"a" * 256, b"-12", b"c" * 70])
MANY = some.lists(TEXTS, min_size=1, max_size=50)


class BesideAPlainList(RuleBasedStateMachine):
    """Everything that a list does, asked of a plain Python list, too."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.plain = List(), list[bytes]()

    @rule(left=some.booleans(), items=some.one_of(MANY, some.lists(TEXTS, min_size=1, max_size=1)))
    def push(self, left: bool, items: list[bytes]) -> None:
        self.held.push(left, items)
        self.plain = items[::-1] + self.plain if left else self.plain + items

    @rule(left=some.booleans(), count=some.integers(0, 60))
    def pop(self, left: bool, count: int) -> None:
        kept = self.plain[count:] if left else self.plain[: max(len(self.plain) - count, 0)]
        taken = self.plain[:count] if left else self.plain[::-1][:count]
        assert self.held.pop(left, count) == taken
        self.plain = kept

    @precondition(lambda self: self.plain)
    @rule(left=some.booleans())
    def pop_one(self, left: bool) -> None:
        assert self.held.pop_one(left) == self.plain.pop(0 if left else -1)

    @precondition(lambda self: self.plain)
    @rule(place=some.integers(0), item=TEXTS)
    def replace(self, place: int, item: bytes) -> None:
        at = place % len(self.plain)
        self.held.replace(at, item)
        self.plain[at] = item
        assert self.held.item(at) == item

    @rule(place=some.integers(0), item=TEXTS)
    def insert(self, place: int, item: bytes) -> None:
        at = place % (len(self.plain) + 1)
        self.held.insert(at, item)
        self.plain.insert(at, item)

    @rule(item=TEXTS, most=some.integers(0, 5), from_left=some.booleans())
    def remove(self, item: bytes, most: int, from_left: bool) -> None:
        kept = naively_removed(self.plain, item, most, from_left)
        assert self.held.remove(item, most, from_left) == len(self.plain) - len(kept)
        self.plain = kept

    @rule(start=some.integers(0, 80), stop=some.integers(0, 200))
    def trim(self, start: int, stop: int) -> None:
        stop = min(stop, len(self.plain))
        start = min(start, stop)
        self.held.trim(start, stop)
        self.plain = self.plain[start:stop]

    @rule(start=some.integers(0, 200), stop=some.integers(0, 200))
    def slice(self, start: int, stop: int) -> None:
        stop = min(stop, len(self.plain))
        start = min(start, stop)
        assert self.held.slice(start, stop) == self.plain[start:stop]

    @rule(item=TEXTS, from_left=some.booleans())
    def positions(self, item: bytes, from_left: bool) -> None:
        places = [place for place, one in enumerate(self.plain) if one == item]
        ordered = places if from_left else places[::-1]
        assert self.held.positions(item, 0, EVERYTHING, EVERYTHING, from_left) == ordered

    @rule()
    def copy(self) -> None:
        """The copy goes on; the original is changed, which it must not see."""
        copied = self.held.copy()
        self.held.push(True, [b"not in the copy"] * 40)
        self.held = copied

    @invariant()
    def they_agree(self) -> None:
        assert list(self.held) == self.plain
        assert len(self.held) == len(self.plain)
        if self.plain:
            self.held.check()
            places = range(0, len(self.plain), 7)
            assert [self.held.item(at) for at in places] == [self.plain[at] for at in places]


TestBesideAPlainList = BesideAPlainList.TestCase
TestBesideAPlainList.settings = settings(max_examples=examples(150), stateful_step_count=60, deadline=None)


class WithManyChunks(BesideAPlainList):
    """As above, with a list whose nodes are in several chunks, which are cut, joined and filled anew."""

    @rule(left=some.booleans(), count=some.sampled_from([3000, 9000]))
    def push_thousands(self, left: bool, count: int) -> None:
        self.push(left, [b"%d" % (number % 97 % 13) for number in range(count)])

    @precondition(lambda self: self.plain)
    @rule(place=some.integers(0), item=TEXTS)
    def insert_hundreds(self, place: int, item: bytes) -> None:
        at = place % len(self.plain)
        for _ in range(2500):
            self.held.insert(at, item)
        self.plain[at:at] = [item] * 2500

    @rule(
        item=some.sampled_from([b"1", b"4", b"12"]), most=some.sampled_from([1, 100, EVERYTHING]), side=some.booleans()
    )
    def remove_many(self, item: bytes, most: int, side: bool) -> None:
        kept = [one for one in self.plain if one != item]
        if most < self.plain.count(item):
            kept = naively_removed(self.plain, item, most, side)
        assert self.held.remove(item, most, side) == len(self.plain) - len(kept)
        self.plain = kept

    @rule(left=some.booleans())
    def pop_thousands(self, left: bool) -> None:
        self.pop(left, 4000)


@pytest.mark.parametrize("kept_of", [2, 3, 10, 20, 700])
@pytest.mark.parametrize("from_left", [True, False])
def test_a_list_of_which_most_was_removed_has_few_nodes(kept_of: int, from_left: bool) -> None:
    items = [b"%d" % number if number % kept_of == 0 else b"common" for number in range(20_000)]
    held = List(items)
    kept = [item for item in items if item != b"common"]

    removed = held.remove(b"common", EVERYTHING, from_left)

    assert removed == len(items) - len(kept)
    assert list(held) == kept
    held.check()
    assert [held.item(at) for at in range(0, len(kept), 7)] == kept[::7]
    assert held._nodes is not None
    assert len(list(held._nodes)) <= len(kept) // 4
    assert len(held._nodes._chunks) <= 1 + len(list(held._nodes)) // 64


TestWithManyChunks = WithManyChunks.TestCase
TestWithManyChunks.settings = settings(max_examples=examples(12), stateful_step_count=15, deadline=None)


@given(some.lists(some.binary(max_size=300), min_size=1, max_size=31))
def test_a_node_gives_back_what_it_was_made_of(items: list[bytes]) -> None:
    node = node_of(items.copy())

    assert items_of(node) == items
    assert count_of(node) == len(items)
    assert [item_at(node, at) for at in range(len(items))] == items
    assert all(may_have(node, item) for item in items)
    for first in range(len(items) + 1):
        assert part_of(node, first, len(items)) == items[first:]
        assert part_of(node, 0, first) == items[:first]


def test_a_long_list_of_short_items_takes_less_than_half_of_what_their_objects_would() -> None:
    held = List([b"item:%d" % number for number in range(100_000)])

    nodes = held._nodes
    assert nodes is not None
    assert sum(sys.getsizeof(node) for node in nodes) < sum(sys.getsizeof(item) for item in held) / 2.5


def test_a_list_of_128_short_items_is_one_node() -> None:
    held = List([b"item"] * 127)
    size = held.memory_usage()

    held.push(False, [b"item"])

    assert held.memory_usage() - size < 10
