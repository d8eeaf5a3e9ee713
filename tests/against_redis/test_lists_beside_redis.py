"""Seeded random requests about lists, answered, kept and logged as a real Redis does."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.lists import Lists
from tests.against_redis.typed import compare_types


@pytest.mark.parametrize("seed", range(2))
def test_requests_about_lists_are_answered_as_by_redis(reference: Reference, seed: int) -> None:
    _, difference = compare_types(reference.piped, reference.known, f"lists {seed}", 4000, (Anything, Lists))

    assert difference == ""
