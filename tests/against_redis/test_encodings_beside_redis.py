"""OBJECT ENCODING after every one of many random changes, with limits that values outgrow all the time."""

import random
from collections.abc import Iterator

import pytest

from tests.against_redis.conftest import Reference
from tests.support.compared_sides import InProcess
from tests.support.random_words import Request
from tests.support.seeds import seeds
from tests.support.wire import Bulk, Value, parse

LIMITS = {
    "hash-max-listpack-entries": ("4", "512"),
    "hash-max-listpack-value": ("6", "64"),
    "list-max-listpack-size": ("4", "-2"),
    "set-max-intset-entries": ("4", "512"),
    "set-max-listpack-entries": ("5", "128"),
    "set-max-listpack-value": ("6", "64"),
    "zset-max-listpack-entries": ("4", "128"),
    "zset-max-listpack-value": ("6", "64"),
}
WORDS = ("1", "2", "3", "-5", "007", "x", "y", "zz", "", "1234567", "abcdefg", "1.5", "x" * 39)
FIELDS = ("a", "b", "c", "1", "a-long-one")


def requests(chance: random.Random, count: int) -> Iterator[Request]:
    """Random changes of values of every type; the first word behind the command is the key of OBJECT ENCODING."""
    for _ in range(count):
        kind = chance.choice("tlhsz")
        key, other = f"{kind}1", chance.choice((f"{kind}2", f"{kind}-whose-name-is-long"))
        one, number = chance.choice(WORDS), chance.choice(("0", "1", "2", "3"))
        some = [chance.choice(WORDS) for _ in range(chance.randrange(1, 6))]
        field, fields = chance.choice(FIELDS), [word for word in some for word in (chance.choice(FIELDS), word)]
        moved = [["COPY", other, key, "REPLACE"], ["COPY", key, other, "REPLACE"], ["DEL", key]]
        if chance.random() < 0.1:
            yield chance.choice([*moved, ["RENAME", other, key], ["RENAME", key, other]])
            continue
        changes: dict[str, list[Request]] = {
            "t": [
                ["SET", key, one], ["APPEND", key, one], ["SETRANGE", key, number, one], ["SETBIT", key, number, "1"],
                ["INCR", key], ["INCRBYFLOAT", key, number], ["BITOP", "OR", key, key, other], ["GETSET", key, one],
                ["BITFIELD", key, "SET", "u8", number, "49"], ["BITFIELD", key, "GET", "u8", number], ["DEL", key],
                ["EXPIRE", key, "1000"], ["PERSIST", key], ["SETNX", key, one], ["SET", key, one, "KEEPTTL"],
            ],
            "l": [
                ["RPUSH", key, *some], ["LPUSH", key, *some], ["LPOP", key, number], ["RPOP", key], ["DEL", key],
                ["LSET", key, number, one], ["LINSERT", key, "BEFORE", one, "new"], ["LREM", key, "0", one],
                ["LTRIM", key, number, "-1"], ["SORT", key, "ALPHA", "STORE", other],
                ["LMOVE", key, other, "LEFT", "LEFT"],
            ],
            "h": [
                ["HSET", key, *fields], ["HSETNX", key, field, one], ["HDEL", key, field],
                ["HINCRBY", key, field, number], ["HGETEX", key, "PERSIST", "FIELDS", "1", field],
                ["HEXPIRE", key, "1000", "FIELDS", "1", field], ["HPERSIST", key, "FIELDS", "1", field],
                ["HSETEX", key, "EX", "1000", "FIELDS", "1", field, one],
                ["HINCRBYFLOAT", key, field, number], ["DEL", key],
            ],
            "s": [
                ["SADD", key, *some], ["SREM", key, *some], ["SMOVE", key, other, one], ["SMOVE", other, key, one],
                ["DEL", key], ["SUNIONSTORE", key, key, other], ["SINTERSTORE", key, key, other],
            ],
            "z": [
                ["ZADD", key, number, one], ["ZADD", key, number, one, number, field], ["ZREM", key, *some],
                ["ZINCRBY", key, number, one], ["ZUNIONSTORE", key, "2", key, other],
                ["ZRANGESTORE", key, other, "0", "2"],
                ["ZPOPMIN", key], ["SORT", key, "ALPHA"], ["DEL", key],
            ],
        }  # fmt: skip
        yield chance.choice(changes[kind])


@pytest.fixture
def small(reference: Reference) -> Iterator[Reference]:
    """A reference that keeps only very small values in its small encodings."""
    for name, (least, _) in LIMITS.items():
        reference.piped.ask("CONFIG", "SET", name, least)
    yield reference
    for name, (_, usual) in LIMITS.items():
        reference.piped.ask("CONFIG", "SET", name, usual)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_encoding_is_that_of_redis_after_every_change(small: Reference, seed: int) -> None:
    ours = InProcess()
    opening = [["RESET"], ["FLUSHALL"], ["HELLO", "3"]]
    answers(small, ours, opening)
    answers(small, ours, [["CONFIG", "SET", name, least] for name, (least, _) in LIMITS.items()])
    for request in requests(random.Random(seed), 6000):
        key = request[2] if request[0] == "BITOP" else request[1]
        theirs, mine = answers(small, ours, [request, ["OBJECT", "ENCODING", key]])
        if is_more_than_one_node(theirs[1], mine[1]):
            answers(small, ours, [["DEL", key, "l2", "l-whose-name-is-long"]])
        else:
            assert theirs[1] == mine[1], request


def is_more_than_one_node(theirs: Value, ours: Value) -> bool:
    """Whether a list has shrunk to half a node, and Redis keeps it in more than one (docs/differences.md)."""
    return (theirs, ours) == (Bulk(b"quicklist"), Bulk(b"listpack"))


def answers(reference: Reference, ours: InProcess, asked: list[Request]) -> tuple[list[Value], list[Value]]:
    reference.piped.send(asked)
    ours.send(asked)
    theirs = [parse(reference.piped.answer())[0] for _ in asked]
    return theirs, [parse(ours.answer())[0] for _ in asked]
