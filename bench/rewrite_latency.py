"""What a rewrite of the log costs those who are served meanwhile, and in memory.

`python -m bench.rewrite_latency`: a stream of a million entries, half of them pending; 20,000 commands a second (XADD
and XREADGROUP COUNT 1 in turn) arrive on time whether the server is late or not, so that a reply's age counts from
when its command was due. The slowest replies without and during each of three rewrites, what memory they copied, by
INFO; then a SIGKILL amid a last rewrite, and what the restarted server has.

On a machine that others use as well, `nice -n -20 python -m bench.rewrite_latency` tells more of the server.
"""

import argparse
import os
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
LOOK_EVERY_S = 0.05
LOADING_S = 1200.0
ADD = hiredis.pack_command((b"XADD", b"s", b"*", b"field", b"value of some length"))
ADD_LINES = 2  # of its reply: `$15`, the id
READ = hiredis.pack_command((b"XREADGROUP", b"GROUP", b"g", b"carol", b"COUNT", b"1", b"STREAMS", b"s", b">"))
READ_LINES = 13


class Age:
    """Ages of replies, in ms."""

    def __init__(self) -> None:
        self.ages: list[float] = []

    def told(self) -> str:
        ages = sorted(self.ages) or [0.0]
        return (
            f"slowest {ages[-1]:.1f} ms, 99.9% {ages[len(ages) * 999 // 1000]:.1f} ms, "
            f"median {ages[len(ages) // 2]:.2f} ms of {len(ages)} batches"
        )


class Feeder:
    """Sends on time, and ages what comes back, a batch at a time: an age is that of the batch's last reply.

    Replies are told apart by their line ends alone, so that this process costs little on a machine of few processors.
    """

    def __init__(self, port: int, rate: int) -> None:
        pairs = max(1, round(rate * TICK_S / LINKS / 2))
        self.each = 2 * pairs
        self._lines = pairs * (ADD_LINES + READ_LINES)
        self._batch = (ADD + READ) * pairs
        self._links = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(LINKS)]
        self._due: list[deque[float]] = [deque() for _ in self._links]
        self._came = [0] * LINKS  # lines of the batch that is being answered
        self._selector = selectors.DefaultSelector()
        for number, link in enumerate(self._links):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(link, selectors.EVENT_READ, number)
        self.sent = 0  # commands
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
                self._due[number].append(due_s)
            self.sent += LINKS * self.each
            due_s += TICK_S

    def drain(self, age: Age) -> None:
        while any(self._due):
            self._read(age, 1.0)

    def _read(self, age: Age, wait_s: float) -> None:
        for key, _ in self._selector.select(wait_s):
            number = key.data
            came = self._links[number].recv(1 << 20)
            assert came and not came.startswith(b"-") and b"\n-" not in came, came[:200]
            now_s = time.perf_counter()
            batches, self._came[number] = divmod(self._came[number] + came.count(b"\n"), self._lines)
            for _ in range(batches):
                age.ages.append((now_s - self._due[number].popleft()) * 1000)

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


def resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Rss:")) / 1024


def processor_s(pid: int) -> float:
    """Processor time of a process so far, its children's left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def persistence(link: Link) -> dict[str, str]:
    text = link.ask(b"INFO", b"persistence")
    assert isinstance(text, bytes)
    return dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)


def is_rewriting(link: Link) -> bool:
    return persistence(link)["aof_rewrite_in_progress"] == "1"


def measured(feeder: Feeder, pid: int, seconds: float, link: Link | None) -> str:
    """Feed for so long, or, with a link, as long as a rewrite takes; what came of it, in words."""
    feeder.latest_s, sent = 0.0, feeder.sent
    age = Age()
    used_s, own_s = processor_s(pid), time.process_time()
    began_s = time.perf_counter()
    if link is None:
        feeder.feed(age, seconds)
    else:
        link.ask(b"BGREWRITEAOF")
        while is_rewriting(link):
            feeder.feed(age, LOOK_EVERY_S)
    spent_s = time.perf_counter() - began_s
    server, client = (processor_s(pid) - used_s) / spent_s, (time.process_time() - own_s) / spent_s
    return (
        f"{age.told()}; {(feeder.sent - sent) / spent_s:.0f} commands/s for {spent_s:.1f} s, of a processor the server"
        f" {100 * server:.0f}%, this client {100 * client:.0f}%, which was {feeder.latest_s * 1000:.1f} ms late at most"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rewrite_latency", description="A rewrite under load.")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--pending", type=int, default=500_000)
    parser.add_argument("--rate", type=int, default=20_000, help="commands a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the measurement without a rewrite")
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
            feeder.feed(Age(), 1.0)
            print(f"without a rewrite: {measured(feeder, server.pid, args.seconds, None)}", flush=True)
            for _ in range(args.rewrites):
                print(f"during a rewrite: {measured(feeder, server.pid, 0.0, link)}")
                copied = int(persistence(link)["aof_last_cow_size"]) / 1048576
                print(f"  {copied:.0f} MiB copied; the server has {resident_mib(server.pid):.0f} MiB", flush=True)
                print(f"without a rewrite: {measured(feeder, server.pid, args.seconds, None)}", flush=True)
            feeder.drain(Age())

            link.ask(b"BGREWRITEAOF")
            feeder.feed(Age(), 2.0)
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
