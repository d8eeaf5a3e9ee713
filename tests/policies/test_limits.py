"""Limits: PAUSE, RATE and INFLIGHT; by hand `python -m tests.policies.test_limits 20000`."""

import sys
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from penstock.storage.streams.pending.group import Group
from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_beside_naive_queue import numbers_of
from tests.policies.test_leases import READ, read_ids
from tests.policies.test_retention import refused
from tests.support.clock import NOW_MS
from tests.support.engines import value_of
from tests.support.same_result import told_on_failure

Step = tuple[int, int, int]
RATE, SPAN_MS, IN_FLIGHT, ACK_WAIT_MS = 3, 1000, 2, 700
ADVANCES = (1, 250, 699, 700, 999, 1000, 1500)
numbers = strategies.integers(0, 10_000)
histories = strategies.lists(strategies.tuples(strategies.integers(0, 9), numbers, numbers), min_size=20, max_size=60)


@pytest.fixture
def orders(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries and a group with leases of 30 seconds."""
    dialogue("XADD s 1-0 n 1", "XADD s 2-0 n 2", "XADD s 3-0 n 3", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000")
    return dialogue


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("GROUP g RATE 5", "ERR RATE needs a number of deliveries and a time in ms"),
        ("GROUP g RATE 0 5", "ERR RATE needs a number of deliveries and a time in ms"),
        ("GROUP g RATE 100001 5", "ERR RATE needs a number of deliveries and a time in ms"),
        ("GROUP g RATE 5 2592000001", "ERR RATE needs a number of deliveries and a time in ms"),
        ("GROUP g RATE five 5", "ERR RATE needs a number of deliveries and a time in ms"),
        ("GROUP g RATE", "ERR syntax error"),
        ("GROUP g RATE 5 5 RATE 5 5", "ERR RATE specified multiple times"),
        ("RATE 5 5", "ERR RATE is a policy of groups: say GROUP name before it"),
        ("GROUP g INFLIGHT 0", "ERR INFLIGHT must be between 1 and 1000000"),
        ("GROUP g INFLIGHT -1", "ERR INFLIGHT must be between 1 and 1000000"),
        ("GROUP g ACKWAIT -1", "ERR ACKWAIT must be between 1 and 2592000000"),
        ("GROUP g INFLIGHT 1000001", "ERR INFLIGHT must be between 1 and 1000000"),
        ("GROUP g INFLIGHT 1 ACKWAIT NONE", "ERR INFLIGHT needs ACKWAIT"),
        ("GROUP g PAUSE soon", "ERR PAUSE must be FOREVER, a unix time in ms, or +ms"),
        ("GROUP g PAUSE -1", "ERR PAUSE must be FOREVER, a unix time in ms, or +ms"),
        ("GROUP g PAUSE +9223372036854775807", "ERR PAUSE must be FOREVER, a unix time in ms, or +ms"),
        ("GROUP g RATED 1 1", "ERR syntax error"),
    ],
)
def test_a_limit_refuses(orders: PolicyDialogue, options: str, text: str) -> None:
    orders.since()

    assert refused(orders(f"PENSTOCK.POLICY s {options}")) == text
    assert orders.since() == []


def test_a_pause_is_logged_with_its_end(orders: PolicyDialogue) -> None:
    orders.since()
    orders("PENSTOCK.POLICY s GROUP g PAUSE +500 RATE 1 5", "PENSTOCK.POLICY s GROUP g PAUSE 5")

    assert orders.since() == [
        f"PENSTOCK.POLICY s GROUP g PAUSE {NOW_MS + 500} RATE 1 5", "PENSTOCK.POLICY s GROUP g PAUSE NONE"
    ]  # fmt: skip


def test_a_hand_out_is_logged_for_rate_in_its_unit_and_the_window_survives(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.POLICY s GROUP g RATE 2 1000")
    orders.since()
    assert read_ids(orders, READ.format("a")) == ["1-0", "2-0"]

    assert orders.since()[0].endswith(f"; PENSTOCK.POLICY s GROUP g RATED {NOW_MS} 2")
    orders.reloaded()
    orders.rewritten()
    orders("COPY s t")
    assert read_ids(orders, "XREADGROUP GROUP g a STREAMS t >") == []


def test_xautoclaim_passes_over_what_a_limit_stops(orders: PolicyDialogue) -> None:
    orders(READ.format("a"), "XNACK s g FAIL IDS 2 2-0 3-0", "PENSTOCK.POLICY s GROUP g INFLIGHT 1")
    assert orders("XAUTOCLAIM s g b 0 - COUNT 2") == [b"0-0", [[b"1-0", [b"n", b"1"]]], []]
    orders("PENSTOCK.POLICY s GROUP g INFLIGHT NONE RATE 1 1000")

    assert orders("XAUTOCLAIM s g b 0 - COUNT 2") == [b"0-0", [[b"1-0", [b"n", b"1"]]], []]
    assert orders("XAUTOCLAIM s g b 0 - COUNT 2") == [b"0-0", [], []]


@pytest.mark.parametrize(
    "line", ["XACK s g 1-0", "XACKDEL s g IDS 1 1-0", "XDELEX s DELREF IDS 1 1-0", "XGROUP DELCONSUMER s g a",
             "XNACK s g FAIL IDS 1 1-0", "XTRIM s MAXLEN 1 DELREF", "XADD s MAXLEN 2 DELREF 4-0 n 4",
             "PENSTOCK.POLICY s MAXLEN 1 DELREF", "PENSTOCK.DELCONSUMER s g a RELEASE",
             "PENSTOCK.POLICY s GROUP g INFLIGHT 2", "PENSTOCK.POLICY s GROUP g RESET"]
)  # fmt: skip
@pytest.mark.parametrize("order", ["", "KEY n", "PRIORITY p", "KEY n FAIR YES"])
def test_room_that_a_command_makes_is_for_the_reader_that_waits(orders: PolicyDialogue, line: str, order: str) -> None:
    bob = orders.another()
    orders(f"PENSTOCK.POLICY s GROUP g INFLIGHT 1 {order}", READ.format("a"))
    bob("XREADGROUP GROUP g bob BLOCK 0 COUNT 1 STREAMS s >")
    assert bob.arrived() == []
    orders(line)

    assert len(bob.arrived()) == 1


@pytest.mark.parametrize(
    "policy", ["INFLIGHT 1", "INFLIGHT 1 KEY n", "INFLIGHT 1 PRIORITY p", "INFLIGHT 1 KEY n FAIR YES"]
)
@pytest.mark.parametrize(
    ("cause", "line"), [
        ("XDEL s 1-0", "XCLAIM s g b 0 1-0"), ("XDEL s 1-0", "XCLAIM s g b 0 1-0 JUSTID"),
        ("XDEL s 1-0", "XAUTOCLAIM s g b 0 -"), ("XDEL s 1-0", "PENSTOCK.CLOCK ADVANCE 30000"),
        ("PENSTOCK.POLICY s GROUP g MAXDELIVER 1 DEADLETTER dead", "XCLAIM s g b 0 1-0"),
        ("PENSTOCK.POLICY s GROUP g MAXDELIVER 1 DEADLETTER dead", "XAUTOCLAIM s g b 0 -"),
        ("PENSTOCK.POLICY s GROUP g MAXDELIVER 1 DEADLETTER dead", "XREADGROUP GROUP g a STREAMS s 0"),
        ("PENSTOCK.POLICY s GROUP g DEADLETTER dead", "XNACK s g FATAL IDS 1 1-0"),
        ("PENSTOCK.POLICY s GROUP g EXPIREAT n", "XNACK s g SILENT IDS 1 1-0"),
        ("PENSTOCK.POLICY s GROUP g EXPIREAT n", "XREADGROUP GROUP g a STREAMS s 0"),
    ],
)  # fmt: skip
def test_room_that_an_entry_leaves_which_is_not_delivered_again_is_for_the_reader_that_waits(
    orders: PolicyDialogue, policy: str, cause: str, line: str
) -> None:
    bob = orders.another()
    orders("XADD s 4-0 n x", "XDEL s 2-0 3-0", f"PENSTOCK.POLICY s GROUP g {policy}", READ.format("a"), cause)
    bob("XREADGROUP GROUP g bob BLOCK 0 COUNT 1 STREAMS s >")
    assert bob.arrived() == []
    orders(line)

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"4-0"]


def test_a_blocked_reader_with_claim_waits_for_the_end_of_a_pause(orders: PolicyDialogue) -> None:
    bob = orders.another()
    orders(READ.format("a"), "PENSTOCK.POLICY s GROUP g PAUSE +5000")
    bob("XREADGROUP GROUP g bob BLOCK 0 CLAIM 100 COUNT 1 STREAMS s >")
    orders("PENSTOCK.CLOCK ADVANCE 4999")
    assert bob.arrived() == []
    orders("PENSTOCK.CLOCK ADVANCE 1")

    assert [answer[0][1][0][0] for answer in bob.arrived()] == [b"1-0"]


def test_a_reader_without_acknowledgements_needs_no_room(orders: PolicyDialogue) -> None:
    bob, carol = orders.another(), orders.another()
    orders("PENSTOCK.POLICY s GROUP g INFLIGHT 1", READ.format("a"), "XREADGROUP GROUP g a NOACK STREAMS s >")
    bob("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >")
    carol("XREADGROUP GROUP g carol BLOCK 0 NOACK STREAMS s >")
    orders("XADD s 4-0 n 4")

    assert (bob.arrived(), len(carol.arrived())) == ([], 1)


class CountedGroups(dict[bytes, Group]):
    """Groups; how often they are gone over."""

    walks = 0

    def values(self) -> Any:
        self.walks += 1
        return super().values()


def test_a_command_goes_over_the_groups_once(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.POLICY s GROUP g KEY n INFLIGHT 3", READ.format("a"))
    stream = value_of(orders.engine, b"s")
    stream.groups = groups = CountedGroups(stream.groups)
    orders("XACK s g 1-0")

    assert groups.walks == 1


class Limited:
    """A group under RATE and INFLIGHT; hand-outs, counted by the test itself from replies.

    at: the moment of each hand-out.
    """

    def __init__(self) -> None:
        self.client: PolicyDialogue = made()
        self.readers = {name: self.client.another() for name in "pqr"}
        self.at: list[int] = []
        self.now_ms = NOW_MS
        self.paused = False
        self.added = 0
        self.client("XGROUP CREATE s g 0 MKSTREAM")
        self.client(f"PENSTOCK.POLICY s GROUP g ACKWAIT {ACK_WAIT_MS} RATE {RATE} {SPAN_MS} INFLIGHT {IN_FLIGHT}")

    def take(self, step: Step) -> None:
        kind, one, two = step
        rows = self.client("XPENDING s g - + 1000")
        entry_id = rows[one % len(rows)][0].decode() if rows else "0-1"
        if kind < 2:
            self.added += 1
            self.client(f"XADD s {self.added}-0 n {one}")
        elif kind == 2:
            self.note(self.client(f"XREADGROUP GROUP g {'abc'[one % 3]} COUNT {1 + two % 5} STREAMS s >"))
        elif kind < 5:
            name = "pqr"[one % 3]
            if self.readers[name].session.blocked is None:
                claim = "CLAIM 200 " if two % 4 == 0 else ""
                self.note(self.readers[name](f"XREADGROUP GROUP g {name} COUNT 2 {claim}BLOCK 0 STREAMS s >"))
        elif kind == 5:
            self.client(f"XACK s g {entry_id}")
        elif kind == 6:
            self.client(f"XNACK s g {('FAIL', 'SILENT')[two % 2]} IDS 1 {entry_id}")
        elif kind == 7:
            self.note_count(len(self.client(f"XAUTOCLAIM s g a {(0, 300)[two % 2]} - COUNT 3")[1]))
        elif kind == 8 and two % 3 == 0:
            self.paused = not self.paused
            self.client(f"PENSTOCK.POLICY s GROUP g PAUSE {'FOREVER' if self.paused else 'NONE'}")
        else:
            self.advance(ADVANCES[one % len(ADVANCES)])
        self.check()

    def advance(self, ms: int) -> None:
        """A ms at a time where something may come due, so that each hand-out is noted at its moment."""
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            due_ms = self.client.engine.next_wakeup_ms() or end_ms
            step_ms = min(max(due_ms - self.now_ms, 1), end_ms - self.now_ms)
            self.client(f"PENSTOCK.CLOCK ADVANCE {step_ms}")
            self.now_ms += step_ms
            self.check()

    def note(self, answer: Any) -> None:
        self.note_count(len(numbers_of(answer)))

    def note_count(self, count: int) -> None:
        assert not (count and self.paused), "a paused group has handed out"
        self.at += [self.now_ms] * count

    def check(self) -> None:
        for reader in self.readers.values():
            for answer in reader.arrived():
                self.note(answer)
        within = [moment for moment in self.at if moment > self.now_ms - SPAN_MS]
        assert len(within) <= RATE, f"{len(within)} were handed out within the span"
        rows = self.client("XPENDING s g - + 1000")
        owned = sum(row[1] != b"" for row in rows)
        assert owned <= IN_FLIGHT, f"{owned} are with workers"
        if self.paused or len(within) == RATE or not any(reader.session.blocked for reader in self.readers.values()):
            return
        ended = any(row[1] and row[2] >= ACK_WAIT_MS for row in rows)
        waits = any(not row[1] for row in rows) or self.client("XINFO GROUPS s")[0][11]
        assert not ended, "a reader waits beside a lease that is over"
        assert not (waits and owned < IN_FLIGHT), "a reader waits though there is room and something to hand out"


def told(steps: list[Step]) -> None:
    limited = Limited()
    with told_on_failure(limited.client.asked):
        for step in steps:
            limited.take(step)
        limited.client.reloaded()
        limited.client.rewritten()


@hypothesis.given(histories)
@hypothesis.settings(max_examples=12, derandomize=True)
def test_limits_hold_at_every_instant_and_leave_no_reader_waiting_in_vain(steps: list[Step]) -> None:
    told(steps)


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    settings = hypothesis.settings(max_examples=wanted, derandomize=False, deadline=None, print_blob=True)
    settings(hypothesis.given(histories)(told))()
    sys.stdout.write(f"limits: {wanted} histories")


ORDERS = ["", "KEY k", "KEY k PARALLEL 2", "PRIORITY p", "KEY k FAIR YES"]


@pytest.mark.parametrize("order", ORDERS[:3])
def test_what_a_worker_has_needs_no_room_when_a_position_set_back_makes_it_new(
    dialogue: PolicyDialogue, order: str
) -> None:
    dialogue(*[f"XADD s {number}-0 k {number} p 1" for number in range(1, 5)], "XGROUP CREATE s g 0")
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 30000 INFLIGHT 2 {order}", READ.format("a"), "XGROUP SETID s g 0")

    assert [row[0] for row in dialogue("PENSTOCK.PEEK s g")] == [b"1-0", b"2-0"]
    assert read_ids(dialogue, READ.format("b")) == ["1-0", "2-0"]
    assert read_ids(dialogue, READ.format("b")) == []
    dialogue("XACK s g 1-0")
    assert read_ids(dialogue, READ.format("b")) == ["3-0"]
    dialogue.reloaded()


@pytest.mark.parametrize("order", ORDERS)
def test_a_lease_that_is_over_needs_no_room_behind_a_new_entry_that_does(dialogue: PolicyDialogue, order: str) -> None:
    dialogue("XADD s 1-0 k 1 p 1", "XADD s 2-0 k 2 p 1", "XGROUP CREATE s g 0")
    dialogue(f"PENSTOCK.POLICY s GROUP g ACKWAIT 1000 INFLIGHT 1 {order}", "XREADGROUP GROUP g a COUNT 1 STREAMS s >")
    dialogue("XACK s g 1-0", "XREADGROUP GROUP g a COUNT 1 STREAMS s >", "XGROUP SETID s g 0")
    dialogue("PENSTOCK.CLOCK ADVANCE 1000")

    assert read_ids(dialogue, READ.format("b")) == ["2-0"]
    assert read_ids(dialogue, READ.format("b")) == []
