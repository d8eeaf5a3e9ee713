"""A group with policies beside a naive model (naive_queue.py); `python -m tests.policies.test_beside_naive_queue 20000`
by hand.
"""

import sys
from typing import Any

import hypothesis
from hypothesis import strategies

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.naive_queue import NaiveQueue
from tests.support.dialogue import NO_REPLY
from tests.support.same_result import assert_equal, told_on_failure

Step = tuple[int, int, int]

SIDES = ("model", "engine")
ADVANCES = (1, 299, 300, 301, 600, 999, 1000, 1000, 2500)
KINDS = (0, 0, 0, 3, 3, 3, 6, 6, 6, 7, 7, 8, 8, 9, 10, 10, 11, 12)
numbers = strategies.integers(0, 10_000)
histories = strategies.lists(
    strategies.tuples(strategies.sampled_from(KINDS), numbers, numbers), min_size=20, max_size=80
)


class Beside:
    """An engine and the model, told the same."""

    def __init__(self, keyed: bool) -> None:
        self.client: PolicyDialogue = made()
        self.model = NaiveQueue(keyed)
        self.readers = {name: self.client.another() for name in "pqr"}
        self.added = 0
        key = " KEY k" if keyed else ""
        self.client("XGROUP CREATE s g 0 MKSTREAM", "PENSTOCK.POLICY s MAXLEN 0 ACKED")
        policy = "ACKWAIT 1000 BACKOFF 300 900 MAXDELIVER 3 DEADLETTER dead"
        assert self.client(f"PENSTOCK.POLICY s GROUP g {policy}{key}") == b"OK"

    def take(self, step: Step) -> None:
        kind, one, two = step
        pending = self.model.pending()
        number = pending[one % len(pending)][0] if pending else 0
        entry_id = f"{number}-0"
        if kind < 3:
            self.added += 1
            self.client(f"XADD s {self.added}-0 k {'xyz'[one % 3]}")
            self.model.add(self.added, "xyz"[one % 3])
        elif kind < 6:
            self._read("abc"[one % 3], 1 + two % 4, two % 5)
        elif kind == 6:
            self.client(f"PENSTOCK.CLOCK ADVANCE {ADVANCES[one % len(ADVANCES)]}")
            self.model.advance(ADVANCES[one % len(ADVANCES)])
        elif kind == 7 and pending:
            self.client(f"XACK s g {entry_id}")
            self.model.acknowledge(number)
        elif kind == 8 and pending and two % 3:
            delay_ms = 450 * (two % 2)
            self.client(f"PENSTOCK.XNACK s g FAIL IDS 1 {entry_id}" + (f" DELAY {delay_ms}" if delay_ms else ""))
            self.model.fail(number, delay_ms)
        elif kind == 9 and pending:
            self.client(f"XNACK s g SILENT IDS 1 {entry_id}")
            self.model.silence(number)
        elif kind == 10:
            self._block("pqr"[one % 3], 1 + two % 2)
        elif kind == 11 and pending:
            self._claim(number, pending[one % len(pending)][1], two)
        elif kind == 12 and two % 3 == 0:
            self.client(f"XGROUP DELCONSUMER s g {'abcpqr'[one % 6]}")
            self.model.delete_consumer("abcpqr"[one % 6])
        self.compare()

    def _read(self, consumer: str, count: int, kind: int) -> None:
        claim_ms = 300 if kind == 0 else 1000
        claim = f"CLAIM {claim_ms} " if kind == 0 else ""
        answer = self.client(f"XREADGROUP GROUP g {consumer} COUNT {count} {claim}STREAMS s >")
        assert_equal(self.model.read(consumer, count, claim_ms), numbers_of(answer), SIDES)

    def _block(self, consumer: str, count: int) -> None:
        reader = self.readers[consumer]
        if reader.session.blocked is None:
            answer = reader(f"XREADGROUP GROUP g {consumer} COUNT {count} BLOCK 0 STREAMS s >")
            got = self.model.read(consumer, count)
            if got:
                assert numbers_of(answer) == got
            else:
                self.model.block(consumer, count)

    def _claim(self, number: int, owner: str, kind: int) -> None:
        if kind % 2 and owner:
            self.client(f"XCLAIM s g {owner} 0 {number}-0 JUSTID")
            self.model.renew(number)
        else:
            self.client(f"XCLAIM s g {'abc'[kind % 3]} 0 {number}-0")
            self.model.claim(number, "abc"[kind % 3])

    def compare(self) -> None:
        served = self.model.taken()
        for consumer, reader in self.readers.items():
            wanted = [served[consumer]] if consumer in served else []
            assert_equal(wanted, [numbers_of(answer) for answer in reader.arrived()], SIDES)
        rows = [(int(row[0].split(b"-")[0]), row[1].decode(), *row[2:]) for row in self.client("XPENDING s g - + 1000")]
        assert_equal(self.model.pending(), rows, SIDES)
        left = [int(entry[0].split(b"-")[0]) for entry in self.client("XRANGE s - +")]
        assert_equal(self.model.left(), left, SIDES)
        dead = [(int(entry[1][7].split(b"-")[0]), entry[1][13].decode()) for entry in self.client("XRANGE dead - +")]
        assert_equal(self.model.dead, dead, SIDES)


def numbers_of(answer: Any) -> list[int]:
    """The entries of a reply to XREADGROUP, by the first part of their ids."""
    return [int(entry[0].split(b"-")[0]) for entry in answer[0][1]] if answer and answer != NO_REPLY else []


def told(steps: list[Step], keyed: bool) -> None:
    beside = Beside(keyed)
    with told_on_failure(beside.client.asked):
        for step in steps:
            beside.take(step)
        beside.client.reloaded()


@hypothesis.given(histories)
@hypothesis.settings(max_examples=6, derandomize=True)
def test_a_leased_group_is_as_the_model_says(steps: list[Step]) -> None:
    told(steps, False)


@hypothesis.given(histories)
@hypothesis.settings(max_examples=6, derandomize=True)
def test_a_group_with_keys_is_as_the_model_says(steps: list[Step]) -> None:
    told(steps, True)


def told_without_keys(steps: list[Step]) -> None:
    told(steps, False)


def told_with_keys(steps: list[Step]) -> None:
    told(steps, True)


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    for law in (told_without_keys, told_with_keys):
        settings = hypothesis.settings(max_examples=wanted, derandomize=False, deadline=None, print_blob=True)
        settings(hypothesis.given(histories)(law))()
        sys.stdout.write(f"{law.__name__}: {wanted} histories")
