"""Deployments of more than one server, for tests: replicas, replicas with Sentinels, a cluster."""

import time
from collections.abc import Callable

import redis

from tests.support.reference_server import LOCALHOST

PATIENCE_S = 60.0
BETWEEN_LOOKS_S = 0.02


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s, what
        time.sleep(BETWEEN_LOOKS_S)


def replicate(replica: redis.Redis, master_port: int) -> None:
    """Make a server a replica that has everything."""
    replica.replicaof(LOCALHOST, master_port)
    until(lambda: replica.info("replication")["master_link_status"] == "up", "the replica has no link")
