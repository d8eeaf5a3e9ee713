"""Where a stream is copied in `make chaos`: one server; a master that Sentinels watch; a cluster whose slots move."""

import contextlib
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis

from tests.support.deployments import (
    Process,
    Watched,
    catch_up,
    redis_cluster,
    replicate,
    server_of,
    until,
    watched_pair,
)
from tests.support.reference_server import LOCALHOST

STREAMS = 8  # that are copied in a cluster, and of the copy
MOVES = 3  # slots at a time of what is copied, and of the copy


class Deployment:
    """One server. `sources` are copied, `copies` are the streams of the copy, `sink` options of the sink."""

    sources: tuple[str, ...] = ("from",)
    copies: tuple[str, ...] = ("to",)

    def __init__(self, endpoint: str, client: Any) -> None:
        self.endpoint = endpoint
        self.client = client
        self.sink: dict[str, str] = {}
        self._known = 0

    def rows(self) -> int:
        """Rows in the copy; as many as at the last look while no server answers."""
        with contextlib.suppress(redis.RedisError):
            self._known = sum(int(self.client.xlen(key)) for key in self.copies)
        return self._known

    def settle(self) -> None:
        """Ask the server that is the master now."""

    def clear(self) -> None:
        for key in (*self.copies, *self.client.scan_iter("__spark:*")):
            self.client.delete(key)

    def disturb(self, chance: random.Random) -> None:
        raise NotImplementedError("one server is only killed together with what is in its memory")


class FailingOver(Deployment):
    """A master, its replica, three Sentinels. Each failover leaves the old master dead, and a new replica is made."""

    def __init__(self, watched: Watched, stack: ExitStack, kind: str, folder: Path) -> None:
        super().__init__(watched.endpoint, watched.client())
        self.sink = {"acks": "replicas:1"}  # what is committed is on both: only an open batch can be lost
        self._watched, self._stack, self._kind, self._folder = watched, stack, kind, folder

    def settle(self) -> None:
        self.client = self._watched.client()

    def clear(self) -> None:
        self.settle()
        super().clear()
        catch_up(self.client)

    def disturb(self, chance: random.Random) -> None:
        self._watched.lose_master()
        self.settle()
        replica: Process = self._stack.enter_context(server_of(self._kind, self._folder))
        with redis.Redis(LOCALHOST, replica.port) as client:
            replicate(client, self._watched.master.port)
        self._watched.replica = replica
        until(lambda: self._watched.sentinels.see(replica.port), "the Sentinels do not see the new replica")


class Moving(Deployment):
    """A cluster of three nodes of Redis: slots of what is copied and of the copy move with what is in them."""

    sources = tuple(f"from:{number}" for number in range(STREAMS))
    copies = tuple(f"to:{number}" for number in range(STREAMS))

    def __init__(self, cluster: Any) -> None:
        super().__init__(cluster.endpoint, cluster.client)
        self._cluster = cluster

    def disturb(self, chance: random.Random) -> None:
        for key in (*chance.sample(self.sources, MOVES), *chance.sample(self.copies, MOVES)):
            self._cluster.move(key)


@contextlib.contextmanager
def failing_over(folder: Path, is_redis: bool) -> Iterator[Deployment]:
    kind = "redis" if is_redis else "penstock"
    with ExitStack() as stack:
        watched = stack.enter_context(watched_pair(kind, folder))
        yield FailingOver(watched, stack, kind, folder)


@contextlib.contextmanager
def moving(folder: Path) -> Iterator[Deployment]:
    with redis_cluster(folder) as cluster:
        yield Moving(cluster)


def entries_of(deployment: Deployment, page: int) -> Iterator[bytes]:
    """The field `n` of every row of the copy."""
    for key in deployment.copies:
        last = "-"
        while found := deployment.client.xrange(key, last, count=page):
            for _, fields in found:
                yield fields[b"n"]
            last = "(" + found[-1][0].decode()


def parquet_rows(folder: Path) -> Iterator[bytes]:
    """The column `n` of the files that Spark has committed, of which its own log tells."""
    from pyarrow import parquet

    for name in committed_files(folder):
        for number in parquet.read_table(name, columns=["n"]).column("n").to_pylist():
            yield b"%d" % number


def committed_files(folder: Path) -> list[str]:
    found: set[str] = set()
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            found.add(json.loads(line)["path"].removeprefix("file://"))
    return sorted(found)


def committed_batches(folder: Path) -> int:
    """The number of the newest batch that Spark has committed to its files, and one."""
    numbers = [int(log.name.partition(".")[0]) for log in (folder / "_spark_metadata").glob("[0-9]*")]
    return max(numbers, default=-1) + 1
