"""Each right of the documented user for Sentinels is needed: without it a failover fails, or ACL LOG names it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.sentinels.watched_trio import CHANNEL, RIGHTS, Trio, client_of
from tests.support.deployments import MASTER, until
from tests.support.reference_server import NoReference

pytestmark = pytest.mark.slow

FOR_BUSY_SCRIPTS = "+script|kill"  # a Sentinel sends it to a server that answers BUSY for too long
WITHOUT_IT_NONE_IS_GOOD = ["+ping", "+subscribe", CHANNEL]
WITHOUT_IT_NONE_ENDS = ["+info", "+exec", "+slaveof", "+config|rewrite", "+client|kill"]
WITHOUT_IT_IT_IS_DONE = ["+multi", "+publish", "+client|setname"]
BUSY_MS = 100


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    with ExitStack() as stack:
        try:
            found = Trio(stack, tmp_path, "penstock")
        except NoReference as absence:
            pytest.skip(str(absence))
        yield found


def take(trio: Trio, right: str) -> None:
    """Take a right from the user on each server, and have the Sentinels log in anew."""
    for client in trio.clients:
        client.execute_command("ACL", "SETUSER", "sentinel", "resetchannels" if right == CHANNEL else f"-{right[1:]}")
        client.execute_command("CLIENT", "KILL", "USER", "sentinel")


def refused(trio: Trio) -> set[str]:
    """What the user was refused, as its rights are written."""
    entries = [entry for client in trio.clients for entry in client.acl_log() if entry["username"] == "sentinel"]
    return {f"{'&' if entry['reason'] == 'channel' else '+'}{entry['object']}" for entry in entries}


def flags(trio: Trio) -> list[str]:
    """Of the master, as each Sentinel has them."""
    return [str(one.execute_command("SENTINEL", "MASTER", MASTER)["flags"]) for one in trio.sentinels.clients]


def failover_answer(trio: Trio) -> str:
    """What the first Sentinel answers when it is asked for a failover: OK, or the code of the refusal.

    INPROG: one has begun already. Sentinels that all miss the master elect a leader without being asked.
    """
    try:
        return str(trio.sentinels.clients[0].execute_command("SENTINEL", "FAILOVER", MASTER))
    except redis.ResponseError as refusal:
        return str(refusal).split()[0]


def begin_failover(trio: Trio) -> None:
    """Once the Sentinels are logged in again and know the replicas."""

    def has_begun() -> bool:
        answer = failover_answer(trio)
        assert answer in {"OK", "INPROG", "NOGOODSLAVE"}
        return answer != "NOGOODSLAVE"

    until(has_begun, "no failover begins")


def test_the_rights_are_those_whose_absence_is_tested_here() -> None:
    needed = {FOR_BUSY_SCRIPTS, *WITHOUT_IT_NONE_IS_GOOD, *WITHOUT_IT_NONE_ENDS, *WITHOUT_IT_IT_IS_DONE}

    assert {*RIGHTS.split(), CHANNEL} == needed


@pytest.mark.parametrize("right", WITHOUT_IT_NONE_IS_GOOD)
def test_without_it_no_replica_is_good_for_a_failover(trio: Trio, right: str) -> None:
    take(trio, right)

    until(lambda: refused(trio) == {right}, "nothing is refused")
    until(lambda: all("s_down" in one or "disconnected" in one for one in flags(trio)), "the master seems well")
    until(lambda: failover_answer(trio) == "NOGOODSLAVE", "a replica seems good")
    assert trio.master == 0


@pytest.mark.parametrize("right", WITHOUT_IT_NONE_ENDS)
def test_without_it_a_failover_is_given_up(trio: Trio, right: str) -> None:
    take(trio, right)
    begin_failover(trio)

    until(lambda: refused(trio) == {right}, "nothing is refused")
    until(lambda: not any("failover_in_progress" in one for one in flags(trio)), "the failover does not end")
    assert trio.master == 0


@pytest.mark.parametrize("right", WITHOUT_IT_IT_IS_DONE)
def test_without_it_a_failover_is_done_and_the_refusals_are_logged(trio: Trio, right: str) -> None:
    take(trio, right)
    begin_failover(trio)

    until(lambda: trio.master != 0 and trio.is_settled(), "the others do not follow")
    assert refused(trio) == {right}


@pytest.mark.parametrize("taken", [False, True], ids=["with it", "without it"])
def test_a_script_that_blocks_the_master_is_killed_only_with_the_right(trio: Trio, taken: bool) -> None:
    if taken:
        take(trio, FOR_BUSY_SCRIPTS)
    trio.clients[0].config_set("busy-reply-threshold", BUSY_MS)
    ends: list[str] = []

    def run() -> None:
        with client_of(trio.ports[0], timeout_s=None) as client:
            try:
                client.eval("while true do end", 0)
            except redis.RedisError as end:
                ends.append(str(end))

    script = threading.Thread(target=run)
    script.start()
    if taken:
        until(lambda: trio.master != 0, "no replica was promoted")
        assert ends == []
        trio.kill(0)
    script.join()

    assert ("killed by user" in ends[0]) == (not taken)
