"""A random history of a stream with policies, and what must hold at any moment of it.

A history is a list of triples of numbers; each is read as a request that fits the state, so that hypothesis can shrink
it. The laws here are written from the text of docs/policies.md, not from the code.
"""

from collections.abc import Callable
from typing import Any

from penstock.clock import ManualClock, MovableClock
from penstock.engine.engine import Engine
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream
from tests.policies.conftest import PolicyDialogue
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine
from tests.support.keyspace_picture import keyspace
from tests.support.log import UnitLog

Step = tuple[int, int, int]

CONSUMERS = ("a", "b", "c")
STREAM_POLICIES = (
    "MAXLEN 0 ACKED", "MAXLEN 3 ACKED", "MAXAGE 5000 ACKED", "MAXLEN 4 KEEPREF", "MAXLEN 5 DELREF", "MAXAGE 8000",
    "MAXLEN NONE MAXAGE NONE KEEPREF", "RESET",
)  # fmt: skip
GROUP_POLICIES = (
    "ACKWAIT 1000", "ACKWAIT 3000 BACKOFF 500 2000", "ACKWAIT 1000 KEY k", "ACKWAIT 2000 MAXDELIVER 2 DEADLETTER dead",
    "ACKWAIT 500 REAP 4000", "MAXDELIVER 3 DEADLETTER dead", "JITTER 50 BACKOFF 100 1000 ACKWAIT 700", "RESET",
)  # fmt: skip
ADVANCES = (0, 1, 99, 500, 999, 1000, 1001, 3000, 10_000)


class History:
    """One history, told to an engine. done: entries that each group acknowledged; delivered: hand-outs of each."""

    def __init__(self, pieces: int = 1) -> None:
        self.log = UnitLog()
        self.engine: Engine = make_engine(MovableClock(ManualClock(NOW_MS)), self.log)
        self.client = PolicyDialogue(self.engine, self.log)
        self.readers = [self.client.another() for _ in CONSUMERS]
        self.pieces = pieces  # of each advance of the clock
        self.done: dict[str, set[bytes]] = {"g": set(), "h": set()}
        self.client(f"PENSTOCK.CLOCK SET {NOW_MS}", "XADD s * k x", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0")

    def ask(self, line: str) -> Any:
        answer = self.client(line)
        self.check()
        return answer

    @property
    def stream(self) -> Stream | None:
        value = self.engine.keyspace.databases[0].values.get(b"s")
        return value if isinstance(value, Stream) else None

    def entry(self, number: int) -> str:
        """An id of the stream; of no entry if there is none."""
        listed = [entry[0].decode() for entry in self.client("XRANGE s - +")]
        return listed[number % len(listed)] if listed else "1-1"

    def pending(self, group: str, number: int) -> str:
        """An id that is pending in a group."""
        listed = self.client(f"XPENDING s {group} - + 100")
        return listed[number % len(listed)][0].decode() if listed else self.entry(number)

    def take(self, step: Step) -> None:
        """Carry out one step."""
        kind, one, two = step
        steps: tuple[Callable[[int, int], None], ...] = (
            self._add, self._add, self._read, self._read, self._read, self._acknowledge, self._acknowledge, self._nack,
            self._advance, self._advance, self._block, self._set_stream_policy, self._set_group_policy, self._claim,
            self._delete, self._delete_consumer, self._schedule,
        )  # fmt: skip
        steps[kind % len(steps)](one, two)

    def _add(self, one: int, two: int) -> None:
        self.ask(f"XADD s * {('k', 'n')[two % 5 == 0]} {'xyz'[one % 3]}")

    def _read(self, one: int, two: int) -> None:
        claim = ("", "", "", "CLAIM 700 ")[two % 4]
        group = "gh"[one % 4 == 0]
        line = f"XREADGROUP GROUP {group} {CONSUMERS[two % 3]} COUNT {1 + one % 3} {claim}STREAMS s >"
        self.ask(line)

    def _acknowledge(self, one: int, two: int) -> None:
        group = "gh"[two % 3 == 0]
        entry_id = self.pending(group, one)
        if self.client(f"XACK s {group} {entry_id}") == 1:
            self.done[group].add(entry_id.encode())
        self.check()

    def _nack(self, one: int, two: int) -> None:
        mode = ("FAIL", "FAIL", "SILENT", "FATAL")[two % 4]
        delay = (" DELAY 1500", "")[two % 3 > 0]
        self.ask(f"PENSTOCK.XNACK s g {mode} IDS 1 {self.pending('g', one)}{delay}")

    def _advance(self, one: int, two: int) -> None:
        whole = ADVANCES[one % len(ADVANCES)]
        for piece in range(self.pieces):
            self.ask(f"PENSTOCK.CLOCK ADVANCE {whole // self.pieces + (whole % self.pieces if not piece else 0)}")

    def _block(self, one: int, two: int) -> None:
        reader = self.readers[two % 3]
        if reader.session.blocked is None:
            reader(f"XREADGROUP GROUP g {CONSUMERS[two % 3]} COUNT 2 BLOCK {500 + one % 3000} STREAMS s >")
            self.check()

    def _set_stream_policy(self, one: int, two: int) -> None:
        self.ask(f"PENSTOCK.POLICY s {STREAM_POLICIES[one % len(STREAM_POLICIES)]}")

    def _set_group_policy(self, one: int, two: int) -> None:
        answer = self.ask(f"PENSTOCK.POLICY s GROUP {'gh'[two % 4 == 0]} {GROUP_POLICIES[one % len(GROUP_POLICIES)]}")
        assert answer == b"OK" or str(answer) == "ERR KEY needs ACKWAIT"

    def _claim(self, one: int, two: int) -> None:
        if two % 3:
            self.ask(f"XAUTOCLAIM s g {CONSUMERS[two % 3]} {one % 1500} 0 COUNT 2")
        else:
            tail = ("", " JUSTID", " IDLE 1000")[one % 3]
            self.ask(f"XCLAIM s g a 0 {self.pending('g', one)}{tail}")

    def _delete(self, one: int, two: int) -> None:
        self.ask(f"XDEL s {self.entry(one)}" if two % 3 else f"XTRIM s MAXLEN {3 + one % 4}")

    def _delete_consumer(self, one: int, two: int) -> None:
        consumer, group = CONSUMERS[two % 3], "gh"[one % 2]
        pending = [entry[0] for entry in self.client(f"XPENDING s {group} - + 100 {consumer}")]
        policy = self.stream.groups[group.encode()].policy if self.stream is not None else None
        if policy is None or policy.settings.ack_wait_ms < 0:
            self.done[group].update(pending)  # destroyed, as in Redis
        self.ask(f"XGROUP DELCONSUMER s {group} {consumer}")

    def _schedule(self, one: int, two: int) -> None:
        if two % 4 == 0:
            self.ask("XADD later * n 0")
            self.ask("PENSTOCK.POLICY later FORWARD s AT at AFTER 300")
        else:
            self.ask(f"XADD later * k {'xyz'[one % 3]} at +{one % 2000}")

    # -- laws -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What holds after every request."""
        for reader in self.readers:
            reader.arrived()
        stream = self.stream
        if stream is None:
            return
        stream.check()
        self.engine.keyspace.databases[0].check()
        for group in stream.groups.values():
            dead = {
                entry[1][-7]
                for entry in self.client("XRANGE dead - +")
                if entry[1][-9] == group.name and entry[1][-11] == b"s"
            }
            done = self.done[group.name.decode()]
            assert len(dead) == len([1 for entry in self.client("XRANGE dead - +") if entry[1][-9] == group.name])
            for segment, start, stop in stream.runs(0, group.last_id, stream.length):
                for slot in range(start, stop):
                    text = ids.text(segment.id_at(slot))
                    states = [group.find(segment.id_at(slot)) is not None, text in done, text in dead]
                    assert states.count(True) == 1, f"{text!r} in {group.name!r}: pending, done, dead are {states}"
            lag = stream.lag(group)
            unread = sum(stop - start for _, start, stop in stream.runs(group.last_id + 1, ids.MAX, stream.length))
            assert lag is None or lag == unread or stream.max_deleted_id > group.last_id

    def check_log(self) -> None:
        """A restart finds the same, from the log as from a new base file."""
        self.client.reloaded_alike()
        self.client.rewritten_alike()


def told(steps: list[Step], pieces: int = 1) -> History:
    history = History(pieces)
    for step in steps:
        history.take(step)
    return history


def picture(history: History) -> list[object]:
    return keyspace(history.engine)
