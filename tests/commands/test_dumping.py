"""DUMP and RESTORE: every type there and back, and what is refused."""

import pytest
from xxhash import xxh3_64_intdigest

from penstock.commands.keys import digests
from penstock.config.settings import Settings
from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.aof.rewrite import base_lines, value_lines
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.engine import Engine
from penstock.storage.keyspace import Value
from penstock.storage.streams.stream import Stream
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import ObservedEngine, RedisSide, assert_as_redis, lines_of
from tests.support.engines import loaded_engine, value_of

REFUSED = {
    "refused": [
        "DUMP missing", "RESTORE k 0 abc", "RESTORE k 0 ''", "RESTORE k -1 abc", "RESTORE k x abc",
        "RESTORE k 0 abc FOO", "RESTORE k 0 abc IDLETIME -1", "RESTORE k 0 abc IDLETIME x", "RESTORE k 0 abc FREQ 256",
        "RESTORE k 0 abc FREQ -1", "RESTORE k 0 abc FREQ 5 IDLETIME 5", "RESTORE k 0 abc IDLETIME 5 FREQ 5",
        "RESTORE k 0 abc IDLETIME", "RESTORE k 0", "RESTORE k 5 abc REPLACE ABSTTL FREQ 7",
    ],
    "refused where there is a key": [
        "SET k v", "RESTORE k 0 abc", "RESTORE k x abc", "RESTORE k -1 abc", "RESTORE k 0 abc FOO",
        "RESTORE k 0 abc REPLACE", "RESTORE k 0 abc IDLETIME -1", "GET k",
    ],
}  # fmt: skip

VALUES = {
    "a string": ["SET k v"],
    "an empty string": ["SET k ''"],
    "bytes": [r"SET k a\r\n*1\r\n"],
    "a list": ["RPUSH k a b '' a"],
    "a set": ["SADD k a b ''"],
    "a sorted set": ["ZADD k 1.5 a -inf b 0.1 c"],
    "a hash": ["HSET k a 1 b 2", f"HPEXPIREAT k {NOW_MS + 5000} FIELDS 1 a"],
    "a long hash": ["HSET k " + " ".join(f"f{number} v{number}" for number in range(500))],
    "a stream": [
        "XADD k 1-1 f v", "XADD k 2-1 f v", "XADD k 3-1 f v", "XGROUP CREATE k g 0", "XGROUP CREATE k h 2-1",
        "XREADGROUP GROUP g alice COUNT 2 STREAMS k >", "XDEL k 1-1", "XGROUP CREATECONSUMER k h bob",
    ],
    "an empty stream": ["XGROUP CREATE k g $ MKSTREAM"],
}  # fmt: skip


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED)
def test_what_is_no_payload_is_refused_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


@pytest.mark.parametrize("lines", VALUES.values(), ids=VALUES)
def test_every_type_comes_back_as_it_was(engine: Engine, dialogue: Dialogue, lines: list[str]) -> None:
    dialogue(*lines)
    payload = dialogue("DUMP k")

    assert dialogue.words(b"RESTORE", b"other", b"0", payload) == b"+OK\r\n"

    values = engine.keyspace.databases[0].values
    assert digests.of_value(values[b"other"]) == digests.of_value(values[b"k"])
    assert dialogue("DUMP other") == payload
    engine.keyspace.databases[0].check()


@pytest.mark.parametrize("lines", VALUES.values(), ids=VALUES)
def test_the_log_of_a_restore_gives_the_same_value(lines: list[str]) -> None:
    engine = ObservedEngine()
    said = Dialogue(engine)
    said(*lines)
    payload = said("DUMP k")
    said.words(b"SET", b"other", b"before")
    said.words(b"RESTORE", b"other", b"5000", payload, b"REPLACE")

    again = loaded_engine(engine.units, NOW_MS)

    before, after = engine.keyspace.databases[0], again.keyspace.databases[0]
    assert digests.of_keyspace(again.keyspace) == digests.of_keyspace(engine.keyspace)
    assert after.expires == before.expires == {b"other": NOW_MS + 5000}
    assert list(base_lines(again.keyspace, again.settings, NOW_MS)) == list(
        base_lines(engine.keyspace, engine.settings, NOW_MS)
    )


def test_a_restore_is_one_unit_of_requests_that_redis_knows() -> None:
    engine = ObservedEngine()
    said = Dialogue(engine)
    said("SADD s a")
    payload = said("DUMP s")
    engine.units.clear()
    engine.events.clear()

    said("SET k v")
    engine.units.clear()
    said.words(b"RESTORE", b"k", b"%d" % (NOW_MS + 7), payload, b"REPLACE", b"ABSTTL")

    assert lines_of(b"".join(engine.units)) == ["MULTI", "DEL k", "SADD k a", "PEXPIREAT k NOW", "EXEC"]
    assert engine.events[-4:] == ["@0 new k", "@0 restore k", "@0 overwritten k", "@0 type_changed k"]
    assert said("PEXPIRETIME k") == NOW_MS + 7


def test_a_time_that_has_passed_restores_nothing_and_removes_what_is_replaced() -> None:
    engine = ObservedEngine()
    said = Dialogue(engine)
    said("SET k v")
    payload = said("DUMP k")
    engine.units.clear()
    engine.events.clear()

    assert said.words(b"RESTORE", b"other", b"1", payload, b"ABSTTL") == b"+OK\r\n"
    assert (engine.events, engine.units) == ([], [])
    assert said.words(b"RESTORE", b"k", b"1", payload, b"ABSTTL", b"REPLACE") == b"+OK\r\n"
    assert lines_of(b"".join(engine.units)) == ["SELECT 0", "DEL k"] or lines_of(b"".join(engine.units)) == ["DEL k"]
    assert engine.events == ["@0 del k"]
    assert said("EXISTS k other") == 0


@pytest.mark.parametrize(
    ("policy", "option", "question", "expected"),
    [
        ("allkeys-lru", b"IDLETIME", "OBJECT IDLETIME other", 77),
        ("allkeys-lfu", b"FREQ", "OBJECT FREQ other", 77),
        ("allkeys-lru", b"FREQ", "OBJECT IDLETIME other", 0),
        ("allkeys-lfu", b"IDLETIME", "OBJECT FREQ other", 5),
    ],
)
def test_a_restored_key_is_idle_or_used_as_it_was(
    dialogue: Dialogue, policy: str, option: bytes, question: str, expected: int
) -> None:
    dialogue(f"CONFIG SET maxmemory-policy {policy}", "SET k v")

    assert dialogue.words(b"RESTORE", b"other", b"0", dialogue("DUMP k"), option, b"77") == b"+OK\r\n"

    assert dialogue(question) == expected


def test_reading_a_payload_notifies_no_client_and_counts_nothing(dialogue: Dialogue) -> None:
    dialogue("XADD k 1-1 f v", "XGROUP CREATE k g 0", "XREADGROUP GROUP g alice STREAMS k >")
    payload = dialogue("DUMP k")
    other = dialogue.another()
    other("CONFIG SET notify-keyspace-events KEA", "PSUBSCRIBE __keyevent*")
    dialogue("CONFIG RESETSTAT")

    dialogue.words(b"RESTORE", b"other", b"0", payload)

    assert [message[2] for message in other.arrived()] == [b"__keyevent@0__:restore"]
    assert b"keyspace_hits:0\r\nkeyspace_misses:0\r\n" in dialogue("INFO stats")


@pytest.mark.parametrize("at", [0, 9, -1, -9, -11])
def test_a_damaged_payload_is_refused(dialogue: Dialogue, at: int) -> None:
    dialogue("SET k v")
    payload = bytearray(dialogue("DUMP k"))
    payload[at] ^= 1

    answer = dialogue.words(b"RESTORE", b"other", b"0", bytes(payload))

    assert answer == b"-ERR DUMP payload version or checksum are wrong\r\n"


def test_a_payload_of_a_real_redis_is_restored(dialogue: Dialogue) -> None:
    of_redis = b"\x00\x01v\r\x003\xa1G\x01\x1e\x8d\xfd\x0e"  # DUMP of SET k v (Redis 8.6.3)

    assert dialogue.words(b"RESTORE", b"k", b"0", of_redis) == b"+OK\r\n"
    assert dialogue("GET k") == b"v"


@pytest.mark.parametrize("lines", VALUES.values(), ids=VALUES)
def test_a_payload_of_an_earlier_version_is_restored(engine: Engine, dialogue: Dialogue, lines: list[str]) -> None:
    dialogue(*lines)
    value = engine.keyspace.databases[0].values[b"k"]

    assert dialogue.words(b"RESTORE", b"other", b"0", of_earlier_version(value, engine.settings)) == b"+OK\r\n"

    values = engine.keyspace.databases[0].values
    assert digests.of_value(values[b"other"]) == digests.of_value(value)


def of_earlier_version(value: Value, settings: Settings) -> bytes:
    """As DUMP answered until 0.1: requests, framed."""
    return framed(b"".join(value_lines(b"k", value, settings, AofCompat(), Progress())))


def framed(lines: bytes) -> bytes:
    body = b"PENSTOCK" + lines + b"\x01\x00"
    return body + xxh3_64_intdigest(body).to_bytes(8, "little")


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"*1\r\n$8\r\nFLUSHALL\r\n",
        b"*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$10\r\nmaxclients\r\n$1\r\n1\r\n",
        b"*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nx\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nx\r\n*3\r\n$3\r\nSET\r\n$1\r\nj\r\n$1\r\nx\r\n",
        b"*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$1\r\nx\r\n*3\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$1\r\nx\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nx\r\n",
        b"*2\r\n$3\r\nSET\r\n$1\r\nk\r\n",
        b"#comment\r\n",
        b"junk",
    ],
)
def test_a_payload_that_was_made_up_does_nothing(engine: Engine, dialogue: Dialogue, lines: bytes) -> None:
    payload = framed(lines)
    dialogue("SET here x")

    assert dialogue.words(b"RESTORE", b"k", b"0", payload) == b"-ERR Bad data format\r\n"
    assert dialogue("KEYS *") == [b"here"]


def test_a_value_restored_past_its_time_counts_as_an_expired_key(dialogue: Dialogue) -> None:
    dialogue("SET k v")
    payload = dialogue("DUMP k")
    dialogue.words(b"RESTORE", b"new", b"1000", payload, b"ABSTTL")
    dialogue.words(b"RESTORE", b"k", b"1000", payload, b"ABSTTL", b"REPLACE")

    assert b"expired_keys:2\r\n" in dialogue.raw("INFO stats")  # Redis 8.6.3


def test_a_restored_stream_shares_nothing_with_the_first(engine: Engine, dialogue: Dialogue) -> None:
    dialogue("XADD k 1-1 f v")
    dialogue.words(b"RESTORE", b"other", b"0", dialogue("DUMP k"))

    dialogue("XADD other 2-1 f v")

    stream = value_of(engine, b"k")
    assert isinstance(stream, Stream)
    assert stream.length == 1
