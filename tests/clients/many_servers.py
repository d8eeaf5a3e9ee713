"""More than one server under the frameworks: three that Sentinels watch, three nodes of a cluster.

They have what a `KeptServer` has. `stop` and `start` lose a server and bring it back while the others go on.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import penstock
from tests.clients.servers import NAMED, version_of
from tests.sentinels.watched_trio import PASSWORD, Trio
from tests.support.deployments import until
from tests.support.reference_server import LOCALHOST

MOVED_KEYS = ("jobs", "results", "{desk}jobs")  # of the jobs in tests/clients/apps


class Servers(Protocol):
    """What a course needs of them."""

    @property
    def leaders(self) -> list[int]: ...
    @property
    def environment(self) -> dict[str, str]: ...
    def version(self) -> str: ...
    def wait_until_ready(self) -> None: ...
    def stop(self) -> None: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...


class WatchedServers:
    """A master and two replicas of Penstock, or of the server that CLIENTS_SERVER names, and three Sentinels."""

    def __init__(self, directory: Path) -> None:
        self._stack = ExitStack()
        folder = directory / "servers"
        folder.mkdir()
        self._trio = Trio(self._stack, folder, os.environ.get(NAMED) or "penstock", lead_sessions=True)
        self._lost = 0

    @property
    def leaders(self) -> list[int]:
        return [process.pid for process in (*self._trio.processes, *self._trio.sentinels.processes)]

    @property
    def environment(self) -> dict[str, str]:
        places = [f"{LOCALHOST}:{port}" for port in self._trio.sentinels.ports]
        url = f"redis://:{PASSWORD}@{LOCALHOST}:{self._trio.ports[0]}/0"  # what is known of the Sentinels comes first
        return {"SENTINELS": " ".join(places), "PASSWORD": PASSWORD, "REDIS_URL": url, "PORT": ""}

    def version(self) -> str:
        return version_of(self._trio.clients[0])

    def wait_until_ready(self) -> None:
        until(self._trio.is_settled, "the servers do not follow the master")

    def stop(self) -> None:
        """Kill the master."""
        self._lost = self._trio.master
        self._trio.kill(self._lost)

    def start(self) -> None:
        """Wait until a replica is promoted, and start the old master."""
        until(lambda: self._trio.master != self._lost, "no replica was promoted")
        self._trio.start(self._lost)

    def kill(self) -> None:
        self._stack.close()


class ClusterOfThree:
    """`penstock.Cluster`: its nodes end with this process, however that ends."""

    def __init__(self, directory: Path) -> None:
        self._cluster = penstock.Cluster(nodes=3, dir=directory / "cluster", appendfsync="always").start()
        self.leaders: list[int] = []

    @property
    def environment(self) -> dict[str, str]:
        port = self._cluster.ports[0]
        return {"PORT": str(port), "REDIS_URL": f"redis://{LOCALHOST}:{port}/0", "IN_CLUSTER": "1"}

    def version(self) -> str:
        with self._cluster.node_client(1) as client:
            return version_of(client)

    def wait_until_ready(self) -> None:
        self._cluster.wait_until_ready()

    def stop(self) -> None:
        """Move the slots of the jobs to the next node, in steps, and kill the one that has them now."""
        for key in MOVED_KEYS:
            self._cluster.move_slot(key, to=self._cluster.node_of(key) % 3 + 1)
        for node in {self._cluster.node_of(key) for key in MOVED_KEYS}:
            self._cluster.kill(node)

    def start(self) -> None:
        """A node is started again by the launcher."""

    def kill(self) -> None:
        self._cluster.close()
