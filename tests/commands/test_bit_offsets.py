"""BITRANGEINTARRAY (Redis 8.12), after the documentation: no Redis at hand knows it."""

from random import Random
from typing import Any

import pytest

from tests.support.dialogue import Dialogue
from tests.support.seeds import seeds

REPLIES: list[tuple[str, Any]] = [
    ("BITRANGEINTARRAY k 0 -1", [1, 7, 8, 23]),
    ("BITRANGEINTARRAY k 0 0", [1, 7]),
    ("BITRANGEINTARRAY k -1 -1 BYTE", [23]),
    ("BITRANGEINTARRAY k 2 8 BIT", [7, 8]),
    ("BITRANGEINTARRAY k -1 -1 BIT ZEROS", []),
    ("BITRANGEINTARRAY k 0 7 BIT ZEROS", [0, 2, 3, 4, 5, 6]),
    ("BITRANGEINTARRAY k 0 -1 BYTE LIMIT 2 ZEROS", [0, 2]),
    ("BITRANGEINTARRAY k 0 -1 zeros limit 1 bit", [0]),
    ("BITRANGEINTARRAY k 0 -1 LIMIT 99", [1, 7, 8, 23]),
    ("BITRANGEINTARRAY k 2 1", []),
    ("BITRANGEINTARRAY k -1 -2", []),
    ("BITRANGEINTARRAY k 7 9", []),
    ("BITRANGEINTARRAY missing 0 -1", []),
]


@pytest.mark.parametrize(("line", "answer"), REPLIES, ids=[line for line, _ in REPLIES])
def test_offsets_are_those_of_the_bits_in_the_range(dialogue: Dialogue, line: str, answer: Any) -> None:
    dialogue.words(b"SET", b"k", b"\x41\x80\x01")

    assert dialogue(line) == answer


REFUSALS = [
    ("BITRANGEINTARRAY k x 1", "ERR value is not an integer or out of range"),
    ("BITRANGEINTARRAY k 0 1 BITS", "ERR syntax error"),
    ("BITRANGEINTARRAY k 0 1 LIMIT 0", "ERR LIMIT must be positive"),
    ("BITRANGEINTARRAY k 0 1 LIMIT", "ERR syntax error"),
    ("BITRANGEINTARRAY l 0 1", "WRONGTYPE Operation against a key holding the wrong kind of value"),
]


@pytest.mark.parametrize(("line", "refusal"), REFUSALS, ids=[line for line, _ in REFUSALS])
def test_a_range_that_is_none_is_refused(dialogue: Dialogue, line: str, refusal: str) -> None:
    dialogue("SET k v", "LPUSH l x")

    assert str(dialogue(line)) == refusal


def test_a_reply_of_gigabytes_is_not_made(dialogue: Dialogue) -> None:
    dialogue("SETBIT k 4294967295 1")

    assert str(dialogue("BITRANGEINTARRAY k 0 -1 ZEROS")).endswith("larger than 1 GB")
    assert dialogue("BITRANGEINTARRAY k 0 -1") == [4294967295]


@pytest.mark.parametrize("seed", seeds(60, 2000))
def test_offsets_are_the_places_of_digits(dialogue: Dialogue, seed: int) -> None:
    chance = Random(seed)
    digits = "".join(chance.choices("01", k=8 * chance.randint(1, 12)))
    dialogue.words(b"SET", b"k", int(digits, 2).to_bytes(len(digits) // 8))
    start, end = sorted(chance.choices(range(len(digits)), k=2))
    wanted, limit = chance.choice([("", "1"), ("ZEROS", "0")]), chance.randint(1, 40)

    answer = dialogue(f"BITRANGEINTARRAY k {start} {end - len(digits)} BIT LIMIT {limit} {wanted[0]}")

    assert answer == [place for place in range(start, end + 1) if digits[place] == wanted[1]][:limit]
