"""Random moves between sorted sets, beside dicts; and what a replay makes of their log."""

from random import Random
from typing import Final

import pytest

from penstock.clock import ManualClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.seeds import seeds

KEYS: Final = ["x", "y", "z"]
MEMBERS: Final = ["a", "b", "c", "d", "long" * 20]


class Model:
    """Members and scores by key."""

    def __init__(self) -> None:
        self.sets: dict[str, dict[str, int]] = {key: {} for key in KEYS}

    def ordered(self, key: str) -> list[str]:
        return sorted(self.sets[key], key=lambda member: (self.sets[key][member], member))

    def move(self, source: str, destination: str, members: list[str]) -> list[bytes] | None:
        for member in members:
            self.sets[destination][member] = self.sets[source].pop(member)
        return [member.encode() for member in members] or None


def step(model: Model, chance: Random) -> tuple[str, object]:
    """A request, and the model's answer."""
    source, destination = chance.choices(KEYS, k=2)
    count = chance.randint(1, 4)
    there = [] if source == destination else model.ordered(source)
    kind = chance.randrange(5)
    if kind == 0:
        line, found = f"ZMOVE {source} {destination} MIN COUNT {count}", there[:count]
    elif kind == 1:
        line, found = f"BZMOVE {source} {destination} MAX 0.1 COUNT {count}", there[::-1][:count]
    elif kind == 2:
        low, high = chance.randint(0, 4), chance.randint(0, 6)
        line = f"ZMOVE {source} {destination} BYSCORE {low} ({high}"
        found = [member for member in there if low <= model.sets[source][member] < high]
    elif kind == 3:
        named = chance.choices(MEMBERS, k=count)
        condition = chance.choice(["", "NX", "XX"])
        line = f"ZMOVEMEMBER {source} {destination} {condition} MEMBERS {count} {' '.join(named)}"
        allowed = {"": set(MEMBERS), "XX": set(model.sets[destination])}
        allowed["NX"] = set(MEMBERS) - allowed["XX"]
        found = [member for member in dict.fromkeys(named) if member in there and member in allowed[condition]]
    else:
        member, score = chance.choice(MEMBERS), chance.randint(0, 5)
        is_new = member not in model.sets[source]
        model.sets[source][member] = score
        return f"ZADD {source} {score} {member}", int(is_new)
    return line, model.move(source, destination, found)


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_moves_are_moves_between_dicts_and_come_back(seed: int) -> None:
    chance, model, log = Random(seed), Model(), UnitLog()
    dialogue = Dialogue(make_engine(ManualClock(NOW_MS), log))
    dialogue("MULTI")  # where no request waits
    expected = []
    for _ in range(50):
        line, answer = step(model, chance)
        assert dialogue(line) == b"QUEUED", line
        expected.append(answer)

    assert dialogue("EXEC") == expected
    for key in KEYS:
        assert dialogue(f"ZRANGE {key} 0 -1") == [member.encode() for member in model.ordered(key)]
    assert keyspace(loaded_engine([log.text])) == keyspace(dialogue.engine)
