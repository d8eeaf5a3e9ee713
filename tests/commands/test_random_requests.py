"""Whatever is asked of keys, strings and databases: answered as by a real Redis, and found again by a replay."""

from typing import Any

import pytest

from penstock.engine.aof.replay import Replay
from penstock.storage.streams.stream import Stream
from tests.commands.requests import Requests
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine, RedisSide, steps_of_engine, words_of


@pytest.mark.parametrize("seed", range(5))
def test_random_requests_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, seed: int) -> None:
    lines = Requests(seed).lines(500)

    assert steps_of_engine(lines) == logging_redis.play(lines)


def contents(engine: ObservedEngine) -> list[Any]:
    """Every database as plain values; a stream by the entries it has."""
    return [
        (
            {key: value.length if isinstance(value, Stream) else value for key, value in database.values.items()},
            database.expires,
        )
        for database in engine.keyspace.databases
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_log_of_random_requests_replays_to_the_same_databases(seed: int) -> None:
    engine, replayed = ObservedEngine(), ObservedEngine()
    dialogue = Dialogue(engine)
    for line in Requests(seed).lines(2000):
        dialogue.words(*words_of(line))

    replay = Replay(replayed.engine.server, print)
    replay.begin()
    replay.lines(engine.units)

    assert replay.refused == 0
    assert contents(replayed) == contents(engine)
