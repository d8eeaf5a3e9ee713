"""Random dialogues with INCREX of Redis 8.8, and with NX and XX of Valkey 9.2, beside a dict of numbers and times."""

import random

import pytest

from penstock.clock import ManualClock
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.seeds import seeds

LEAST, MOST = -(2**63), 2**63 - 1
NUMBERS = [-7, -1, 0, 1, 5, 300, MOST, LEAST, MOST - 3]
NOT_MET = [0, 0]


class Model:
    """Integers by key with their times of expiry in unix ms; `now_ms` is the clock's."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.times: dict[str, int] = {}
        self.now_ms = NOW_MS

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        for key in [key for key, when_ms in self.times.items() if when_ms < self.now_ms]:
            del self.times[key], self.values[key]

    def change(self, key: str, by: int, bounds: list[int | None], saturates: bool, expiry: str, asks: str) -> list[int]:
        """INCREX; expiry: "" or PX, PXAT or PERSIST with its number, and ENX. asks: NX, XX or nothing."""
        old = self.values.get(key, 0)
        if (asks == "NX" and key in self.values) or (asks == "XX" and key not in self.values):
            return [old, 0]
        low, high = (LEAST if bounds[0] is None else bounds[0]), (MOST if bounds[1] is None else bounds[1])
        new = old + by
        if not low <= new <= high:
            if not saturates:
                return [old, 0]
            new = min(max(new, low), high)
        words = expiry.split()
        self.values[key] = new
        if words[:1] == ["PERSIST"]:
            self.times.pop(key, None)
        elif words and not ("ENX" in words and key in self.times):
            when_ms = int(words[1]) + (self.now_ms if words[0] == "PX" else 0)
            self.times[key] = when_ms
            if when_ms <= self.now_ms:
                del self.values[key], self.times[key]
        return [new, new - old]


@pytest.mark.parametrize("version", ["newest", "valkey-9.2"])
@pytest.mark.parametrize("seed", seeds(5, 60))
def test_increx_replies_and_keeps_what_a_dict_does(seed: int, version: str) -> None:
    chance = random.Random(seed)
    clock, model = ManualClock(NOW_MS), Model()
    dialogue = Dialogue(make_engine(clock, settings=settings_with(compat_version=version)))
    for _ in range(250):
        if chance.randrange(6) == 0:
            ms = chance.choice([1, 4, 50])
            clock.advance(ms)
            model.pass_time(ms)
        key, by = chance.choice("abc"), chance.choice(NUMBERS)
        bounds = sorted(chance.choices(NUMBERS, k=2))
        given = [one if chance.randrange(3) else None for one in bounds]
        saturates = chance.randrange(3) == 0
        past_or_not = model.now_ms + chance.choice([-5, 3, 100])
        expiry = chance.choice(["", "", "PX 3", "PX 100", f"PXAT {past_or_not}", "PERSIST", "PX 5 ENX"])
        asks = chance.choice(["", "NX", "XX"]) if version != "newest" else ""
        words = [
            f"BYINT {by}", "" if given[0] is None else f"LBOUND {given[0]}",
            "" if given[1] is None else f"UBOUND {given[1]}", "SATURATE" if saturates else "", expiry, asks,
        ]  # fmt: skip
        chance.shuffle(words)
        line = f"INCREX {key} {' '.join(filter(None, words))}"
        reply = dialogue(line)
        old = model.values.get(key, 0)
        expected = model.change(key, by, given, saturates, expiry, asks)
        if not LEAST <= expected[1] <= MOST:  # a change that no reply can tell
            assert str(reply) == "ERR applied increment would overflow", line
            model.values.pop(key, None), model.times.pop(key, None)
            dialogue(f"DEL {key}")
            continue
        assert reply == expected, (line, old)
        assert dialogue(f"PTTL {key}") == (
            -2 if key not in model.values else max(model.times[key] - model.now_ms, 0) if key in model.times else -1
        ), line
