"""Seeded random requests about HyperLogLogs and places, answered, kept and logged as a real Redis does."""

import random
from collections.abc import Iterator

import pytest

from tests.against_redis.conftest import Reference
from tests.against_redis.makers.anything import Anything
from tests.against_redis.makers.hyperloglogs import HyperLogLogs
from tests.against_redis.makers.places import Places
from tests.against_redis.typed import compare_types
from tests.support.compared_sides import InProcess
from tests.support.random_words import Request
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


def hyperloglog_requests(chance: random.Random, count: int) -> Iterator[Request]:
    """Adds and merges, with limits that come and go, and what every HyperLogLog has now."""
    for _ in range(count):
        key, other = chance.choice("abcd"), chance.choice("abcd")
        roll = chance.random()
        if roll < 0.03:
            yield ["CONFIG", "SET", "hll-sparse-max-bytes", chance.choice(("0", "30", "100", "500", "3000", "16000"))]
        elif roll < 0.13:
            yield ["PFMERGE", key, other, *chance.sample("abcd", chance.randrange(3))]
        elif roll < 0.16:
            yield ["DEL", key]
        elif roll < 0.18:
            yield ["PFDEBUG", "TODENSE", key]
        else:
            most = chance.choice((3, 30, 300))
            yield ["PFADD", key, *[f"e{chance.randrange(1_000_000)}" for _ in range(chance.randrange(most))]]
        yield ["GET", key]
        yield ["PFCOUNT", key, other]


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_a_hyperloglog_becomes_dense_when_that_of_redis_does(reference: Reference, seed: int) -> None:
    ours = InProcess()
    asked = [["RESET"], ["FLUSHALL"], *hyperloglog_requests(random.Random(seed), 300)]
    asked.append(["CONFIG", "SET", "hll-sparse-max-bytes", "3000"])
    reference.piped.send(asked)
    ours.send(asked)
    for request in asked:
        assert ours.answer() == reference.piped.answer(), request[:2]
