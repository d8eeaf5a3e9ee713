"""XGROUP SETID back: what a position set back makes new again is handed out, or moves, once more, as new. By hand
`python -m tests.policies.test_position_set_back 0 9999` (seeds).
"""

from random import Random

import pytest

from penstock.storage.streams import ids
from tests.policies.conftest import PolicyDialogue, made
from tests.support.same_result import told_on_failure
from tests.support.seeds import run_seeds, seeds

ORDERS = ("", "KEY k", "KEY k PARALLEL 2", "PRIORITY p LOOKAHEAD 2", "KEY k FAIR YES")
REQUESTS = (
    "XADD s * k {value} p {level}", "XADD s * k {value} p {level}", "XADD s * k {value} at +{ms}",
    "XREADGROUP GROUP g {name} COUNT 2 STREAMS s >", "XREADGROUP GROUP g {name} COUNT 3 STREAMS s >",
    "XREADGROUP GROUP g {name} COUNT 2 CLAIM 300 STREAMS s >",
    "XCLAIM s g {name} 0 {pending}", "XCLAIM s g {name} 0 {pending} JUSTID", "XAUTOCLAIM s g {name} 0 0 COUNT 2",
    "XNACK s g FAIL IDS 1 {pending}", "XNACK s g FATAL IDS 1 {pending}", "XNACK s g SILENT IDS 1 {pending}",
    "XGROUP DELCONSUMER s g {name}", "XACK s g {pending}",
    "PENSTOCK.CLOCK ADVANCE {ms}", "PENSTOCK.CLOCK ADVANCE 200", "PENSTOCK.CLOCK ADVANCE 1000",
    "XGROUP SETID s g {entry}", "XGROUP SETID s g 0", "XDEL s {entry}",
)  # fmt: skip
HISTORIES = ("XREADGROUP GROUP g {name} COUNT 3 STREAMS s 0",) * 2


class SetBack:
    """A group with a position that is set back now and then. moved: its dead letters since each id was new."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.reads_histories = seed % 3 == 0
        self.client: PolicyDialogue = made()
        self.moved: set[bytes] = set()
        self.seen_letters = 0
        options = f"ACKWAIT 500 MAXDELIVER 2 DEADLETTER dead EXPIREAT at {self.chance.choice(ORDERS)}"
        self.client("XGROUP CREATE s g 0 MKSTREAM", f"PENSTOCK.POLICY s GROUP g {options}")

    def take(self) -> None:
        listed = self.client("XRANGE s - +")
        rows = self.client("XPENDING s g - + 1000")
        words = {
            "value": self.chance.choice("xyz"), "level": self.chance.randint(0, 9), "ms": self.chance.randint(1, 900),
            "name": self.chance.choice("abc"), "entry": self.chance.choice(listed)[0].decode() if listed else "1-1",
            "pending": self.chance.choice(rows)[0].decode() if rows else "1-1",
        }  # fmt: skip
        request = self.chance.choice(REQUESTS + HISTORIES * self.reads_histories)
        if request.startswith("XGROUP SETID"):
            position = ids.parse(request.format(**words).split()[-1].encode())
            self.moved = {text for text in self.moved if ids.parse(text) <= position}
        self.client(request.format(**words))
        self.check()

    def check(self) -> None:
        """Since an entry was new for the last time, it has one dead letter at most, and is not pending beside it."""
        letters = self.client("XRANGE dead - +")
        fresh = [letter[1][-7] for letter in letters[self.seen_letters :]]
        self.seen_letters = len(letters)
        assert len(set(fresh)) == len(fresh), f"dead letters twice: {fresh}"
        assert not self.moved & set(fresh), f"{self.moved & set(fresh)} moved before"
        self.moved |= set(fresh)
        pending = {row[0] for row in self.client("XPENDING s g - + 1000")}
        assert not self.moved & pending, f"{self.moved & pending} are dead letters, and pending"


def told(seed: int) -> None:
    history = SetBack(seed)
    with told_on_failure(history.client.asked):
        for _ in range(history.chance.randint(20, 60)):
            history.take()
        if not history.reads_histories:  # what these change is not logged, as in Redis
            history.client.reloaded()
        history.client.rewritten()


@pytest.mark.parametrize("seed", [*seeds(20, 60), pytest.param(152, id="picked ones are looked at again")])
def test_an_entry_moves_once_each_time_that_it_is_new(seed: int) -> None:
    told(seed)


if __name__ == "__main__":
    run_seeds(told)
