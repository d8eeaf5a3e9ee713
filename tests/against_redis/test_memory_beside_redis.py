"""MEMORY USAGE beside a real Redis, for values of random sizes."""

import random
from collections.abc import Iterator

import pytest

from tests.against_redis.conftest import Reference
from tests.support.compared_sides import InProcess
from tests.support.sized_values import requests
from tests.support.wire import Integer, parse

BATCH = 500


def values(chance: random.Random) -> Iterator[str]:
    """Names of values, as `requests` knows them."""
    for kind in ("list", "set", "zset", "hash"):
        for most in (10, 600, 5000):
            yield f"{kind} {chance.randrange(1, most)} {chance.randrange(1, 200)}"
    for most in (50, 100, 5000, 200_000):
        yield f"string {chance.randrange(most)}"
    yield f"timed-hash {chance.randrange(1, 900)} {chance.randrange(7, 100)}"
    yield f"stream {chance.randrange(1, 3000)} {chance.randrange(1, 10)} {chance.randrange(200)}"
    yield f"pending {chance.randrange(1, 3000)} 1"
    yield f"consumers {chance.randrange(1, 300)}"
    yield f"groups {chance.randrange(1, 300)}"
    yield f"trimmed 2000 {chance.randrange(2000)}"


@pytest.mark.parametrize("seed", range(3))
def test_usage_is_within_a_factor_of_two(reference: Reference, seed: int) -> None:
    for name in values(random.Random(seed)):
        ours = InProcess()
        asked = [["RESET"], ["FLUSHALL"], *requests(name), ["MEMORY", "USAGE", "k"]]
        for start in range(0, len(asked), BATCH):
            some = asked[start : start + BATCH]
            reference.piped.send(some)
            ours.send(some)
            pairs = [(parse(reference.piped.answer())[0], parse(ours.answer())[0]) for _ in some]
        theirs, mine = pairs[-1]
        assert isinstance(theirs, Integer) and isinstance(mine, Integer)
        assert theirs.number / 2 <= mine.number <= theirs.number * 2, name
