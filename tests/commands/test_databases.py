"""Whole databases, beside a real Redis and alone."""

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis

DIALOGUES = {
    "emptied": [
        "SET a 1",
        "FLUSHDB",
        "FLUSHDB",
        "flushdb sync",
        "FLUSHDB ASYNC",
        "FLUSHDB FOO",
        "FLUSHDB SYNC ASYNC",
        "SET a 1 EX 100",
        "SELECT 1",
        "SET a 1",
        "flushall async",
        "FLUSHALL FOO",
        "FLUSHALL SYNC",
        "DBSIZE",
        "SELECT 0",
        "DBSIZE",
        "SET a 1 PXAT 1",
        "FLUSHDB",
        "TTL a",
    ],
    "exchanged": [
        "SET a 1 EXAT 9999999999",
        "SWAPDB 0 1",
        "GET a",
        "SELECT 1",
        "GET a",
        "PEXPIRETIME a",
        "swapdb 0 0",
        "SWAPDB 01 0",
        "SWAPDB x 1",
        "SWAPDB 0 x",
        "SWAPDB x x",
        "SWAPDB 16 0",
        "SWAPDB 0 16",
        "SWAPDB -1 0",
        "SWAPDB 99999999999 x",
        "SWAPDB 0 99999999999",
        "SWAPDB 99 x",
        "SWAPDB 0",
    ],
    "exchanged in the middle of a transaction": [
        "SET a 1",
        "MULTI",
        "SWAPDB 0 1",
        "GET a",
        "SET a 2",
        "SELECT 1",
        "GET a",
        "EXEC",
        "GET a",
    ],
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_databases_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_a_reader_of_a_key_that_a_swap_brings_is_served(dialogue: Dialogue) -> None:
    reader = dialogue.another()
    reader("XREAD BLOCK 0 STREAMS s 0")

    dialogue("SELECT 1", "XADD s 1-1 f v", "SWAPDB 0 1")

    assert reader.arrived() == [[[b"s", [[b"1-1", [b"f", b"v"]]]]]]


@pytest.mark.parametrize(
    "ending", ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "DEL s", "RENAME s t", "MOVE s 1", "EXPIRE s 0"]
)
def test_a_group_reader_hears_that_its_stream_is_gone(dialogue: Dialogue, ending: str) -> None:
    dialogue("XGROUP CREATE s g 0 MKSTREAM")
    reader = dialogue.another()
    reader("XREADGROUP GROUP g c BLOCK 0 STREAMS s >")

    dialogue(ending)

    (answer,) = reader.arrived()
    assert str(answer).startswith("NOGROUP No such key 's' or consumer group 'g'")


@pytest.mark.parametrize("other", ["", "SET k v PX 10"], ids=["empty", "stale too"])
def test_a_key_that_expired_after_watch_fails_exec_although_it_was_swapped_away(engine: Engine, other: str) -> None:
    client, admin = Dialogue(engine), Dialogue(engine)
    admin("SELECT 1", *([other] if other else []))
    client("SET k v PX 10", "WATCH k")
    assert isinstance(engine.clock, ManualClock)
    engine.clock.advance(11)
    admin("SWAPDB 0 1")

    assert client("MULTI", "PING", "EXEC") is None
