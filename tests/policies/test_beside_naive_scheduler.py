"""What a group hands out beside a naive model (naive_scheduler.py); by hand
`python -m tests.policies.test_beside_naive_scheduler 0 20000` (seeds, and which plans).
"""

import sys
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from penstock.clock import ManualClock, MovableClock
from penstock.engine.aof.rewrite import base_lines
from tests.policies.conftest import PolicyDialogue, made
from tests.policies.naive_scheduler import NEVER, NaiveScheduler, Plan
from tests.support.clock import NOW_MS
from tests.support.dialogue import NO_REPLY
from tests.support.engines import loaded_engine
from tests.support.log import UnitLog
from tests.support.same_result import assert_equal, told_on_failure
from tests.support.seeds import run_seeds, seeds

Step = tuple[int, int, int]

SIDES = ("model", "engine")
ADVANCES = (1, 299, 300, 600, 999, 1000, 1000, 2500)
LEASED = Plan(ack_wait_ms=1000, backoff_ms=(300, 900))
PLANS = {
    "expire": Plan(expire_ms=1500, expires_at=True),
    "leased, expire": replace(LEASED, expire_ms=1500, expires_at=True),
    "leased, expire, dead letters": replace(LEASED, most=3, has_dead_letters=True, expires_at=True),
    "expire, key, limits": replace(LEASED, expire_ms=2500, keyed=True, in_flight=2, rate=(3, 700)),
    "parallel": replace(LEASED, keyed=True, parallel=2),
    "parallel, lookahead": replace(LEASED, keyed=True, parallel=2, look_ahead=3),
    "priority": replace(LEASED, by_priority=True),
    "priority, lookahead": replace(LEASED, by_priority=True, look_ahead=2),
    "priority, aging, expire": replace(LEASED, by_priority=True, aging_ms=400, expire_ms=2000, expires_at=True),
    "priority, key, parallel": replace(LEASED, by_priority=True, keyed=True, parallel=2),
    "fair": replace(LEASED, keyed=True, fair=True),
    "fair, parallel, limits": replace(LEASED, keyed=True, parallel=3, fair=True, in_flight=4, rate=(5, 900)),
    "all": replace(
        LEASED, most=3, has_dead_letters=True, keyed=True, parallel=2, fair=True, by_priority=True, aging_ms=300,
        look_ahead=4, expire_ms=4000, expires_at=True, in_flight=5, rate=(6, 800),
    ),
}  # fmt: skip
FOUND = {
    ("all", 472): "a lease ended at the moment at which an entry without an owner expired: the model moved it first",
    ("all", 518): "a blocked reader was served by the command that ends a pause: the model looked at leases before",
    ("all", 1120): "as the first one",
    (
        "expire, key, limits",
        200_422,
    ): "a blocked reader set an entry aside, which freed one: in the model it got that later",
    ("all", 300_027): "PEEK did not count what is delivered again for its value",
    ("all", 300_129): "an entry expired among others that are new, and one behind it came into reach unseen",
}


class Beside:
    """An engine and the model, told the same. ids: of the entries, by their numbers from 1 on."""

    def __init__(self, plan: Plan) -> None:
        self.client: PolicyDialogue = made()
        self.model = NaiveScheduler(plan, NOW_MS)
        self.readers = {name: self.client.another() for name in "pqr"}
        self.ids: list[str] = ["0-0"]
        self.client("XGROUP CREATE s g 0 MKSTREAM")
        assert self.client(f"PENSTOCK.POLICY s GROUP g {plan.words()}") == b"OK"

    def take(self, step: Step) -> None:
        kind, one, two = step
        rows = self.model.rows()
        number = rows[one % len(rows)][0] if rows else 0
        if kind < 6:
            self._add(one, two)
        elif kind < 10:
            self._read("abc"[one % 3], 1 + two % 4, two % 7 == 0)
        elif kind < 12:
            self._block("pqr"[one % 3], 1 + two % 2)
        elif kind < 15:
            self.client(f"PENSTOCK.CLOCK ADVANCE {ADVANCES[one % len(ADVANCES)]}")
            self.model.advance(ADVANCES[one % len(ADVANCES)])
        elif kind < 17:
            self.client(f"XACK s g {self.ids[number]}")
            self.model.acknowledge(number)
        elif kind < 19:
            self._fail(number, two)
        elif kind == 19:
            self.client(f"XCLAIM s g {'abc'[two % 3]} 0 {self.ids[number]}{' JUSTID' * (two % 2)}")
            self.model.claim(number, "abc"[two % 3], bool(two % 2))
        elif kind == 20:
            self._delete(one, two)
        elif kind == 21 and two % 3 == 0:
            self.model.paused = not self.model.paused
            self.client(f"PENSTOCK.POLICY s GROUP g PAUSE {'FOREVER' if self.model.paused else 'NONE'}")
            self.model.serve()
            self.client("PENSTOCK.CLOCK ADVANCE 0")
            self.model.look_anew()
        elif kind == 22 and two % 3 == 0:
            self._restart(two % 2 == 0)
        if two % 5 == 0:
            self.client(f"PENSTOCK.PEEK s g COUNT {1 + one % 9}")
        self.compare()

    def _add(self, one: int, two: int) -> None:
        at_ms = (0, 0, NOW_MS + two % 5000, self.model.now_ms + one % 2000)[two % 4]
        is_relative = two % 8 > 4 and at_ms >= self.model.now_ms
        fields = ["k", "xyz"[one % 3]] if one % 7 else ["n", "1"]
        fields += ["at", f"+{at_ms - self.model.now_ms}" if is_relative else str(at_ms)] if at_ms else []
        level = one // 7 % 13
        fields += ["p", str(level)] if level < 12 else []
        self.ids.append(self.client("XADD s * " + " ".join(fields)).decode())
        plan = self.model.plan
        expires_ms = self.model.now_ms + plan.expire_ms if plan.expire_ms else NEVER
        expires_ms = at_ms if at_ms and plan.expires_at else expires_ms
        self.model.add(len(self.ids) - 1, fields[1] if one % 7 else "", expires_ms, level if level < 10 else 4)

    def _read(self, consumer: str, count: int, no_ack: bool) -> None:
        shown, moved = self.client(f"PENSTOCK.PEEK s g COUNT {count}"), self.model.moved()
        answer = self.client(f"XREADGROUP GROUP g {consumer} COUNT {count} {'NOACK ' * no_ack}STREAMS s >")
        assert_equal(self.model.read(consumer, count, no_ack), self._numbers_of(answer), SIDES)
        if not no_ack and self.model.moved() == moved:  # what moves at a read may free others for it
            assert_equal(answer[0][1] if answer else [], shown, ("read", "shown before"))

    def _block(self, consumer: str, count: int) -> None:
        reader = self.readers[consumer]
        if reader.session.blocked is None:
            answer = reader(f"XREADGROUP GROUP g {consumer} COUNT {count} BLOCK 0 STREAMS s >")
            got = self.model.read(consumer, count)
            assert_equal(got, self._numbers_of(answer), SIDES)
            if not got:
                self.model.blocked.append((consumer, count))

    def _fail(self, number: int, two: int) -> None:
        delay_ms = 450 * (two % 3 == 0)
        is_silent = two % 5 == 0
        delay = f" DELAY {delay_ms}" if delay_ms else ""
        self.client(f"PENSTOCK.XNACK s g {'SILENT' if is_silent else 'FAIL'} IDS 1 {self.ids[number]}{delay}")
        self.model.fail(number, delay_ms, is_silent)

    def _delete(self, one: int, two: int) -> None:
        new = self.model.new()
        if two % 2 and new:
            number = new[one % len(new)].number
            self.client(f"XDEL s {self.ids[number]}")
            self.model.delete_new(number)
        elif not two % 2 and self.model.plan.ack_wait_ms:
            self.client(f"XGROUP DELCONSUMER s g {'abcpqr'[one % 6]}")
            self.model.delete_consumer("abcpqr"[one % 6])

    def _restart(self, from_base: bool) -> None:
        """Go on with a server that has loaded the log, or a new base file, if nothing is blocked.

        The order of several that are ready again may be another then.
        """
        if self.model.blocked or len(self.model.retries()) > 1:
            return
        now_ms = self.model.now_ms
        log = UnitLog()
        lines = list(base_lines(self.client.engine.keyspace, self.client.engine.settings, now_ms))
        log.units[:] = lines if from_base else self.client._log.units
        clock = MovableClock(ManualClock(now_ms))
        clock.stop_at(now_ms)
        engine = loaded_engine(log.units, now_ms, clock=clock)
        engine.conditions.loaded_ms = 0  # leases end without the time that a start gives
        engine.effects.log = log
        asked = self.client.asked
        self.client = PolicyDialogue(engine, log)
        self.client.asked = asked
        self.readers = {name: self.client.another() for name in "pqr"}
        self.client("PENSTOCK.CLOCK ADVANCE 0")
        self.model.restart()

    def compare(self) -> None:
        served = self.model.taken()
        for consumer, reader in self.readers.items():
            wanted = [served[consumer]] if consumer in served else []
            assert_equal(wanted, [self._numbers_of(answer) for answer in reader.arrived()], SIDES)
        rows = self.client("XPENDING s g - + 1000")
        seen = [(self.ids.index(row[0].decode()), row[1].decode(), *row[2:]) for row in rows]
        assert_equal(self.model.rows(), seen, SIDES)
        dead = [
            (self.ids.index(entry[1][-7].decode()), entry[1][-1].decode()) for entry in self.client("XRANGE dead - +")
        ]
        assert_equal(self.model.dead, dead, SIDES)
        lag = self.client("XINFO GROUPS s")[0][11]
        assert_equal(len(self.model.new()), lag, SIDES) if lag is not None else None

    def _numbers_of(self, answer: Any) -> list[int]:
        """The entries of a reply to XREADGROUP."""
        found = answer[0][1] if answer and answer != NO_REPLY else []
        return [self.ids.index(entry[0].decode()) for entry in found]


def told(plan: Plan, seed: int) -> None:
    chance = Random(seed)
    beside = Beside(plan)
    with told_on_failure(beside.client.asked):
        for _ in range(chance.randint(20, 80)):
            beside.take((chance.randint(0, 22), chance.randint(0, 10_000), chance.randint(0, 10_000)))
        beside.client.reloaded()
        beside.client.rewritten()


@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_group_hands_out_what_the_model_says(plan: Plan, seed: int) -> None:
    told(plan, seed)


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_a_group_hands_out_what_the_model_says_where_they_once_differed(name: str, seed: int) -> None:
    told(PLANS[name], seed)


if __name__ == "__main__":
    for name in sys.argv[3:] or PLANS:
        run_seeds(partial(told, PLANS[name]), name)
