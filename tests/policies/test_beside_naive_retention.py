"""Retention beside a naive model: MAXLEN, MAXAGE, MAXBYTES with each kind of references, and IDLEGROUP; by hand
`python -m tests.policies.test_beside_naive_retention 0 20000` (seeds).
"""

from dataclasses import dataclass, field
from random import Random

import pytest

from penstock.clock import ManualClock, MovableClock
from penstock.engine.aof.rewrite import base_lines
from tests.policies.conftest import PolicyDialogue, made
from tests.support.clock import NOW_MS
from tests.support.engines import loaded_engine
from tests.support.log import UnitLog
from tests.support.same_result import assert_equal, told_on_failure
from tests.support.seeds import run_seeds, seeds

SIDES = ("model", "engine")
STEP_MS = 100  # all that is due is due at a multiple of it
GROUPS = ("g", "h", "i")
POLICIES = (
    "MAXBYTES 40", "MAXBYTES 25 MAXLEN 3 DELREF", "MAXBYTES 30 MAXAGE 900", "MAXBYTES 1 ACKED", "MAXBYTES 30 ACKED",
    "MAXLEN 0 ACKED IDLEGROUP 500", "MAXLEN 2 ACKED IDLEGROUP 800", "MAXBYTES 20 ACKED IDLEGROUP 300",
    "MAXAGE 1200 ACKED IDLEGROUP 1000", "MAXLEN 4 MAXBYTES 60 ACKED IDLEGROUP 400",
)  # fmt: skip


@dataclass(slots=True)
class Group:
    """A group, and when its blocked reader waits no more; 0: it has none. pending: deleted entries, too."""

    used_ms: int
    last: tuple[int, int] = (0, 0)
    pending: set[tuple[int, int]] = field(default_factory=set)
    until_ms: int = 0


class NaiveRetention:
    """A stream as a list of ids and sizes."""

    def __init__(self, policy: str, now_ms: int) -> None:
        words = policy.split()
        self.limits = {word: int(words[at + 1]) for at, word in enumerate(words[:-1]) if words[at + 1].isdigit()}
        self.references = next((word for word in words if word in ("ACKED", "DELREF")), "KEEPREF")
        self.now_ms = now_ms
        self.entries: list[tuple[tuple[int, int], int]] = []
        self.groups: dict[str, Group] = {}
        self.trimmed = 0
        self.last_id = self.floor = (0, 0)

    def is_idle(self, group: Group) -> bool:
        idle_ms = self.limits.get("IDLEGROUP")
        return idle_ms is not None and not group.until_ms and self.now_ms - group.used_ms >= idle_ms

    def settle(self) -> None:
        while (entry := self._next_to_go()) is not None:
            self.entries.remove(entry)
            self.trimmed += 1
            for group in self.groups.values():
                if self.references == "DELREF":
                    group.pending.discard(entry[0])
        lowest = min([group.last for group in self.groups.values() if not self.is_idle(group)], default=(0, 0))
        if lowest > self.last_id:  # entries to come below it are passed over
            self.floor = max(self.floor, lowest)

    def _next_to_go(self) -> tuple[tuple[int, int], int] | None:
        asked = [group for group in self.groups.values() if not self.is_idle(group)]
        for entry_id, size in self.entries:
            is_needed = any(entry_id > group.last or entry_id in group.pending for group in asked) or not asked
            is_kept = self.references == "ACKED" and (is_needed or entry_id <= self.floor)
            if not is_kept and self._is_above_limits(entry_id):
                return entry_id, size
        return None

    def set_back(self, last_id: tuple[int, int]) -> None:
        """XTRIM of everything, and XSETID."""
        self.entries.clear()
        self.last_id, self.floor = last_id, (0, 0)
        self.settle()

    def _is_above_limits(self, entry_id: tuple[int, int]) -> bool:
        most, age_ms, most_bytes = (self.limits.get(name) for name in ("MAXLEN", "MAXAGE", "MAXBYTES"))
        if most is not None and len(self.entries) > most:
            return True
        if age_ms is not None and self.now_ms - entry_id[0] >= age_ms:
            return True
        return most_bytes is not None and self.bytes > most_bytes and entry_id != self.entries[-1][0]

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.entries)

    def read(self, name: str, count: int, no_ack: bool = False) -> list[tuple[int, int]]:
        group = self.groups[name]
        got = [entry_id for entry_id, _ in self.entries if entry_id > group.last][:count]
        group.used_ms = self.now_ms
        if got:
            group.last = got[-1]
            group.pending |= set() if no_ack else set(got)
        if no_ack:
            self.settle()
        return got

    def serve(self) -> None:
        """Blocked readers take what there is."""
        for name, group in self.groups.items():
            if group.until_ms and self.read(name, 10):
                group.until_ms = 0

    def advance(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.now_ms += STEP_MS
            for group in self.groups.values():
                if group.until_ms and group.until_ms <= self.now_ms:
                    group.until_ms, group.used_ms = 0, self.now_ms
            self.settle()


class Beside:
    """An engine and the model, told the same."""

    def __init__(self, policy: str, chance: Random) -> None:
        self.chance = chance
        self.client: PolicyDialogue = made()
        self.model = NaiveRetention(policy, NOW_MS)
        self.readers = {name: self.client.another() for name in GROUPS}
        for name in GROUPS[: chance.randint(0, 3)]:
            self._create(name)
        if not self.model.groups:
            self._add()
        assert self.client(f"PENSTOCK.POLICY s {policy}") == b"OK"

    def take(self) -> None:
        kind = self.chance.randrange(22)
        name = self.chance.choice(list(self.model.groups) or ["g"])
        if kind < 6:
            self._add()
        elif kind < 9 and self.model.groups:
            count, no_ack = self.chance.randint(1, 3), self.chance.random() < 0.2
            self.client(f"XREADGROUP GROUP {name} c COUNT {count} {'NOACK ' * no_ack}STREAMS s >")
            self.model.read(name, count, no_ack)
        elif kind < 12 and self.model.groups:
            self._acknowledge(name)
        elif kind < 15:
            ms = STEP_MS * self.chance.choice((1, 2, 3, 5, 9, 13))
            self.client(f"PENSTOCK.CLOCK ADVANCE {ms}")
            self.model.advance(ms)
        elif kind == 15 and self.model.groups:
            self._block(name)
        elif kind == 16 and self.model.entries:
            self._delete()
        elif kind == 17 and self.model.groups:
            line = self.chance.choice(("XAUTOCLAIM s {} d 999999 0", "XCLAIM s {} c 0 1-1"))
            self.client(line.format(name))
            self.model.groups[name].used_ms = self.model.now_ms
        elif kind == 18 and self.chance.random() < 0.3:
            self._create_or_destroy()
        elif kind == 19 and self.chance.random() < 0.3:
            self._restart()
        elif kind == 20:
            for line in (("RENAME s t", "RENAME t s"), ("COPY s t REPLACE", "RENAME t s"))[self.chance.randrange(2)]:
                self.client(line)
            self._connect()
        self.client("PENSTOCK.CLOCK ADVANCE 0")
        self.model.settle()

    def _add(self) -> None:
        value = "v" * self.chance.choice((1, 1, 5, 9, 15, 40))
        entry_id = self.client(f"XADD s * f {value}").decode()
        self.model.entries.append((numbers(entry_id), 1 + len(value)))
        self.model.last_id = numbers(entry_id)
        self.model.settle()
        self.model.serve()

    def _acknowledge(self, name: str) -> None:
        pending = sorted(self.model.groups[name].pending)
        done = self.chance.sample(pending, min(len(pending), self.chance.randint(1, 3)))
        if done:
            self.client(f"XACK s {name} " + " ".join(f"{ms}-{seq}" for ms, seq in done))
            self.model.groups[name].pending -= set(done)
            self.model.settle()

    def _block(self, name: str) -> None:
        group = self.model.groups[name]
        if not group.until_ms and self.readers[name].session.blocked is None:
            wait_ms = STEP_MS * self.chance.randint(1, 12)
            self.readers[name](f"XREADGROUP GROUP {name} c COUNT 10 BLOCK {wait_ms} STREAMS s >")
            if not self.model.read(name, 10):
                group.until_ms = self.model.now_ms + wait_ms

    def _delete(self) -> None:
        """XDEL of neighbours; or a trim of all, after which the ids of the last moment are given once more."""
        if self.chance.random() < 0.6:
            at = self.chance.randrange(len(self.model.entries))
            gone = self.model.entries[at : at + self.chance.randint(1, 3)]
            self.client("XDEL s " + " ".join(f"{ms}-{seq}" for (ms, seq), _ in gone))
            self.model.entries = [entry for entry in self.model.entries if entry not in gone]
        else:
            self.client("XTRIM s MAXLEN 0", "XSETID s 1-0")
            self.model.set_back((1, 0))
        self.model.settle()

    def _create(self, name: str) -> None:
        assert self.client(f"XGROUP CREATE s {name} 0 MKSTREAM") == b"OK"
        self.model.groups[name] = Group(self.model.now_ms)

    def _create_or_destroy(self) -> None:
        name = self.chance.choice(GROUPS)
        if name not in self.model.groups:
            self._create(name)
        elif not self.model.groups[name].until_ms:
            self.client(f"XGROUP DESTROY s {name}")
            del self.model.groups[name]
        self.model.settle()

    def _restart(self) -> None:
        """Go on with a server that has loaded the log, or a new base file: all groups count as just read."""
        now_ms = self.model.now_ms
        log = UnitLog()
        lines = list(base_lines(self.client.engine.keyspace, self.client.engine.settings, now_ms))
        log.units[:] = lines if self.chance.random() < 0.5 else self.client._log.units
        clock = MovableClock(ManualClock(now_ms))
        clock.stop_at(now_ms)
        engine = loaded_engine(log.units, now_ms, clock=clock)
        engine.effects.log = log
        asked = self.client.asked
        self.client = PolicyDialogue(engine, log)
        self.client.asked = asked
        self._connect()
        for group in self.model.groups.values():
            group.used_ms = now_ms
        self.model.trimmed = 0

    def _connect(self) -> None:
        """New readers; those that were blocked are gone now."""
        for reader in self.readers.values():
            reader.engine.server.disconnect(reader.session)
        self.readers = {name: self.client.another() for name in GROUPS}
        for group in self.model.groups.values():
            if group.until_ms:
                group.until_ms, group.used_ms = 0, self.model.now_ms

    def compare(self) -> None:
        there = [numbers(entry[0].decode()) for entry in self.client("XRANGE s - +")]
        assert_equal([entry_id for entry_id, _ in self.model.entries], there, SIDES)
        policy = self.client("XINFO STREAM s")[-1]
        shown = dict(zip(policy[::2], policy[1::2], strict=True))
        idle = sum(map(self.model.is_idle, self.model.groups.values()))
        assert_equal([self.model.bytes, idle], [shown[b"bytes"], shown[b"idle-groups"]], SIDES)


def numbers(entry_id: str) -> tuple[int, int]:
    ms, seq = entry_id.split("-")
    return int(ms), int(seq)


def told(seed: int) -> None:
    chance = Random(seed)
    beside = Beside(chance.choice(POLICIES), chance)
    with told_on_failure(beside.client.asked):
        for _ in range(chance.randint(20, 80)):
            beside.take()
            beside.compare()
        beside.client.reloaded()
        beside.client.rewritten()


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_a_stream_keeps_what_the_model_keeps(seed: int) -> None:
    told(seed)


if __name__ == "__main__":
    run_seeds(told)
