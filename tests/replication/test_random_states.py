"""Random states of every type go by replication from one server to another and back: nothing differs.

By hand, for many: `python -m tests.replication.test_random_states 300`.
"""

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tests.interchange.pictures import NOT_CARRIED, Theirs
from tests.interchange.rdb_sides import assert_same
from tests.interchange.rdb_states import States, shown
from tests.support.deployments import until
from tests.support.reference_server import NoReference, reference_binary, reference_server
from tests.support.server_process import running_server

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
KINDS = {"redis": (True, "8.6"), "valkey": (False, "7.2")}  # whether it knows field times and producers; its version


class Side(Theirs):
    """A client of either server."""

    def __init__(self, port: int, is_ours: bool) -> None:
        super().__init__(port)
        self.port = port
        self.is_ours = is_ours

    def follow(self, master: "Side") -> None:
        assert self.ask("REPLICAOF", "127.0.0.1", str(master.port)) in (b"OK", "OK")
        until(lambda: b"master_link_status:up" in self.info("replication"), "the replica has no link")


@contextmanager
def both(kind: str) -> Iterator[tuple[Side, Side]]:
    """A Penstock and a server of another kind."""
    version = KINDS[kind][1]
    binary = reference_binary(kind)
    delay = ("--repl-diskless-sync-delay", "0")
    with (
        running_server(*delay, "--appendonly", "no", "--rdb-compat-version", version) as own,
        reference_server(*delay, binary=binary) as port,
    ):
        yield Side(own.port, True), Side(port, False)


def there_and_back(seed: int, one: Side, other: Side, knows_all: bool) -> None:
    """One makes a state and the other follows, before half of it or after; then it leads, and the first one follows."""
    chance = random.Random(seed)
    for side in (one, other):
        side.ask("REPLICAOF", "NO", "ONE")
    one.ask("FLUSHALL")
    requests = States(seed, field_times=knows_all, producers=knows_all).requests()
    middle = chance.randrange(len(requests))
    one.ask("SELECT", "0")
    one.tell(requests[:middle])
    other.follow(one)
    one.tell(requests[middle:])
    caught_up(one)
    is_ours = one.is_ours
    before = picture(one, is_ours)
    assert_same(before, picture(other, is_ours))
    other.ask("REPLICAOF", "NO", "ONE")
    one.follow(other)
    caught_up(other)
    assert_same(before, picture(one, is_ours))


def picture(side: Side, idle_consumers: bool) -> dict[tuple[str, str], object]:
    """What the stream carries: no times of a consumer.

    idle_consumers: those count that have nothing. A real server makes some by an XCLAIM, and tells no replica of it.
    """
    seen = shown(side.ask)
    for place in seen:
        _, found = cast(tuple[object, Any], seen[place])  # a time of expiry and a value
        if isinstance(found, tuple) and isinstance(found[0], dict) and b"groups" in found[0]:
            full = found[0]
            for name in NOT_CARRIED:
                full.pop(name, None)
            for group in full[b"groups"]:
                group.pop(b"nacked-count", None)
                kept = [one for one in group[b"consumers"] if idle_consumers or one[b"pel-count"]]
                group[b"consumers"] = [
                    {name: one for name, one in each.items() if name not in NOT_CARRIED} for each in kept
                ]
    return seen


def caught_up(master: Side) -> None:
    master.ask("SELECT", "9")
    master.ask("INCR", "written")
    deadline = time.monotonic() + PATIENCE_S
    while master.ask("WAIT", "1", "1000") != 1:
        assert time.monotonic() < deadline, master.info("replication")


@pytest.mark.parametrize("kind", KINDS)
def test_random_states_go_there_and_back(kind: str) -> None:
    try:
        with both(kind) as (own, real):
            for seed in range(5):
                there_and_back(seed, own, real, KINDS[kind][0])
                there_and_back(seed + 1000, real, own, KINDS[kind][0])
    except NoReference as why:
        pytest.skip(str(why))


def main() -> None:
    for kind, (knows_all, _) in KINDS.items():
        with both(kind) as (own, real):
            for seed in range(int(sys.argv[1])):
                there_and_back(seed, own, real, knows_all)
                there_and_back(seed + 10_000, real, own, knows_all)
        sys.stdout.write(f"{sys.argv[1]} seeds both ways with {kind}: nothing differs\n")


if __name__ == "__main__":
    main()
