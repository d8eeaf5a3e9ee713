"""Keyspace events with the fields or members that they are about (Redis 8.8; members 8.12), read as redis-py does.

No Redis at hand has them. redis-py's parser judges the forms; the law rebuilds hashes from what subscribers are told.
"""

from random import Random
from typing import Final

import pytest
from redis.keyspace_notifications import KeyNotification

from penstock.clock import ManualClock
from penstock.storage.types.hashes import Hash
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.seeds import seeds

FAR: Final = NOW_MS + 1_000_000
PREPARED: Final = ("HSET h a 1 b 2 c 3", f"HPEXPIREAT h {NOW_MS + 10} FIELDS 1 b", "SADD s x y z")
FIELDS: Final = ("a", "b", "c", "d,4:", "e|f")


def told(listener: Dialogue) -> list[str]:
    """Channels and payloads: "__subkeyspace@0__:h hdel|1:a"."""
    return [b" ".join(message[-2:]).decode() for message in listener.arrived() if isinstance(message, list)]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("Sh", ["__subkeyspace@0__:h hset|1:a,2:bb"]),
        ("Th", ["__subkeyevent@0__:hset 1:h|1:a,2:bb"]),
        ("Ih", ["__subkeyspaceitem@0__:h\na hset", "__subkeyspaceitem@0__:h\nbb hset"]),
        ("Vh", ["__subkeyspaceevent@0__:hset|h 1:a,2:bb"]),
        ("KSh", ["__keyspace@0__:h hset", "__subkeyspace@0__:h hset|1:a,2:bb"]),
        ("ETA", ["__keyevent@0__:hset h", "__subkeyevent@0__:hset 1:h|1:a,2:bb"]),
        ("STIVg", []),
        ("KEh", ["__keyspace@0__:h hset", "__keyevent@0__:hset h"]),
    ],
)
def test_an_event_tells_its_fields_in_the_ways_that_are_wanted(
    dialogue: Dialogue, letters: str, expected: list[str]
) -> None:
    listener = dialogue.another()
    listener("PSUBSCRIBE *")

    dialogue(f"CONFIG SET notify-keyspace-events {letters}", "HSET h a 1 bb 2")

    assert told(listener) == expected


def test_a_key_with_a_line_break_has_no_channel_for_each_field(dialogue: Dialogue) -> None:
    listener = dialogue.another()
    listener("PSUBSCRIBE *")

    dialogue.words(b"CONFIG", b"SET", b"notify-keyspace-events", b"SIh")
    dialogue.words(b"HSET", b"two\nlines", b"f", b"1")

    assert told(listener) == ["__subkeyspace@0__:two\nlines hset|1:f"]


EVENTS: Final = {
    "HSET h a 1 a 2 d 3": ["hset|1:a,1:a,1:d"],
    "HMSET h a 1": ["hset|1:a"],
    "HSETNX h a 1": [],
    "HSETNX h d 1": ["hset|1:d"],
    "HDEL h a none c": ["hdel|1:a,1:c"],
    "HDEL h none": [],
    "HINCRBY h a 1": ["hincrby|1:a"],
    "HINCRBYFLOAT h a 1": ["hincrbyfloat|1:a"],
    f"HPEXPIREAT h {FAR} FIELDS 2 none a": ["hexpire|1:a"],
    f"HPEXPIREAT h {FAR} XX FIELDS 1 a": [],
    "HPEXPIREAT h 1 FIELDS 2 a b": ["hdel|1:a,1:b"],
    "HPERSIST h FIELDS 3 a b none": ["hpersist|1:b"],
    "HGETDEL h FIELDS 2 none c": ["hdel|1:c"],
    "HGETEX h PERSIST FIELDS 2 a b": ["hpersist|1:b"],
    f"HGETEX h PXAT {FAR} FIELDS 2 a none": ["hexpire|1:a"],
    f"HSETEX h PXAT {FAR} FIELDS 2 a 1 d 2": ["hset|1:a,1:d", "hexpire|1:a,1:d"],
    "HSETEX h PXAT 1 FIELDS 1 a 1": ["hset|1:a", "hdel|1:a"],
    "HGETALL h": [],
    f"SPEXPIREAT s {FAR} MEMBERS 2 x none": ["sexpire|1:x"],
    "SPEXPIREAT s 1 MEMBERS 1 x": ["srem|1:x"],
    f"SADDEX s PXAT {FAR} MEMBERS 2 x new": ["sadd|1:x,3:new", "sexpire|1:x,3:new"],
    "SADD s new": [],
}


@pytest.mark.parametrize(("line", "payloads"), EVENTS.items(), ids=EVENTS)
def test_an_event_tells_the_parts_that_a_command_changed(dialogue: Dialogue, line: str, payloads: list[str]) -> None:
    dialogue(*PREPARED, "CONFIG SET notify-keyspace-events SA")
    listener = dialogue.another()
    listener("PSUBSCRIBE __subkeyspace@0__:*")

    dialogue(line)

    assert [message.split(" ", 1)[1] for message in told(listener)] == payloads


def request(chance: Random, now_ms: int) -> str:
    fields = chance.sample(FIELDS, chance.randint(1, 3))
    listed = f"FIELDS {len(fields)} {' '.join(fields)}"
    pairs = " ".join(f"{field} {chance.randrange(9)}" for field in fields)
    when_ms = now_ms + chance.choice([0, 3, 8, 999])
    return chance.choice([
        f"HSET h {pairs}", f"HSETNX h {fields[0]} 1", f"HDEL h {' '.join(fields)}", f"HINCRBY h {fields[0]} 1",
        f"HPEXPIREAT h {when_ms} {listed}", f"HPERSIST h {listed}", f"HGETDEL h {listed}", f"HGET h {fields[0]}",
        f"HGETEX h PXAT {when_ms} {listed}", f"HSETEX h PXAT {when_ms} FIELDS {len(fields)} {pairs}", "HRANDFIELD h",
        f"HSETEX h FNX FIELDS {len(fields)} {pairs}", f"HMGET h {' '.join(fields)}",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_what_subscribers_are_told_is_what_the_hash_has(seed: int) -> None:
    chance, clock = Random(seed), ManualClock(NOW_MS)
    dialogue = Dialogue(make_engine(clock))
    listeners = [dialogue.another() for _ in range(4)]
    for listener, way in zip(listeners, ("space", "event", "spaceitem", "spaceevent"), strict=True):
        listener(f"PSUBSCRIBE __subkey{way}@0__:*")
    dialogue("CONFIG SET notify-keyspace-events STIVA")
    known: list[set[str]] = [set() for _ in listeners]

    for _ in range(60):
        clock.set_ms(clock.now_us() // 1000 + chance.choice([0, 0, 4]))
        line = request(chance, clock.now_us() // 1000)
        dialogue(line)
        if chance.random() < 0.3:
            dialogue.engine.tick()
        for listener, fields in zip(listeners, known, strict=True):
            for message in listener.arrived():
                follow(fields, message)
        assert known == [{field.decode() for field in held(dialogue)}] * 4, line


def follow(fields: set[str], message: object) -> None:
    assert isinstance(message, list), "a subscriber gets arrays"
    told_of = KeyNotification.try_parse(message[-2], message[-1])
    assert told_of is not None, message
    assert told_of.key == "h", message
    assert told_of.subkeys, message
    change = fields.difference_update if told_of.event_type in ("hdel", "hexpired") else fields.update
    change(told_of.subkeys)


def held(dialogue: Dialogue) -> list[bytes]:
    """The fields that lie in the hash, with those that have expired."""
    value = dialogue.engine.keyspace.databases[0].values.get(b"h")
    return list(value.names()) if isinstance(value, Hash) else []
