"""Random dialogues about sets with members that expire, beside a dict of times; then replays and files of them."""

from random import Random
from typing import Final

import pytest

from penstock.clock import ManualClock
from penstock.engine.aof.rewrite import base_lines
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import loaded_engine, make_engine, saved_engine, settings_with
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog
from tests.support.seeds import seeds

MEMBERS: Final = ["1", "2", "30", "a", "b", "long" * 20]
NEVER: Final = 1 << 62
CONDITIONS: Final = {
    "": lambda old, new: True,
    "NX": lambda old, new: old == NEVER,
    "XX": lambda old, new: old != NEVER,
    "GT": lambda old, new: new > old,
    "LT": lambda old, new: new < old,
}


class Model:
    """The members of one set with their times of expiry, in unix ms; `now_ms` is the clock's."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        self.now_ms = NOW_MS

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.times = {member: when_ms for member, when_ms in self.times.items() if when_ms >= self.now_ms}

    def expire(self, when_ms: int, condition: str, members: list[str]) -> list[int]:
        answers = []
        for member in members:
            if member not in self.times:
                answers.append(-2)
            elif not CONDITIONS[condition](self.times[member], when_ms):
                answers.append(0)
            elif when_ms <= self.now_ms:
                del self.times[member]
                answers.append(2)
            else:
                self.times[member] = when_ms
                answers.append(1)
        return answers

    def add(self, existence: str, when_ms: int | None, keeps: bool, members: list[str]) -> int:
        there = [member for member in members if member in self.times]
        if (existence == "MNX" and there) or (existence == "MXX" and len(there) < len(members)):
            return 0
        for member in members:
            if when_ms is not None and when_ms <= self.now_ms:
                self.times.pop(member, None)
            elif when_ms is not None:
                self.times[member] = when_ms
            elif not keeps or member not in self.times:
                self.times[member] = NEVER
        return 1

    def persist(self, members: list[str]) -> list[int]:
        answers = []
        for member in members:
            old = self.times.get(member)
            answers.append(-2 if old is None else -1 if old == NEVER else 1)
            if old is not None:
                self.times[member] = NEVER
        return answers

    def remaining(self, members: list[str]) -> list[int]:
        times = [self.times.get(member) for member in members]
        return [-2 if one is None else -1 if one == NEVER else one - self.now_ms for one in times]


def step(model: Model, chance: Random) -> tuple[str, object]:
    """A request, and the model's answer."""
    members = chance.choices(MEMBERS, k=chance.randint(1, 3))
    tail = f"MEMBERS {len(members)} {' '.join(members)}"
    kind = chance.randrange(6)
    when_ms = model.now_ms + chance.choice([-5, 0, 10, 500, 9000])
    if kind == 0:
        condition = chance.choice(list(CONDITIONS))
        return f"SPEXPIREAT s {when_ms} {condition} {tail}", model.expire(when_ms, condition, members)
    if kind == 1:
        existence = chance.choice(["", "MNX", "MXX"])
        expiration = chance.choice(["", "KEEPTTL", f"PXAT {when_ms}"])
        given_ms = when_ms if expiration.startswith("P") else None
        return f"SADDEX s {existence} {expiration} {tail}", model.add(existence, given_ms, expiration != "", members)
    if kind == 2:
        return f"SPERSIST s {tail}", model.persist(members)
    if kind == 3:
        return f"SPTTL s {tail}", model.remaining(members)
    if kind == 4:
        removed = len(set(members) & set(model.times))
        model.times = {member: when for member, when in model.times.items() if member not in members}
        return f"SREM s {' '.join(members)}", removed
    added = len(set(members) - set(model.times))
    model.times = dict.fromkeys(members, NEVER) | model.times
    return f"SADD s {' '.join(members)}", added


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_sets_with_times_are_dicts_of_times_and_come_back(seed: int) -> None:
    chance, model, log, clock = Random(seed), Model(), UnitLog(), ManualClock(NOW_MS)
    settings = settings_with(aof_compat_version=chance.choice(["newest", "8.12", "8.6", "7.0"]))
    dialogue = Dialogue(make_engine(clock, log, settings))
    for _ in range(8):
        for _ in range(8):
            model.pass_time(chance.choice([0, 0, 0, 7, 11]))
            clock.set_ms(model.now_ms)
            if chance.random() < 0.5:
                dialogue.engine.tick()
            line, answer = step(model, chance)
            assert dialogue(line) == answer, line
            assert sorted(dialogue("SMEMBERS s")) == sorted(member.encode() for member in model.times)
            dialogue.engine.keyspace.databases[0].check()

        live = keyspace(dialogue.engine)
        assert keyspace(loaded_engine([log.text], model.now_ms)) == live
        base = base_lines(dialogue.engine.keyspace, settings, model.now_ms)
        assert keyspace(loaded_engine(base, model.now_ms)) == live
        assert keyspace(saved_engine(dialogue.engine, model.now_ms)) == live
