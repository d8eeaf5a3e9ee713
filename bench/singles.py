"""One request at a time from each of many connections: the server's CPU time of a request, latencies, rates."""

import select
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from bench.costs import SLICES
from bench.loads import ADD, SHORT, Requests, acknowledge, delivered, empty, entries, nothing, read
from bench.servers import Link, Request, Server, cpu_ns, packed, percentiles

WARM_REQUESTS: Final = 500
SHORT_REPLY_BYTES: Final = 1 << 16
LONGEST_WAIT_S: Final = 60.0

Row = dict[str, float]
Table = dict[str, dict[str, Row]]  # load -> server -> figures


@dataclass(frozen=True, slots=True)
class SingleLoad:
    """Requests sent one at a time by each of so many connections; `request` is made from its number."""

    name: str
    request: Callable[[int], Request]
    prepare: Callable[[int], Requests]
    connections: int
    requests: int


ONE_AT_A_TIME: Final = tuple(
    SingleLoad(f"{name}, {connections} connection{'s'[: connections - 1]}", request, prepare, connections, requests)
    for connections, requests in ((1, 8_000), (50, 40_000))
    for name, request, prepare in (
        ("PING", lambda _: (b"PING",), nothing),
        ("SET", lambda number: (b"SET", b"key%d" % (number % 100), SHORT), nothing),
        ("XADD", lambda _: ADD, empty),
        ("XREADGROUP", lambda _: read(1), entries),
        ("XREADGROUP of nothing new", lambda _: read(1), empty),
        ("XACK", acknowledge, delivered),
    )
)


class SingleTurn:
    """One round of a load on one server, run in slices. The client's own cost is in each latency, the same for all."""

    def __init__(self, load: SingleLoad, server: Server, requests: int) -> None:
        self.server = server
        self.requests = requests
        with Link(server.port) as first:
            first.ask(b"FLUSHALL")
            first.prepare(load.prepare(requests + WARM_REQUESTS))
        self._waiting = iter([packed([load.request(number)]) for number in range(requests + WARM_REQUESTS)])
        self._links = [Link(server.port) for _ in range(load.connections)]
        self._ages_s: list[float] = []
        self._spent_s = 0.0
        self._cpu_us: list[float] = []  # a request, slice by slice
        drive(self._links, self._waiting, WARM_REQUESTS)

    def slice(self, count: int) -> None:
        was_ns, began_s = cpu_ns(self.server.pid), time.perf_counter()
        self._ages_s += drive(self._links, self._waiting, count)
        self._spent_s += time.perf_counter() - began_s
        self._cpu_us.append((cpu_ns(self.server.pid) - was_ns) / count / 1000)

    def close(self) -> None:
        for link in self._links:
            link.close()

    def figures(self) -> Row:
        """The CPU time is that of the cheaper half of the slices: wake-ups cost more on some pairs of processors."""
        p50, p99, p999 = percentiles(self._ages_s)
        cpu_us = fmean(sorted(self._cpu_us)[: SLICES // 2])
        rate = len(self._ages_s) / self._spent_s
        return {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999, "rate": rate, "cpu_us": cpu_us}


def run_single(load: SingleLoad, started: list[Server], scale: float) -> dict[str, Row]:
    """One round of a load: each server runs a slice in turn, so that all see the same noise."""
    turns = [SingleTurn(load, server, int(load.requests * scale / server.slowness)) for server in started]
    for _ in range(SLICES):
        for turn in turns:
            turn.slice(turn.requests // SLICES)
    for turn in turns:
        turn.close()
    return {turn.server.name: turn.figures() for turn in turns}


def drive(links: list[Link], requests: Iterator[bytes], count: int) -> list[float]:
    """Ages in seconds of so many replies. A reply must come in one piece: the loads' are short."""
    ages_s: list[float] = []
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
        while len(ages_s) < count:
            for number, _ in poll.poll(LONGEST_WAIT_S):
                socket = sockets[number]
                reply = socket.recv(SHORT_REPLY_BYTES)
                now_s = clock()
                ages_s.append(now_s - sent_s[number])
                assert reply[-2:] == b"\r\n" and reply[:1] != b"-", f"answered {reply[:200]!r}"
                if left:
                    left -= 1
                    sent_s[number] = now_s
                    socket.send(next(requests))
    return ages_s


def one_at_a_time(started: list[Server], rounds: int, scale: float, compared: Sequence[str]) -> Table:
    """load -> server -> the best of each figure over the rounds."""
    found: Table = {}
    for load in ONE_AT_A_TIME:
        of_server: dict[str, list[Row]] = {server.name: [] for server in started}
        for _ in range(rounds):
            for name, row in run_single(load, started, scale).items():
                of_server[name].append(row)
        found[load.name] = {name: best(rows) for name, rows in of_server.items()}
        print(load.name, *(f"{name:<10} {latencies(row)}" for name, row in found[load.name].items()), sep="\n  ")
        for name in compared[1:]:
            of_first = found[load.name][name]["cpu_us"] / found[load.name][compared[0]]["cpu_us"]
            print(f"  CPU {name} : {compared[0]} {of_first:.2f}", flush=True)
    return found


def best(rows: list[Row]) -> Row:
    figures = {name: min(row[name] for row in rows) for name in ("p50_ms", "p99_ms", "p999_ms", "cpu_us")}
    return figures | {"rate": max(row["rate"] for row in rows)}


def latencies(row: Row) -> str:
    return (
        f"{row['rate']:8.0f}/s  p50 {row['p50_ms']:.3f} ms  p99 {row['p99_ms']:.3f}  p99.9 {row['p999_ms']:.3f}"
        f"  CPU {row['cpu_us']:.1f} us"
    )
