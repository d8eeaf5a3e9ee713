"""A master or its replica is killed at a random moment: what WAIT has confirmed is on the one that is left.

By hand, for many: `python -m tests.replication.test_kills 200`.
"""

import contextlib
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tests.support.reference_server import free_port
from tests.support.server_process import ServerProcess
from tests.support.wire import Array, Bulk, Closed, Connection, Integer, Simple

PATIENCE_S = 60.0
LONGEST_ROUND_S = 0.5


def started(folder: Path, port: int) -> ServerProcess:
    flags = ("--port", str(port), "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
    server = ServerProcess(flags, folder, {})
    server.wait_until_ready()
    return server


class Pair:
    """A master and a replica; the one that is killed comes back as the replica of the other."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self._chance = chance
        self._folders = [root / "a", root / "b"]
        self._ports = [free_port(), free_port()]
        for folder in self._folders:
            folder.mkdir()
        self._servers = [started(*place) for place in zip(self._folders, self._ports, strict=True)]
        self._master = 0
        self.written = 0
        self.confirmed = 0
        self._follow()

    def _client(self, which: int) -> Connection:
        return Connection("127.0.0.1", self._ports[which], PATIENCE_S)

    def _follow(self) -> None:
        replica = 1 - self._master
        with self._client(replica) as client:
            assert client.ask("REPLICAOF", "127.0.0.1", str(self._ports[self._master])) == Simple(b"OK")
        deadline = time.monotonic() + PATIENCE_S
        with self._client(self._master) as client:
            while client.ask("WAIT", "1", "1000") != Integer(1):
                assert time.monotonic() < deadline, "the replica does not follow"

    def round(self) -> None:
        """Write until one of both is killed; then look at the other."""
        victim = self._chance.randrange(2)
        killer = threading.Timer(self._chance.random() * LONGEST_ROUND_S, self._servers[victim].kill)
        killer.start()
        with contextlib.suppress(Closed, OSError), self._client(self._master) as client:
            while self._servers[victim].is_alive:
                self.written += 1
                client.ask("XADD", "s", f"{self.written}-0", "f", "v")
                if client.ask("WAIT", "1", "100") == Integer(1):
                    self.confirmed = self.written
        killer.join()
        left = 1 - victim
        with self._client(left) as client:
            assert client.ask("REPLICAOF", "NO", "ONE") == Simple(b"OK")
            last = client.ask("XREVRANGE", "s", "+", "-", "COUNT", "1")
            assert isinstance(last, Array)
            found = 0
            if last.elements:
                (entry,) = last.elements
                assert isinstance(entry, Array) and isinstance(entry.elements[0], Bulk)
                found = int(entry.elements[0].text.partition(b"-")[0])
            length = client.ask("XLEN", "s")
        assert self.confirmed <= found <= self.written, (self.confirmed, found, self.written)
        assert length == Integer(found), "entries are missing in between"
        self.written = found
        self._master = left
        self._servers[victim] = started(self._folders[victim], self._ports[victim])
        self._follow()

    def stop(self) -> None:
        for server in self._servers:
            server.kill()


def play(rounds: int, seed: int) -> Pair:
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        pair = Pair(Path(folder), random.Random(seed))
        try:
            for _ in range(rounds):
                pair.round()
        finally:
            pair.stop()
    return pair


@pytest.mark.slow
def test_what_wait_has_confirmed_survives_the_death_of_either_side() -> None:
    assert play(5, 1).confirmed > 0


if __name__ == "__main__":
    sys.stdout.write(f"{sys.argv[1]} rounds, {play(int(sys.argv[1]), 2).confirmed} writes confirmed: none was lost\n")
