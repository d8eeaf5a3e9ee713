"""The longest that another client waits while one command has a million entries to go through.

A probe sends PING every millisecond; the age of its replies counts from when they were due. The large reply is read
as it comes and not looked at.
"""

import select
import time
from collections.abc import Iterator
from typing import Final

from bench.compare import lay
from bench.link import Link, Request, packed
from bench.loads import STREAM, entries
from bench.servers import Pythons, running

EVERY_S: Final = 0.001
PING: Final = packed([(b"PING",)])
CHUNK: Final = 1 << 20
END: Final = b"$3\r\nend\r\n"
OPERATIONS: Final[dict[str, Request]] = {
    "XRANGE": (b"XRANGE", STREAM, b"-", b"+"),
    "DEL": (b"DEL", STREAM),
    "FLUSHALL": (b"FLUSHALL",),
    "XTRIM to 0": (b"XTRIM", STREAM, b"MAXLEN", b"0"),
    "rewrite": (b"BGREWRITEAOF",),
}
FLAGS: Final = ("--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")


def measure(names: list[str], count: int, rounds: int, pythons: Pythons) -> dict[str, dict[str, float]]:
    """server -> operation -> ms; the best of the rounds, since what else runs here only adds."""
    found: dict[str, dict[str, float]] = {}
    for name in names:
        for operation, request in OPERATIONS.items():
            times = []
            for _ in range(rounds):
                with running(name, *FLAGS, pythons=pythons) as server:
                    times.append(stall_ms(server.port, request, count))
            found.setdefault(name, {})[operation] = min(times)
            print(f"{name:<10}{operation:<12}{min(times):9.1f} ms", flush=True)
    return found


def stall_ms(port: int, request: Request, count: int) -> float:
    with Link(port) as busy, Link(port) as probe:
        lay(busy, entries(count))
        busy.socket.sendall(packed([request, (b"ECHO", b"end")]))
        longest_s = max(ages(busy, probe, b""), default=0.0)
        while request[0] == b"BGREWRITEAOF" and is_rewriting(busy):
            busy.socket.sendall(packed([(b"ECHO", b"end")]))
            longest_s = max([longest_s, *ages(busy, probe, b"")])
    return longest_s * 1000


def is_rewriting(link: Link) -> bool:
    told = link.ask(b"INFO", b"persistence")
    assert isinstance(told, bytes)
    return b"aof_rewrite_in_progress:1" in told


def ages(busy: Link, probe: Link, last: bytes) -> Iterator[float]:
    """Ages of the probe's replies until the busy link's end has come."""
    due_s = time.perf_counter()
    waiting = False
    while True:
        readable, _, _ = select.select([busy.socket, probe.socket], [], [], max(0.0, due_s - time.perf_counter()))
        if busy.socket in readable:
            received = busy.socket.recv(CHUNK)
            assert received, "the server has gone"
            last = (last + received)[-len(END) :]
        if probe.socket in readable:
            probe.socket.recv(64)
            yield time.perf_counter() - due_s
            waiting = False
            due_s = max(due_s + EVERY_S, time.perf_counter())
        if last == END and not waiting:
            return
        if not waiting and time.perf_counter() >= due_s:
            probe.socket.sendall(PING)
            waiting = True
