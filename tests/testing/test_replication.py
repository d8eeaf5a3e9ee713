"""An embedded server as a master, and as a replica."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock
from penstock import policies
from tests.support.deployments import until

PATIENCE_S = 60
PATIENCE_MS = PATIENCE_S * 1000


@pytest.fixture
def master(server: penstock.Server) -> penstock.Server:
    return server


@pytest.fixture
def replica() -> Iterator[penstock.Server]:
    with penstock.Server() as embedded:
        yield embedded


def address(server: penstock.Server) -> list[str]:
    """Host and port of its socket."""
    return server.url.removeprefix("redis://").split(":")


def is_logged(server: penstock.Server, text: str) -> bool:
    return any(text in line for line in list(server.log))


def wait_until_up(replica: penstock.Server) -> None:
    client = replica.client()
    until(lambda: client.info("replication").get("master_link_status") == "up", "the replica has no link")


def follow(replica: penstock.Server, master: penstock.Server) -> None:
    assert replica.client().execute_command("REPLICAOF", *address(master)) == b"OK"
    wait_until_up(replica)


def test_a_replica_has_what_the_master_had_and_what_it_gets(master: penstock.Server, replica: penstock.Server) -> None:
    writer, reader = master.client(), replica.client()
    writer.xadd("orders", {"id": "1"}, id="1-0")
    writer.xgroup_create("orders", "workers", "0")
    writer.xreadgroup("workers", "anna", {"orders": ">"})

    follow(replica, master)
    writer.xadd("orders", {"id": "2"}, id="2-0")

    assert writer.wait(1, PATIENCE_MS) == 1
    assert reader.xrange("orders") == [(b"1-0", {b"id": b"1"}), (b"2-0", {b"id": b"2"})]
    assert reader.xpending("orders", "workers")["consumers"] == [{"name": b"anna", "pending": 1}]
    assert writer.info("replication")["connected_slaves"] == 1


def test_a_replica_takes_no_writes_until_it_is_a_master_again(
    master: penstock.Server, replica: penstock.Server
) -> None:
    client = replica.client()
    follow(replica, master)

    with pytest.raises(redis.ReadOnlyError):
        client.set("k", "v")
    client.execute_command("REPLICAOF", "NO", "ONE")

    assert client.set("k", "v")
    assert client.role()[0] == b"master"


def test_a_subscriber_of_a_replica_hears_what_is_published_at_the_master(
    master: penstock.Server, replica: penstock.Server
) -> None:
    follow(replica, master)
    subscriber = replica.client().pubsub()
    subscriber.subscribe("news")
    assert subscriber.get_message(timeout=PATIENCE_S)["type"] == "subscribe"

    master.client().publish("news", "hello")

    assert subscriber.get_message(timeout=PATIENCE_S)["data"] == b"hello"


def test_replication_goes_on_while_both_clocks_stand_still(master: penstock.Server, replica: penstock.Server) -> None:
    master.clock.stop()
    replica.clock.stop()
    follow(replica, master)

    master.client().set("k", "v", ex=60)

    assert master.client().wait(1, PATIENCE_MS) == 1
    assert replica.client().get("k") == b"v"


def test_a_key_that_expires_on_the_master_is_deleted_on_the_replica(
    master: penstock.Server, replica: penstock.Server
) -> None:
    writer, reader = master.client(), replica.client()
    follow(replica, master)
    writer.set("k", "v", ex=30)
    assert writer.wait(1, PATIENCE_MS) == 1
    assert reader.dbsize() == 1

    master.clock.advance(seconds=31)
    writer.set("later", "v")

    assert writer.wait(1, PATIENCE_MS) == 1
    assert reader.keys() == [b"later"]


def test_a_replica_follows_from_the_start_on(master: penstock.Server) -> None:
    master.client().set("k", "v")

    with penstock.Server(replicaof=" ".join(address(master))) as replica:
        wait_until_up(replica)

        assert replica.client().get("k") == b"v"


def test_a_replica_finds_a_master_again_that_was_restarted(replica: penstock.Server, tmp_path: Path) -> None:
    with penstock.Server(tmp_path) as master:
        follow(replica, master)
        master.client().set("k", "v")

        master.restart()
        master.client().set("later", "v")

        until(lambda: sorted(replica.client().keys()) == [b"k", b"later"], "the replica does not get what came later")


def test_a_replica_on_a_directory_keeps_its_copy(master: penstock.Server, tmp_path: Path) -> None:
    master.client().set("k", "v")
    with penstock.Server(tmp_path) as replica:
        follow(replica, master)
        client = replica.client()
        client.execute_command("REPLICAOF", "NO", "ONE")
        client.set("later", "v")
        assert client.waitaof(1, 0, PATIENCE_MS) == [1, 0]

    with penstock.Server(tmp_path) as again:
        assert sorted(again.client().keys()) == [b"k", b"later"]


def test_a_replica_in_memory_leaves_no_file(
    master: penstock.Server, replica: penstock.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    master.client().set("k", "v" * 100_000)

    follow(replica, master)

    assert replica.client().strlen("k") == 100_000
    assert list(tmp_path.iterdir()) == []


def test_a_master_that_is_not_there_is_said_in_the_log(replica: penstock.Server) -> None:
    replica.client().execute_command("REPLICAOF", "127.0.0.1", "1")

    until(lambda: is_logged(replica, "The link to master 127.0.0.1:1 is down"), "the log does not name the master")
    assert replica.client().info("replication")["master_link_status"] == "down"


def test_a_copy_by_a_file_needs_a_directory(replica: penstock.Server) -> None:
    with penstock.Server(repl_diskless_sync=False) as master:
        replica.client().execute_command("REPLICAOF", *address(master))

        failure = "The snapshot for replicas failed: the server is in memory"
        until(lambda: is_logged(master, failure), "the log does not name the failure")


def test_keys_are_moved_to_another_server(master: penstock.Server, replica: penstock.Server) -> None:
    master.client().set("k", "v")

    host, port = address(replica)
    assert master.client().migrate(host, int(port), "k", 0, PATIENCE_MS) == b"OK"

    assert master.client().exists("k") == 0
    assert replica.client().get("k") == b"v"


def test_a_link_ends_with_the_server(master: penstock.Server) -> None:
    with penstock.Server() as replica:
        follow(replica, master)

    until(lambda: not master.client().info("replication")["connected_slaves"], "the link stays")


def test_a_shutdown_ends_the_link(master: penstock.Server, replica: penstock.Server) -> None:
    follow(replica, master)

    replica.client().shutdown(nosave=True)

    until(lambda: not master.client().info("replication")["connected_slaves"], "the link stays")


def test_a_replica_makes_no_copies_of_recurring_entries_until_it_is_a_master(
    master: penstock.Server, replica: penstock.Server
) -> None:
    for server in (master, replica):
        server.clock.stop()
        server.clock.travel(4_000_000_000)
    writer, reader = master.client(decode_responses=True), replica.client(decode_responses=True)
    writer.xadd("cron", {"every": "60000"})
    policies.set_stream(writer, "cron", forward="jobs", every="every")
    follow(replica, master)
    replica.clock.advance(minutes=1)
    assert not reader.exists("jobs")
    master.clock.advance(minutes=1)
    assert writer.wait(1, PATIENCE_MS) == 1
    assert reader.xrange("jobs") == writer.xrange("jobs")

    reader.execute_command("REPLICAOF", "NO", "ONE")
    replica.clock.advance(minutes=1)

    copies: Any = reader.xrange("jobs")
    assert [fields["_due"] for _, fields in copies] == ["4000000060000", "4000000120000"]
    assert reader.xinfo_stream("cron")["length"] == 1
