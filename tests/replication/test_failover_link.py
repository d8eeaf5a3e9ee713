"""What a master asks the replica that is to take over, and what it does with the answers."""

import threading
from collections.abc import Iterator

import pytest

from tests.replication.test_master import followed, info, until
from tests.support.fake_master import FakeMaster, Link, packed
from tests.support.fake_replica import FakeReplica
from tests.support.server_process import ServerProcess, running_server
from tests.support.wire import Bulk, Connection, Simple

PATIENCE_S = 60.0
NEW_ID = "e" * 40


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "10000") as own:
        yield own


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Connection]:
    with Connection("127.0.0.1", server.port, PATIENCE_S) as connection:
        yield connection
        connection.ask("FAILOVER", "ABORT")
        connection.ask("REPLICAOF", "NO", "ONE")


def failing_over(server: ServerProcess, client: Connection, target: FakeMaster) -> FakeReplica:
    """A replica that has everything, at the place of the target; the failover has begun."""
    replica = followed(server, "psync2")
    assert replica.ask("REPLCONF", "listening-port", str(target.port)) == b"+OK"
    replica.acknowledge()
    until(client, "connected_slaves", "1")
    assert client.ask("FAILOVER") == Simple(b"OK")
    return replica


def test_a_target_that_refuses_leaves_the_master_in_its_place(server: ServerProcess, client: Connection) -> None:
    asked: list[list[str]] = []

    def refuse(link: Link) -> None:
        link.until_psync(asked)
        link.send(b"-ERR not me\r\n")
        link.until_closed()

    with FakeMaster(refuse) as target, failing_over(server, client, target) as replica:
        until(client, "master_failover_state", "no-failover")
        assert replica.is_closed()
        assert asked[-1] == ["PSYNC", replica.id, str(replica.offset + 1), "FAILOVER"]

    assert client.ask("SET", "k", "1") == Simple(b"OK")
    assert info(client, "replication")["master_replid2"] == replica.id


def test_a_target_that_takes_over_is_followed_and_the_replicas_learn_the_new_id(
    server: ServerProcess, client: Connection
) -> None:
    asked: list[list[str]] = []

    def take_over(link: Link) -> None:
        link.until_psync(asked)
        change = packed("SELECT 0", "SET n 1")
        link.send(b"+CONTINUE %b\r\n%b" % (NEW_ID.encode(), change))
        link.until_ack(int(asked[-1][2]) - 1 + len(change))

    with FakeMaster(take_over) as target, failing_over(server, client, target) as replica:
        assert replica.is_closed()
        until(client, "master_replid", NEW_ID)

    told = info(client, "replication")
    assert (told["role"], told["master_failover_state"]) == ("slave", "no-failover")
    assert told["master_replid2"] == replica.id
    assert client.ask("GET", "n") == Bulk(b"1")


def test_a_link_that_is_lost_is_made_again_until_the_target_answers(server: ServerProcess, client: Connection) -> None:
    asked: list[list[str]] = []

    def vanish(link: Link) -> None:
        link.until_psync([])
        link.close()

    def take_over(link: Link) -> None:
        link.until_psync(asked)
        link.send(b"+CONTINUE %b\r\n" % NEW_ID.encode())
        link.until_ack(int(asked[-1][2]) - 1)

    with FakeMaster(vanish, take_over) as target, failing_over(server, client, target):
        until(client, "master_failover_state", "no-failover")

    assert asked[-1][3] == "FAILOVER"
    assert info(client, "replication")["role"] == "slave"


def test_an_abort_ends_the_asking(server: ServerProcess, client: Connection) -> None:
    asked = threading.Event()

    def be_silent(link: Link) -> None:
        link.until_psync([])
        asked.set()
        link.until_closed()

    with FakeMaster(be_silent) as target, failing_over(server, client, target):
        assert asked.wait(PATIENCE_S)
        assert info(client, "replication")["master_failover_state"] == "failover-in-progress"
        assert client.ask("FAILOVER", "ABORT") == Simple(b"OK")

    assert info(client, "replication")["role"] == "master"
    assert client.ask("SET", "k", "1") == Simple(b"OK")
