"""A node that dies: what the others answer meanwhile, and what its slots have when it, or its replica, is back."""

import threading
from functools import partial
from typing import Any

import pytest
import redis
from redis.cluster import RedisCluster

import penstock
from tests.support.deployments import until
from tests.support.reference_server import LOCALHOST
from tests.support.wire import Array, Bulk, Connection, Error

pytestmark = pytest.mark.slow

DOWN = Error(b"CLUSTERDOWN The cluster is down")
KEYS = [f"key:{number}" for number in range(60)]


def key_of(cluster: penstock.Cluster, node: int) -> str:
    """A key that a node has."""
    return next(key for key in KEYS if cluster.node_of(key) == node)


def has_more(written: list[str], count: int) -> bool:
    return len(written) > count


def fill(client: RedisCluster) -> None:
    for key in KEYS:
        client.set(key, f"value of {key}")


def values(client: RedisCluster) -> list[Any]:
    return [client.get(key) for key in KEYS]


ALL = [f"value of {key}" for key in KEYS]


def test_the_others_serve_nothing_until_a_dead_node_is_back_on_its_log(cluster: penstock.Cluster) -> None:
    client = cluster.client(decode_responses=True)
    fill(client)
    mine, its = key_of(cluster, 1), key_of(cluster, 2)
    with Connection(LOCALHOST, cluster.ports[0]) as node:
        cluster.kill(2, restarts=False)
        assert node.ask("GET", its) == node.ask("GET", mine) == DOWN
        assert b"cluster_state:fail" in node.ask("CLUSTER", "INFO").text  # type: ignore[union-attr]  # a bulk
        assert b"master,fail - 0 0 2 disconnected 5461-10922" in node.ask("CLUSTER", "NODES").text  # type: ignore[union-attr]
        cluster.start_node(2)
        assert node.ask("GET", mine) == Bulk(f"value of {mine}".encode())
        assert node.ask("GET", its) == Error(b"MOVED %d 127.0.0.1:%d" % (client.keyslot(its), cluster.ports[1]))
    assert values(client) == ALL


def test_without_full_coverage_the_slots_of_the_others_are_served(cluster: penstock.Cluster) -> None:
    fill(cluster.client())
    mine, its = key_of(cluster, 1), key_of(cluster, 2)
    with Connection(LOCALHOST, cluster.ports[0]) as node:
        node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
        cluster.kill(2, restarts=False)
        assert node.ask("GET", mine) == Bulk(f"value of {mine}".encode())
        assert b"MOVED" in node.ask("GET", its).text  # type: ignore[union-attr]  # an error
        node.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
        cluster.start_node(2)


def test_a_killed_node_is_started_again_by_itself(cluster: penstock.Cluster) -> None:
    client = cluster.client(decode_responses=True)
    fill(client)

    cluster.kill(3)
    cluster.wait_until_ready()

    assert values(client) == ALL
    assert cluster.lines[-1].endswith("is ready again")


def test_a_request_that_waits_is_told_that_the_cluster_is_down(cluster: penstock.Cluster) -> None:
    with Connection(LOCALHOST, cluster.ports[0], timeout=60) as node:
        node.send("BLPOP", f"{{{key_of(cluster, 1)}}}:list", 0)
        cluster.kill(2)
        assert node.reply() == DOWN
    cluster.wait_until_ready()


def test_a_request_that_waits_is_sent_to_the_node_that_its_slot_goes_to(cluster: penstock.Cluster) -> None:
    key = f"{{{key_of(cluster, 1)}}}:list"
    with Connection(LOCALHOST, cluster.ports[0], timeout=60) as node:
        node.send("XREAD", "BLOCK", 0, "STREAMS", key, "$")
        cluster.move_slot(key, to=3)
        assert str(cluster.ports[2]).encode() in node.reply().text  # type: ignore[union-attr]  # an error
    cluster.move_slot(key, to=1)


def test_a_slot_on_its_way_is_still_so_when_its_node_is_back(cluster: penstock.Cluster) -> None:
    client = cluster.client(decode_responses=True)
    tag = f"{{{key_of(cluster, 1)}}}"
    client.mset({f"{tag}{number}": number for number in range(20)})
    move = cluster.begin_move(tag, to=2)
    move.carry(10)

    cluster.kill(1)
    cluster.kill(2)
    cluster.wait_until_ready()
    client.set(f"{tag}new", "x")  # it is not at the old node: ASK

    assert [client.get(f"{tag}{number}") for number in range(20)] == [str(number) for number in range(20)]
    cluster.move_slot(tag, to=2)
    assert client.get(f"{tag}new") == "x"
    cluster.move_slot(tag, to=1)


def test_messages_reach_subscribers_at_every_node(cluster: penstock.Cluster) -> None:
    with (
        Connection(LOCALHOST, cluster.ports[0], timeout=60) as listener,
        Connection(LOCALHOST, cluster.ports[1]) as node,
    ):
        listener.ask("SUBSCRIBE", "news")
        assert str(node.ask("PUBLISH", "news", "hello")) == str(node.ask("PUBLISH", "nothing", "hello"))
        assert listener.reply() == Array((Bulk(b"message"), Bulk(b"news"), Bulk(b"hello")))


# -- replicas ---------------------------------------------------------------------------------------------------------


def test_a_replica_serves_reads_only_and_only_to_those_that_ask_for_it(replicated: penstock.Cluster) -> None:
    client = replicated.client(decode_responses=True)
    key = key_of(replicated, 1)
    client.set(key, "v")
    replica = replicated.node_client(3, decode_responses=True)
    until(lambda: replica.dbsize(), "the replica has no keys")
    with Connection(LOCALHOST, replicated.ports[2]) as node:
        moved = node.ask("GET", key)
        assert str(replicated.ports[0]).encode() in moved.text  # type: ignore[union-attr]  # an error
        node.ask("READONLY")
        assert node.ask("GET", key) == Bulk(b"v")
        assert node.ask("SET", key, "w") == moved
        assert b"MOVED" in node.ask("GET", key_of(replicated, 2)).text  # type: ignore[union-attr]  # another shard's
        node.ask("READWRITE")
        assert node.ask("GET", key) == moved


def test_messages_of_a_shard_reach_its_replica(replicated: penstock.Cluster) -> None:
    channel = key_of(replicated, 1)
    with Connection(LOCALHOST, replicated.ports[2], timeout=60) as listener:
        listener.ask("SSUBSCRIBE", channel)
        replicated.client().spublish(channel, "hello")
        assert listener.reply() == Array((Bulk(b"smessage"), Bulk(channel.encode()), Bulk(b"hello")))


def test_a_replica_takes_the_place_of_its_dead_master_with_all_that_wait_confirmed(
    replicated: penstock.Cluster,
) -> None:
    client = replicated.client(decode_responses=True)
    fill(client)
    for node in (1, 2):
        with replicated.node_client(node) as master:
            assert master.wait(1, 60_000) == 1
    before = replicated.node_client(1).execute_command("CLUSTER", "MYID")

    replicated.kill(1)

    assert values(client) == ALL
    client.set(key_of(replicated, 3), "newer")
    replicated.wait_until_ready()
    assert replicated.node_client(1).role()[0] == b"slave"
    assert before in replicated.node_client(3).execute_command("CLUSTER", "SLOTS")[0][3]
    replicated.kill(3)
    replicated.wait_until_ready()
    assert replicated.node_client(1).role()[0] == b"master"
    assert client.get(key_of(replicated, 1)) == "newer"


def test_a_replica_that_is_asked_to_takes_its_masters_place(replicated: penstock.Cluster) -> None:
    replica = replicated.node_client(3)
    if replica.role()[0] == b"master":
        replica = replicated.node_client(1)
    assert replica.execute_command("CLUSTER", "FAILOVER", "FORCE") == b"OK"
    assert replica.role()[0] == b"master"
    replicated.wait_until_ready()
    with pytest.raises(redis.ResponseError, match="You should send CLUSTER FAILOVER to a replica"):
        replica.execute_command("CLUSTER", "FAILOVER", "FORCE")


# -- under load -------------------------------------------------------------------------------------------------------


def test_nothing_is_lost_of_what_clients_write_while_a_slot_moves(cluster: penstock.Cluster) -> None:
    writer = cluster.client(decode_responses=True)
    tag = f"{{{key_of(cluster, 1)}}}"
    written: list[str] = []
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            number = len(written)
            writer.incr(f"{tag}:counter:{number % 7}")
            writer.xadd(f"{tag}:stream:{number % 3}", {"n": number})
            written.append(f"{tag}:set:{number}")
            writer.set(written[-1], number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for to in (2, 3, 1):
            until(partial(has_more, written, len(written) + 20), "the writer has stopped")
            cluster.move_slot(tag, to)
    finally:
        over.set()
        thread.join()

    client: Any = cluster.client(decode_responses=True)
    assert cluster.node_of(tag) == 1
    assert [client.get(key) for key in written] == [str(number) for number in range(len(written))]
    assert sum(int(client.get(f"{tag}:counter:{at}")) for at in range(7)) == len(written)
    assert sum(client.xlen(f"{tag}:stream:{at}") for at in range(3)) == len(written)
