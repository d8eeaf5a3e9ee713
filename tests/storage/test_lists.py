"""Lists beside a plain Python list that is asked the same."""

import random

import pytest

from penstock.storage.types.lists import List

ITEMS = [b"%d" % number for number in range(200)]
EVERYTHING = 2**63 - 1


@pytest.mark.parametrize("start", [0, 1, 99, 150, 199])
@pytest.mark.parametrize("stop", [1, 100, 151, 200])
def test_a_slice_is_what_a_plain_list_gives_and_leaves_the_list_as_it_was(start: int, stop: int) -> None:
    held = List(ITEMS)

    assert held.slice(min(start, stop), stop) == ITEMS[min(start, stop) : stop]
    assert list(held.items) == ITEMS


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 200, 201])
def test_items_are_popped_outermost_first(left: bool, count: int) -> None:
    held = List(ITEMS)
    ordered = ITEMS if left else ITEMS[::-1]

    assert held.pop(left, count) == ordered[:count]
    assert list(held.items if left else reversed(held.items)) == ordered[count:]


@pytest.mark.parametrize("kept", [(0, 200), (1, 199), (0, 10), (150, 151), (30, 190), (0, 0)])
def test_a_trimmed_list_keeps_the_range(kept: tuple[int, int]) -> None:
    held = List(ITEMS)

    held.trim(*kept)

    assert list(held.items) == ITEMS[kept[0] : kept[1]]


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

    assert list(held.items) == naively_removed(items, b"a", most, from_left)
    assert removed == len(items) - len(held)


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

    held.items.append(b"b")

    assert list(copied.parts()) == [b"a"]


def test_the_estimate_of_memory_grows_with_what_is_held() -> None:
    few, many, large = List([b"x"] * 10), List([b"x"] * 1000), List([b"x" * 1000] * 1000)

    assert few.memory_usage() < many.memory_usage() < large.memory_usage()
    assert large.memory_usage() > 1_000_000
