"""The order in which small sets are told, and the form that OBJECT ENCODING names, step by step beside a real Redis."""

import random
from collections.abc import Iterator

import pytest

from tests.against_redis.conftest import Reference
from tests.support.compared_sides import InProcess
from tests.support.random_words import Request
from tests.support.seeds import seeds
from tests.support.wire import parse

KEYS = ("a", "b", "c")
MEMBERS = ("1", "2", "3", "10", "-5", "007", "x", "y", "zz", "", "m" * 65, "1.5", "9223372036854775808", "+1")


def requests(chance: random.Random, count: int, joins: bool) -> Iterator[Request]:
    """Random changes of small sets. joins: some are stored by SINTERSTORE, none grows large: it has no order."""
    for _ in range(count):
        key, other = chance.choice(KEYS), chance.choice(KEYS)
        some = [chance.choice(MEMBERS[:10] if joins else MEMBERS) for _ in range(chance.randrange(1, 5))]
        many = [str(number) for number in chance.sample(range(-400, 400), 5 if joins else chance.choice((5, 100, 140)))]
        yield chance.choice((
            ["SADD", key, *some], ["SADD", key, *some], ["SREM", key, *some], ["SADD", key, *many],
            ["SREM", key, *many], ["SMOVE", key, other, some[0]], ["DEL", key], ["COPY", key, other, "REPLACE"],
            ["SINTERSTORE", key, other, chance.choice(KEYS)] if joins else ["DEL", key],
        ))  # fmt: skip


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_small_set_is_told_in_the_order_and_form_of_redis(reference: Reference, seed: int) -> None:
    chance = random.Random(seed)
    ours = InProcess()
    reference.piped.send([["RESET"], ["FLUSHALL"], ["HELLO", "2"]])
    for _ in range(3):
        reference.piped.answer()
    for request in requests(chance, 800, bool(seed % 2)):
        key = request[1]
        asked = [request, ["OBJECT", "ENCODING", key], ["SMEMBERS", key], ["SSCAN", key, "0"]]
        reference.piped.send(asked)
        ours.send(asked)
        theirs = [parse(reference.piped.answer())[0] for _ in asked]
        mine = [parse(ours.answer())[0] for _ in asked]
        is_small = b"hashtable" not in repr(theirs[1]).encode()

        assert theirs[:2] == mine[:2], request
        assert not is_small or theirs[2:] == mine[2:], request
