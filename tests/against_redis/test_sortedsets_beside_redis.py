"""Seeded random requests about sorted sets, answered, kept and logged as a real Redis does."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.sortedsets import ManyMembers, SortedSets
from tests.against_redis.typed import compare_types


@pytest.mark.parametrize("seed", range(2))
def test_requests_about_sorted_sets_are_answered_as_by_redis(reference: Reference, seed: int) -> None:
    makers = (Anything, SortedSets)
    _, difference = compare_types(reference.piped, reference.known, f"sorted sets {seed}", 4000, makers)

    assert difference == ""


def test_requests_about_sets_of_some_hundred_members_are_answered_as_by_redis(reference: Reference) -> None:
    makers = (Anything, ManyMembers)
    _, difference = compare_types(reference.piped, reference.known, "many members", 1500, makers)

    assert difference == ""
