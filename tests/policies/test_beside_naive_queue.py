"""A group with policies beside a naive model (naive_queue.py); `python -m tests.policies.test_beside_naive_queue 20000`
by hand.
"""

import sys

import hypothesis
from hypothesis import strategies

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.naive_queue import NaiveQueue

Step = tuple[int, int, int]

ADVANCES = (0, 1, 299, 300, 301, 600, 999, 1000)
numbers = strategies.integers(0, 10_000)
histories = strategies.lists(strategies.tuples(strategies.integers(0, 9), numbers, numbers), min_size=20, max_size=80)


class Beside:
    """An engine and the model, told the same."""

    def __init__(self, keyed: bool) -> None:
        self.client: PolicyDialogue = made()
        self.model = NaiveQueue(keyed)
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
            consumer, count = "abc"[one % 3], 1 + two % 4
            answer = self.client(f"XREADGROUP GROUP g {consumer} COUNT {count} STREAMS s >")
            got = [int(entry[0].split(b"-")[0]) for entry in answer[0][1]] if answer else []
            assert got == self.model.read(consumer, count)
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
        elif kind >= 8 and pending:
            self.client(f"XNACK s g SILENT IDS 1 {entry_id}")
            self.model.silence(number)
        self.compare()

    def compare(self) -> None:
        rows = [(int(row[0].split(b"-")[0]), row[1].decode(), *row[2:]) for row in self.client("XPENDING s g - + 1000")]
        assert rows == self.model.pending()
        assert [int(entry[0].split(b"-")[0]) for entry in self.client("XRANGE s - +")] == self.model.left()
        dead = [(int(entry[1][7].split(b"-")[0]), entry[1][13].decode()) for entry in self.client("XRANGE dead - +")]
        assert dead == self.model.dead


def told(steps: list[Step], keyed: bool) -> None:
    beside = Beside(keyed)
    for step in steps:
        beside.take(step)
    beside.client.reloaded_alike()


@hypothesis.given(histories)
@hypothesis.settings(max_examples=6, derandomize=True)
def test_a_leased_group_is_as_the_model_says(steps: list[Step]) -> None:
    told(steps, False)


@hypothesis.given(histories)
@hypothesis.settings(max_examples=6, derandomize=True)
def test_a_group_with_keys_is_as_the_model_says(steps: list[Step]) -> None:
    told(steps, True)


if __name__ == "__main__":
    settings = hypothesis.settings(max_examples=int(sys.argv[1]), derandomize=False, deadline=None, print_blob=True)
    for is_keyed in (False, True):
        settings(hypothesis.given(histories)(lambda steps, keyed=is_keyed: told(steps, keyed)))()
