"""Seeded random requests over all types of values, answered, kept, told and logged as a real Redis does."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.events_and_log import compare_events_and_log
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.sizes import MEASURED
from tests.against_redis.typed import compare_types
from tests.support.effects_beside_redis import RedisSide
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_requests_of_all_types_are_answered_as_by_redis(reference: Reference, seed: int) -> None:
    _, difference = compare_types(reference.piped, reference.known, f"types {seed}", 6000)

    assert difference == ""


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_sizes_are_counted_as_by_redis_after_every_change(reference: Reference, seed: int) -> None:
    _, difference = compare_types(reference.piped, reference.known, f"sizes {seed}", 4000, (Anything, *MEASURED))

    assert difference == ""


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_requests_of_all_types_are_told_and_logged_as_by_redis(
    reference: Reference, logging_redis: RedisSide, seed: int
) -> None:
    assert compare_events_and_log(logging_redis, reference.known, f"types {seed}", 500) == ""
