"""Nodes are killed while slots move and clients write: whatever was confirmed is there afterwards, once."""

import os
import random
import subprocess
import threading
import time
from typing import Any

import pytest
import redis

import penstock
from tests.support.reference_server import LOCALHOST, NoReference, reference_binary
from tests.support.seeds import seeds

TAGS = [f"{{{number}}}" for number in range(8)]
ROUNDS = 6
MANY, MANY_KEYS = 1_000_000, 50  # entries, in streams of one slot


class Writer:
    """Writes until it is stopped, and remembers what was confirmed. What failed is written again."""

    def __init__(self, cluster: penstock.Cluster, name: str) -> None:
        self._client: Any = cluster.client(decode_responses=True)
        self._name = name
        self.confirmed: list[tuple[str, str]] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._write)
        self.thread.start()

    def _write(self) -> None:
        number = 0
        while not self.over.is_set():
            key = f"{TAGS[number % len(TAGS)]}:{self._name}:{number}"
            try:
                self._client.set(key, number)
                self._client.xadd(f"{TAGS[number % len(TAGS)]}:stream:{self._name}", {"n": number}, f"{number + 1}-1")
            except redis.ResponseError as refusal:
                if "equal or smaller" not in str(refusal):  # it was done, but not confirmed
                    time.sleep(0.01)
                    continue
            except (redis.RedisError, OSError):
                time.sleep(0.01)
                continue
            self.confirmed.append((key, str(number)))
            number += 1

    def stop(self) -> None:
        self.over.set()
        self.thread.join()


def lost(cluster: penstock.Cluster, writers: list[Writer]) -> list[str]:
    """The confirmed writes that are not there."""
    client: Any = cluster.client(decode_responses=True)
    entries = {
        (f"{tag}:stream:{writer._name}", fields["n"])
        for writer in writers
        for tag in TAGS
        for _, fields in client.xrange(f"{tag}:stream:{writer._name}")
    }
    confirmed = [pair for writer in writers for pair in writer.confirmed]
    missing = [key for key, value in confirmed if client.get(key) != value]
    streams = [
        f"{key}: entry {value}"
        for writer in writers
        for key, value in writer.confirmed
        if (f"{key.partition(':')[0]}:stream:{writer._name}", value) not in entries
    ]
    return missing + streams


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(0, 4))
def test_nothing_confirmed_is_lost_when_nodes_die_while_slots_move(seed: int) -> None:
    chance = random.Random(seed)
    with penstock.Cluster(nodes=3) as cluster:
        writers = [Writer(cluster, f"writer-{number}") for number in range(3)]
        try:
            for _ in range(ROUNDS):
                tag = chance.choice(TAGS)
                source = cluster.node_of(tag)
                target = chance.choice([node for node in (1, 2, 3) if node != source])
                move = cluster.begin_move(tag, target)
                move.carry(chance.choice((1, 5, 50)))
                cluster.kill(chance.choice((source, target)))
                cluster.wait_until_ready()
                cluster.move_slot(tag, target)
        finally:
            for writer in writers:
                writer.stop()

        assert all(len(writer.confirmed) > ROUNDS for writer in writers)
        assert lost(cluster, writers) == []


@pytest.mark.slow
def test_redis_cli_moves_slots_under_load_and_finds_the_cluster_whole() -> None:
    try:
        tools = reference_binary().parent
    except NoReference as absence:
        pytest.skip(str(absence))
    with penstock.Cluster(nodes=3) as cluster:
        place = f"{LOCALHOST}:{cluster.ports[0]}"

        def run(tool: str, *words: str) -> str:
            done = subprocess.run(
                [tools / tool, *words], capture_output=True, text=True, timeout=300, env=os.environ | {"TERM": "dumb"}
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        writers = [Writer(cluster, f"writer-{number}") for number in range(2)]
        try:
            for node in (1, 2, 3):
                target = cluster.node_client(node).execute_command("CLUSTER", "MYID").decode()
                words = ["--cluster-from", "all", "--cluster-to", target, "--cluster-slots", "200", "--cluster-yes"]
                run("redis-cli", "--cluster", "reshard", place, *words)
            run("redis-cli", "--cluster", "rebalance", place, "--cluster-threshold", "0")
            load = ["-n", "2000", "-r", "1000", "-t", "set,get,lpush", "-q", "--cluster"]
            assert "requests per second" in run("redis-benchmark", "-p", str(cluster.ports[0]), *load)
        finally:
            for writer in writers:
                writer.stop()

        assert "[OK] All 16384 slots covered." in run("redis-cli", "--cluster", "check", place)
        assert "[OK] All nodes agree about slots configuration." in run("redis-cli", "--cluster", "check", place)
        assert lost(cluster, writers) == []


@pytest.mark.slow
def test_a_million_entries_move_with_their_slot() -> None:
    keys = [f"{{many}}:{number}" for number in range(MANY_KEYS)]
    with penstock.Cluster(nodes=2) as cluster:
        source = cluster.node_of(keys[0])
        old, new = (cluster.node_client(node) for node in (source, 3 - source))
        pipeline = old.pipeline(transaction=False)
        for number in range(MANY // MANY_KEYS):
            pipeline.xadd(keys[0], {"n": number, "text": "of an order"})
        pipeline.xgroup_create(keys[0], "workers", 0)
        pipeline.execute()
        old.xreadgroup("workers", "alice", {keys[0]: ">"}, count=1000)
        dumped = old.dump(keys[0])
        for key in keys[1:]:
            old.restore(key, 0, dumped or b"")

        cluster.move_slot(keys[0], to=3 - source)

        assert sum(new.xlen(key) for key in keys) == MANY
        assert {new.dump(key) for key in keys} == {dumped}
        assert old.dbsize() == 0
