"""Whatever is asked of a group with policies: no reader waits in vain, and in the end all can be worked off. No model
of what is handed out, only that it is. By hand `python -m tests.policies.test_nothing_is_stuck 0 9999` (seeds).
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock.clock import ManualClock, MovableClock
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.state import FOLLOWING
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream
from tests.policies.conftest import PolicyDialogue, made
from tests.support.dialogue import NO_REPLY
from tests.support.engines import loaded_engine
from tests.support.log import UnitLog
from tests.support.same_result import told_on_failure
from tests.support.seeds import run_seeds, seeds

ORDERS = (
    "", "KEY k", "KEY k LOOKAHEAD 2", "KEY k PARALLEL 2", "KEY k FAIR YES PARALLEL 2 LOOKAHEAD 3",
    "PRIORITY p LOOKAHEAD 3", "PRIORITY p AGING 500", "KEY k PRIORITY p FAIR YES",
)  # fmt: skip
NO_ORDER = "KEY NONE PARALLEL NONE FAIR NONE PRIORITY NONE AGING NONE LOOKAHEAD NONE"
OPTIONS = (
    "INFLIGHT 3", "INFLIGHT NONE", "RATE 4 800", "RATE NONE", "EXPIRE 2500", "EXPIREAT at", "EXPIRE NONE EXPIREAT NONE",
    "DEADLETTER dead MAXDELIVER 2", "DEADLETTER dead", "BACKOFF 200 600", "PAUSE +700", "PAUSE FOREVER", "PAUSE NONE",
)  # fmt: skip
RETENTION = (
    "MAXLEN NONE MAXAGE NONE MAXBYTES NONE IDLEGROUP NONE KEEPREF", "MAXLEN 4", "MAXAGE 4000",
    "MAXLEN 5 DELREF IDLEGROUP NONE", "MAXLEN 2 ACKED IDLEGROUP 3000", "MAXLEN 0 ACKED IDLEGROUP 1500", "MAXBYTES 60",
)  # fmt: skip
ADVANCES = (0, 1, 200, 499, 500, 1000, 1001, 3000)
ROUNDS = 300


class Worked:
    """A stream with the groups g, which has policies, and h; what is random comes from `chance`."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.client: PolicyDialogue = made()
        self.readers = {name: self.client.another() for name in "pq"}
        self.client(
            "XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATE s h 0", "PENSTOCK.POLICY s GROUP h ACKWAIT 1000 KEY k"
        )
        self.client(f"PENSTOCK.POLICY s GROUP g ACKWAIT 1000 {self.chance.choice(ORDERS)}")
        self.client(f"PENSTOCK.POLICY s GROUP g {self.chance.choice(OPTIONS)}")
        if self.chance.random() < 0.5:
            self.client(f"PENSTOCK.POLICY s {self.chance.choice(RETENTION)}")
        self.steps: list[Callable[[], object]] = [
            *[self._add] * 6, *[self._read] * 5, *[self._acknowledge] * 3, *[self._nack] * 2, *[self._advance] * 4,
            *[self._block] * 3, *[self._delete] * 3, self._claim, self._consumer, self._position, self._set_back,
            self._policy, self._policy, self._retention, self._other_group, self._dead_letters, self._follow,
            self._restart, self._look,
        ]  # fmt: skip

    # -- what is asked ----------------------------------------------------------------------------------------------

    def take(self) -> None:
        self.chance.choice(self.steps)()
        self.check()

    def _add(self) -> None:
        now_ms = self.client.engine.clock.now_us() // 1000
        at = self.chance.choice(("", "", f"at +{self.chance.randint(1, 4000)}", f"at {now_ms + 900}"))
        key = self.chance.choice(("k x", "k x", "k y", "k z", "n 1"))
        self.client(f"XADD s * {key} p {self.chance.randint(0, 9)} {at}")

    def _read(self) -> None:
        words = self.chance.choice(("", "", "", "NOACK ", "CLAIM 700 "))
        self.client(f"XREADGROUP GROUP g {self._name()} COUNT {self.chance.randint(1, 4)} {words}STREAMS s >")

    def _block(self) -> None:
        reader = self.chance.choice(list(self.readers.values()))
        if reader.session.blocked is None:
            reader(f"XREADGROUP GROUP g {self._name()} COUNT {self.chance.randint(1, 2)} BLOCK 0 STREAMS s >")

    def _acknowledge(self) -> None:
        line = self.chance.choice(
            ("XACK s g {}", "XACK s g {}", "XACKDEL s g KEEPREF IDS 1 {}", "XACKDEL s g ACKED IDS 1 {}")
        )
        self.client(line.format(self._pending()))

    def _nack(self) -> None:
        mode, tail = (
            self.chance.choice(("FAIL", "SILENT", "FATAL")),
            self.chance.choice(("", "", " DELAY 1500", " FORCE")),
        )
        self.client(f"PENSTOCK.XNACK s g {mode} IDS 1 {self._pending()}{tail}")

    def _claim(self) -> None:
        line = self.chance.choice(
            ("XCLAIM s g {} 0 {}", "XCLAIM s g {} 0 {} JUSTID", "XCLAIM s g {} 0 {} FORCE IDLE 900")
        )
        self.client(line.format(self._name(), self._pending()))
        self.client(f"XAUTOCLAIM s g {self._name()} {self.chance.choice((0, 600))} 0 COUNT 2")

    def _delete(self) -> None:
        length = self.client("XLEN s")
        line = self.chance.choice(
            ("XDEL s {}", "XDEL s {}", "XDELEX s DELREF IDS 1 {}", f"XTRIM s MAXLEN {length // 2}")
        )
        self.client(line.format(self.chance.choice((self._pending(), self._entry()))))

    def _consumer(self) -> None:
        line = self.chance.choice(("XGROUP DELCONSUMER s g {}", "PENSTOCK.DELCONSUMER s g {} RELEASE"))
        self.client(line.format(self._name()))

    def _advance(self) -> None:
        self.client(f"PENSTOCK.CLOCK ADVANCE {self.chance.choice(ADVANCES)}")

    def _position(self) -> None:
        if self.chance.random() < 0.4:
            self.client(f"XGROUP SETID s g {self._entry()}")

    def _set_back(self) -> None:
        """The ids of this moment are given once more."""
        if self.chance.random() < 0.3:
            self.client("XTRIM s MAXLEN 0", "XSETID s 1-0")

    def _policy(self) -> None:
        if self.chance.random() < 0.4:
            self.client(f"PENSTOCK.POLICY s GROUP g {NO_ORDER}")
            self.client(f"PENSTOCK.POLICY s GROUP g ACKWAIT 1000 {self.chance.choice(ORDERS)}")
        else:
            self.client(f"PENSTOCK.POLICY s GROUP g {self.chance.choice(OPTIONS)}")

    def _retention(self) -> None:
        self.client(f"PENSTOCK.POLICY s {self.chance.choice(RETENTION)}")

    def _other_group(self) -> None:
        answer = self.client(f"XREADGROUP GROUP h w COUNT {self.chance.randint(1, 9)} STREAMS s >")
        for entry in answer[0][1] if answer else []:
            if self.chance.random() < 0.8:
                self.client(f"XACK s h {entry[0].decode()}")

    def _dead_letters(self) -> None:
        """They can be written no more, or are driven again."""
        self.client(
            *self.chance.choice((["RENAME dead aside", "RPUSH dead x"], ["RPUSH dead x"], ["PENSTOCK.REDRIVE dead s"]))
        )
        if self.chance.random() < 0.7:
            self._free_dead_letters()

    def _free_dead_letters(self) -> None:
        if self.client("TYPE dead") == b"list":
            self.client("DEL dead")

    def _follow(self) -> None:
        """A replica of a master that deletes and adds; then it is promoted."""
        if any(reader.session.blocked for reader in self.readers.values()):
            return
        link = self.client.another()
        link.session.privileged = True
        self.client.engine.conditions.set(FOLLOWING, True)
        link(f"XDEL s {self._pending()}", f"XADD s * k x p {self.chance.randint(0, 9)}", f"XACK s g {self._pending()}")
        self.client("PENSTOCK.CLOCK ADVANCE 1", "XINFO GROUPS s")
        self.client.engine.conditions.set(FOLLOWING, False)
        self.client("PENSTOCK.CLOCK ADVANCE 0")

    def _restart(self) -> None:
        """Go on with a server that has loaded the log, or a new base file; readers are gone."""
        now_ms = self.client.engine.clock.now_us() // 1000
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
        self.readers = {name: self.client.another() for name in "pq"}
        self.client("PENSTOCK.CLOCK ADVANCE 0")

    def _look(self) -> None:
        self.client("XINFO GROUPS s", "PENSTOCK.PEEK s g COUNT 5", "XINFO STREAM s")

    # -- what is there ----------------------------------------------------------------------------------------------

    def _name(self) -> str:
        return self.chance.choice("abc")

    def _rows(self) -> list[Any]:
        return list(self.client("XPENDING s g - + 1000"))

    def _pending(self) -> str:
        rows = self._rows()
        return self.chance.choice(rows)[0].decode() if rows else self._entry()

    def _entry(self) -> str:
        listed = self.client("XRANGE s - +")
        return self.chance.choice(listed)[0].decode() if listed else "1-1"

    @property
    def stream(self) -> Stream:
        value = self.client.engine.keyspace.databases[0].values[b"s"]
        assert isinstance(value, Stream)
        return value

    def unread(self) -> int:
        runs = self.stream.runs(self.stream.groups[b"g"].last_id + 1, ids.MAX, self.stream.length)
        return sum(stop - start for _, start, stop in runs)

    # -- laws -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """No reader waits while a read would find something; but where dead letters stand in front of it."""
        self.stream.check()
        self.client.engine.keyspace.databases[0].check()
        policy = self.stream.groups[b"g"].policy
        if policy is None or policy.blocked or not any(reader.session.blocked for reader in self.readers.values()):
            return
        shown = [entry[0] for entry in self.client("PENSTOCK.PEEK s g")]
        assert not shown, f"a reader waits, and {shown} may be handed out"

    def work_off(self) -> None:
        """In the end all is acknowledged, or went as a policy says."""
        self._free_dead_letters()
        self.client("PENSTOCK.POLICY s GROUP g ACKWAIT 1000 PAUSE NONE")
        for _ in range(ROUNDS):
            self.client("PENSTOCK.CLOCK ADVANCE 1000")
            answers = [answer for reader in self.readers.values() for answer in reader.arrived()]
            answers.append(self.client("XREADGROUP GROUP g a COUNT 100 STREAMS s >"))
            for answer in answers:
                got = [entry[0].decode() for entry in answer[0][1]] if answer and answer != NO_REPLY else []
                self.client(f"XACK s g {' '.join(got)}" if got else "PING")
            self.check()
            if not self._rows() and not self.unread():
                return
        raise AssertionError(f"{self._rows()} are pending, and {self.unread()} are unread, although a worker reads")


def told(seed: int) -> None:
    worked = Worked(seed)
    with told_on_failure(worked.client.asked):
        for _ in range(worked.chance.randint(20, 80)):
            worked.take()
        worked.work_off()
        worked.client.reloaded()
        worked.client.rewritten()


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_no_reader_waits_in_vain_and_all_is_worked_off_in_the_end(seed: int) -> None:
    told(seed)


def test_a_new_entry_that_was_forced_and_failed_is_handed_out_as_new() -> None:
    told(400_000)


if __name__ == "__main__":
    run_seeds(told)
