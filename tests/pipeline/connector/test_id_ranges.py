"""Cutting, sharing and packing: nothing twice, nothing left out, the same every time."""

import itertools
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.pipeline.connector.source.id_ranges import IdRange, cut, even_cuts, how_many, pack, shares
from penstock.storage.streams import ids

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
IDS = st.integers(0, ids.MAX)


@UNHURRIED
@given(IDS, IDS, st.lists(IDS, max_size=20))
def test_parts_of_a_range_touch_and_cover_it(after: int, upto: int, cuts: list[int]) -> None:
    parts = cut(after, upto, cuts)

    assert [begin for begin, _ in parts[1:]] == [end for _, end in parts[:-1]]
    assert all(begin < end for begin, end in parts)
    assert (parts[0][0], parts[-1][1]) == (after, upto) if after < upto else not parts


@UNHURRIED
@given(IDS, IDS, st.integers(1, 64))
def test_even_cuts_lie_inside_in_order_and_evenly(one: int, other: int, parts: int) -> None:
    after, upto = sorted((one, other))
    bounds = [after, *even_cuts(after, upto, parts), upto]
    spans = [end - begin for begin, end in itertools.pairwise(bounds)]

    assert max(spans) - min(spans) <= 1


@UNHURRIED
@given(st.integers(1, 10_000), st.lists(st.integers(0, 5_000), min_size=1, max_size=30))
def test_shares_are_fair(total: int, weights: list[int]) -> None:
    parts = shares(total, weights)

    assert all(part <= weight for part, weight in zip(parts, weights, strict=True))
    assert all(part >= 1 for part, weight in zip(parts, weights, strict=True) if weight)
    hungry = sum(1 for weight in weights if weight)
    assert sum(parts) == min(max(total, hungry), sum(weights))


def test_a_large_backlog_does_not_starve_a_small_one() -> None:
    assert shares(1_000, [1_000_000, 10]) == [999, 1]
    assert shares(100, [300, 100]) == [75, 25]


PIECES = st.lists(
    st.builds(
        lambda key, after, span, weight: IdRange("main", key, after, after + span, weight),
        st.sampled_from([b"a", b"b", b"c"]),
        st.integers(0, 1000),
        st.integers(1, 50),
        st.integers(0, 10_000),
    ),
    max_size=40,
    unique=True,
)


@UNHURRIED
@given(PIECES, st.integers(1, 8), st.randoms(use_true_random=False))
def test_packing_loses_nothing_and_does_not_depend_on_the_order(
    ranges: list[IdRange], tasks: int, chance: random.Random
) -> None:
    packed = pack(ranges, tasks)
    shuffled = ranges[:]
    chance.shuffle(shuffled)

    assert sorted(id_range.after for some in packed for id_range in some) == sorted(
        id_range.after for id_range in ranges
    )
    assert len(packed) <= tasks
    assert pack(shuffled, tasks) == packed


def test_two_thousand_small_streams_are_four_even_tasks() -> None:
    ranges = [IdRange("main", b"k%d" % number, 0, 9, 50) for number in range(2_000)]

    assert [len(some) for some in pack(ranges, how_many(100_000, 25_000, 1, 64))] == [500] * 4


def test_tasks_follow_the_volume_within_their_bounds() -> None:
    assert [how_many(entries, 50_000, 2, 8) for entries in (0, 1, 120_000, 10**9)] == [2, 2, 3, 8]
