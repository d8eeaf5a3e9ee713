"""Seeded random requests about HyperLogLogs and places, answered, kept and logged as a real Redis does."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.hyperloglogs import HyperLogLogs
from tests.against_redis.makers.places import Places
from tests.against_redis.typed import compare_types
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_hyperloglogs_are_the_same_bytes_as_those_of_redis(reference: Reference, seed: int) -> None:
    makers = (Anything, HyperLogLogs)
    _, difference = compare_types(reference.piped, reference.known, f"hyperloglogs {seed}", 500, makers)

    assert difference == ""


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_places_are_measured_and_found_as_by_redis(reference: Reference, seed: int) -> None:
    makers = (Anything, Places)
    _, difference = compare_types(reference.piped, reference.known, f"places {seed}", 2000, makers)

    assert difference == ""
