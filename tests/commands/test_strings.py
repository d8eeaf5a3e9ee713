"""Strings, beside a real Redis and alone."""

import pytest

from tests.commands.comparison import RedisSide, played_here

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
        "SET a 4 IFEQ 3 XX",
        "SET a 4 IFEQ 4 NX",
        "SET a 4 NX IFEQ 4",
        "SET a 5 IFEQ 1 IFEQ 4",
        "SET a 5 IFEQ 5 IFNE 5",
        "SET a 5 IFEQ",
        "SET a 6 IFEQ 5 EX 100 GET",
        "SET b 1 IFEQ x GET",
        "XADD s 1-1 f v",
        "SET s 1 IFEQ 1",
        "SET s 1 IFEQ 1 NX",
    ],
    "set if the digest is equal": [
        "SET a v1",
        "SET a v2 IFDEQ 0000000000000000",
        "SET a v1 IFDEQ 699a96a965cd390d",
        "SET a v2 IFDEQ 699A96A965CD390D",
        "SET a v3 IFDNE 699a96a965cd390d",
        "SET a v3 IFDEQ zz",
        "SET a v3 IFDEQ zz NX",
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
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_strings_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines):
    assert played_here(lines) == logging_redis.play(lines)


def test_a_word_that_ifeq_compares_with_stays_in_the_log_even_if_it_reads_get():
    last = played_here(["SET a GET", "SET a 2 IFEQ GET GET"])[-1]

    assert last.logged == ["SET a 2 IFEQ GET"]


def test_a_digest_of_the_wrong_length_gets_one_reply_beside_get_too():
    last = played_here(["SET a 1", "SET a 2 IFDEQ zz GET"])[-1]

    assert last.reply == "-ERR must be exactly 16 hexadecimal characters"


def test_append_makes_no_string_longer_than_a_request_may_carry(dialogue):
    dialogue.engine.settings.set_pairs([("proto-max-bulk-len", "1mb")])
    dialogue.words(b"SET", b"a", b"x" * (1 << 20))

    assert "proto-max-bulk-len" in str(dialogue("APPEND a x"))
    assert dialogue("APPEND a ''") == 1 << 20
