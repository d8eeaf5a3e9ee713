"""One request at a time from each of many connections: the server's CPU time of a request, latencies, rates.

A connection is a client: a generator that yields packed requests and is sent their replies. Most loads' clients ask
one command again and again; a worker reads an entry, waiting for one, and acknowledges it; `a queue's day` is a crowd
of producers, workers and clients of a cache.
"""

import json
import random
import re
import select
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, median
from typing import Final

from bench.costs import SLICES
from bench.loads import (
    ADD,
    ADD_TRIMMING,
    GROUP,
    SHORT,
    STREAM,
    Requests,
    acknowledge,
    delivered,
    empty,
    entries,
    nothing,
    read,
)  # fmt: skip
from bench.servers import COMPILED, FAKE, OURS, PEERS, PLAIN, Link, Request, Server, cpu_ns, packed, percentiles

FIFTY: Final = 50
WARM_REQUESTS: Final = 500
SHORT_REPLY_BYTES: Final = 1 << 16
LONGEST_WAIT_S: Final = 60.0

Client = Generator[bytes, bytes, None]  # yields requests, each of them packed, and is sent the reply
Row = dict[str, float]
Table = dict[str, dict[str, Row]]  # load -> server -> figures


# -- the loads --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SingleLoad:
    """`clients` makes so many connections' clients, which send `requests` in a round; `log` is as that of a `Load`.

    may_block: a read with BLOCK may wait for an entry, so that its age says nothing and is left out.

    `goal` and `goal_plain` are the ratios of CPU time to the better of Redis and Valkey that are aimed at.
    """

    name: str
    clients: Callable[[int, int], list[Client]]  # of connections, requests
    prepare: Callable[[int], Requests] = nothing
    connections: int = FIFTY
    requests: int = 40_000
    log: str = ""
    may_block: bool = False
    goal: float = 1.0
    goal_plain: float = 1.6

    def goal_of(self, build: str) -> float:
        return {PLAIN: self.goal_plain, COMPILED: self.goal}.get(build, 0.0)


def sharing(request: Callable[[int], Request]) -> Callable[[int, int], list[Client]]:
    """Clients that share requests, each made from its number before the first is sent."""

    def clients(connections: int, requests: int) -> list[Client]:
        shared = iter([packed([request(number)]) for number in range(requests)])
        return [asking(shared) for _ in range(connections)]

    return clients


def asking(requests: Iterable[bytes]) -> Client:
    """Asks them one after the other. What it takes of a shared iterator no other client gets."""
    for request in requests:  # noqa: UP028 - a list takes no replies
        yield request


BLOCK: Final = b"BLOCK"
READ_ID: Final = re.compile(rb"\r\n(\d{13}-\d+)\r\n")


def worker(stream: bytes, name: bytes) -> Client:
    """Reads one entry, waiting for it, and acknowledges it."""
    ask = packed([(b"XREADGROUP", b"GROUP", GROUP, name, b"COUNT", b"1", BLOCK, b"0", b"STREAMS", stream, b">")])
    while True:
        found = READ_ID.search((yield ask))
        assert found, "a blocked read was answered without an entry"
        yield packed([(b"XACK", stream, GROUP, found[1])])


def workers(connections: int, _: int) -> list[Client]:
    return [worker(STREAM, b"worker%d" % number) for number in range(connections)]


STREAMS: Final = 4
PRODUCERS, CACHE_CLIENTS = 12, 13  # of fifty; the others are workers
CACHE_KEYS: Final = 200
VALUES: Final = 100
READS_A_WRITE: Final = 3


def json_values(chance: random.Random) -> list[bytes]:
    """JSON objects of 20 to 120 bytes."""
    return [
        json.dumps(
            {"id": number, "text": "x" * chance.randrange(100 - len(str(number)))}, separators=(",", ":")
        ).encode()
        for number in range(VALUES)
    ]


def producer(stream: bytes, values: list[bytes]) -> Client:
    requests = [packed([(b"XADD", stream, b"MAXLEN", b"~", b"10000", b"*", b"json", value)]) for value in values]
    while True:
        yield from asking(requests)


def cache_client(values: list[bytes], chance: random.Random) -> Client:
    """Reads three keys for each that it writes."""
    requests = []
    for value in values:
        keys = [b"cache:%d" % chance.randrange(CACHE_KEYS) for _ in range(READS_A_WRITE + 1)]
        requests.append(packed([(b"SET", keys[0], value)]))
        requests += [packed([(b"GET", key)]) for key in keys[1:]]
    while True:
        yield from asking(requests)


def day(connections: int, _: int) -> list[Client]:
    """Producers of four streams, their workers, clients of a cache."""
    chance = random.Random(20)
    values = json_values(chance)
    streams = [b"stream%d" % (number % STREAMS) for number in range(connections)]
    left = connections - PRODUCERS - CACHE_CLIENTS
    return [
        *(producer(stream, values) for stream in streams[:PRODUCERS]),
        *(worker(stream, b"worker%d" % number) for number, stream in enumerate(streams[:left])),
        *(cache_client(values, chance) for _ in range(CACHE_CLIENTS)),
    ]


def streams_and_cache(_: int) -> Requests:
    for number in range(STREAMS):
        yield b"XGROUP", b"CREATE", b"stream%d" % number, GROUP, b"0", b"MKSTREAM"
    yield from cached(CACHE_KEYS)


def cached(_: int) -> Requests:
    for number in range(CACHE_KEYS):
        yield b"SET", b"cache:%d" % number, SHORT


def setting(number: int) -> Request:
    return b"SET", b"cache:%d" % (number % CACHE_KEYS), SHORT


def getting(number: int) -> Request:
    return b"GET", b"cache:%d" % (number % CACHE_KEYS)


LOGS: Final = ("", "everysec", "always")
WORKER: Final = "XREADGROUP BLOCK, XACK"
DAY: Final = "a queue's day"
GOAL_OF_P99: Final = 1.1  # to the better of Redis and Valkey

ONE_AT_A_TIME: Final = (
    *(
        SingleLoad(f"{name}, {count} connection{'s'[: count - 1]}", sharing(request), prepare, count, requests)
        for count, requests in ((1, 8_000), (FIFTY, 40_000))
        for name, request, prepare in (
            ("PING", lambda _: (b"PING",), nothing),
            ("SET", setting, nothing),
            ("GET", getting, cached),
            ("XADD", lambda _: ADD, empty),
            ("XADD MAXLEN", lambda _: ADD_TRIMMING, empty),
            ("XREADGROUP", lambda _: read(1), entries),
            ("XREADGROUP of nothing new", lambda _: read(1), empty),
            ("XACK", acknowledge, delivered),
        )
    ),
    *(
        SingleLoad(f"{name}, log {log}", sharing(request), empty, log=log, requests=requests)
        for log, requests in (("everysec", 40_000), ("always", 20_000))
        for name, request in (("SET", setting), ("XADD", lambda _: ADD), ("XADD MAXLEN", lambda _: ADD_TRIMMING))
    ),
    *(
        load
        for log in LOGS
        for of_log in (f", log {log}" if log else "",)
        for load in (
            SingleLoad(f"{WORKER}{of_log}", workers, entries, log=log, requests=20_000),
            SingleLoad(f"{DAY}{of_log}", day, streams_and_cache, log=log, may_block=True, goal_plain=1.8),
        )
    ),
)


# -- how they run -----------------------------------------------------------------------------------------------------


class Crowd:
    """Clients on connections to one server. What a client asks next waits from one call of `run` to the next.

    may_block: as that of a `SingleLoad`.
    """

    def __init__(self, port: int, clients: Sequence[Client], may_block: bool) -> None:
        self._links = [Link(port) for _ in clients]
        numbers = [link.socket.fileno() for link in self._links]
        self._sockets = {number: link.socket for number, link in zip(numbers, self._links, strict=True)}
        self._clients = dict(zip(numbers, clients, strict=True))
        self._upcoming = {number: next(client) for number, client in self._clients.items()}
        self._may_block = may_block

    def run(self, count: int) -> tuple[int, list[float]]:
        """Send so many requests: how many were answered, and the ages of the replies in seconds.

        It ends when nothing is unanswered but reads that block. A reply must come in one piece: the loads' are short.
        """
        clock, upcoming, may_block = time.perf_counter, self._upcoming, self._may_block
        ages_s: list[float] = []
        sent_s: dict[int, float] = {}
        answered = 0
        left = count

        def send(number: int, request: bytes) -> None:
            if not (may_block and BLOCK in request):
                sent_s[number] = clock()
            self._sockets[number].send(request)

        with select.epoll() as poll:
            for number in self._sockets:
                poll.register(number, select.EPOLLIN)
            for number in list(islice(upcoming, left)):
                left -= 1
                send(number, upcoming.pop(number))
            while sent_s or left:
                ready = poll.poll(LONGEST_WAIT_S)
                assert ready, f"nothing came for {LONGEST_WAIT_S:.0f} s"
                for number, _ in ready:
                    reply = self._sockets[number].recv(SHORT_REPLY_BYTES)
                    if number in sent_s:
                        ages_s.append(clock() - sent_s.pop(number))
                    assert reply[-2:] == b"\r\n" and reply[:1] != b"-", f"answered {reply[:200]!r}"
                    answered += 1
                    request = self._clients[number].send(reply)
                    if left:
                        left -= 1
                        send(number, request)
                    else:
                        upcoming[number] = request
        return answered, ages_s

    def close(self) -> None:
        for link in self._links:
            link.close()


class SingleTurn:
    """One round of a load on one server, run in slices. The client's own cost is in each latency, the same for all."""

    def __init__(self, load: SingleLoad, server: Server, requests: int) -> None:
        self.server = server
        self.requests = requests
        with Link(server.port) as first:
            first.ask(b"FLUSHALL")
            first.prepare(load.prepare(requests + WARM_REQUESTS))
        clients = load.clients(load.connections, requests + WARM_REQUESTS + load.connections)
        self._crowd = Crowd(server.port, clients, load.may_block)
        self._ages_s: list[float] = []
        self._answered = 0
        self._spent_s = 0.0
        self._cpu_us: list[float] = []  # a request, slice by slice
        self._crowd.run(WARM_REQUESTS)

    def slice(self, count: int) -> None:
        was_ns, began_s = cpu_ns(self.server.pid), time.perf_counter()
        answered, ages_s = self._crowd.run(count)
        self._spent_s += time.perf_counter() - began_s
        self._cpu_us.append((cpu_ns(self.server.pid) - was_ns) / answered / 1000)
        self._answered += answered
        self._ages_s += ages_s

    def close(self) -> None:
        self._crowd.close()

    def figures(self) -> Row:
        """The CPU time is that of the cheaper half of the slices: wake-ups cost more on some pairs of processors."""
        p50, p99, p999 = percentiles(self._ages_s)
        cpu_us = fmean(sorted(self._cpu_us)[: SLICES // 2])
        return {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999, "rate": self._answered / self._spent_s, "cpu_us": cpu_us}


def run_single(load: SingleLoad, started: list[Server], scale: float) -> dict[str, Row]:
    """One round of a load: each server runs a slice in turn, so that all see the same noise."""
    turns = [SingleTurn(load, server, int(load.requests * scale / server.slowness)) for server in started]
    for _ in range(SLICES):
        for turn in turns:
            turn.slice(turn.requests // SLICES)
    for turn in turns:
        turn.close()
    return {turn.server.name: turn.figures() for turn in turns}


def one_at_a_time(loads: Sequence[SingleLoad], started: list[Server], rounds: int, scale: float,
                  compared: Sequence[str]) -> Table:  # fmt: skip
    """load -> server -> the best of each figure over the rounds, with the ratios to the better peer."""
    found: Table = {}
    for load in loads:
        # fakeredis now and then answers one of several readers that block without an entry.
        able = [server for server in started if not (load.may_block and server.name == FAKE)]
        of_server: dict[str, list[Row]] = {server.name: [] for server in able}
        for _ in range(rounds):
            for name, row in run_single(load, able, scale).items():
                of_server[name].append(row)
        found[load.name] = {name: best(rows) | ratios(name, of_server) for name, rows in of_server.items()}
        print(load.name, *(f"{name:<10} {told(row)}" for name, row in found[load.name].items()), sep="\n  ", flush=True)
        for name in compared[1:]:
            of_first = found[load.name][name]["cpu_us"] / found[load.name][compared[0]]["cpu_us"]
            print(f"  CPU {name} : {compared[0]} {of_first:.2f}", flush=True)
    return found


def best(rows: list[Row]) -> Row:
    figures = {name: min(row[name] for row in rows) for name in ("p50_ms", "p99_ms", "p999_ms", "cpu_us")}
    return figures | {"rate": max(row["rate"] for row in rows)}


def ratios(name: str, of_server: dict[str, list[Row]]) -> Row:
    """Of one of our servers: CPU time and p99 beside the better peer's, the medians of the rounds' ratios."""
    peers = [of_server[peer] for peer in PEERS if peer in of_server]
    if name not in OURS or not peers:
        return {}
    found = {}
    for ratio, figure in (("cpu_ratio", "cpu_us"), ("p99_ratio", "p99_ms")):
        rounds = zip(of_server[name], *peers, strict=True)
        found[ratio] = median(own[figure] / min(peer[figure] for peer in of_peers) for own, *of_peers in rounds)
    return found


def told(row: Row) -> str:
    text = (
        f"{row['rate']:8.0f}/s  p50 {row['p50_ms']:.3f} ms  p99 {row['p99_ms']:.3f}  p99.9 {row['p999_ms']:.3f}"
        f"  CPU {row['cpu_us']:.1f} us"
    )
    if "cpu_ratio" in row:
        text += f"  beside the better peer: CPU {row['cpu_ratio']:.2f}, p99 {row['p99_ratio']:.2f}"
    return text
