"""Hashes, beside a real Redis and alone."""

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis
from tests.support.engines import value_of

DIALOGUES = {
    "set": [
        "HSET h a 1 b 2", "HSET h a 1 c 3", "HSET h a 1 b", "HMSET h a 1 b", "hmset h c 3", "HSETNX h a 5",
        "HSETNX h z 5", "HSETNX new a 1", "SET s x", "HSET s a 1", "HMSET s a 1", "HSETNX s a 1", "HSET h a",
    ],
    "read": [
        "HSET h a 1 b 22", "HGET h a", "HGET h q", "HGET missing a", "HMGET h a q b", "HMGET missing a b", "HLEN h",
        "HLEN missing", "HSTRLEN h b", "HSTRLEN h q", "HSTRLEN missing a", "HEXISTS h a", "HEXISTS h q",
        "HEXISTS missing a", "HGETALL h", "HKEYS h", "HVALS h", "HGETALL missing", "HKEYS missing", "HVALS missing",
        "SET s x", "HGET s a", "HMGET s a", "HLEN s", "HGETALL s", "HKEYS s", "HVALS s", "HSTRLEN s a", "HEXISTS s a",
    ],
    "read once more": [
        "HSET h a 1", "HGETALL h", "HGETALL missing", "HKEYS h", "HVALS missing", "HMGET h a q", "HGET h q",
        "HRANDFIELD h 1 WITHVALUES", "HRANDFIELD h", "HRANDFIELD missing", "HSCAN h 0", "HINCRBYFLOAT h a 1.5",
        "HPEXPIREAT h 9000000000000 FIELDS 1 a", "HTTL missing FIELDS 1 a", "HGETDEL h FIELDS 2 a b",
    ],
    "removed": ["HSET h a 1 b 2 c 3", "HDEL h a q", "HDEL h q", "HDEL missing a", "HDEL h b c", "SET s x", "HDEL s a"],
    "counted": [
        "HINCRBY h n 5", "HINCRBY h n -7", "HINCRBY h n x", "HSET h t abc", "HINCRBY h t 1",
        "HINCRBY h n -9223372036854775808", "SET s x", "HINCRBY s n 1", "HINCRBY s n x", "HSET h e ''", "HINCRBY h e 1",
    ],
    "counted with fractions": [
        "HINCRBYFLOAT h n 10.5", "HINCRBYFLOAT h n 0.1", "HINCRBYFLOAT h n -3e2", "HINCRBYFLOAT h n nan",
        "HINCRBYFLOAT h n inf", "HINCRBYFLOAT h n x", "HSET h t abc", "HINCRBYFLOAT h t 1", "HINCRBYFLOAT h m 1e17",
        "HINCRBYFLOAT h m 0.1", "HSET h i inf", "HINCRBYFLOAT h i 1", "SET s x", "HINCRBYFLOAT s n 1",
        "HINCRBYFLOAT s n inf", "HPEXPIREAT h 9000000000000 FIELDS 1 n", "HINCRBYFLOAT h n 1",
        "HPEXPIRETIME h FIELDS 1 n",
    ],
    "by chance": [
        "HSET h a 1", "HRANDFIELD h", "HRANDFIELD h 5", "HRANDFIELD h -3", "HRANDFIELD h 0",
        "HRANDFIELD h 5 WITHVALUES", "HRANDFIELD h x", "HRANDFIELD h 1 WITHVALUE", "HRANDFIELD h 1 WITHVALUES x",
        "HRANDFIELD missing", "HRANDFIELD missing 3", "HRANDFIELD h -9223372036854775808",
        "HRANDFIELD h 9223372036854775807 WITHVALUES", "SET s x", "HRANDFIELD s", "HRANDFIELD s x",
    ],
    "walked": [
        "HSET h a 1 b 2", "HSCAN h 0", "HSCAN h 0 NOVALUES", "HSCAN h 5 COUNT 1 MATCH a", "HSCAN h x",
        "HSCAN h 0 COUNT 0", "HSCAN h 0 COUNT x", "HSCAN h 0 FOO", "HSCAN h 0 MATCH", "HSCAN h 0 TYPE hash",
        "HSCAN missing 0 COUNT 0", "HSCAN missing x", "SET s x", "HSCAN s 0 FOO", "HSCAN h -5",
    ],
    "let expire": [
        "HSET h a 1 b 2 c 3 d 4", "HEXPIRE h 100 FIELDS 2 a q", "HEXPIRE h 100 NX FIELDS 2 a b",
        "HEXPIRE h 200 GT FIELDS 2 a c", "HEXPIRE h 300 LT FIELDS 2 a c", "HEXPIRE h 300 XX FIELDS 2 a d",
        "HEXPIRE h 100 FIELDS 1 a NX", "HPEXPIRE h 100000 NX FIELDS 1 d", "HEXPIREAT h 9000000000 FIELDS 1 a",
        "HPEXPIREAT h 9000000000001 FIELDS 2 a a", "HEXPIRETIME h FIELDS 2 a q", "HPEXPIRETIME h FIELDS 1 a",
        "HPEXPIREAT h 70368744177663 FIELDS 1 a", "HPEXPIREAT h 70368744177664 FIELDS 1 a",
        "HEXPIRE h 9223372036854775807 FIELDS 1 a", "HSET h a 2", "HTTL h FIELDS 1 a",
    ],
    "let expire at once": [
        "HSET h a 1 b 2", "HEXPIRE h 0 FIELDS 1 a", "HPEXPIREAT h 1 FIELDS 2 b b", "EXISTS h", "HSET h a 1",
        "HPEXPIREAT h 1 GT FIELDS 1 a", "HGETEX h EXAT 1 FIELDS 1 a", "HSETEX h EXAT 1 FIELDS 1 a 1", "HSET h b 1",
        "HSETEX h PX 0 FIELDS 1 b 2", "EXISTS h",
    ],
    "let expire wrongly": [
        "HEXPIRE missing 100 FIELDS 2 a b", "HEXPIRE missing 100 FIELDS 0 a", "HEXPIRE missing 100 FIELDS 3 a",
        "HEXPIRE missing x FIELDS 1 a", "HSET h a 1", "HEXPIRE h -1 FOO 1 a", "HEXPIRE h x FIELDS 0 a",
        "HEXPIRE h 1 FIELDS", "HEXPIRE h 1 FIELDS 1", "HEXPIRE h 1 GT FIELDS 1", "HEXPIRE h 1 FIELDS 2 a",
        "HEXPIRE h 1 FIELDS 1 a b", "HEXPIRE h 1 FIELDS x a", "HEXPIRE h 1 FIELDS -1 a", "HEXPIRE h 1 FOO 1 a",
        "HEXPIRE h 1 NX XX FIELDS 1 a", "HEXPIRE h 1 FIELDS 1 a FIELDS 1 a", "HEXPIRE h 1 NX NX NX",
        "HEXPIRE h 1 NX GT LT", "HEXPIRE h 1 NX GT FIELDS", "HEXPIRE h 1 NX GT FOO FIELDS 1 a",
        "HEXPIRE h 1 NX GT FIELDS 0 a", "HEXPIRE h 1 FIELDS 1 a GT LT FOO", "HEXPIRE h 1 FIELDS 2147483648 a",
        "SET s x", "HEXPIRE s 1 FIELDS 0 a", "HPEXPIREAT s x FOO 1 a",
    ],
    "times asked for": [
        "HSET h a 1 b 2", "HPEXPIREAT h 9000000000500 FIELDS 1 a", "HEXPIRETIME h FIELDS 3 a b q",
        "HPEXPIRETIME h FIELDS 3 a b q", "HTTL missing FIELDS 2 a b", "HTTL missing FIELDS 0 a", "HTTL h FIELDS 2 a",
        "HTTL h FIELDS 1 a b", "HTTL h FIELDS x a", "HTTL h FOO 1 a", "HTTL h FIELDS 1", "HPTTL h FIELDS 2 b q",
        "SET s x", "HTTL s FIELDS 0 a", "HPEXPIRETIME s FOO 1 a",
    ],
    "times taken away": [
        "HSET h a 1 b 2", "HPEXPIREAT h 9000000000500 FIELDS 1 a", "HPERSIST h FIELDS 3 a b q", "HPERSIST h FIELDS 1 a",
        "HPERSIST missing FIELDS 2 a b", "HPERSIST h FIELDS 0 a", "HPERSIST h FIELDS 5 a", "HPERSIST h FOO 1 a",
        "SET s x", "HPERSIST s FIELDS 0 a",
    ],
    "read and removed": [
        "HSET h a 1 b 2 c 3", "HGETDEL h FIELDS 1 a", "HGETDEL h FIELDS 1 q", "HGETDEL h FIELDS 2 b",
        "HGETDEL h FIELDS 0 b", "HGETDEL h FIELDS x b", "HGETDEL h FOO 1 b", "HGETDEL missing FIELDS 2 a b",
        "HGETDEL h FIELDS 2 b c", "EXISTS h", "SET s x", "HGETDEL s FIELDS 2 a",
    ],
    "read with a time": [
        "HSET h a 1 b 2", "HGETEX h FIELDS 2 a q", "HGETEX h EX 100 FIELDS 2 a q", "HGETEX h PX 100000 FIELDS 1 a",
        "HGETEX h EXAT 9000000000 FIELDS 1 a", "HGETEX h FIELDS 1 a PXAT 9000000000000",
        "HGETEX h PERSIST FIELDS 2 a q", "HGETEX h PERSIST FIELDS 1 a", "HGETEX h EX -1 FIELDS 1 a",
        "HGETEX h EX x FIELDS 1 a", "HGETEX h EX 1 PX 1 FIELDS 1 a", "HGETEX h EX 1 PERSIST FIELDS 1 a",
        "HGETEX h KEEPTTL FIELDS 1 a", "HGETEX h FIELDS 0 a", "HGETEX h FIELDS 2 a", "HGETEX h FIELDS 1 a b",
        "HGETEX h FIELDS 1", "HGETEX h FIELDS 1 a EX", "HGETEX h FIELDS 1 a FIELDS 1 a",
        "HGETEX h EX 99999999999999999 FIELDS 1 a", "HGETEX missing EX -5 FIELDS 1 a", "HGETEX missing EX 5 FIELDS 1 a",
        "HGETEX h EX 5 c d", "HGETEX h FNX FIELDS 1 a", "HGETEX h KEEPTTL PERSIST FIELDS 1 a",
        "HGETEX h KEEPTTL FIELDS 1 a b", "SET s x", "HGETEX s FIELDS 2 a",
    ],
    "set with a time": [
        "HSETEX h FIELDS 2 a 1 b 2", "HSETEX h EX 100 FIELDS 1 a 1", "HSETEX h PX 100000 FIELDS 1 a 1",
        "HSETEX h EXAT 9000000000 FIELDS 2 a 1 b 2", "HSETEX h KEEPTTL FIELDS 2 a 3 c 4",
        "HPEXPIRETIME h FIELDS 3 a b c", "HSETEX h FIELDS 1 a 1", "HPEXPIRETIME h FIELDS 1 a",
        "HSETEX h FNX FIELDS 2 a 1 z 4", "HSETEX h FNX FIELDS 1 z 4", "HSETEX h FXX FIELDS 2 a 1 q 1",
        "HSETEX h FXX EX 100 FIELDS 2 a 1 z 5", "HSETEX h FIELDS 1 a 1 FXX EX 100", "HSETEX h FXX FNX FIELDS 1 a 1",
        "HSETEX h FNX FNX FIELDS 1 a 1", "HSETEX h EX 5 KEEPTTL FIELDS 1 a 1", "HSETEX h EX x FIELDS 1 a 1",
        "HSETEX h EX -1 FIELDS 0 a 1", "HSETEX h FIELDS 0 a 1 EX -1", "HSETEX h FIELDS 2 a 1",
        "HSETEX h FIELDS 1 a 1 b 2", "HSETEX h FIELDS x a 1", "HSETEX h FIELDS 1 a", "HSETEX h FNX FIELDS 1 a",
        "HSETEX h FOO 1 a 1", "HSETEX h PERSIST KEEPTTL FIELDS 1 a 1", "HSETEX h PERSIST EX 5 FIELDS 1 a 1",
        "HSETEX h FIELDS 1 a 1 EX", "HSETEX missing FXX FIELDS 1 a 1", "EXISTS missing", "SET s x",
        "HSETEX s FIELDS 2 a 1", "HSETEX s FIELDS 1 a 1",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_hashes_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_a_long_walk_meets_every_field_that_stays(dialogue: Dialogue) -> None:
    words = " ".join(f"f{number} v" for number in range(2000))
    dialogue(f"HSET h {words}")

    cursor, met = dialogue("HSCAN h 0 COUNT 1500 NOVALUES")
    dialogue("HDEL h f5", "HSET h new v")
    end, rest = dialogue(f"HSCAN h {cursor.decode()} COUNT 5000 NOVALUES")

    assert end == b"0"
    assert {*met, *rest} >= {f"f{number}".encode() for number in range(2000)} - {b"f5"}


def test_hashes_of_one_kind_share_the_names_of_their_fields(dialogue: Dialogue) -> None:
    for number in range(5000):
        dialogue(f"HSET other{number} field{number} v")  # more names than are remembered
    dialogue("HSET a name x address y", "HSET b name x address y", "HSET c address y")
    dialogue.words(b"RESTORE", b"d", b"0", dialogue("DUMP a"))

    shown = [value_of(dialogue.engine, key).names() for key in (b"b", b"d")]

    assert len({id(field) for fields in shown for field in fields}) == 2
    assert dialogue("HGETALL d") == [b"name", b"x", b"address", b"y"]
