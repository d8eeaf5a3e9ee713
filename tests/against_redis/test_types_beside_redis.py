"""Seeded random requests over all types of values, answered, kept and logged as a real Redis does."""

import pytest

from tests.against_redis.typed import compare_types


@pytest.mark.parametrize("seed", range(3))
def test_requests_of_all_types_are_answered_as_by_redis(reference, seed):
    _, difference = compare_types(reference.piped, reference.known, f"types {seed}", 6000)

    assert difference == ""
