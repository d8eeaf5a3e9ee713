"""BITRANGEINTARRAY (Redis 8.12), after the documentation: no Redis at hand knows it."""

from random import Random

import pytest

from tests.support.dialogue import Dialogue
from tests.support.seeds import seeds


def test_a_reply_of_gigabytes_is_not_made(dialogue: Dialogue) -> None:
    dialogue("SETBIT k 4294967295 1")

    assert str(dialogue("BITRANGEINTARRAY k 0 -1 ZEROS")).endswith("larger than 1 GB")
    assert dialogue("BITRANGEINTARRAY k 0 -1") == [4294967295]


@pytest.mark.parametrize("seed", seeds(15, 60))
def test_offsets_are_the_places_of_digits(dialogue: Dialogue, seed: int) -> None:
    chance = Random(seed)
    digits = "".join(chance.choices("01", k=8 * chance.randint(1, 12)))
    dialogue.words(b"SET", b"k", int(digits, 2).to_bytes(len(digits) // 8))
    start, end = sorted(chance.choices(range(len(digits)), k=2))
    wanted, limit = chance.choice([("", "1"), ("ZEROS", "0")]), chance.randint(1, 40)

    answer = dialogue(f"BITRANGEINTARRAY k {start} {end - len(digits)} BIT LIMIT {limit} {wanted[0]}")

    assert answer == [place for place in range(start, end + 1) if digits[place] == wanted[1]][:limit]
