"""Seeded random requests of SORT, answered, stored and logged as a real Redis does."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.sorting import Sorting
from tests.against_redis.typed import compare_types


@pytest.mark.parametrize("seed", range(2))
def test_requests_of_sort_are_answered_as_by_redis(reference: Reference, seed: int) -> None:
    _, difference = compare_types(reference.piped, reference.known, f"sorting {seed}", 4000, (Sorting,))

    assert difference == ""
