"""Which keys there are, beside a real Redis and alone."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.clock import ManualClock
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine, RedisSide, assert_as_redis
from tests.support.seeds import examples

DIALOGUES = {
    "keys": [
        "SET abc 1",
        "KEYS a*",
        "KEYS ''",
        "KEYS [b-c]*",
        "KEYS abc",
        "KEYS",
        "SET abc 1 PXAT 1",
        "KEYS *",
        "DBSIZE",
    ],
    "the empty key": ["SET '' 1", "KEYS *", "KEYS ?", "KEYS ''", "SCAN 0 MATCH *", "SCAN 0 MATCH ''"],
    "scan": [
        "SCAN 0",
        "SET abc 1",
        "SCAN 0",
        "scan 0 match a* count 100 type STRING",
        "SCAN 0 MATCH b* MATCH a*",
        "SCAN 0 TYPE stream",
        "SCAN 0 TYPE foo",
        "SCAN 0 COUNT 9223372036854775807",
    ],
    "scan refused": [
        "SCAN 0 COUNT 0",
        "SCAN 0 COUNT -1",
        "SCAN 0 COUNT x",
        "SCAN 0 COUNT 9223372036854775808",
        "SCAN 0 COUNT",
        "SCAN 0 FOO COUNT x",
        "SCAN 0 COUNT x FOO",
        "SCAN 0 NOVALUES",
        "SCAN x COUNT x",
        "SCAN",
    ],
    "cursors": [
        *(f"SCAN '{word}'" for word in ("", " ", "x", "-", "+", "- 0", "0-", "0 ", "1e3", "0x10", "-1", "-5", "--0")),
        *(
            f"SCAN '{word}'"
            for word in (" 0", "+0", "-0", "00", " -0", "\\t\\r\\n0", "0\\x00x", "\\x000", "9223372036854775808")
        ),
        *(f"SCAN '{word}'" for word in ("18446744073709551615", "18446744073709551616", "-18446744073709551615")),
        f"SCAN {'0' * 60}",
    ],
    "scan meets an overdue key": [
        "SET abc 1 PXAT 1",
        "SCAN 0 MATCH b*",
        "SCAN 0 TYPE stream",
        "DBSIZE",
    ],
    "some key": ["RANDOMKEY", "SET a 1", "RANDOMKEY", "SET a 1 PXAT 1", "RANDOMKEY", "DBSIZE"],
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_scanning_answers_tells_and_logs_as_redis_does(logging_redis: RedisSide, lines: Any) -> None:
    assert_as_redis(logging_redis, lines)


def fill(dialogue: Any, names: Any) -> None:
    for name in names:
        dialogue.words(b"SET", name, b"1")


def walk(dialogue: Any, count: Any, between: Any = lambda: None) -> Any:
    """Every key that a whole scan shows, in order."""
    shown, cursor = [], b"0"
    while True:
        cursor, page = dialogue(f"SCAN {cursor.decode()} COUNT {count}")
        shown += page
        if cursor == b"0":
            return shown
        between()


def test_a_scan_shows_every_key_once_where_nothing_changes(dialogue: Dialogue) -> None:
    names = [b"key:%d" % number for number in range(1000)]
    fill(dialogue, names)

    assert sorted(walk(dialogue, 7)) == sorted(names)


def test_a_page_is_as_long_as_count_says(dialogue: Dialogue) -> None:
    fill(dialogue, [b"key:%d" % number for number in range(100)])

    assert len(dialogue("SCAN 0")[1]) == 10
    assert len(dialogue("SCAN 0 COUNT 33")[1]) == 33


@given(st.data())
@settings(max_examples=examples(50), deadline=None)
def test_a_key_that_is_there_all_the_time_is_shown_whatever_else_changes(data: Any) -> None:
    dialogue = Dialogue(ObservedEngine())
    staying = [b"stays:%d" % number for number in range(50)]
    fill(dialogue, staying)
    names = st.integers(0, 200).map(lambda number: f"goes:{number}")
    steps = st.sampled_from(["SET {} 1", "DEL {}", "RENAME {} other", "COPY {} more REPLACE"])

    def disturb() -> None:
        for step, name in data.draw(st.lists(st.tuples(steps, names), max_size=20)):
            dialogue(step.format(name))
        if data.draw(st.booleans()):
            dialogue.engine.keyspace.databases[0].order = None

    shown = walk(dialogue, data.draw(st.integers(1, 20)), disturb)

    assert set(staying) <= set(shown)
    assert sorted(key for key in shown if key.startswith(b"stays:")) == sorted(staying)
    dialogue.engine.keyspace.databases[0].check()


def test_an_order_that_is_not_used_for_a_minute_is_dropped(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("SET a 1", "SCAN 0")
    database = dialogue.engine.keyspace.databases[0]

    clock.advance(60_000)
    dialogue.engine.tick()
    assert database.order is not None
    clock.advance(1)
    dialogue.engine.tick()
    assert database.order is None


def test_every_key_has_its_chance(dialogue: Dialogue) -> None:
    fill(dialogue, [b"key:%d" % number for number in range(20)])
    dialogue.engine.server.chance = random.Random(7)

    drawn = {dialogue("RANDOMKEY") for _ in range(500)}

    assert len(drawn) == 20
