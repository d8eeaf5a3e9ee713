"""Cluster clients with a cluster of one: redis-py's RedisCluster, unmodified; what the node keeps over a restart."""

from pathlib import Path

import pytest
import redis
from redis.cluster import RedisCluster

from tests.support.server_process import running_server

DIRECTIVES = ("--cluster-enabled", "yes", "--appendonly", "yes", "--appendfsync", "always")


def test_a_queue_lives_through_a_dead_worker_and_a_killed_server_with_rediscluster(tmp_path: Path) -> None:
    with running_server(*DIRECTIVES, dir=tmp_path) as server:
        client = RedisCluster(host="127.0.0.1", port=server.port, decode_responses=True)
        client.xgroup_create("jobs", "workers", "0", mkstream=True)
        ids = [client.xadd("jobs", {"n": str(number)}) for number in range(10)]
        taken = client.xreadgroup("workers", "dead", {"jobs": ">"}, count=4)
        assert taken
        assert client.mset_nonatomic({"a": "1", "b": "2"})
        assert client.mget_nonatomic("a", "b") == ["1", "2"]
        with pytest.raises(redis.exceptions.RedisClusterException, match="slot"):
            client.mget("a", "b")
        node_id = client.cluster_myid(client.get_default_node())
        server.kill()
    with running_server(*DIRECTIVES, dir=tmp_path) as server:
        client = RedisCluster(host="127.0.0.1", port=server.port, decode_responses=True)
        assert client.cluster_myid(client.get_default_node()) == node_id
        _, claimed, _ = client.xautoclaim("jobs", "workers", "alive", 0)
        assert [entry_id for entry_id, _ in claimed] == ids[:4]
        client.xreadgroup("workers", "alive", {"jobs": ">"})
        assert client.xack("jobs", "workers", *ids) == 10
        assert client.xpending("jobs", "workers")["pending"] == 0


def test_a_pipeline_and_sharded_messages_of_rediscluster(tmp_path: Path) -> None:
    with running_server(*DIRECTIVES, dir=tmp_path) as server:
        client = RedisCluster(host="127.0.0.1", port=server.port, decode_responses=True)
        with client.pipeline() as pipeline:
            pipeline.set("a", "1").set("b", "2").get("a")
            assert pipeline.execute() == [True, True, "1"]
        listener = client.pubsub()
        listener.ssubscribe("news")
        assert listener.get_sharded_message(timeout=60)["type"] == "ssubscribe"
        assert client.spublish("news", "hello") == 1
        assert listener.get_sharded_message(timeout=60)["data"] == "hello"
        assert client.keyslot("{foo}bar") == 12182


def test_slots_and_id_are_kept_over_a_restart(tmp_path: Path) -> None:
    with running_server(*DIRECTIVES, dir=tmp_path) as server, redis.Redis(port=server.port) as client:
        assert client.execute_command("CLUSTER DELSLOTS", 5)
        own = client.execute_command("CLUSTER MYID")
    with running_server(*DIRECTIVES, dir=tmp_path) as server, redis.Redis(port=server.port) as client:
        assert client.execute_command("CLUSTER MYID") == own
        assert client.execute_command("CLUSTER INFO")["cluster_slots_assigned"] == "16383"
