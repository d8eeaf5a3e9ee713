"""Sets, beside a real Redis and alone."""

from collections import Counter

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis
from tests.support.engines import value_of

DIALOGUES = {
    "added and removed": [
        "SADD s a b c", "SADD s a", "SADD s a d d", "SREM s a q", "SREM s q", "SREM missing q", "SREM s b c d",
        "EXISTS s", "SET t x", "SADD t a", "SREM t a", "SADD s",
    ],
    "asked for": [
        "SADD s a", "SCARD s", "SCARD missing", "SISMEMBER s a", "SISMEMBER s q", "SISMEMBER missing a",
        "SMISMEMBER s a q", "SMISMEMBER missing a q", "SMEMBERS s", "SMEMBERS missing", "SET t x", "SCARD t",
        "SISMEMBER t a", "SMISMEMBER t a", "SMEMBERS t",
    ],
    "moved": [
        "SADD s a b c", "SMOVE s t a", "SMOVE s t a", "SMOVE missing t a", "SMOVE s s b", "SMOVE s s q", "SET x x",
        "SMOVE s x b", "SMOVE s x q", "SMOVE x s q", "SMOVE missing x b", "SADD t b", "SMOVE s t b", "SMOVE s t c",
        "EXISTS s",
    ],
    "popped": [
        "SADD s a", "SPOP s 0", "SPOP s -1", "SPOP s x", "SPOP s", "SPOP s", "SPOP s 2", "SADD s a b c", "SPOP s 1 2",
        "SPOP missing", "SADD t a", "SPOP t 1", "SADD t a", "SPOP t 9223372036854775807", "SET x x", "SPOP x",
        "SPOP x 0", "SPOP missing x",
    ],
    "by chance": [
        "SADD s a", "SRANDMEMBER s", "SRANDMEMBER s 5", "SRANDMEMBER s -3", "SRANDMEMBER s 0", "SRANDMEMBER s x",
        "SRANDMEMBER s 1 2", "SRANDMEMBER missing", "SRANDMEMBER missing 2", "SRANDMEMBER s -9223372036854775808",
        "SET x x", "SRANDMEMBER x 0", "SRANDMEMBER missing x",
    ],
    "together": [
        "SADD s a b", "SADD t b c", "SINTER s t", "SINTER s missing", "SINTER missing s", "SET x x", "SINTER missing x",
        "SINTER s x", "SDIFF s t", "SDIFF s s", "SDIFF missing x", "SDIFF missing t", "SUNION missing m2", "SUNION s x",
        "SINTERCARD 2 s t", "SINTERCARD 0 s", "SINTERCARD x s", "SINTERCARD 3 s t", "SINTERCARD 1 s t",
        "SINTERCARD 2 s s LIMIT 1", "SINTERCARD 2 s s LIMIT 0", "SINTERCARD 2 s t LIMIT -1", "SINTERCARD 2 s t LIMIT x",
        "SINTERCARD 2 s t LIMIT", "SINTERCARD 2 s s LIMIT 1 LIMIT 2", "SINTERCARD 2 missing x",
    ],
    "stored": [
        "SADD s a b", "SADD t b c", "SINTERSTORE d s t", "SINTERSTORE d s t", "SMEMBERS d", "SINTERSTORE d s missing",
        "SINTERSTORE d s missing", "SET x x", "SINTERSTORE d s x", "SINTERSTORE x s t", "SUNIONSTORE d s t", "SCARD d",
        "SUNIONSTORE d missing", "SDIFFSTORE d s t", "SMEMBERS d", "PEXPIREAT d 9000000000000", "SDIFFSTORE d s t",
        "TTL d", "SDIFFSTORE d t t", "SINTERSTORE s s t", "SUNIONSTORE d",
    ],
    "walked": [
        "SADD s a", "SSCAN s 0", "SSCAN s 7 COUNT 1 MATCH a*", "SSCAN s 0 MATCH b", "SSCAN s x", "SSCAN s 0 NOVALUES",
        "SSCAN s 0 COUNT 0", "SSCAN s 0 MATCH", "SSCAN missing 0 FOO", "SET x x", "SSCAN x 0 FOO", "SSCAN x x",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_sets_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_every_member_is_drawn_about_as_often(dialogue: Dialogue) -> None:
    dialogue("SADD s a b c d")

    drawn = Counter(dialogue("SRANDMEMBER s -40000"))

    assert set(drawn) == {b"a", b"b", b"c", b"d"}
    assert min(drawn.values()) > 9500


def test_popping_leaves_what_was_not_popped(dialogue: Dialogue) -> None:
    dialogue("SADD s a b c d e f", "SRANDMEMBER s")
    popped = dialogue("SPOP s 4")
    dialogue("SADD s g", "SREM s " + " ".join(name.decode() for name in popped))

    assert len(set(popped)) == 4
    assert set(dialogue("SMEMBERS s")) == {b"a", b"b", b"c", b"d", b"e", b"f", b"g"} - set(popped)
    value_of(dialogue.engine, b"s").check()


def test_a_long_walk_meets_every_member_that_stays(dialogue: Dialogue) -> None:
    dialogue("SADD s " + " ".join(f"m{number}" for number in range(2000)))

    cursor, met = dialogue("SSCAN s 0 COUNT 1500")
    dialogue("SREM s m5", "SADD s new")
    end, rest = dialogue(f"SSCAN s {cursor.decode()} COUNT 5000")

    assert end == b"0"
    assert {*met, *rest} >= {f"m{number}".encode() for number in range(2000)} - {b"m5"}
    assert value_of(dialogue.engine, b"s").table().scan_order is None


def test_more_draws_with_repetitions_than_memory_would_hold_are_refused(dialogue: Dialogue) -> None:
    dialogue("SADD s a")

    assert str(dialogue("SRANDMEMBER s -9223372036854775807")) == "ERR value is out of range"
