"""Fields past their time: hidden at once, removed by the first request or by the tick, logged and published."""

from typing import Any, Final

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.engine import Engine
from penstock.storage.keyspace import Keyspace
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine, lines_of
from tests.support.engines import loaded_engine, value_of


@pytest.fixture
def heard() -> ObservedEngine:
    return ObservedEngine()


@pytest.fixture
def said(heard: ObservedEngine) -> Dialogue:
    return Dialogue(heard)


def told(engine: ObservedEngine) -> tuple[list[str], list[str]]:
    """The events and the lines of the log since the last call."""
    events, units = engine.events.copy(), lines_of(b"".join(engine.units))
    engine.events.clear()
    engine.units.clear()
    return events, units


def turn_to(engine: Engine | ObservedEngine, now_ms: int) -> None:
    assert isinstance(engine.clock, ManualClock)
    engine.clock.set_ms(now_ms)


def check(keyspace: Keyspace) -> None:
    for database in keyspace.databases:
        database.check()


STAYS: Final[tuple[list[str], list[str]]] = ([], [])
REMOVED: Final = (["@0 hexpired h"], ["HDEL h a"])
ALL_REMOVED: Final = (["@0 hexpired h"], ["HDEL h a b"])
LOOKS: Final = {
    "HGET h a": (None, REMOVED),
    "HMGET h a c": ([None, b"3"], REMOVED),
    "HGETALL h": ([b"c", b"3"], STAYS),
    "HKEYS h": ([b"c"], STAYS),
    "HVALS h": ([b"3"], STAYS),
    "HLEN h": (3, STAYS),
    "HSTRLEN h a": (0, REMOVED),
    "HEXISTS h a": (0, REMOVED),
    "HRANDFIELD h 5": ([b"c"], ALL_REMOVED),
    "HSCAN h 0": ([b"0", [b"c", b"3"]], STAYS),
    "HTTL h FIELDS 2 a c": ([-2, -1], STAYS),
    "HPERSIST h FIELDS 1 a": ([-2], STAYS),
    "HDEL h a": (1, (["@0 hdel h"], ["HDEL h a"])),
    "HGETDEL h FIELDS 1 a": ([None], REMOVED),
    "HGETEX h EX 5 FIELDS 1 a": ([None], REMOVED),
    "HSETEX h FXX FIELDS 1 a 1": (0, REMOVED),
}


@pytest.mark.parametrize(("look", "expected"), LOOKS.items(), ids=LOOKS)
def test_an_overdue_field_is_seen_by_no_client(
    heard: ObservedEngine, said: Dialogue, look: str, expected: tuple[Any, tuple[list[str], list[str]]]
) -> None:
    said("HSET h a 1 b 2 c 3", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 2 a b")
    told(heard)

    turn_to(heard, NOW_MS + 11)

    assert (said(look), told(heard)) == expected
    check(heard.keyspace)


def test_a_hash_keeps_its_own_time_where_its_only_expired_field_is_set(said: Dialogue, heard: ObservedEngine) -> None:
    said("HSET h a 1", f"PEXPIREAT h {NOW_MS + 900}", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a")
    turn_to(heard, NOW_MS + 11)
    told(heard)

    assert said("HSETEX h FNX FIELDS 1 a 2", "PEXPIRETIME h") == NOW_MS + 900
    assert told(heard) == (["@0 hexpired h", "@0 hset h"], ["HSETEX h FIELDS 1 a 2"])


def test_a_field_is_there_until_its_time_has_passed(heard: ObservedEngine, said: Dialogue) -> None:
    said("HSET h a 1", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a")

    turn_to(heard, NOW_MS + 10)

    assert said("HGET h a") == b"1"


@pytest.mark.parametrize(
    ("again", "logged"),
    [
        ("HSETNX h a 5", ["MULTI", "HDEL h a", "HSETNX h a 5", "EXEC"]),
        ("HINCRBY h a 5", ["MULTI", "HDEL h a", "HINCRBY h a 5", "EXEC"]),
        ("HSETEX h FNX KEEPTTL FIELDS 1 a 5", ["HSETEX h FIELDS 1 a 5"]),
        ("HSET h a 5", ["HSET h a 5"]),
    ],
)
def test_a_field_set_after_its_time_begins_anew(
    heard: ObservedEngine, said: Dialogue, again: str, logged: list[str]
) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a")
    told(heard)
    turn_to(heard, NOW_MS + 11)

    said(again)

    assert told(heard)[1] == logged
    assert said("HGET h a", "HMGET h a") == [b"5"]
    assert said("HTTL h FIELDS 1 a") == [-1]


def test_the_tick_removes_fields_that_no_request_meets_and_the_key_with_the_last(
    heard: ObservedEngine, said: Dialogue
) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a", f"HPEXPIREAT h {NOW_MS + 20} FIELDS 1 b")
    told(heard)

    turn_to(heard, NOW_MS + 11)
    heard.tick()
    assert told(heard) == (["@0 hexpired h"], ["HDEL h a"])

    turn_to(heard, NOW_MS + 21)
    heard.tick()
    assert told(heard) == (["@0 hexpired h", "@0 del h"], ["HDEL h b"])
    assert said("EXISTS h") == 0
    check(heard.keyspace)


def test_a_tick_removes_a_thousand_fields_at_most(heard: ObservedEngine, said: Dialogue) -> None:
    fields = [f"f{number}" for number in range(1500)]
    said("HSET h " + " v ".join(fields) + " v stays v")
    said(f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1500 " + " ".join(fields))
    turn_to(heard, NOW_MS + 11)

    heard.tick()
    assert len(value_of(heard, b"h")) == 501
    heard.tick()
    assert len(value_of(heard, b"h")) == 1
    assert b"expired_subkeys:1500" in said("INFO stats")
    assert b"expired_subkeys_active:1500" in said("INFO stats")


MOVES = {
    "RENAME h g": (0, b"g"),
    "MOVE h 2": (2, b"h"),
    "COPY h copied": (0, b"copied"),
    "SWAPDB 0 2": (2, b"h"),
    "DEBUG RELOAD": (0, b"h"),
}


@pytest.mark.parametrize(("move", "place"), MOVES.items(), ids=MOVES)
def test_times_of_fields_go_where_the_hash_goes(
    heard: ObservedEngine, said: Dialogue, move: str, place: tuple[int, bytes]
) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a", "SET g x", move)
    check(heard.keyspace)
    number, key = place
    assert heard.keyspace.databases[number].parts_due.times[key] == NOW_MS + 10

    turn_to(heard, NOW_MS + 11)
    heard.tick()

    assert said(f"SELECT {number}", f"HKEYS {key.decode()}") == [b"b"]
    check(heard.keyspace)


@pytest.mark.parametrize("gone", ["DEL h", "SET h x", "FLUSHDB", "HDEL h a", "HPERSIST h FIELDS 1 a", "HSET h a 2"])
def test_what_has_no_times_any_more_is_not_looked_at(heard: ObservedEngine, said: Dialogue, gone: str) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a", gone)

    assert not heard.keyspace.databases[0].parts_due.times
    check(heard.keyspace)


def test_the_log_gives_fields_and_times_back(heard: ObservedEngine, said: Dialogue) -> None:
    said("HSET h a 1 b 2 c 3", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 2 a b", "HSETEX h PX 90000 FIELDS 1 d 4")
    turn_to(heard, NOW_MS + 11)
    said("HGET h a", "HSETNX h a 5")

    copied = Dialogue(loaded_engine(heard.units, NOW_MS + 99))

    assert copied("HGETALL h") == said("HGETALL h") == [b"c", b"3", b"d", b"4", b"a", b"5"]
    assert copied("HPEXPIRETIME h FIELDS 3 a c d") == [-1, -1, NOW_MS + 90000]


def test_a_fresh_base_has_the_times_of_fields(heard: ObservedEngine, said: Dialogue) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a")

    base = list(base_lines(heard.keyspace, heard.settings, NOW_MS))
    engine = loaded_engine(base, NOW_MS + 99)

    assert engine.keyspace.databases[0].parts_due.times == {b"h": NOW_MS + 10}
    assert Dialogue(engine)("HKEYS h") == [b"b"]


def test_a_pause_hides_overdue_fields_and_keeps_them(heard: ObservedEngine, said: Dialogue) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a", "CLIENT PAUSE 1000 WRITE")
    told(heard)
    turn_to(heard, NOW_MS + 11)

    heard.tick()
    assert said("HKEYS h") == [b"b"]
    assert told(heard) == ([], [])

    turn_to(heard, NOW_MS + 1011)
    heard.tick()
    assert told(heard) == (["@0 hexpired h"], ["HDEL h a"])


def test_a_watched_hash_that_loses_a_field_to_time_breaks_the_transaction(
    heard: ObservedEngine, said: Dialogue
) -> None:
    said("HSET h a 1 b 2", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a", "WATCH h")
    turn_to(heard, NOW_MS + 11)
    heard.tick()

    assert said("MULTI", "HGET h b", "EXEC") is None


def test_info_counts_hashes_that_have_times(said: Dialogue) -> None:
    said("HSET h a 1", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 a", "HSET g a 1")

    assert b"keys=2,expires=0,avg_ttl=0,subexpiry=1" in said("INFO keyspace")
