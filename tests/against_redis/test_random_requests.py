"""Seeded random requests, many at once, answered as a real Redis answers them."""

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.run import compare
from tests.support.seeds import seeds


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_random_requests_are_answered_as_by_redis(reference: Reference, seed: int) -> None:
    _, difference = compare(reference.piped, reference.known, 0, f"test {seed}", 10_000)

    assert difference == ""


@pytest.mark.slow
def test_a_server_process_answers_random_requests_as_redis_does(reference: Reference, penstock_port: int) -> None:
    _, difference = compare(reference.piped, reference.known, penstock_port, "process", 10_000)

    assert difference == ""
