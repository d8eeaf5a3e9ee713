"""Strings, beside a real Redis and alone."""

import random

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis, steps_of_engine

DIALOGUES = {
    "set and overwrite": ["SET a 1", "set a 2", "GET a", "XADD s 1-1 f v", "SET s 1", "GET missing", "SET a"],
    "set on conditions": [
        "SET a 1 NX",
        "SET a 2 NX",
        "SET a 2 XX",
        "SET b 2 XX",
        "SET a 1 NX XX",
        "SET a 1 XX NX",
        "SET a 1 NX NX",
        "SET a 1 FOO",
        "SET a 5 nx get",
    ],
    "set and get": [
        "SET a 1 GET",
        "SET a 2 GET",
        "set a 3 GET get",
        "SET a 4 NX GET",
        "SET b 4 XX GET",
        "XADD s 1-1 f v",
        "SET s 1 GET",
        "SET s 1 NX GET",
        "SET s 1 NX",
        "SET GET GET GET",
    ],
    "set for a time": [
        "SET a 1 EX 100",
        "SET a 1 px 100000 get",
        "SET a 1 EXAT 9999999999",
        "SET a 1 PXAT 9999999999999 GET XX",
        "SET a 2 KEEPTTL",
        "PEXPIRETIME a",
        "SET a 3",
        "TTL a",
        "SET a 1 EX 10 EX 20",
        "SET a 1 EX 10 PX 10",
        "SET a 1 EX 10 KEEPTTL",
        "SET a 1 KEEPTTL EX 10",
        "SET a 1 KEEPTTL KEEPTTL",
        "SET a 1 PERSIST",
    ],
    "set for no time": [
        "SET a 1 EX",
        "SET a 1 EX x",
        "SET a 1 EX 0",
        "SET a 1 EX -1",
        "SET a 1 PXAT 0",
        "SET a 1 EX 9223372036854775807",
        "SET a 1 EX 9223372036854775",
        "SET a 1 PX 9223372036854775807",
        "SET a 1 PXAT 9223372036854775807",
        "SET a 1 EX x FOO",
        "SET a 1 NX EX x",
        "SET a 1 EX 0 GET",
    ],
    "set if equal": [
        "SET a 1 IFEQ 1",
        "SET a 1 IFNE 1",
        "SET a 2 IFEQ 1",
        "SET a 3 IFEQ 1",
        "SET a 3 IFEQ 1 GET",
        "SET a 3 IFNE 1 GET",
        "SET a 4 NX IFEQ 4",
        "SET a 5 IFEQ 1 IFEQ 4",
        "SET a 5 IFEQ 5 IFNE 5",
        "SET a 5 IFEQ",
        "SET a 6 IFEQ 5 EX 100 GET",
        "SET b 1 IFEQ x GET",
        "XADD s 1-1 f v",
        "SET s 1 IFEQ 1",
    ],
    "set if the digest is equal": [
        "SET a v1",
        "SET a v2 IFDEQ 0000000000000000",
        "SET a v1 IFDEQ 699a96a965cd390d",
        "SET a v2 IFDEQ 699A96A965CD390D",
        "SET a v3 IFDNE 699a96a965cd390d",
        "SET a v3 IFDEQ zz",
        "SET a v3 IFDNE gggggggggggggggg",
        "SET b v IFDEQ zz",
        "SET b v IFDNE zz",
    ],
    "an overdue key is gone first": [
        "SET a 1 PXAT 1",
        "SET a 2",
        "SET a 1 PXAT 1",
        "APPEND a 3",
        "SET a 1 PXAT 1",
        "INCR a",
        "SET a 1 PXAT 1",
        "SETNX a 1",
        "SET a 1 PXAT 1",
        "SET a 1 PXAT 1 GET",
        "MGET a a",
        "SET a 1 EXAT 1",
        "GETDEL a",
        "SET a 1 EXAT 1",
        "MSET a 1 b 2",
    ],
    "the older ways to set": [
        "SETNX a 1",
        "SETNX a 2",
        "SETNX a",
        "setex a 100 v",
        "SETEX a 0 v",
        "SETEX a x v",
        "psetex a 100000 v",
        "PSETEX a -1 v",
        "SETEX a 9223372036854775807 v",
        "XADD s 1-1 f v",
        "SETNX s v",
        "SETEX s 10 v",
    ],
    "get and expire": [
        "SET a 1",
        "GETEX a",
        "GETEX a EX 100",
        "GETEX a PXAT 9999999999999",
        "GETEX a PERSIST",
        "GETEX a PERSIST",
        "GETEX a PERSIST EX 10",
        "GETEX a EX 10 PERSIST",
        "GETEX a EX 10 EX 10",
        "GETEX a EX 10 PX 10",
        "GETEX a EX",
        "GETEX a EX x",
        "GETEX a EX 0",
        "GETEX a KEEPTTL",
        "GETEX missing EX x",
        "GETEX missing FOO",
        "GETEX a PXAT 1",
        "GETEX a PXAT 1",
        "XADD s 1-1 f v",
        "GETEX s EX x",
    ],
    "get and delete": ["SET a 1", "GETDEL a", "GETDEL a", "XADD s 1-1 f v", "GETDEL s"],
    "several at once": [
        "MSET a 1 b 2 a 3",
        "MSET a 1 b",
        "MSET",
        "XADD s 1-1 f v",
        "MGET a b s missing a",
        "EXPIRE a 100",
        "MSET a 4 s 5",
        "TTL a",
    ],
    "append and length": [
        "APPEND a abc",
        "append a def",
        "APPEND a ''",
        "APPEND b ''",
        "STRLEN a",
        "STRLEN missing",
        "EXPIREAT a 9999999999",
        "APPEND a x",
        "PEXPIRETIME a",
        "XADD s 1-1 f v",
        "APPEND s x",
        "STRLEN s",
    ],
    "counters": [
        "INCR n",
        "incr n",
        "DECR n",
        "INCRBY n 5",
        "DECRBY n -5",
        "INCRBY n x",
        "INCRBY n 9223372036854775807",
        "DECRBY n -9223372036854775808",
        "DECRBY n 9223372036854775807",
        "DECRBY n 9223372036854775807",
        "SET n 9223372036854775807",
        "INCR n",
        "SET n ' 1'",
        "INCR n",
        "SET n 01",
        "INCR n",
        "SET n ''",
        "INCR n",
        "SET n 5 EXAT 9999999999",
        "INCR n",
        "PEXPIRETIME n",
        "XADD s 1-1 f v",
        "INCR s",
        "INCRBY s x",
    ],
    "parts": [
        "SET a hello",
        "GETRANGE a 1 -2",
        "GETRANGE a -50 -100",
        "GETRANGE a 0 -100",
        "GETRANGE a 3 1",
        "GETRANGE a 2 -5",
        "GETRANGE a 10 2",
        "SUBSTR a 3 100",
        "GETRANGE missing 0 1",
        "GETRANGE missing x 1",
        "SETRANGE a 1 ipp",
        "SETRANGE a 7 end",
        "SETRANGE b 3 new",
        "SETRANGE missing 3 ''",
        "SETRANGE a -1 ''",
        "SETRANGE a x ''",
        "SETRANGE a 536870912 x",
        "GET a",
        "XADD s 1-1 f v",
        "SETRANGE s 1 x",
        "GETRANGE s 1 2",
    ],
    "numbers with decimals": [
        "INCRBYFLOAT a 1.5",
        "INCRBYFLOAT a -0.25",
        "PEXPIREAT a 9999999999999",
        "INCRBYFLOAT a 5.0e3",
        "PEXPIRETIME a",
        "INCRBYFLOAT a 0.1",
        "INCRBYFLOAT a x",
        "INCRBYFLOAT a inf",
        "SET b x",
        "INCRBYFLOAT b 1",
        "XADD s 1-1 f v",
        "INCRBYFLOAT s x",
    ],
    "several unless one exists": [
        "MSETNX a 1 b 2",
        "MSETNX b 1 c 2",
        "MSETNX c 1 c 2",
        "MGET a b c",
        "MSETNX d 1 e",
    ],
    "several on conditions": [
        "MSETEX 2 a 1 b 2",
        "MSETEX 2 b 1 c 2 NX",
        "MSETEX 2 b 1 c 2 XX",
        "MSETEX 2 b 1 a 2 XX PXAT 9999999999999",
        "MSETEX 1 a 3 KEEPTTL",
        "MSETEX 1 b 3 EX 100",
        "MSETEX 1 b 3 px 100000 nx",
        "MSETEX 1 c 3 px 100000 nx",
        "MSETEX 1 c 3 EXAT 9999999999",
        "XADD s 1-1 f v",
        "MSETEX 1 s 3",
        "MSETEX 0 a 1",
        "MSETEX 2 a 1",
        "MSETEX 1 a 1 EX 0",
        "MSETEX 1 a 1 EX",
        "MSETEX 1 a 1 NX XX",
        "MSETEX 1 a 1 KEEPTTL EX 1",
        "MSETEX 1 a 1 FOO",
    ],
    "set and get the old one": [
        "GETSET a 1",
        "GETSET a 2",
        "PEXPIREAT a 9999999999999",
        "GETSET a 3",
        "PTTL a",
        "XADD s 1-1 f v",
        "GETSET s 1",
    ],
    "remove on conditions": [
        "SET a x",
        "DIGEST a",
        "DELEX a IFEQ y",
        "DELEX a IFNE x",
        "DELEX a IFDEQ 0000000000000000",
        "DELEX a IFDEQ zz",
        "DELEX a FOO x",
        "DELEX a IFEQ",
        "DELEX a IFDEQ EAF06C6480B2CD11",
        "DELEX a",
        "DELEX a FOO x",
        "XADD s 1-1 f v",
        "DELEX s IFEQ x",
        "DIGEST s",
        "DELEX s",
        "DIGEST s",
    ],
    "longest common subsequence": [
        "MSET a ohmytext b mynewtext",
        "LCS a b",
        "LCS a b LEN",
        "LCS a b IDX",
        "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN",
        "LCS a b IDX LEN",
        "LCS a b MINMATCHLEN",
        "LCS a missing IDX",
        "LCS missing missing",
        "XADD s 1-1 f v",
        "LCS a s",
    ],
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_strings_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_a_word_that_ifeq_compares_with_stays_in_the_log_even_if_it_reads_get() -> None:
    last = steps_of_engine(["SET a GET", "SET a 2 IFEQ GET GET"])[-1]

    assert last.logged == ["SET a 2 IFEQ GET"]


def test_a_digest_of_the_wrong_length_gets_one_reply_beside_get_too() -> None:
    last = steps_of_engine(["SET a 1", "SET a 2 IFDEQ zz GET"])[-1]

    assert last.reply == "-ERR must be exactly 16 hexadecimal characters"


def test_append_makes_no_string_longer_than_a_request_may_carry(dialogue: Dialogue) -> None:
    dialogue.engine.settings.set_pairs([("proto-max-bulk-len", "1mb")])
    dialogue.words(b"SET", b"a", b"x" * (1 << 20))

    assert "proto-max-bulk-len" in str(dialogue("APPEND a x"))
    assert dialogue("APPEND a ''") == 1 << 20


def test_strings_are_refused_if_their_common_subsequence_would_take_redis_too_much_memory(dialogue: Dialogue) -> None:
    dialogue("SETRANGE a 20000 x", "SETRANGE b 20000 x")

    assert "exceeds proto-max-bulk-len" in str(dialogue("LCS a b LEN"))


@pytest.mark.parametrize("seed", range(10))
def test_the_length_of_a_common_subsequence_is_that_of_the_plain_table(dialogue: Dialogue, seed: int) -> None:
    chance = random.Random(seed)
    one, other = (bytes(chance.choices(b"abc", k=chance.randrange(0, 150))) for _ in range(2))
    dialogue.words(b"MSET", b"a", one, b"b", other)

    assert dialogue("LCS a b LEN") == plain_length(one, other) == len(dialogue("LCS a b"))


def plain_length(one: bytes, other: bytes) -> int:
    row = [0] * (len(other) + 1)
    for letter in one:
        above, row = row, [0]
        for at, met in enumerate(other):
            row.append(above[at] + 1 if letter == met else max(above[at + 1], row[at]))
    return row[-1]
