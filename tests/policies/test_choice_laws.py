"""Laws of PARALLEL, FAIR, PRIORITY and LOOKAHEAD, seen from replies alone; no model of how a group chooses."""

from random import Random

import pytest

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_leases import read_ids
from tests.support.clock import NOW_MS
from tests.support.seeds import seeds

VALUES = "vwxyz"
AGING_MS, PARALLEL, IN_FLIGHT, LOOK_AHEAD = 500, 2, 6, 12


class Group:
    """A group; what it was told, and what it has handed out.

    values, levels, added_ms: of entries by their ids. busy: with workers. fresh: never handed out.
    """

    def __init__(self, options: str, chance: Random) -> None:
        self.client: PolicyDialogue = made()
        self.chance = chance
        self.now_ms = NOW_MS
        self.values: dict[str, str] = {}
        self.levels: dict[str, int] = {}
        self.added_ms: dict[str, int] = {}
        self.busy: list[str] = []
        self.fresh: list[str] = []
        self.done: list[str] = []
        self.first_delivered: list[str] = []
        self.waits = dict.fromkeys(VALUES, 0)
        self.client("XGROUP CREATE s g 0 MKSTREAM", f"PENSTOCK.POLICY s GROUP g ACKWAIT 900000 {options}")

    def add(self) -> None:
        """Four of five entries are of one value."""
        value = "v" if self.chance.random() < 0.8 else self.chance.choice(VALUES)
        level = self.chance.randint(0, 9)
        entry_id = self.client(f"XADD s * k {value} p {level}").decode()
        self.values[entry_id], self.levels[entry_id], self.added_ms[entry_id] = value, level, self.now_ms
        self.fresh.append(entry_id)

    def pass_time(self) -> None:
        ms = self.chance.choice((1, 100, 700))
        self.client(f"PENSTOCK.CLOCK ADVANCE {ms}")
        self.now_ms += ms

    def acknowledge(self) -> None:
        if self.busy:
            entry_id = self.busy.pop(self.chance.randrange(len(self.busy)))
            assert self.client(f"XACK s g {entry_id}") == 1
            self.done.append(entry_id)

    def read(self, judge_each: bool) -> list[str]:
        count = self.chance.randint(1, 3)
        got = read_ids(self.client, f"XREADGROUP GROUP g {self.chance.choice('abc')} COUNT {count} STREAMS s >")
        for entry_id in got:
            if judge_each:
                self._count_waits(self.values[entry_id])
            self.fresh.remove(entry_id)
            self.busy.append(entry_id)
            self.first_delivered.append(entry_id)
        return got

    def _count_waits(self, chosen: str) -> None:
        """A value with something to hand out and nothing with a worker waits for one delivery to another value."""
        for value in VALUES:
            has_some = any(self.values[entry_id] == value for entry_id in self.fresh)
            is_idle = not any(self.values[entry_id] == value for entry_id in self.busy)
            self.waits[value] = self.waits[value] + 1 if has_some and is_idle and value != chosen else 0
            assert self.waits[value] <= len(VALUES) - 1, f"{value} starves"

    def restart(self) -> None:
        """The log is loaded: the same is pending."""
        self.client.reloaded()
        self.client.rewritten()


def run(group: Group, judge_each: bool) -> None:
    """Random steps; then all that is left is worked on."""
    for _ in range(150):
        step = group.chance.random()
        if step < 0.4:
            group.add()
        elif step < 0.7:
            group.read(judge_each)
        elif step < 0.95:
            group.acknowledge()
        else:
            group.pass_time()
        waiting = [row for row in group.client("XPENDING s g - + 1000") if not row[1]]
        assert len(waiting) <= LOOK_AHEAD
        assert len(group.busy) <= IN_FLIGHT
        for value in VALUES:
            assert sum(group.values[entry_id] == value for entry_id in group.busy) <= PARALLEL
    group.restart()
    while group.busy or group.fresh:
        group.read(False)
        group.acknowledge()
    assert sorted(group.done) == sorted(group.values), "an entry was lost, or done twice"
    assert group.client("XPENDING s g")[0] == 0


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_limits_hold_no_value_starves_and_nothing_is_lost(seed: int) -> None:
    options = f"KEY k PARALLEL {PARALLEL} FAIR YES INFLIGHT {IN_FLIGHT} LOOKAHEAD {LOOK_AHEAD}"
    run(Group(options, Random(seed)), False)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_value_with_nothing_with_a_worker_waits_for_one_delivery_of_each_other(seed: int) -> None:
    group = Group(f"KEY k PARALLEL {PARALLEL} FAIR YES INFLIGHT {IN_FLIGHT}", Random(seed))
    for _ in range(300):
        group.chance.choice((group.add, group.acknowledge, lambda: group.read(True)))()


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_an_entry_is_overtaken_only_by_levels_that_are_worth_more_than_its_age(seed: int) -> None:
    group = Group(f"PRIORITY p AGING {AGING_MS}", Random(seed))
    for _ in range(300):
        group.chance.choice((group.add, group.add, group.pass_time, group.acknowledge))()
        if group.chance.random() < 0.3:
            behind = list(group.fresh)
            for chosen in group.read(False):
                behind.remove(chosen)
                for other in behind:
                    worth_ms = (group.levels[chosen] - group.levels[other]) * AGING_MS
                    assert group.added_ms[chosen] - group.added_ms[other] <= worth_ms


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_within_a_value_and_a_level_the_older_entry_comes_first(seed: int) -> None:
    group = Group(f"PRIORITY p KEY k PARALLEL {PARALLEL}", Random(seed))
    for _ in range(300):
        group.chance.choice((group.add, group.acknowledge, lambda: group.read(False)))()
    of_value = {value: [at for at in group.first_delivered if group.values[at] == value] for value in VALUES}

    assert of_value == {value: [at for at in group.values if at in listed] for value, listed in of_value.items()}
