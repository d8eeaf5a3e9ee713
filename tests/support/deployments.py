"""Deployments of more than one server, for tests: replicas, replicas with Sentinels, a cluster."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import redis
from redis.cluster import RedisCluster

from tests.support.patience import Patience
from tests.support.reference_server import LOCALHOST, NoReference, free_port, reference_binary
from tests.support.server_process import ServerProcess, running_server

PATIENCE_S = 60.0
BETWEEN_LOOKS_S = 0.02
MASTER = "main"  # the name that the Sentinels know the master by
SENTINELS = 3
SENTINEL_FILE = """\
port {port}
bind 127.0.0.1
dir {folder}
{before}
sentinel monitor main {host} {master} 2
sentinel down-after-milliseconds main 1000
sentinel failover-timeout main 5000
{after}
"""
HOST_NAMES = "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes"


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    patience = Patience.of(PATIENCE_S)
    while not holds():
        assert not patience.is_over(), what
        time.sleep(BETWEEN_LOOKS_S)


def replicate(replica: redis.Redis, master_port: int) -> None:
    """Make a server a replica that has everything; its master does not wait for others to ask for a copy."""
    with redis.Redis(LOCALHOST, master_port) as master:
        master.config_set("repl-diskless-sync-delay", 0)
    replica.replicaof(LOCALHOST, master_port)
    until(lambda: replica.info("replication")["master_link_status"] == "up", "the replica has no link")


def catch_up(master: redis.Redis) -> None:
    """Wait until a replica has everything that the master has."""
    master.set("last", 1)
    until(lambda: master.wait(1, 1000) == 1, "no replica catches up")


class RedisProcess:
    """A process of Redis's server: a server, a Sentinel or a node of a cluster. NoReference if there is none."""

    def __init__(self, folder: Path, *words: str, port: int, kind: str = "redis", leads_session: bool = False) -> None:
        self.port = port
        self.bus_port = 0  # where the nodes of a cluster speak to each other
        self._process = subprocess.Popen(
            [str(reference_binary(kind)), *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=leads_session,
        )
        until(self._answers, "the server does not start")

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the server ended"
        try:
            with redis.Redis(LOCALHOST, self.port) as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()


Process = RedisProcess | ServerProcess


@contextmanager
def server_of(kind: str, folder: Path) -> Iterator[Process]:
    """A server, `penstock` or `redis`, that can be killed."""
    if kind == "penstock":
        with running_server("--appendonly", "no") as server:
            yield server
        return
    port = free_port()
    server_folder = folder / f"redis-{port}"
    server_folder.mkdir()
    found = RedisProcess(server_folder, "--port", str(port), "--bind", LOCALHOST, "--save", "", port=port)
    try:
        yield found
    finally:
        found.kill()


class Sentinels:
    """Three real Sentinels, of `redis` or `valkey`, that watch a master."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        master_port: int,
        kind: str = "redis",
        host: str = LOCALHOST,
        after: str = "",
        lead_sessions: bool = False,
    ) -> None:
        """host: the master's address or name. after: lines of their files, such as the user to log in as."""
        self.processes: list[RedisProcess] = []
        self.ports = [free_port() for _ in range(SENTINELS)]
        for port in self.ports:
            file = folder / f"sentinel-{port}.conf"
            before = "" if host == LOCALHOST else HOST_NAMES
            told = {"port": port, "folder": folder, "master": master_port, "host": host}
            file.write_text(SENTINEL_FILE.format(**told, before=before, after=after))
            found = RedisProcess(folder, str(file), "--sentinel", port=port, kind=kind, leads_session=lead_sessions)
            stack.callback(found.kill)
            self.processes.append(found)
        self.clients = [stack.enter_context(redis.Redis(LOCALHOST, port, decode_responses=True)) for port in self.ports]

    def know(self, replicas: int) -> bool:
        """Whether each knows so many replicas that are up, and the other Sentinels; before, none of them fails over."""
        return all(known_to(client) == (replicas, SENTINELS - 1, True) for client in self.clients)

    def see(self, port: int) -> bool:
        """Whether each knows the replica at this port, and takes it for well."""
        return all(
            any(int(one["port"]) == port and one["flags"] == "slave" for one in _replicas(client))
            for client in self.clients
        )


class Watched:
    """A master and a replica that Sentinels watch; the endpoint that names them."""

    def __init__(self, master: Process, replica: Process, sentinels: Sentinels) -> None:
        self.master = master
        self.replica = replica
        self.sentinels = sentinels
        places = ";".join(f"{LOCALHOST}:{port}" for port in sentinels.ports)
        self.endpoint = f"orders=sentinel://{places}/{MASTER}"

    def client(self) -> redis.Redis:
        """A client of the master. Sentinels fail over one that is only busy, too: then the two have changed places."""
        found = redis.Redis(LOCALHOST, self.master.port)
        if found.role()[0] == b"master":
            return found
        found.close()
        self.master, self.replica = self.replica, self.master
        return redis.Redis(LOCALHOST, self.master.port)

    def fail_over(self) -> None:
        """Kill the master when its replica has everything; wait until that one is the master."""
        with self.client() as client:
            catch_up(client)
        self.lose_master()

    def lose_master(self) -> None:
        """Kill the master, whatever its replica has; wait until that one is the master."""
        self.client().close()
        self.master.kill()
        with redis.Redis(LOCALHOST, self.replica.port) as client:
            until(lambda: client.role()[0] == b"master", "the replica was not promoted")
        self.master = self.replica


class Cluster:
    """Nodes of Redis, of which each has a third of the slots."""

    def __init__(self, nodes: list[RedisProcess]) -> None:
        self.nodes = nodes
        self.endpoint = f"cluster://{LOCALHOST}:{nodes[0].port};{LOCALHOST}:{nodes[1].port}"
        self.client = RedisCluster(LOCALHOST, nodes[0].port)

    def add_replica(self, folder: Path, stack: ExitStack) -> RedisProcess:
        """A replica of the first node, which has everything, and which each node knows: so they will vote for it."""
        found = _cluster_node(folder, stack)
        master = redis.Redis(LOCALHOST, self.nodes[0].port)
        with redis.Redis(LOCALHOST, found.port) as client:
            client.execute_command("CLUSTER", "MEET", LOCALHOST, self.nodes[0].port, self.nodes[0].bus_port)
            its_id = master.execute_command("CLUSTER", "MYID").decode()
            until(lambda: its_id in str(client.execute_command("CLUSTER", "NODES")), "the nodes do not meet")
            client.execute_command("CLUSTER", "REPLICATE", its_id)
            until(lambda: client.info("replication")["master_link_status"] == "up", "the replica has no link")
        for node in self.nodes:
            with redis.Redis(LOCALHOST, node.port) as client:
                until(lambda: f"slave {its_id}" in str(client.execute_command("CLUSTER", "NODES")), "a node is unknown")
        return found

    def node_of(self, key: str) -> RedisProcess:
        """The node that has a key's slot."""
        self.client.nodes_manager.initialize()
        port = self.client.get_node_from_key(key).port
        return next(node for node in self.nodes if node.port == port)

    def other_than(self, node: RedisProcess) -> RedisProcess:
        return next(one for one in self.nodes if one is not node)

    def begin_move(self, key: str) -> "Move":
        """Begin to move a key's slot to another node: its keys are where they were."""
        source = self.node_of(key)
        return Move(self, self.client.keyslot(key), source, self.other_than(source))

    def move(self, key: str) -> None:
        """Move a key's slot, with its keys, to another node."""
        move = self.begin_move(key)
        move.carry()
        move.end()


class Move:
    """A slot on its way from one node to another."""

    def __init__(self, cluster: Cluster, slot: int, source: RedisProcess, target: RedisProcess) -> None:
        self._cluster = cluster
        self._slot = slot
        self._source = redis.Redis(LOCALHOST, source.port)
        self._target = redis.Redis(LOCALHOST, target.port)
        self._port = target.port
        self._id, source_id = (one.execute_command("CLUSTER", "MYID") for one in (self._target, self._source))
        self._target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        self._source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", self._id)

    def carry(self, most: int = 1000) -> list[bytes]:
        """Move up to so many keys, which are asked for at the other node (ASK) from then on."""
        keys: list[bytes] = self._source.execute_command("CLUSTER", "GETKEYSINSLOT", self._slot, most)
        if keys:
            self._source.execute_command("MIGRATE", LOCALHOST, self._port, "", 0, 10_000, "KEYS", *keys)
        return keys

    def end(self) -> None:
        """The slot is the other node's (MOVED)."""
        for one in (self._target, self._source, *(redis.Redis(LOCALHOST, node.port) for node in self._cluster.nodes)):
            one.execute_command("CLUSTER", "SETSLOT", self._slot, "NODE", self._id)


def _cluster_node(folder: Path, stack: ExitStack) -> RedisProcess:
    port, bus_port = free_port(), free_port()
    own = folder / f"node-{port}"
    own.mkdir()
    words = ["--port", str(port), "--bind", LOCALHOST, "--save", "", "--cluster-enabled", "yes"]
    words += ["--cluster-port", str(bus_port), "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"]
    found = RedisProcess(own, *words, port=port)
    found.bus_port = bus_port
    stack.callback(found.kill)
    return found


@contextmanager
def redis_cluster(folder: Path) -> Iterator[Cluster]:
    """Three nodes of Redis, made a cluster by redis-cli. NoReference if there is no redis-cli."""
    cli = reference_binary().with_name("redis-cli")
    if not cli.exists():
        raise NoReference(f"no redis-cli beside {reference_binary()}")
    with ExitStack() as stack:
        nodes = [_cluster_node(folder, stack) for _ in range(3)]
        places = [f"{LOCALHOST}:{node.port}" for node in nodes]
        subprocess.run([cli, "--cluster", "create", *places, "--cluster-yes"], check=True, stdout=subprocess.DEVNULL)
        for node in nodes:
            with redis.Redis(LOCALHOST, node.port) as client:
                until(partial(_is_up, client), "the cluster is not up")
        found = Cluster(nodes)
        stack.callback(found.client.close)
        yield found


def _is_up(node: redis.Redis) -> bool:
    found: Any = node.cluster("INFO")
    return bool(found["cluster_state"] == "ok")


def _replicas(sentinel: redis.Redis) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sentinel.execute_command("SENTINEL", "REPLICAS", MASTER)
    return found


def known_to(sentinel: redis.Redis) -> tuple[int, int, bool]:
    """How many replicas and other Sentinels one knows; whether it takes the master and all replicas for well."""
    found: Any = sentinel.sentinel_master(MASTER)
    flags = [replica["flags"] for replica in _replicas(sentinel)]
    return len(flags), found["num-other-sentinels"], {found["flags"]} | {"slave", *flags} == {"master", "slave"}


@contextmanager
def watched_pair(kind: str, folder: Path) -> Iterator[Watched]:
    """A master and a replica, `penstock` or `redis`, with three real Sentinels."""
    with ExitStack() as stack:
        master, replica = (stack.enter_context(server_of(kind, folder)) for _ in range(2))
        with redis.Redis(LOCALHOST, replica.port) as client:
            replicate(client, master.port)
        sentinels = Sentinels(stack, folder, master.port)
        until(lambda: sentinels.know(replicas=1), "the Sentinels do not meet")
        yield Watched(master, replica, sentinels)
