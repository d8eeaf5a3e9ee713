"""Random dialogues about blessed keys, beside a dict of flags; then replays and files of them."""

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

KEYS: Final = ("a", "b", "c", "d")
NO_KEY: Final = "ERR no such key"


class Model:
    """The keys that are there, and whether each is blessed."""

    def __init__(self) -> None:
        self.blessed: dict[str, bool] = {}

    def bless(self, key: str, holds: bool) -> object:
        if key not in self.blessed:
            return NO_KEY
        changed = self.blessed[key] is not holds
        self.blessed[key] = holds
        return int(changed)

    def rename(self, key: str, other: str) -> object:
        if key not in self.blessed:
            return NO_KEY
        self.blessed[other] = self.blessed.pop(key)
        return b"OK"

    def copy(self, key: str, other: str, replaces: bool) -> int:
        if key not in self.blessed or (other in self.blessed and not replaces):
            return 0
        self.blessed[other] = self.blessed[key]
        return 1

    def delete(self, key: str) -> int:
        return int(self.blessed.pop(key, None) is not None)

    def write(self, key: str) -> bytes:
        self.blessed.setdefault(key, False)
        return b"OK"


def step(model: Model, chance: Random) -> tuple[str, object]:
    """A request, and the model's answer."""
    key, other = chance.sample(KEYS, 2)
    kind = chance.randrange(8)
    if kind == 0:
        return f"BLESS SET {key} NO-EVICT", model.bless(key, True)
    if kind == 1:
        return f"BLESS CLEAR {key} NO-EVICT", model.bless(key, False)
    if kind == 2:
        flags = {True: [b"NO-EVICT"], False: [], None: NO_KEY}
        return f"BLESS GET {key}", flags[model.blessed.get(key)]
    if kind == 3:
        return f"RENAME {key} {other}", model.rename(key, other)
    if kind == 4:
        replaces = chance.choice(["", "REPLACE"])
        return f"COPY {key} {other} {replaces}", model.copy(key, other, replaces != "")
    if kind == 5:
        return chance.choice([f"DEL {key}", f"UNLINK {key}"]), model.delete(key)
    return f"SET {key} {chance.randrange(9)}", model.write(key)


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_blessings_are_flags_of_keys_and_come_back(seed: int) -> None:
    chance, model, log = Random(seed), Model(), UnitLog()
    settings = settings_with(aof_compat_version=chance.choice(["newest", "8.12", "8.6", "7.0"]))
    dialogue = Dialogue(make_engine(ManualClock(NOW_MS), log, settings))

    for _ in range(60):
        line, answer = step(model, chance)
        reply = dialogue(line)
        assert (str(reply) if isinstance(answer, str) else reply) == answer, line

    named = sorted(key.encode() for key, holds in model.blessed.items() if holds)
    assert sorted(dialogue("BLESS SCAN 0 NO-EVICT")[1]) == named
    live = keyspace(dialogue.engine)
    base = base_lines(dialogue.engine.keyspace, settings, NOW_MS)
    for again in (loaded_engine([log.text]), loaded_engine(base), saved_engine(dialogue.engine, NOW_MS)):
        assert keyspace(again) == live
        assert sorted(Dialogue(again)("BLESS SCAN 0 NO-EVICT")[1]) == named
