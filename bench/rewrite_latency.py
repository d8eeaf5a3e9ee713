"""What a rewrite of the log costs those who are served meanwhile, and in memory.

`python -m bench.rewrite_latency`: a stream of a million entries, half of them pending, and 20,000 commands a second as
a queue sees them. Producers send ten XADDs at once; workers acknowledge ten entries, one XACK each, and ask for the
next ten. Each pipeline is sent when it is due, whether the server is late or not, and a reply's age counts from then to
the last byte of its pipeline; a worker whose last reply is late sends, aged already, as soon as it can.

States alternate in one run: without a rewrite, during one (from BGREWRITEAOF until its files are in force, and half a
second more). At the end a SIGKILL amid a rewrite, and what the restarted server has.

Server, child and this client share the machine's processors, so how idle these were stands beside. Where others use
the machine as well, `nice -n -5` tells more of the server; where processors are shared out by session (autogroup), so
does a session of its own: `setsid sh -c "echo -19 >/proc/self/autogroup; exec nice -n -5 python -m ..."`, as root.
"""

import argparse
import os
import re
import select
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.link import packed
from bench.percentiles import percentiles
from tests.crash.loaders import Link, linked
from tests.serverproc import running_server

FLAGS: Final = ("--auto-aof-rewrite-percentage", "0")
BATCH: Final = 1000  # entries at once, before the measurement
LOADING_S: Final = 1200.0
SETTLING_S: Final = 0.5
LONGEST_START_S: Final = 10.0  # of a rewrite
DEPTH: Final = 10  # requests in a pipeline, but for a worker's XREADGROUP
PRODUCERS: Final = 10
WORKERS: Final = 10
CHUNK: Final = 1 << 20
VALUE: Final = b"value of some length"
ADDS: Final = packed([(b"XADD", b"s", b"*", b"field", VALUE)] * DEPTH)
ADDED_LINES: Final = 2 * DEPTH  # `$15` and the id, for each
ENTRY_ID: Final = re.compile(rb"\r\n\*2\r\n\$\d+\r\n(\d+-\d+)\r\n\*2\r\n")
VALUE_LINE: Final = VALUE + b"\r\n"


class Producer:
    """Adds ten entries at a time; several pipelines may be on their way."""

    commands: Final = DEPTH

    def __init__(self, port: int) -> None:
        self.socket = connected(port)
        self._due: deque[float] = deque()
        self._lines = 0

    def send(self, due_s: float) -> None:
        self.socket.sendall(ADDS)
        self._due.append(due_s)

    def take(self, now_s: float, ages: list[float]) -> None:
        came = received(self.socket)
        done, self._lines = divmod(self._lines + came.count(b"\n"), ADDED_LINES)
        for _ in range(done):
            ages.append(now_s - self._due.popleft())

    def is_idle(self) -> bool:
        return not self._due


class Worker:
    """Acknowledges what it has, and takes ten more: one pipeline at a time, and those that are due wait for it."""

    commands: Final = DEPTH + 1

    def __init__(self, port: int, name: bytes) -> None:
        self.socket = connected(port)
        self._read = packed([(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"%d" % DEPTH, b"STREAMS", b"s", b">")])
        self._request = self._read
        self._due: deque[float] = deque()
        self._came = b""

    def send(self, due_s: float) -> None:
        self._due.append(due_s)
        if len(self._due) == 1:
            self.socket.sendall(self._request)

    def take(self, now_s: float, ages: list[float]) -> None:
        self._came += received(self.socket)
        if self._came.count(VALUE_LINE) < DEPTH or not self._came.endswith(VALUE_LINE):
            return
        entry_ids = ENTRY_ID.findall(self._came)
        assert len(entry_ids) == DEPTH, self._came[:200]
        self._came = b""
        acknowledged = b"".join(
            [b"*4\r\n$4\r\nXACK\r\n$1\r\ns\r\n$1\r\ng\r\n$%d\r\n%b\r\n" % (len(i), i) for i in entry_ids]
        )
        self._request = acknowledged + self._read
        ages.append(now_s - self._due.popleft())
        if self._due:
            self.socket.sendall(self._request)

    def is_idle(self) -> bool:
        return not self._due


def connected(port: int) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), 30)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def received(link: socket.socket) -> bytes:
    came = link.recv(CHUNK)
    assert came and not came.startswith(b"-") and b"\n-" not in came, came[:200]
    return came


class Feeder:
    """Sends when it is due, one client after the other, and takes what comes back."""

    def __init__(self, port: int, rate: int) -> None:
        producers = [Producer(port) for _ in range(PRODUCERS)]
        workers = [Worker(port, b"carol%d" % number) for number in range(WORKERS)]
        self._clients: list[Producer | Worker] = [
            each for pair in zip(producers, workers, strict=True) for each in pair
        ]
        self._by_fd = {client.socket.fileno(): client for client in self._clients}
        self._poll = select.epoll()
        for fd in self._by_fd:
            self._poll.register(fd, select.EPOLLIN)
        self._every_s = sum(client.commands for client in self._clients) / len(self._clients) / rate
        self._next = 0
        self.sent = 0  # commands
        self.latest_s = 0.0  # how late this process itself was

    def feed(self, ages: list[float], goes_on: Callable[[float], bool]) -> None:
        """Send as long as it goes on; it is asked with the time, about once a millisecond."""
        due_s = time.perf_counter()
        while goes_on(now_s := time.perf_counter()):
            if now_s > due_s:
                self.latest_s = max(self.latest_s, now_s - due_s)
            while due_s <= now_s:
                client = self._clients[self._next]
                self._next = (self._next + 1) % len(self._clients)
                client.send(due_s)
                self.sent += client.commands
                due_s += self._every_s
            self._take(ages, due_s - time.perf_counter())

    def drain(self) -> None:
        while not all(client.is_idle() for client in self._clients):
            self._take([], 1.0)

    def _take(self, ages: list[float], wait_s: float) -> None:
        for fd, _ in self._poll.poll(max(wait_s, 0.0)):
            self._by_fd[fd].take(time.perf_counter(), ages)

    def close(self) -> None:
        self._poll.close()
        for client in self._clients:
            client.socket.close()


def fill(link: Link, entries: int, pending: int) -> None:
    link.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")
    for _ in range(entries // BATCH):
        link.send([[b"XADD", b"s", b"*", b"field", VALUE]] * BATCH)
        for _ in range(BATCH):
            link.reply()
    for number in range(pending // BATCH):
        name = b"worker%d" % (number % 10)
        link.ask(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"%d" % BATCH, b"STREAMS", b"s", b">")


# -- what it costs ----------------------------------------------------------------------------------------------------


class Costs:
    """What was used up to a moment: processor seconds, the server's page faults."""

    def __init__(self, pid: int) -> None:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self.at_s = time.perf_counter()
        self.faults = int(fields[7])
        self.server_s = (int(fields[11]) + int(fields[12])) * tick_s
        self.child_s = (int(fields[13]) + int(fields[14])) * tick_s  # of those that have ended
        self.client_s = time.process_time()
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        self.idle_s = (times[3] + times[4]) * tick_s
        self.all_s = sum(times) * tick_s

    def told(self, before: "Costs") -> str:
        spent_s = self.at_s - before.at_s
        idle = (self.idle_s - before.idle_s) / max(self.all_s - before.all_s, 1e-9)
        child_s = self.child_s - before.child_s
        return (
            f"server {100 * (self.server_s - before.server_s) / spent_s:.0f}% of a processor,"
            f" client {100 * (self.client_s - before.client_s) / spent_s:.0f}%,"
            + (f" child {child_s:.1f} s in all," if child_s else "")
            + f" processors idle {100 * idle:.0f}%, {(self.faults - before.faults) / spent_s:.0f} page faults a second"
        )


def resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Rss:")) / 1024


def information(link: Link, section: bytes) -> dict[str, str]:
    text = link.ask(b"INFO", section)
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


class Rewrite:
    """A rewrite as it can be seen from outside, for nothing: its file is there until it takes its place."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "appendonlydir"
        self._began = False
        self._began_s = time.perf_counter()
        self._ended_s = 0.0
        self._looked_s = 0.0

    def goes_on(self, now_s: float) -> bool:
        if self._ended_s:
            return now_s - self._ended_s < SETTLING_S
        if now_s - self._looked_s > 0.01:
            self._looked_s = now_s
            is_there = any(path.name.startswith("temp-rewriteaof") for path in self._directory.iterdir())
            if self._began and not is_there:
                self._ended_s = now_s
            self._began |= is_there
            assert self._began or now_s - self._began_s < LONGEST_START_S, "no rewrite began"
        return True


# -- the run ----------------------------------------------------------------------------------------------------------


def measured(feeder: Feeder, pid: int, goes_on: Callable[[float], bool]) -> tuple[str, float]:
    """Feed; what came of it in words, and the slowest age in ms."""
    feeder.latest_s, sent = 0.0, feeder.sent
    ages: list[float] = []
    before = Costs(pid)
    feeder.feed(ages, goes_on)
    after = Costs(pid)
    median, _, tail = percentiles(ages)
    spent_s = after.at_s - before.at_s
    slowest = 1000 * max(ages)
    return (
        f"slowest {slowest:.1f} ms, 99.9% {tail:.1f} ms, median {median:.2f} ms of {len(ages)} pipelines;"
        f" {(feeder.sent - sent) / spent_s:.0f} commands/s for {spent_s:.1f} s; {after.told(before)};"
        f" this client was {feeder.latest_s * 1000:.1f} ms late at most"
    ), slowest


def for_seconds(seconds: float) -> Callable[[float], bool]:
    until_s = time.perf_counter() + seconds
    return lambda now_s: now_s < until_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rewrite_latency", description="A rewrite under load.")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--pending", type=int, default=500_000)
    parser.add_argument("--rate", type=int, default=20_000, help="commands a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a measurement without a rewrite")
    parser.add_argument("--rewrites", type=int, default=3)
    parser.add_argument("--policy", default="everysec")
    args = parser.parse_args()
    if not sys.platform.startswith("linux"):
        parser.error("memory is read from /proc")
    flags = (*FLAGS, "--appendfsync", args.policy)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        with running_server(*flags, dir=directory) as server, linked(server.port) as link:
            fill(link, args.entries, args.pending)
            print(f"{args.entries} entries, {args.pending} pending: the server has {resident_mib(server.pid):.0f} MiB")
            feeder = Feeder(server.port, args.rate)
            feeder.feed([], for_seconds(2.0))
            without: list[float] = []
            during: list[float] = []
            for number in range(args.rewrites + 1):
                told, slowest = measured(feeder, server.pid, for_seconds(args.seconds))
                without.append(slowest)
                print(f"without a rewrite: {told}", flush=True)
                if number == args.rewrites:
                    break
                link.send([[b"BGREWRITEAOF"]])
                told, slowest = measured(feeder, server.pid, Rewrite(Path(directory)).goes_on)
                during.append(slowest)
                link.reply()
                copied = int(information(link, b"persistence")["aof_last_cow_size"]) / 1048576
                fork_ms = int(information(link, b"stats")["latest_fork_usec"]) / 1000
                print(f"during a rewrite:  {told}; the fork took {fork_ms:.1f} ms")
                print(f"  {copied:.0f} MiB copied; the server has {resident_mib(server.pid):.0f} MiB", flush=True)
            print(f"slowest without: {rounded(without)}; during: {rounded(during)}")

            link.send([[b"BGREWRITEAOF"]])
            feeder.feed([], for_seconds(2.0))
            feeder.drain()
            link.reply()
            was = link.ask(b"XLEN", b"s")
            amid = information(link, b"persistence")["aof_rewrite_in_progress"] == "1"
            server.kill()
            feeder.close()
        began_s = time.perf_counter()
        with running_server(*flags, dir=directory, start_s=LOADING_S) as server, linked(server.port) as link:
            spent_s = time.perf_counter() - began_s
            found = link.ask(b"XLEN", b"s")
        print(f"killed {'amid' if amid else 'after'} a rewrite: {found} of {was} entries after {spent_s:.1f} s")


def rounded(ages: list[float]) -> str:
    return ", ".join(f"{age:.1f}" for age in sorted(ages)) + " ms"


if __name__ == "__main__":
    main()
