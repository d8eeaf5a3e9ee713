"""PENSTOCK.XCOUNT says of a range what XRANGE shows of it."""

import random

import pytest

from penstock.storage.streams.segment import MOST_SLOTS
from tests.support.dialogue import Dialogue
from tests.support.seeds import seeds

BOUNDS = ("-", "+", "{}", "({}")


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_a_range_is_counted_as_xrange_returns_it(dialogue: Dialogue, seed: int) -> None:
    chance = random.Random(seed)
    places = [f"{number // 7}-{number % 7}" for number in range(1, chance.choice([1, 3, 4]) * MOST_SLOTS + 9)]
    dialogue(*[f"XADD s {one} f v" for one in places])
    for _ in range(8):
        dialogue(f"XDEL s {' '.join(chance.sample(places, chance.choice([1, 5, len(places) // 3])))}")
        dialogue(*[f"XTRIM s MINID {one}" for one in chance.sample(places[: len(places) // 2], chance.randint(0, 1))])
        start, end = (chance.choice(BOUNDS).format(chance.choice(places)) for _ in range(2))
        count, every = chance.choice([1, 5, MOST_SLOTS, 10_000]), chance.choice([1, 2, 50, MOST_SLOTS, 10_000])

        found = [entry[0] for entry in dialogue(f"XRANGE s {start} {end} COUNT {count}")]
        marks = found[every - 1 :: every]
        marks += found[-1:] if found[-1:] != marks[-1:] else []
        assert dialogue(f"PENSTOCK.XCOUNT s {start} {end} COUNT {count} EVERY {every}") == [len(found), marks]
        assert dialogue(f"PENSTOCK.XCOUNT s {start} {end}")[0] == len(dialogue(f"XRANGE s {start} {end}"))
