"""Dead letters are driven again; by hand `python -m tests.policies.test_redrive 20000`."""

import sys
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from tests.policies.conftest import PolicyDialogue, made
from tests.policies.test_leases import READ, read_ids
from tests.support.same_result import told_on_failure

Step = tuple[int, int, int]
DEAD = "n 1 _stream s _group g _id {} _deliveries 1 _consumer a _reason fatal"
numbers = strategies.integers(0, 10_000)
histories = strategies.lists(strategies.tuples(strategies.integers(0, 9), numbers, numbers), min_size=20, max_size=60)


@pytest.fixture
def orders(dialogue: PolicyDialogue) -> PolicyDialogue:
    """Three entries of two values, all of which a delivered to the dead letters."""
    dialogue("XADD s 1-0 k x", "XADD s 2-0 k x", "XADD s 3-0 k y", "XGROUP CREATE s g 0")
    dialogue("PENSTOCK.POLICY s GROUP g ACKWAIT 30000 DEADLETTER dead", READ.format("a"))
    dialogue("XNACK s g FATAL IDS 3 1-0 2-0 3-0")
    return dialogue


def test_a_redrive_is_one_unit(orders: PolicyDialogue) -> None:
    at = [entry[0].decode() for entry in orders("XRANGE dead - +")]
    orders.since()
    assert orders("PENSTOCK.REDRIVE dead s COUNT 2") == 2
    assert orders("PENSTOCK.REDRIVE dead t NEW") == 1

    assert orders.since() == [
        f"XNACK s g FAIL IDS 2 1-0 2-0 RETRYCOUNT 0 FORCE ; XDEL dead {at[0]} {at[1]}",
        f"XADD t 1795300000000-0 k y ; XDEL dead {at[2]}",
    ]
    orders.reloaded()
    orders.rewritten()


def test_a_blocked_reader_gets_what_is_driven_again(orders: PolicyDialogue) -> None:
    bob = orders.another()
    bob("XREADGROUP GROUP g bob BLOCK 0 COUNT 9 STREAMS s >")
    orders("PENSTOCK.REDRIVE dead s")

    assert [entry[0] for entry in bob.arrived()[0][0][1]] == [b"1-0", b"2-0", b"3-0"]


def test_with_key_one_of_a_value_is_given_back_at_a_time(orders: PolicyDialogue) -> None:
    orders("PENSTOCK.POLICY s GROUP g KEY k")
    assert orders("PENSTOCK.REDRIVE dead s") == 2
    assert read_ids(orders, READ.format("a")) == ["1-0", "3-0"]
    orders("XACK s g 1-0")

    assert orders("PENSTOCK.REDRIVE dead s") == 1
    assert read_ids(orders, READ.format("a")) == ["2-0"]
    orders.reloaded()


@pytest.mark.parametrize("entry_id", ["4-0", "6-0", "nonsense", "5-0"], ids=["absent", "not read", "no id", "pending"])
def test_a_forged_dead_letter_gives_back_nothing(orders: PolicyDialogue, entry_id: str) -> None:
    orders("XADD s 5-0 k z", READ.format("a"), "XADD s 6-0 k z", "XADD forged * k 1")
    orders("XADD forged * " + DEAD.format(entry_id))

    assert orders("PENSTOCK.REDRIVE forged s") == 0
    assert orders("XLEN forged") == 2


def test_a_target_without_ids_takes_nothing(orders: PolicyDialogue) -> None:
    orders("XADD t 18446744073709551615-18446744073709551615 k x")

    assert orders("PENSTOCK.REDRIVE dead t NEW") == 0


class Driven:
    """A group with dead letters. Acknowledged: what the test itself has acknowledged, or was told that went."""

    def __init__(self) -> None:
        self.client: PolicyDialogue = made()
        self.added = self.redriven = 0
        self.acknowledged: set[bytes] = set()
        self.client("XGROUP CREATE s g 0 MKSTREAM", "XGROUP CREATE dead g 0 MKSTREAM")
        self.client(
            "PENSTOCK.POLICY s GROUP g ACKWAIT 700 BACKOFF 100 300 MAXDELIVER 2 DEADLETTER dead ONDISCONNECT RELEASE"
        )

    def take(self, step: Step) -> None:
        kind, one, two = step
        rows = self.client("XPENDING s g - + 1000")
        entry_id = rows[one % len(rows)][0] if rows else b"0-1"
        if kind < 2:
            self.added += 1
            self.client(f"XADD s {self.added}-0 k {'xyz'[one % 3]}")
        elif kind < 4:
            self.client(f"XREADGROUP GROUP g {'abc'[one % 3]} COUNT {1 + two % 3} STREAMS s >")
        elif kind == 4 and rows:
            self.client(f"XACK s g {entry_id.decode()}")
            self.acknowledged.add(entry_id)
        elif kind == 5:
            self.client(f"XNACK s g {('FAIL', 'SILENT', 'FATAL')[two % 3]} IDS 1 {entry_id.decode()}")
        elif kind == 6:
            self.redriven += self.client(f"PENSTOCK.REDRIVE dead s COUNT {1 + one % 3}")
        elif kind == 7:
            self.client(f"PENSTOCK.DELCONSUMER s g {'abc'[one % 3]} {('RELEASE', 'IFEMPTY')[two % 3 == 0]}")
        elif kind == 8 and not two % 3:
            gone = self.client.another()
            gone(f"XREADGROUP GROUP g {'abc'[one % 3]} STREAMS s >")
            gone.engine.server.disconnect(gone.session)
            gone.engine.tick()
        elif kind == 8 and two % 2:
            self.client(f"PENSTOCK.POLICY s GROUP g KEY {('k', 'NONE')[one % 2]}")
        else:
            self.client(f"PENSTOCK.CLOCK ADVANCE {(1, 100, 300, 699, 700)[one % 5]}")
        self.check()

    def check(self) -> None:
        """Each entry that was read is pending, acknowledged or a dead letter, and never two of these."""
        group = self.client("XINFO GROUPS s")[0]
        last = int(group[7].partition(b"-")[0])
        pending = [row[0] for row in self.client("XPENDING s g - + 1000")]
        dead = [
            dict(zip(entry[1][::2], entry[1][1::2], strict=True))[b"_id"] for entry in self.client("XRANGE dead - +")
        ]
        assert sorted([*pending, *dead, *self.acknowledged]) == sorted(b"%d-0" % at for at in range(1, last + 1))
        policy: dict[bytes, Any] = dict(zip(group[13][::2], group[13][1::2], strict=True))
        assert len(dead) + self.redriven == policy[b"dead-lettered"]


def told(steps: list[Step]) -> None:
    driven = Driven()
    with told_on_failure(driven.client.asked):
        for step in steps:
            driven.take(step)
        driven.client.reloaded()
        driven.client.rewritten()


@hypothesis.given(histories)
@hypothesis.settings(max_examples=12, derandomize=True)
def test_what_was_read_is_pending_or_done_or_dead_and_never_two_of_these(steps: list[Step]) -> None:
    told(steps)


if __name__ == "__main__":
    wanted = int(sys.argv[1])
    settings = hypothesis.settings(max_examples=wanted, derandomize=False, deadline=None, print_blob=True)
    settings(hypothesis.given(histories)(told))()
    sys.stdout.write(f"conservation: {wanted} histories")
