"""FAILOVER between two processes, to and fro, while clients write: no confirmed write is lost, none is doubled.

By hand, for more: `python -m tests.replication.test_failover_under_load 20`.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.replication.test_beside_real_servers import PATIENCE_S, Client, caught_up, everything, real_server, until
from tests.support.reference_server import free_port
from tests.support.server_process import ServerProcess
from tests.support.wire import Array, Bulk, Connection, Error, Integer, Simple

pytestmark = pytest.mark.slow

WRITERS = 3
PAIRS = [
    (one, other) for one in ("penstock", "redis", "valkey") for other in ("penstock", "redis", "valkey")
    if "penstock" in (one, other)
]  # fmt: skip


@contextmanager
def server(kind: str) -> Iterator[int]:
    """A server of a kind, on a port that it can tell others."""
    if kind == "penstock":
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
            flags = ("--port", str(free_port()), "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
            own = ServerProcess(flags, Path(folder), {})
            try:
                own.wait_until_ready()
                yield own.port
            finally:
                own.kill()
        return
    with real_server(kind) as port:
        yield port


class Writer(threading.Thread):
    """Appends 1, 2, 3 ... to a stream of its own, on whichever of two servers takes it. `written`: so far."""

    def __init__(self, name: str, ports: tuple[int, int], stops: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._ports = ports
        self._stops = stops
        self.written = 0
        self.longest_s = 0.0
        self.problem: object = None

    def run(self) -> None:
        with ExitStack() as stack:
            clients = [stack.enter_context(Connection("127.0.0.1", port, PATIENCE_S)) for port in self._ports]
            confirmed_s = time.monotonic()
            while not self._stops.is_set() and self.problem is None:
                answer = clients[0].ask("XADD", self.name, "*", "n", str(self.written + 1))
                if isinstance(answer, Bulk):
                    now_s = time.monotonic()
                    self.longest_s = max(self.longest_s, now_s - confirmed_s)
                    confirmed_s = now_s
                    self.written += 1
                elif isinstance(answer, Error) and answer.text.startswith(b"READONLY"):
                    clients.reverse()  # it was not run
                else:
                    self.problem = answer


def to_and_fro(kinds: tuple[str, str], times: int) -> list[Writer]:
    """Change places so many times; the writers, after everything was compared."""
    with ExitStack() as stack:
        ports = (stack.enter_context(server(kinds[0])), stack.enter_context(server(kinds[1])))
        master, replica = (opened(stack, port) for port in ports)
        replica.follow(master)
        stops = threading.Event()
        writers = [Writer(f"s{number}", ports, stops) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(times):
                change_places(master, replica, writers)
                master, replica = replica, master
        finally:
            stops.set()
            for writer in writers:
                writer.join(PATIENCE_S)
        assert [writer.problem for writer in writers] == [None] * WRITERS
        caught_up(master, replica)
        for writer in writers:
            entries = master.ask("XRANGE", writer.name, "-", "+")
            assert isinstance(entries, Array)
            numbers = [number_of(entry) for entry in entries.elements]
            assert numbers == list(range(1, writer.written + 1)), writer.name
        assert everything(replica) == everything(master)
        fulls = [full_syncs(one) for one in (master, replica)]
        assert sorted(fulls) == [0, 1], "the replica that followed went on where it was"
        return writers


def change_places(master: Client, replica: Client, writers: list[Writer]) -> None:
    """FAILOVER; it is over when all writers have written to the new master."""
    before = [writer.written for writer in writers]
    until(lambda: replicas_online(master) == 1, master.info)
    until(lambda: has_copy_on_disk(replica), replica.info)
    assert master.ask("FAILOVER", "TO", "127.0.0.1", str(replica.port)) == Simple(b"OK")
    until(lambda: replica.info()["role"] == "master", master.info)
    master.until_up()
    until(lambda: all(one.written > had for one, had in zip(writers, before, strict=True)), replica.info)


def replicas_online(master: Client) -> int:
    """A replica that says its link is up is not yet that: a Redis waits for its first ACK."""
    return sum("state=online" in value for value in master.info().values())


def has_copy_on_disk(replica: Client) -> bool:
    """A Penstock refuses to take over before that, and a Redis that is refused gives up its FAILOVER."""
    told = replica.ask("INFO", "persistence")
    return isinstance(told, Bulk) and b"penstock_aof_base_written:0" not in told.text


def opened(stack: ExitStack, port: int) -> Client:
    client = Client(port)
    stack.enter_context(client)
    return client


def number_of(entry: object) -> int:
    assert isinstance(entry, Array) and isinstance(entry.elements[1], Array)
    found = entry.elements[1].elements[1]
    assert isinstance(found, Bulk)
    return int(found.text)


def full_syncs(client: Client) -> int:
    told = client.ask("INFO", "stats")
    assert isinstance(told, Bulk)
    return int(told.text.partition(b"sync_full:")[2].split(b"\r")[0])


@pytest.mark.parametrize("kinds", PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_places_change_to_and_fro_while_clients_write(kinds: tuple[str, str]) -> None:
    to_and_fro(kinds, 4)


def test_replicas_of_the_old_master_go_on() -> None:
    with ExitStack() as stack:
        master, target, third = (opened(stack, stack.enter_context(server("penstock"))) for _ in range(3))
        target.follow(master)
        third.follow(master)
        master.ask("SET", "before", "1")
        until(lambda: replicas_online(master) == 2, master.info)
        assert master.ask("FAILOVER", "TO", "127.0.0.1", str(target.port)) == Simple(b"OK")
        until(lambda: target.info()["role"] == "master", master.info)
        assert target.ask("SET", "after", "1") == Simple(b"OK")
        until(lambda: third.ask("GET", "after") == Bulk(b"1"), third.info)

        assert third.ask("GET", "before") == Bulk(b"1")
        assert third.info()["master_port"] == str(master.port)
        assert full_syncs(master) == 2 and full_syncs(target) == 0
        assert target.ask("WAIT", "1", "60000") == Integer(1)


def main() -> None:
    for kinds in PAIRS:
        writers = to_and_fro(kinds, int(sys.argv[1]))
        longest_ms = max(writer.longest_s for writer in writers) * 1000
        written = sum(writer.written for writer in writers)
        sys.stdout.write(f"{kinds[0]} and {kinds[1]}: {written} writes, longest wait {longest_ms:.0f} ms\n")


if __name__ == "__main__":
    main()
