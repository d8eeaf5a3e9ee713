"""Keyspace notifications: which events are published, to which clients, and in which order."""

import random

import pytest

from penstock.engine.aof import reload
from penstock.engine.engine import Engine
from tests.support.clients_beside_redis import received
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, steps_of_engine
from tests.support.seeds import seeds


@pytest.fixture
def listener(dialogue: Dialogue) -> Dialogue:
    """A client that hears everything."""
    other = dialogue.another()
    other("PSUBSCRIBE *")
    return other


def heard(listener: Dialogue) -> list[str]:
    """Channels and payloads: "__keyevent@0__:del k"."""
    return [b" ".join(message[2:]).decode() for message in listener.arrived() if isinstance(message, list)]


def test_nothing_is_told_unless_it_is_wanted(dialogue: Dialogue, listener: Dialogue) -> None:
    dialogue("SET k v", "DEL k")

    assert heard(listener) == []


def test_an_event_is_told_by_key_and_then_by_event(dialogue: Dialogue, listener: Dialogue) -> None:
    dialogue("CONFIG SET notify-keyspace-events KEA", "SELECT 3", "XADD s 1-1 f v")

    assert heard(listener) == ["__keyspace@3__:s xadd", "__keyevent@3__:xadd s"]


@pytest.mark.parametrize(
    ("classes", "told"),
    [
        ("K$", ["__keyspace@0__:k set"]),
        ("E$", ["__keyevent@0__:set k"]),
        ("Eg", ["__keyevent@0__:del k"]),
        ("En", ["__keyevent@0__:new k"]),
        ("Em", ["__keyevent@0__:keymiss k"]),
        ("EA", ["__keyevent@0__:set k", "__keyevent@0__:del k"]),
        ("Et", []),
        ("K", []),
        ("A", []),
        ("", []),
    ],
)
def test_only_wanted_classes_are_told(dialogue: Dialogue, listener: Dialogue, classes: str, told: list[str]) -> None:
    dialogue(f"CONFIG SET notify-keyspace-events '{classes}'", "SET k v", "DEL k", "GET k")

    assert heard(listener) == told


def test_a_refused_change_of_the_setting_changes_nothing(dialogue: Dialogue, listener: Dialogue) -> None:
    dialogue("CONFIG SET notify-keyspace-events Eg", "CONFIG SET notify-keyspace-events KQ", "SET k v", "DEL k")

    assert heard(listener) == ["__keyevent@0__:del k"]


def test_a_key_that_expires_is_told(dialogue: Dialogue, listener: Dialogue, engine: Engine) -> None:
    dialogue("CONFIG SET notify-keyspace-events Ex", "SET k v PXAT 1")
    engine.tick()

    assert heard(listener) == ["__keyevent@0__:expired k"]


def test_a_consumer_made_by_reading_is_told(dialogue: Dialogue, listener: Dialogue) -> None:
    dialogue("XGROUP CREATE s g $ MKSTREAM", "CONFIG SET notify-keyspace-events Et", "XREADGROUP GROUP g a STREAMS s >")

    assert heard(listener) == ["__keyevent@0__:xgroup-createconsumer s"]


def test_debug_reload_tells_nothing(dialogue: Dialogue, listener: Dialogue, engine: Engine) -> None:
    engine.settings.set_pairs([("notify-keyspace-events", "KEA")])
    dialogue("SET k v")
    listener.arrived()
    reload.reload(engine.server, engine.server.context.now_ms)
    reloaded = heard(listener)
    dialogue("DEL k")

    assert reloaded == []
    assert heard(listener) == ["__keyspace@0__:k del", "__keyevent@0__:del k"]


EVENTFUL = (
    "XADD s * f v", "XADD s 1-1 f v", "XADD s 2-1 f v", "XADD s 3-* f v", "XADD s MAXLEN 1 4-* f v", "XADD t 1-1 f v",
    "XADD t NOMKSTREAM 2-1 f v", "XADD t MAXLEN 0 3-1 f v", "XADD s MINID 3 5-* f v", "XADD text 1-1 f v",
    "XTRIM s MAXLEN 2", "XTRIM s MAXLEN 0", "XTRIM t MINID 2", "XTRIM no MAXLEN 0", "XDEL s 1-1 2-1", "XDEL t 1-1",
    "XDEL no 1-1", "XDELEX s IDS 2 1-1 3-0", "XDELEX t DELREF IDS 1 1-1", "XACKDEL s g IDS 1 1-1",
    "XACKDEL no g IDS 1 1-1", "XACKDEL s g ACKED IDS 2 2-1 3-0", "XGROUP CREATE s g 0 MKSTREAM",
    "XGROUP CREATE s h $ MKSTREAM", "XGROUP CREATE t g 0 MKSTREAM", "XGROUP CREATE t g 0", "XGROUP SETID s g 0",
    "XGROUP SETID no g 0", "XGROUP DESTROY s g", "XGROUP DESTROY s no", "XGROUP CREATECONSUMER s g a",
    "XGROUP DELCONSUMER s g a", "XGROUP DELCONSUMER s g b", "XREADGROUP GROUP g a COUNT 1 STREAMS s >",
    "XREADGROUP GROUP g b NOACK STREAMS s t > >", "XREADGROUP GROUP g a STREAMS s 0",
    "XREADGROUP GROUP g c STREAMS no >", "XREADGROUP GROUP g c CLAIM 0 STREAMS s >", "XREAD STREAMS s no 0 0",
    "XREAD STREAMS no t $ +", "XACK s g 1-1 2-1", "XACK no g 1-1", "XCLAIM s g b 0 1-1 2-1 3-0", "XCLAIM s g d 0 9-9",
    "XCLAIM no g b 0 1-1", "XAUTOCLAIM s g c 0 0", "XAUTOCLAIM no g c x 0", "XAUTOCLAIM no g c 0 0", "XSETID s 20-0",
    "XSETID t 1-0", "XSETID no 1-0", "XLEN s", "XLEN no", "XRANGE s - + COUNT 1", "XRANGE no - +", "XREVRANGE no + -",
    "XPENDING s g", "XPENDING no g", "XPENDING no g - + 10", "XINFO GROUPS t", "XINFO STREAM no",
    "XINFO CONSUMERS no g", "XCFGSET s IDMP-DURATION 50", "XADD s IDMP p i * f v", "XADD t IDMPAUTO p * f v", "DEL s",
    "DEL t text", "UNLINK t", "RENAME s t", "RENAME t s", "RENAMENX t s", "COPY s t", "COPY s t REPLACE",
    "COPY text s REPLACE", "MOVE t 1", "SELECT 1", "SELECT 0", "SELECT 0", "PEXPIREAT s 1", "PEXPIREAT s 9999999999999",
    "PERSIST s", "EXPIRE t 0", "SET text v", "SET s v", "SET text v GET", "SET text v PXAT 1", "GET text", "GET no",
    "GETDEL text", "EXISTS no s", "TYPE no", "TYPE s", "TTL no", "TOUCH no", "OBJECT ENCODING no", "MEMORY USAGE no",
    "DUMPING s", "MULTI", "EXEC", "EXEC", "EXEC", "DISCARD", "FLUSHDB", "MGET text no", "APPEND text x", "INCR n",
    "STRLEN no", "GETEX no", "GETEX n PXAT 9999999999999", "GETEX n PERSIST",
)  # fmt: skip


@pytest.mark.parametrize("seed", seeds(3, 12))
def test_random_requests_are_told_as_redis_tells_them(logging_redis: RedisSide, seed: int) -> None:
    lines = random.Random(seed).choices(EVENTFUL, k=600)
    here, theirs = steps_of_engine(lines), logging_redis.play(lines)

    assert [(step.request, step.events) for step in here] == [(step.request, step.events) for step in theirs]


SCRIPTS = {
    "one's own doings": [
        "a3 CONFIG SET notify-keyspace-events KEA", "a3 SUBSCRIBE __keyspace@0__:k __keyevent@0__:set",
        "a3 PSUBSCRIBE __key*", "a3 SET k v", "a3 MULTI", "a3 SET k 1", "a3 GET k", "a3 DEL k", "a3 EXEC",
    ],
    "letters": [
        "a3 PSUBSCRIBE *", "b2 CONFIG SET notify-keyspace-events A", "b2 SET k v",
        "b2 CONFIG SET notify-keyspace-events K", "b2 SET k v", "b2 CONFIG SET notify-keyspace-events Kg", "b2 SET k v",
        "b2 DEL k", "b2 CONFIG SET notify-keyspace-events KEAnmoc", "b2 CONFIG GET notify-keyspace-events", "b2 GET no",
        "b2 SET k v", "b2 SET k w", "b2 DEL k", "b2 XADD k 1-1 f v", "b2 SET k v",
        "b2 CONFIG SET notify-keyspace-events ''", "b2 DEL k",
    ],
    "waiting readers": [
        "a2 CONFIG SET notify-keyspace-events KEA", "l3 PSUBSCRIBE *", "a2 XGROUP CREATE s g $ MKSTREAM",
        "b3 SUBSCRIBE __keyspace@0__:s", "b3 XREADGROUP GROUP g al BLOCK 0 STREAMS s >", "a2 XGROUP DELCONSUMER s g al",
        "a2 XADD s 1-1 f v", "b3 XREADGROUP GROUP g bo BLOCK 0 STREAMS s >",
        "c3 XREADGROUP GROUP g al BLOCK 0 STREAMS s >", "a2 XADD s 2-1 f v", "a2 XADD s 3-1 f v",
        "b3 XREADGROUP GROUP g bo BLOCK 0 STREAMS s >", "a2 DEL s",
    ],
}  # fmt: skip

SILENT_AGAIN = ("x2 FLUSHALL", "x2 CONFIG SET notify-keyspace-events ''")


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_every_client_hears_what_redis_tells(reference_port: int, script: list[str]) -> None:
    theirs, here = received(reference_port, ["x2 FLUSHALL", *script, *SILENT_AGAIN])

    assert here == theirs
