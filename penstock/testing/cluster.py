"""A cluster for tests: `with penstock.Cluster(nodes=3) as cluster: cluster.client().set("k", "v")`."""

import asyncio
import os
import socket
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from penstock.engine.cluster.hash_slots import slot_of
from penstock.errors import UsageError
from penstock.launching.cluster_command import settings_of, with_login
from penstock.launching.launcher import HIGHEST_PORT, LOCALHOST, Launcher, Plan
from penstock.launching.node_process import NodeProcess
from penstock.testing.embedded import flag

if TYPE_CHECKING:
    import redis
    from redis.cluster import RedisCluster

START_S: Final = 60.0
KEYS_AT_ONCE: Final = 10  # as redis-cli: meanwhile both nodes serve nothing else
MOVE_MS: Final = 10_000  # of silence between two nodes


class Cluster:
    """Nodes of a cluster, each a process of this machine, as `penstock cluster` starts them; a context manager.

    nodes: how many have slots; they are numbered from 1. replicas: 0 or 1 of each; they have the next numbers. dir:
    where the logs and the map are kept; without it they go with the cluster. Other keywords are directives.

    UsageError for a directive that is wrong, and for nodes that do not start.
    """

    _start_s: ClassVar[float] = START_S

    def __init__(
        self, nodes: int = 3, replicas: int = 0, dir: str | os.PathLike[str] | None = None, **directives: object
    ) -> None:
        self._words = [word for name, value in directives.items() for word in flag(name, value)]
        self._settings = settings_of(self._words)
        self._shape = nodes, replicas
        self._dir = dir
        self.password = self._settings.text("requirepass") or None
        self.lines: list[str] = []  # what the launcher said

    # -- from the start to the end ------------------------------------------------------------------------------------

    def start(self) -> "Cluster":
        """Start the nodes, and wait until all of them are ready; `with` calls this."""
        self._own_folder = tempfile.TemporaryDirectory(prefix="penstock-cluster-") if self._dir is None else None
        folder = Path(self._own_folder.name if self._own_folder is not None else os.fspath(self._dir or ""))
        masters, replicas = self._shape
        ports = free_ports(masters * (1 + replicas))
        plan = Plan(masters, replicas, ports, folder, with_login(self._words, self._settings))
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(plan, started)), daemon=True)
        self._problem: BaseException | None = None
        self._is_up = False
        self._thread.start()
        started.wait()
        if not self._is_up:
            self.close()
            raise UsageError(str(self._problem or "\n".join(self.lines)))
        return self

    async def _run(self, plan: Plan, started: threading.Event) -> None:
        try:
            self._loop = asyncio.get_running_loop()
            self._launcher = Launcher(plan, self._settings, self.lines.append)
            serving = asyncio.create_task(self._launcher.run())
            becoming_ready = asyncio.create_task(self._launcher.until(self._launcher.is_ready))
            ends_first = asyncio.FIRST_COMPLETED
            await asyncio.wait([serving, becoming_ready], timeout=self._start_s, return_when=ends_first)
            self._is_up = becoming_ready.done()
            becoming_ready.cancel()
            if not self._is_up and not serving.done():
                self._problem = UsageError(f"the nodes are not ready after {self._start_s:g} seconds")
                self._launcher.stop()
            started.set()
            await serving
        except (UsageError, OSError) as problem:
            self._problem = problem
        finally:
            started.set()

    def close(self) -> None:
        """End all nodes."""
        if self._is_up and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._launcher.stop)
        self._thread.join()
        if self._own_folder is not None:
            self._own_folder.cleanup()

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    def wait_until_ready(self) -> None:
        """Return when each node is up, and each replica has the data of its master."""
        self._in_loop(self._launcher.until(self._launcher.is_ready))

    # -- clients ------------------------------------------------------------------------------------------------------

    @property
    def ports(self) -> list[int]:
        """The nodes' ports, in order."""
        return [node.member.port for node in self._launcher.nodes]

    def client(self, **options: Any) -> "RedisCluster":
        """A cluster client of redis-py; options are redis.cluster.RedisCluster's."""
        from redis.cluster import ClusterNode, RedisCluster  # imported late: redis-py is an extra

        places = [ClusterNode(LOCALHOST, port) for port in self.ports]  # type: ignore[no-untyped-call]  # redis-py's
        return RedisCluster(startup_nodes=places, **({"password": self.password} | options))

    def node_client(self, node: int, **options: Any) -> "redis.Redis":
        """A client of one node alone, which does not follow MOVED."""
        import redis  # imported late: an extra

        return redis.Redis(LOCALHOST, self._node(node).member.port, **({"password": self.password} | options))

    def node_of(self, key: str | bytes) -> int:
        """The number of the node that has a key."""
        owner = self._launcher.map.owners[slot_of(key.encode() if isinstance(key, str) else key)]
        return next(node.number for node in self._launcher.nodes if node.member is owner)

    def _node(self, number: int) -> NodeProcess:
        if not 0 < number <= len(self._launcher.nodes):
            raise UsageError(f"there is no node {number}: they are 1 to {len(self._launcher.nodes)}")
        return self._launcher.nodes[number - 1]

    # -- slots --------------------------------------------------------------------------------------------------------

    def begin_move(self, key: str | bytes, to: int) -> "Move":
        """Begin to move a key's slot to another node; its keys are where they were."""
        return Move(self, slot_of(key.encode() if isinstance(key, str) else key), self.node_of(key), to)

    def move_slot(self, key: str | bytes, to: int) -> None:
        """Move a key's slot, with all that is in it, to another node."""
        move = self.begin_move(key, to)
        while move.carry():
            pass
        move.end()

    # -- faults -------------------------------------------------------------------------------------------------------

    def kill(self, node: int, restarts: bool = True) -> None:
        """Kill a node's process; return when the others know of it, and its replica, if it has one, has its place.

        The node starts again on its log; with restarts=False only when `start_node` says so.
        """
        self._in_loop(self._launcher.kill(self._node(node), restarts))

    def start_node(self, node: int) -> None:
        """Start a node again that was killed for good."""
        self._in_loop(self._launcher.start_again(self._node(node)))

    @contextmanager
    def stale_map(self, node: int) -> Iterator[None]:
        """Meanwhile a node hears of no change: where it should answer MOVED, it answers as before."""
        self._in_loop(self._launcher.hold_map(self._node(node), True))
        try:
            yield
        finally:
            self._in_loop(self._launcher.hold_map(self._node(node), False))


class Move:
    """A slot on its way from one node to another. The steps are redis-cli's."""

    def __init__(self, cluster: Cluster, slot: int, source: int, target: int) -> None:
        self._slot = slot
        # MIGRATE of large keys may take longer than redis-py waits for a reply, which is 5 seconds.
        self._source, self._target = (cluster.node_client(node, socket_timeout=None) for node in (source, target))
        self._port = cluster.ports[target - 1]
        self._login = ["AUTH", cluster.password] if cluster.password else []
        self._target_id = self._ask(self._target, "MYID")
        self._ask(self._target, "SETSLOT", slot, "IMPORTING", self._ask(self._source, "MYID"))
        self._ask(self._source, "SETSLOT", slot, "MIGRATING", self._target_id)

    def _ask(self, node: "redis.Redis", *words: object) -> Any:
        return node.execute_command("CLUSTER", *words)  # type: ignore[no-untyped-call]  # redis-py's

    def carry(self, most: int = KEYS_AT_ONCE) -> list[bytes]:
        """Move up to so many keys, which are asked for at the other node (ASK) from then on; which ones."""
        keys: list[bytes] = self._ask(self._source, "GETKEYSINSLOT", self._slot, most)
        if keys:
            words = ["MIGRATE", LOCALHOST, self._port, "", 0, MOVE_MS, *self._login, "KEYS", *keys]
            self._source.execute_command(*words)  # type: ignore[no-untyped-call]  # redis-py's
        return keys

    def end(self) -> None:
        """The slot is the other node's (MOVED)."""
        self._ask(self._target, "SETSLOT", self._slot, "NODE", self._target_id)
        self._source.close()
        self._target.close()


def free_ports(count: int) -> list[int]:
    """Free ports that a node may have; they are different, for all are bound before one is given back."""
    probes: list[socket.socket] = []
    try:
        while len([probe for probe in probes if _port(probe) <= HIGHEST_PORT]) < count:
            probe = socket.socket()
            probes.append(probe)
            probe.bind((LOCALHOST, 0))
        return [_port(probe) for probe in probes if _port(probe) <= HIGHEST_PORT]
    finally:
        for probe in probes:
            probe.close()


def _port(probe: socket.socket) -> int:
    port: int = probe.getsockname()[1]
    return port
