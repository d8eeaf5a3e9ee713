"""What a rewrite of the log costs those who are served meanwhile, and in memory.

`python -m bench.rewrite_latency`: a stream of a million entries, half of them pending; 20,000 commands a second (XADD
and XREADGROUP COUNT 1 in turn) arrive on time whether the server is late or not, so that a reply's age counts from
when its command was due. The slowest replies without and during a rewrite, the child's private dirty pages (what its
fork costs), then a SIGKILL amid a second rewrite, and what the restarted server has.
"""

import argparse
import selectors
import socket
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import hiredis

from tests.crash.loaders import Link, linked
from tests.serverproc import running_server

LINKS = 5
TICK_S = 0.001
FLAGS = ("--auto-aof-rewrite-percentage", "0")
BATCH = 1000
UNFINISHED = object()
LOOK_EVERY_S = 0.05
LOADING_S = 1200.0
ADD = hiredis.pack_command((b"XADD", b"s", b"*", b"field", b"value of some length"))
READ = hiredis.pack_command((b"XREADGROUP", b"GROUP", b"g", b"carol", b"COUNT", b"1", b"STREAMS", b"s", b">"))


class Age:
    """Ages of replies, in ms."""

    def __init__(self) -> None:
        self.ages: list[float] = []

    def told(self) -> str:
        ages = sorted(self.ages) or [0.0]
        return (
            f"slowest {ages[-1]:.1f} ms, 99.9% {ages[len(ages) * 999 // 1000]:.1f} ms, "
            f"median {ages[len(ages) // 2]:.2f} ms of {len(ages)} replies"
        )


class Feeder:
    """Sends on time, and ages what comes back."""

    def __init__(self, port: int, rate: int) -> None:
        self._each = max(1, round(rate * TICK_S / LINKS))
        self._links = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(LINKS)]
        self._readers = [hiredis.Reader(notEnoughData=UNFINISHED) for _ in self._links]
        self._due: list[deque[float]] = [deque() for _ in self._links]
        self._selector = selectors.DefaultSelector()
        for number, link in enumerate(self._links):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(link, selectors.EVENT_READ, number)
        self._batch = b"".join(READ if turn % 2 else ADD for turn in range(self._each))
        self.added = 0
        self.latest_s = 0.0  # how late this process itself was

    def feed(self, age: Age, seconds: float) -> None:
        """Send for so long."""
        began_s = due_s = time.perf_counter()
        while due_s - began_s < seconds:
            now_s = time.perf_counter()
            if now_s < due_s:
                self._read(age, due_s - now_s)
                continue
            self.latest_s = max(self.latest_s, now_s - due_s)
            for number, link in enumerate(self._links):
                link.sendall(self._batch)
                self._due[number].extend([due_s] * self._each)
            due_s += TICK_S

    def drain(self, age: Age) -> None:
        while any(self._due):
            self._read(age, 1.0)

    def _read(self, age: Age, wait_s: float) -> None:
        for key, _ in self._selector.select(wait_s):
            number = key.data
            reader, due = self._readers[number], self._due[number]
            reader.feed(self._links[number].recv(1 << 20))
            now_s = time.perf_counter()
            while (reply := reader.gets()) is not UNFINISHED:
                assert not isinstance(reply, Exception), reply
                self.added += isinstance(reply, bytes)
                age.ages.append((now_s - due.popleft()) * 1000)

    def close(self) -> None:
        self._selector.close()
        for link in self._links:
            link.close()


def fill(link: Link, entries: int, pending: int) -> None:
    link.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")
    for _ in range(entries // BATCH):
        link.send([[b"XADD", b"s", b"*", b"field", b"value of some length"]] * BATCH)
        for _ in range(BATCH):
            link.reply()
    for number in range(pending // BATCH):
        name = b"worker%d" % (number % 10)
        link.ask(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"%d" % BATCH, b"STREAMS", b"s", b">")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def memory_kib(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def is_rewriting(link: Link) -> bool:
    fields = link.ask(b"INFO", b"persistence")
    assert isinstance(fields, bytes)
    return b"aof_rewrite_in_progress:1" in fields


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rewrite_latency", description="A rewrite under load.")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--pending", type=int, default=500_000)
    parser.add_argument("--rate", type=int, default=20_000, help="commands a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the measurement without a rewrite")
    parser.add_argument("--policy", default="everysec")
    args = parser.parse_args()
    if not sys.platform.startswith("linux"):
        parser.error("memory is read from /proc")
    flags = (*FLAGS, "--appendfsync", args.policy)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        with running_server(*flags, dir=directory) as server, linked(server.port) as link:
            fill(link, args.entries, args.pending)
            resident = memory_kib(server.pid, "Rss") / 1024
            print(f"{args.entries} entries, {args.pending} pending: the server has {resident:.0f} MiB")
            feeder = Feeder(server.port, args.rate)
            feeder.feed(Age(), 1.0)
            age = Age()
            feeder.feed(age, args.seconds)
            print(f"without a rewrite: {age.told()}; the feeder was {feeder.latest_s * 1000:.1f} ms late at most")

            feeder.latest_s = 0.0
            age, private, seconds = Age(), 0, 0.0
            link.ask(b"BGREWRITEAOF")
            began_s = time.perf_counter()
            while is_rewriting(link):
                feeder.feed(age, LOOK_EVERY_S)
                private = max([private, *[memory_kib(child, "Private_Dirty") for child in children(server.pid)]])
                seconds = time.perf_counter() - began_s
            print(
                f"during a rewrite of {seconds:.1f} s: {age.told()}; the feeder was {feeder.latest_s * 1000:.1f} ms"
                f" late at most; the child had {private / 1024:.0f} MiB of its own"
            )
            feeder.drain(age)

            link.ask(b"BGREWRITEAOF")
            feeder.feed(Age(), seconds / 2)
            feeder.drain(Age())
            was = link.ask(b"XLEN", b"s")
            amid = is_rewriting(link)
            server.kill()
            feeder.close()
        began_s = time.perf_counter()
        with running_server(*flags, dir=directory, start_s=LOADING_S) as server, linked(server.port) as link:
            spent_s = time.perf_counter() - began_s
            found = link.ask(b"XLEN", b"s")
        print(f"killed {'amid' if amid else 'after'} a second rewrite: {found} of {was} entries after {spent_s:.1f} s")


if __name__ == "__main__":
    main()
