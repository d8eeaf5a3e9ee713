"""Seeded random requests about HyperLogLogs, answered, kept and logged as a real Redis does."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.hyperloglogs import HyperLogLogs
from tests.against_redis.typed import compare_types


@pytest.mark.parametrize("seed", range(2))
def test_hyperloglogs_are_the_same_bytes_as_those_of_redis(reference: Reference, seed: int) -> None:
    makers = (Anything, HyperLogLogs)
    _, difference = compare_types(reference.piped, reference.known, f"hyperloglogs {seed}", 500, makers)

    assert difference == ""
