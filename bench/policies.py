"""What a large leased group costs: a tenth of its entries held, a blocked reader for each hundred of them.

Nothing may grow with what is not due. An hour is ACKWAIT for what is not to end meanwhile, and a day the holds.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.loads import GROUP, STREAM, VALUE, Requests
from bench.scale import WITHOUT_LOG
from bench.servers import LOCALHOST, Candidate, Link, Server, cpu_ns, packed, resident_bytes, running

HOUR_MS: Final = 3_600_000
AT_ONCE: Final = 100
PING_EVERY_S: Final = 0.001
IDLE_S: Final = 3.0
LONGEST_S: Final = 600.0
POLICY: Final = b"PENSTOCK.POLICY"


def policies(candidates: Sequence[Candidate], count: int) -> dict[str, dict[str, float]]:
    """server -> what -> figure, of the builds of Penstock."""
    found: dict[str, dict[str, float]] = {}
    for candidate in candidates:
        if candidate.is_penstock:
            of_server = found[candidate.name] = {}
            with running(candidate, *WITHOUT_LOG, "--maxclients", "20000") as server, Link(server.port) as link:
                for what, figure in measured(server, link, count):
                    of_server[what] = figure
                    print(f"{candidate.name:<10}{what:<70}{figure:>12.1f}", flush=True)
    return found


def measured(server: Server, link: Link, count: int) -> Iterator[tuple[str, float]]:
    pid, held, readers = server.pid, count // 10, count // 100
    link.prepare(additions(count))
    lease(link, HOUR_MS)
    full = resident_bytes(pid)
    link.prepare(reads(count // AT_ONCE, b"worker"))
    delivered = resident_bytes(pid)
    yield "bytes a leased entry", (delivered - full) / count
    link.prepare(holds(held))
    yield "bytes a held entry", (resident_bytes(pid) - delivered) / held
    was_ns = cpu_ns(pid)
    time.sleep(IDLE_S)
    yield "CPU while nothing is due, ms a second", (cpu_ns(pid) - was_ns) / IDLE_S / 1e6
    with blocked_readers(server, link, readers):
        was_ns = cpu_ns(pid)
        time.sleep(IDLE_S)
        yield "the same with blocked readers", (cpu_ns(pid) - was_ns) / IDLE_S / 1e6
        few = min(2000, readers // 2)
        was_ns = cpu_ns(pid)
        for number in range(few):
            link.ask(b"XNACK", STREAM, GROUP, b"SILENT", b"IDS", b"1", entry_id(10 * number + 1))
        yield "CPU of an XNACK that serves a blocked reader, us", (cpu_ns(pid) - was_ns) / few / 1000
        with pinging(server) as pauses:
            lease(link, 1)
            wait_until(lambda: number_of(link, b"INFO", b"clients", b"blocked_clients:") == 0)
        yield "longest pause while all leases end and all readers are served, ms", max(pauses)
    for part, requests in (("", 100), (", at the end", 100)):
        was_ns = cpu_ns(pid)
        link.prepare(reads(requests, b"again"))
        yield (
            f"CPU of a redelivery in reads of {AT_ONCE}{part}, us",
            (cpu_ns(pid) - was_ns) / (requests * AT_ONCE) / 1000,
        )
    was_ns = cpu_ns(pid)
    with pinging(server) as pauses:
        link.deliver([(POLICY, STREAM, b"GROUP", GROUP, b"MAXDELIVER", b"1", b"DEADLETTER", b"dead")])
        wait_until(lambda: pending(link) <= held)
    yield "CPU of a dead letter, us", (cpu_ns(pid) - was_ns) / (count - held) / 1000
    yield "longest pause while all others become dead letters, ms", max(pauses)


def entry_id(number: int) -> bytes:
    return b"%d-0" % (number + 1)


def additions(count: int) -> Requests:
    for number in range(count):
        yield b"XADD", STREAM, entry_id(number), b"field", VALUE
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0"


def reads(count: int, name: bytes) -> Requests:
    for _ in range(count):
        yield b"XREADGROUP", b"GROUP", GROUP, name, b"COUNT", b"%d" % AT_ONCE, b"STREAMS", STREAM, b">"


def holds(count: int) -> Requests:
    """Every tenth entry is held, each hundred until a moment of its own."""
    for first in range(0, count, AT_ONCE):
        ids = [entry_id(10 * number) for number in range(first, min(first + AT_ONCE, count))]
        delay = b"%d" % (24 * HOUR_MS + first)
        yield b"PENSTOCK.XNACK", STREAM, GROUP, b"FAIL", b"IDS", b"%d" % len(ids), *ids, b"DELAY", delay


def lease(link: Link, ms: int) -> None:
    link.deliver([(POLICY, STREAM, b"GROUP", GROUP, b"ACKWAIT", b"%d" % ms)])


def pending(link: Link) -> int:
    summary = link.ask(b"XPENDING", STREAM, GROUP)
    assert isinstance(summary, list)
    return int(summary[0])


def number_of(link: Link, command: bytes, section: bytes, name: bytes) -> int:
    """A number of INFO."""
    text = link.ask(command, section)
    assert isinstance(text, bytes)
    return int(text.split(name)[1].split()[0])


def wait_until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < until_s, "nothing happens any more"
        time.sleep(0.02)


@contextmanager
def blocked_readers(server: Server, link: Link, count: int) -> Iterator[None]:
    """So many clients that wait for one entry each."""
    clients: list[socket.socket] = []
    try:
        for number in range(count):
            client = socket.create_connection((LOCALHOST, server.port))
            words = (b"XREADGROUP", b"GROUP", GROUP, b"reader%d" % number, b"COUNT", b"1", b"BLOCK", b"0")
            client.sendall(packed([(*words, b"STREAMS", STREAM, b">")]))
            clients.append(client)
        wait_until(lambda: number_of(link, b"INFO", b"clients", b"blocked_clients:") == count)
        yield
    finally:
        for client in clients:
            client.close()


@contextmanager
def pinging(server: Server) -> Iterator[list[float]]:
    """Another client that asks PING each ms: how long it waited for each reply, in ms."""
    pauses = [0.0]
    stop = threading.Event()

    def ping() -> None:
        with Link(server.port) as link:
            while not stop.wait(PING_EVERY_S):
                asked_s = time.perf_counter()
                link.ask(b"PING")
                pauses.append((time.perf_counter() - asked_s) * 1000)

    thread = threading.Thread(target=ping)
    thread.start()
    try:
        yield pauses
    finally:
        stop.set()
        thread.join()
