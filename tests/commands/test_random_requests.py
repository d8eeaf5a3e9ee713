"""Whatever is asked of keys, strings and databases: answered as by a real Redis, and found again by a replay."""

import pytest

from penstock.engine.aof.replay import Replay
from penstock.storage.streams.stream import Stream
from tests.commands.requests import Requests
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine, RedisSide, assert_as_redis, words_of
from tests.support.same_result import Difference, assert_same, states_differ


@pytest.mark.parametrize("seed", range(5))
def test_random_requests_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, seed: int) -> None:
    assert_as_redis(logging_redis, Requests(seed).lines(500))


def contents(engine: ObservedEngine) -> dict[str, object]:
    """Every database as plain values; a stream by the entries it has."""
    found: dict[str, object] = {}
    for number, database in enumerate(engine.keyspace.databases):
        for key, value in database.values.items():
            shown = value.length if isinstance(value, Stream) else value
            found[f"{number} {key!r}"] = (shown, database.expires.get(key))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_log_of_random_requests_replays_to_the_same_databases(seed: int) -> None:
    def compare(lines: list[str]) -> Difference | None:
        engine, replayed = ObservedEngine(), ObservedEngine()
        dialogue = Dialogue(engine)
        for line in lines:
            dialogue.words(*words_of(line))
        replay = Replay(replayed.engine.server, print)
        replay.begin()
        replay.lines(engine.units)
        assert replay.refused == 0
        return states_differ(contents(engine), contents(replayed), len(lines))

    assert_same(Requests(seed).lines(2000), compare, ("before", "replayed"), str)
