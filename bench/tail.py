"""One command at a time: how soon each of many connections has its answer, and how many answers a second that makes.

Every connection has one command on the way. The same loop drives every server, so the client's own cost, which is part
of each latency, is the same beside all of them; the server's CPU time is taken from its process.
"""

import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from bench.accounting import cpu_ns
from bench.compare import lay
from bench.link import Link, Request, packed
from bench.loads import ADD, Requests, acknowledge, delivered, empty, entries, nothing, read
from bench.percentiles import percentiles
from bench.servers import Server

WARM: Final = 500
CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Load:
    """`request` is made from its number; `prepare` lays the ground for so many."""

    name: str
    request: Callable[[int], Request]
    prepare: Callable[[int], Requests] = nothing
    connections: int = 50
    commands: int = 20_000


LOADS: Final = tuple(
    Load(f"{name}, {connections} connection{'s' if connections > 1 else ''}", request, prepare, connections, commands)
    for connections, commands in ((1, 8_000), (50, 40_000))
    for name, request, prepare in (
        ("PING", lambda _: (b"PING",), nothing),
        ("XADD", lambda _: ADD, empty),
        ("XREADGROUP", lambda _: read(1), entries),
        ("XACK", acknowledge, delivered),
    )
)


@dataclass(slots=True)
class Tail:
    """Latencies in ms, commands a second, CPU in us a command."""

    p50_ms: float
    p99_ms: float
    p999_ms: float
    rate: float
    cpu_us: float


def run(load: Load, server: Server, commands: int) -> Tail:
    """One round on an empty server."""
    with Link(server.port) as first:
        first.ask(b"FLUSHALL")
        lay(first, load.prepare(commands + WARM))
    numbers = iter([packed([load.request(number)]) for number in range(commands + WARM)])
    links = [Link(server.port) for _ in range(load.connections)]
    try:
        drive(links, numbers, WARM)
        was_ns, began_s = cpu_ns(server.pid), time.perf_counter()
        ages = drive(links, numbers, commands)
        spent_s = time.perf_counter() - began_s
        used_ns = cpu_ns(server.pid) - was_ns
    finally:
        for link in links:
            link.close()
    return Tail(*percentiles(ages), rate=commands / spent_s, cpu_us=used_ns / commands / 1000)


def drive(links: list[Link], requests: Iterator[bytes], count: int) -> list[float]:
    """Ages in seconds of so many replies, all of which came in one piece: they are short."""
    ages: list[float] = []
    sent_s: dict[int, float] = {}
    sockets = {link.socket.fileno(): link.socket for link in links}
    clock = time.perf_counter
    left = count
    with select.epoll() as poll:
        for number, socket in sockets.items():
            poll.register(number, select.EPOLLIN)
            if left:
                left -= 1
                sent_s[number] = clock()
                socket.sendall(next(requests))
        while len(ages) < count:
            for number, _ in poll.poll(60):
                socket = sockets[number]
                reply = socket.recv(CHUNK)
                now_s = clock()
                ages.append(now_s - sent_s[number])
                if reply[-2:] != b"\r\n" or reply[:1] == b"-":
                    raise AssertionError(f"answered {reply[:200]!r}")
                if left:
                    left -= 1
                    sent_s[number] = now_s
                    socket.send(next(requests))
    return ages


def measure(started: list[Server], rounds: int, scale: float) -> dict[str, dict[str, dict[str, float]]]:
    """For each load and server the round with the best of each figure: what else runs on the machine only adds."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for load in LOADS:
        tails: dict[str, list[Tail]] = {}
        for _ in range(rounds):
            for server in started:
                commands = int(load.commands * scale / server.slowness)
                tails.setdefault(server.name, []).append(run(load, server, commands))
        found[load.name] = {name: best(of_server) for name, of_server in tails.items()}
        print(load.name, *(f"{name} {told(tail)}" for name, tail in found[load.name].items()), sep="\n  ", flush=True)
    return found


def best(tails: list[Tail]) -> dict[str, float]:
    figures = {name: min(getattr(tail, name) for tail in tails) for name in ("p50_ms", "p99_ms", "p999_ms", "cpu_us")}
    return figures | {"rate": max(tail.rate for tail in tails)}


def told(tail: dict[str, float]) -> str:
    return (
        f"{tail['rate']:8.0f}/s  p50 {tail['p50_ms']:.3f} ms  p99 {tail['p99_ms']:.3f}  p99.9 {tail['p999_ms']:.3f}"
        f"  CPU {tail['cpu_us']:.1f} us"
    )
