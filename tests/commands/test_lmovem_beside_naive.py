"""Random dialogues with LMOVEM and BLMOVEM of Redis 8.10 beside lists, with a reader that waits."""

import random

import pytest

from penstock.clock import ManualClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine
from tests.support.seeds import seeds


class Model:
    """Lists by key, and the words of the request that waits."""

    def __init__(self) -> None:
        self.lists: dict[str, list[str]] = {"a": [], "b": [], "c": []}

    def push(self, key: str, end: str, item: str) -> None:
        self.lists[key].insert(0 if end == "LEFT" else len(self.lists[key]), item)

    def pop(self, key: str, end: str) -> str:
        return self.lists[key].pop(0 if end == "LEFT" else -1)

    def move(self, words: list[str]) -> list[str] | None:
        """source destination from to [COUNT|EXACTLY n OBO|BULK]; the moved items as they stand, or None."""
        source, target, pops, pushes, *block = words
        amount, number, order = block or ["COUNT", "1", "OBO"]
        there = len(self.lists[source])
        if not there or (amount == "EXACTLY" and there < int(number)):
            return None
        taken = [self.pop(source, pops) for _ in range(min(int(number), there))]
        if order == "BULK" and (pops == "RIGHT") != (pushes == "LEFT"):
            taken.reverse()  # they are pushed one by one so that they stand as before
        for item in taken:
            self.push(target, pushes, item)
        return taken[::-1] if pushes == "LEFT" else taken


def random_move(chance: random.Random) -> list[str]:
    ends = [chance.choice(["LEFT", "RIGHT"]), chance.choice(["LEFT", "RIGHT"])]
    block = [chance.choice(["COUNT", "EXACTLY"]), str(chance.randrange(1, 6)), chance.choice(["OBO", "BULK"])]
    return [chance.choice("abc"), chance.choice("abc"), *ends, *chance.choice([[], block, block])]


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_items_are_moved_as_between_lists(seed: int) -> None:
    chance = random.Random(seed)
    model, dialogue = Model(), Dialogue(make_engine(ManualClock(NOW_MS)))
    waits: list[str] = []
    for number in range(200):
        if not waits and chance.randrange(4) == 0:
            words = random_move(chance)
            reader = dialogue.another()
            reply = reader(f"BLMOVEM {' '.join(words[:4])} 0 {' '.join(words[4:])}")
            expected = model.move(words)
            if expected is None:
                waits = words
            else:
                assert reply == [item.encode() for item in expected], words
        elif chance.randrange(2):
            key, end = chance.choice("abc"), chance.choice(["LEFT", "RIGHT"])
            dialogue(f"{end[0]}PUSH {key} {number}")
            model.push(key, end, str(number))
        else:
            words = random_move(chance)
            expected = model.move(words)
            reply = dialogue(f"LMOVEM {' '.join(words)}")
            assert reply == (None if expected is None else [item.encode() for item in expected]), words
        if waits:
            expected = model.move(waits)
            assert reader.arrived() == ([] if expected is None else [[item.encode() for item in expected]]), waits
            waits = [] if expected is not None else waits
        for key, items in model.lists.items():
            assert dialogue(f"LRANGE {key} 0 -1") == [item.encode() for item in items], key
