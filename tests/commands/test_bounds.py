"""No number that a client sends makes a request take memory or time out of proportion to its reply and its data."""

import random
import tracemalloc
from collections.abc import Callable

import pytest

from penstock.commands.strings import bit_search
from penstock.engine.matching.globs import Glob
from tests.support.dialogue import Dialogue

MEGABYTE = 1 << 20
DRAWS = 100_000
TOO_LARGE = b"-ERR the reply would be larger than 1 GB\r\n"


def most_memory(run: Callable[[], object]) -> int:
    """The most bytes that Python had allocated while something ran, beyond what it had before."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize(
    ("line", "reply_bytes"),
    [
        (f"HRANDFIELD hash -{DRAWS}", 10), (f"HRANDFIELD hash -{DRAWS} WITHVALUES", 20),
        (f"SRANDMEMBER set -{DRAWS}", 10), (f"ZRANDMEMBER zset -{DRAWS}", 10),
        (f"ZRANDMEMBER zset -{DRAWS} WITHSCORES", 20),
    ],
)  # fmt: skip
def test_random_elements_take_little_more_memory_than_their_reply(
    dialogue: Dialogue, line: str, reply_bytes: int
) -> None:
    dialogue("HSET hash a 1 b 2", "SADD set a b", "ZADD zset 1 a 2 b")

    assert most_memory(lambda: dialogue.raw(line)) < DRAWS * (2 * reply_bytes + 30)


@pytest.mark.parametrize("resp", [2, 3])
def test_random_elements_with_values_are_pairs_of_the_data(dialogue: Dialogue, resp: int) -> None:
    dialogue.session.resp = resp
    dialogue("HSET hash a 1 b 2", "ZADD zset 1 a 2.5 b")
    drawn, scored = dialogue("HRANDFIELD hash -20 WITHVALUES"), dialogue("ZRANDMEMBER zset -20 WITHSCORES")
    pairs = drawn if resp == 3 else [list(pair) for pair in zip(drawn[::2], drawn[1::2], strict=True)]

    assert [pair for pair in pairs if pair not in ([b"a", b"1"], [b"b", b"2"])] == []
    assert (len(pairs), len(scored)) == (20, 20 if resp == 3 else 40)


@pytest.mark.parametrize(
    "line", ["SRANDMEMBER set -2000", "HRANDFIELD hash -2000 WITHVALUES", "ZRANDMEMBER zset -2000 WITHSCORES"]
)
def test_random_elements_of_more_than_a_gigabyte_are_refused(dialogue: Dialogue, line: str) -> None:
    long = b"x" * MEGABYTE
    dialogue.words(b"SADD", b"set", long)
    dialogue.words(b"HSET", b"hash", b"f", long)
    dialogue.words(b"ZADD", b"zset", b"1", long)

    assert dialogue.raw(line) == TOO_LARGE


@pytest.mark.parametrize(
    "line", ["MGET" + " text" * 1100, "HMGET hash" + " f" * 1100, "SORT list BY nosort" + " GET t*t" * 1100]
)
def test_the_same_value_asked_for_again_and_again_is_refused_beyond_a_gigabyte(dialogue: Dialogue, line: str) -> None:
    long = b"x" * MEGABYTE
    dialogue.words(b"SET", b"text", long)
    dialogue.words(b"HSET", b"hash", b"f", long)
    dialogue("RPUSH list ex")

    assert dialogue.raw(line) == TOO_LARGE


@pytest.mark.parametrize("line", ["BITCOUNT text", "BITPOS text 1", "BITPOS text 1 1 -1", "BITCOUNT text 3 -3 BIT"])
def test_bits_of_a_long_string_are_counted_and_found_in_little_memory(dialogue: Dialogue, line: str) -> None:
    dialogue(f"SETRANGE text {4 * MEGABYTE} x")

    assert most_memory(lambda: dialogue.raw(line)) < MEGABYTE


@pytest.mark.parametrize("line", ["BITOP NOT c a", "BITOP XOR c a b", "BITOP ONE c a b a"])
def test_strings_are_combined_in_little_more_memory_than_they_and_the_result_have(
    dialogue: Dialogue, line: str
) -> None:
    dialogue(f"SETRANGE a {4 * MEGABYTE} x", f"SETRANGE b {4 * MEGABYTE} y")

    assert most_memory(lambda: dialogue.raw(line)) < 6 * MEGABYTE


@pytest.mark.parametrize("seed", range(4))
def test_bits_are_the_same_across_parts_as_in_one_number(dialogue: Dialogue, seed: int) -> None:
    chance = random.Random(seed)
    size = 2 * bit_search.PART_BYTES + 77
    text = bytearray(size)
    for _ in range(3):
        text[chance.randrange(size)] = chance.randrange(256)
    first, last = sorted((chance.randrange(size * 8), chance.randrange(size * 8)))
    bits = bin(int.from_bytes(b"\1" + text))[3:]
    dialogue.words(b"SET", b"a", bytes(text))
    dialogue("BITOP NOT b a")

    assert dialogue("BITCOUNT a") == bits.count("1")
    assert dialogue(f"BITCOUNT a {first} {last} BIT") == bits[first : last + 1].count("1")
    assert dialogue(f"BITPOS a 1 {first} {last} BIT") == bits.find("1", first, last + 1)
    assert dialogue(f"BITPOS b 0 {first} {last} BIT") == bits.find("1", first, last + 1)
    assert dialogue("BITOP XOR c a b") == size
    assert dialogue("BITCOUNT c") == size * 8


def test_a_pattern_that_is_compiled_late_matches_as_before() -> None:
    pattern, late = Glob(b"a*[b-d]?e"), Glob(b"a*[b-d]?e", compile_after=2)
    texts = [b"axxcye", b"abce", b"a", b"acxe", b"axcxe", b"aXeXe"] * 2

    assert [late.matches(text) for text in texts] == [pattern.matches(text) for text in texts]


def test_a_request_with_thousands_of_patterns_compiles_none(dialogue: Dialogue) -> None:
    dialogue.raw("PSUBSCRIBE " + " ".join([f"a*{number}*b" for number in range(2000)]))

    assert dialogue.another()("PUBLISH a5b x") == 1
    assert {glob.is_compiled for glob in dialogue.engine.server.subscriptions.globs()} == {False}
