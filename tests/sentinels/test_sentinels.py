"""Real Sentinels, of Redis and of Valkey, watch Penstock: with a user of few rights, by host names, from files."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.sentinels.watched_trio import Trio
from tests.support.deployments import MASTER, until
from tests.support.reference_server import NoReference

pytestmark = pytest.mark.slow


@pytest.fixture(params=["redis", "valkey"])
def trio(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trio]:
    with ExitStack() as stack:
        try:
            found = Trio(stack, tmp_path, "penstock", request.param)
        except NoReference as absence:
            pytest.skip(str(absence))
        yield found


def hand_over(trio: Trio, to: int) -> None:
    assert trio.sentinels.clients[0].execute_command("SENTINEL", "FAILOVER", MASTER)
    until(lambda: trio.role(to) == "master", "the replica was not promoted")
    until(lambda: trio.master == to and trio.is_settled(), "the others do not follow")


def priorities(sentinel: redis.Redis) -> set[str]:
    """The `replica-priority` of each replica, as a Sentinel knows it."""
    replicas: list[dict[str, str]] = sentinel.execute_command("SENTINEL", "REPLICAS", MASTER)
    return {replica["slave-priority"] for replica in replicas}


def role_lines(trio: Trio, number: int) -> list[str]:
    return re.findall("^replicaof .*$", trio.files[number].read_text(), re.MULTILINE)


def test_a_failover_by_hand_goes_to_the_replica_of_the_lowest_priority_and_is_kept_in_the_files(trio: Trio) -> None:
    trio.clients[0].xadd("s", {"n": 1})
    trio.clients[0].xgroup_create("s", "g", 0)
    assert trio.clients[0].xreadgroup("g", "alice", {"s": ">"})
    assert trio.clients[0].wait(2, 60_000) == 2

    hand_over(trio, to=2)

    assert [trio.role(number) for number in range(3)] == ["slave", "slave", "master"]
    assert trio.clients[2].xpending("s", "g")["pending"] == 1
    expected = [f"replicaof localhost {trio.ports[2]}"]
    assert [role_lines(trio, number) for number in (0, 1)] == [expected, expected]

    trio.kill(1)
    trio.start(1)
    assert trio.role(1) == "slave"
    until(trio.is_settled, "the restarted server does not find its role")


def test_a_master_that_was_killed_comes_back_as_a_replica_of_the_one_that_was_promoted(trio: Trio) -> None:
    trio.clients[0].set("k", "v")
    assert trio.clients[0].wait(2, 60_000) == 2

    trio.kill(0)
    until(lambda: trio.role(2) == "master", "the replica was not promoted")
    trio.start(0)

    until(lambda: trio.master == 2 and trio.is_settled(), "the old master does not follow")
    assert trio.clients[0].get("k") == "v"


def test_sentinels_that_forgot_the_servers_find_them_again(trio: Trio) -> None:
    for one in trio.sentinels.clients:
        assert one.execute_command("SENTINEL", "RESET", MASTER)

    until(trio.is_settled, "the Sentinels do not find the servers")
    hand_over(trio, to=2)


def test_a_replica_of_priority_0_is_never_promoted(trio: Trio) -> None:
    trio.clients[2].config_set("replica-priority", 0)
    until(lambda: all("0" in priorities(one) for one in trio.sentinels.clients), "the priority is not known")

    trio.kill(0)

    until(lambda: trio.role(1) == "master", "the other replica was not promoted")
    assert trio.role(2) == "slave"


def test_a_sentinel_needs_no_other_right_than_the_documented_ones(trio: Trio) -> None:
    hand_over(trio, to=2)

    assert [one.acl_log() for one in trio.clients] == [[], [], []]
