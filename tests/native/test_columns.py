"""What columns and lists of ids are asked, beside what Python answers."""

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from penstock.native import columns
from penstock.native.columns import (
    WIDE,
    counts_up,
    ends_of,
    first_at_least,
    is_constant,
    little_endian,
    numbered,
    offsets_of,
    owner_column,
    repeated,
)
from penstock.storage.streams.ids import HALF, last_at_most

NUMBERS = some.integers(0, 9) | some.sampled_from([2**62 - 1, 2**62, 2**63, HALF])


@given(some.lists(NUMBERS, max_size=12), NUMBERS)
def test_the_first_that_is_large_enough_is_found(numbers: list[int], wanted: int) -> None:
    column = array(WIDE, sorted(numbers))
    assert first_at_least(column, wanted) == bisect_left(column, wanted)


@given(some.lists(NUMBERS, min_size=1, max_size=5), some.integers(1, 3))
def test_a_column_is_constant_if_it_has_one_number(numbers: list[int], times: int) -> None:
    assert is_constant(array(WIDE, numbers * times)) == (len(set(numbers)) == 1)
    assert is_constant(array("I", [7] * times))


@given(some.integers(0, 3), some.integers(0, 9), some.lists(some.sampled_from([1, 1, 1, 1, 0, 2]), max_size=9))
def test_columns_that_count_up_are_told_from_others(before: int, first: int, steps: list[int]) -> None:
    column = array(WIDE, [0] * before + [first])
    for step in steps:
        column.append(column[-1] + step)
    stop = len(column)
    assert counts_up(column, before, stop, first) == (column[before:] == numbered(first, stop - before))
    assert not counts_up(column, before, stop, first + 1)


@given(some.lists(some.tuples(some.integers(0, 1), NUMBERS | some.sampled_from([63, 64, 65])), max_size=20))
def test_numbers_are_appended_one_by_one_to_one_column_or_another(appended: list[tuple[int, int]]) -> None:
    for append in (columns.append_again, columns.append_low):
        two = array(WIDE), array(WIDE)
        for which, number in appended:
            append(two[which], number)
        for which, column in enumerate(two):
            assert column.tolist() == [number for at, number in appended if at == which]


@given(some.sets(some.integers(0, 30), max_size=12), some.integers(-1, 31), some.integers(-1, 13))
def test_the_last_that_is_small_enough_is_found_whatever_is_guessed(ids: set[int], wanted: int, guess: int) -> None:
    ascending = sorted(one << 64 for one in ids)
    assert last_at_most(ascending, wanted << 64 | 5, guess) == bisect_right(ascending, wanted << 64 | 5) - 1
    assert last_at_most(ascending, wanted << 64, guess) == bisect_right(ascending, wanted << 64) - 1


@given(some.lists(some.integers(0, 9), max_size=12), some.integers(0, 10))
def test_the_first_that_is_large_enough_is_found_among_bytes(numbers: list[int], wanted: int) -> None:
    column = array(WIDE, sorted(numbers))
    assert columns._first_at_least(little_endian(column), wanted) == bisect_left(column, wanted)


@given(
    some.lists(some.sampled_from([0, 1, 2, 256, 257, 2**31 - 1]), max_size=9), some.integers(0, 9), some.integers(1, 9)
)
def test_an_owners_slots_are_found_among_bytes(owners: list[int], start: int, most: int) -> None:
    raw = little_endian(array("I", owners))
    for owner in (1, 2, 256, 257, 2**31 - 1):
        slots = [slot for slot in range(start, len(owners)) if owners[slot] == owner]
        assert columns.first_of(raw, owner, start) == (slots[0] if slots else columns.NO_PLACE)
        runs = columns.runs_of(raw, owner, start, most)
        assert [slot for begin, end in runs for slot in range(begin, end)] == slots[:most]
        assert all(begin < end and owner not in owners[end : end + 1] for begin, end in runs[:-1])


@given(some.lists(some.binary(max_size=300), max_size=140))
def test_offsets_are_those_of_the_parts_in_their_join(parts: list[bytes]) -> None:
    offsets = offsets_of(parts)
    joined = b"".join(parts)

    assert [joined[begin:end] for begin, end in pairwise(offsets)] == parts
    assert ends_of(little_endian(array("I", map(len, parts)))) == offsets


@given(some.lists(some.tuples(some.sampled_from((0, 1, 2, 2**32 - 1)), some.integers(0, 130)), max_size=5))
def test_a_column_of_one_number_is_not_shared(columns_of: list[tuple[int, int]]) -> None:
    """Those that are made from the one before are not it."""
    for number, length in columns_of:
        for made in (repeated(number, length), owner_column(number, length)):
            assert made.tolist() == [number] * length
            made.append(7)
