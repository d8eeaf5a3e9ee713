"""What the append-only log costs: one sync for many commands, a rewrite under load, loading at the start."""

import os
import re
import select
import shutil
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from bench.servers import (
    FAULTS,
    LOCALHOST,
    PAGE_FAULTS,
    RECEIVE_BYTES,
    REDIS,
    TICK_NS,
    Absent,
    Candidate,
    Link,
    Request,
    Server,
    children_ns,
    cpu_ns,
    information,
    packed,
    percentiles,
    resident_bytes,
    running,
    stat_fields,
)  # fmt: skip

VALUE: Final = b"value of some length"
ADD: Final[Request] = (b"XADD", b"s", b"*", b"field", VALUE)
LONG_START_S: Final = 1200.0  # with a log to load

Rows = dict[str, dict[str, float]]  # server -> figures


def connected(port: int) -> socket.socket:
    link = socket.create_connection((LOCALHOST, port), 30)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def received(link: socket.socket) -> bytes:
    """What has come, which must not be an error."""
    came = link.recv(RECEIVE_BYTES)
    assert came and not came.startswith(b"-") and b"\n-" not in came, came[:200]
    return came


# -- group commit: single XADDs with appendfsync always, each of 1 and of 50 connections waiting for each reply -------
#
# Penstock is measured twice: on the bare disk, and with a sync that takes 2 ms longer (its crash tests' faulty disk).

MANY: Final = 50
SYNCS: Final = 200
SLOW_SYNC: Final = {FAULTS: "sync:sleep2ms"}
FASTEST_SLOW_RATE: Final = 500.0  # of one connection, if every sync takes 2 ms
ALWAYS: Final = ("--appendonly", "yes", "--appendfsync", "always")


def group_commit(candidates: Sequence[Candidate], seconds: float, rounds: int) -> Rows:
    """server -> commands a second, and the disk's own ms a sync; the best of the rounds."""
    found: Rows = {}
    for _ in range(rounds):
        for candidate in candidates:
            row = found.setdefault(candidate.name, {})
            with running(candidate, *ALWAYS) as server:
                sync_ms = disk_sync_ms(server.directory)
                row["disk's sync, ms"] = min(sync_ms, row.get("disk's sync, ms", sync_ms))
                note_rates(row, "", server.port, seconds)
            if candidate.is_penstock:
                with running(candidate, *ALWAYS, variables=SLOW_SYNC) as server:
                    note_rates(row, ", sync + 2 ms", server.port, seconds)
                if row["1 connection, sync + 2 ms"] > FASTEST_SLOW_RATE:
                    raise Absent(f"{candidate.name} has no fault point that makes syncs slow")
    for name, row in found.items():
        print(f"{name:<10}", *(f"{what} {figure:.2f}" for what, figure in row.items()), sep="  ", flush=True)
    return found


def note_rates(row: dict[str, float], disk: str, port: int, seconds: float) -> None:
    add_rate(port, MANY, 0.5)  # warm
    for count, what in ((1, f"1 connection{disk}"), (MANY, f"{MANY} connections{disk}")):
        row[what] = max(add_rate(port, count, seconds), row.get(what, 0.0))


def add_rate(port: int, count: int, seconds: float) -> float:
    """Commands a second of so many connections, each with one command on the way."""
    request = packed([ADD])
    done = 0
    with ExitStack() as stack, select.epoll() as poll:
        links = {}
        for _ in range(count):
            link = stack.enter_context(connected(port))
            links[link.fileno()] = link
            poll.register(link.fileno(), select.EPOLLIN)
            link.sendall(request)
        began_s = time.perf_counter()
        while (spent_s := time.perf_counter() - began_s) < seconds:
            for number, _ in poll.poll(1):
                received(links[number])
                done += 1
                links[number].sendall(request)
    return done / spent_s


def disk_sync_ms(directory: Path) -> float:
    """What appending 100 bytes and an fdatasync take on the bare disk, the mean."""
    fd = os.open(directory / "probe", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began_s = time.perf_counter()
    for _ in range(SYNCS):
        os.write(fd, bytes(100))
        os.fdatasync(fd)
    spent_s = time.perf_counter() - began_s
    os.close(fd)
    (directory / "probe").unlink()
    return 1000 * spent_s / SYNCS


# -- rewrite: what a rewrite costs the clients, and in memory ---------------------------------------------------------
#
# A stream of a million entries, half of them pending, and 20,000 commands a second as a queue sees them: producers send
# ten XADDs at once; workers acknowledge ten entries, one XACK each, and ask for the next ten. Each pipeline is sent
# when it is due, whether the server is late or not, and its age counts from then to the last byte of its replies. A
# worker that gets its last reply late sends its next pipeline as soon as it can, and that one is late already.
#
# Turns alternate: without a rewrite, during one (from BGREWRITEAOF until its files are in force, and half a second
# more). At the end a SIGKILL amid a rewrite, and what the restarted server has. Server, child and this client share the
# machine's processors, so how idle these were is reported too. On a machine with other users `nice -n -5` tells more of
# the server; where processors are shared out by session (autogroup), so does a session of its own:
# `setsid sh -c "echo -19 >/proc/self/autogroup; exec nice -n -5 python -m bench --parts rewrite"`, as root.

SETTLING_S: Final = 0.5
WARM_S: Final = 2.0
LONGEST_BEGINNING_S: Final = 10.0  # of a rewrite
LOOK_EVERY_S: Final = 0.01
DEPTH: Final = 10  # requests in a pipeline, without a worker's XREADGROUP
PRODUCERS: Final = 10
WORKERS: Final = 10
READ_AT_ONCE: Final = 1000
ADDS: Final = packed([ADD] * DEPTH)
ADDED_LINES: Final = 2 * DEPTH  # `$15` and the id, for each
ENTRY_ID: Final = re.compile(rb"\r\n\*2\r\n\$\d+\r\n(\d+-\d+)\r\n\*2\r\n")
VALUE_LINE: Final = VALUE + b"\r\n"
MIB: Final = 1 << 20

GoesOn = Callable[[float], bool]  # whether to send on, asked with the time about once a millisecond


class Producer:
    """Adds ten entries at a time; several pipelines may be on the way."""

    commands: Final = DEPTH

    def __init__(self, port: int) -> None:
        self.socket = connected(port)
        self._due: deque[float] = deque()
        self._lines = 0

    def send(self, due_s: float) -> None:
        self.socket.sendall(ADDS)
        self._due.append(due_s)

    def receive(self, now_s: float, ages_s: list[float]) -> None:
        done, self._lines = divmod(self._lines + received(self.socket).count(b"\n"), ADDED_LINES)
        for _ in range(done):
            ages_s.append(now_s - self._due.popleft())

    def is_idle(self) -> bool:
        return not self._due


class Worker:
    """Acknowledges what it has and reads ten more: one pipeline at a time; those that are due meanwhile wait."""

    commands: Final = DEPTH + 1

    def __init__(self, port: int, name: bytes) -> None:
        self.socket = connected(port)
        self._read = packed([(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"%d" % DEPTH, b"STREAMS", b"s", b">")])
        self._request = self._read
        self._due: deque[float] = deque()
        self._received = b""

    def send(self, due_s: float) -> None:
        self._due.append(due_s)
        if len(self._due) == 1:
            self.socket.sendall(self._request)

    def receive(self, now_s: float, ages_s: list[float]) -> None:
        self._received += received(self.socket)
        if self._received.count(VALUE_LINE) < DEPTH or not self._received.endswith(VALUE_LINE):
            return
        entry_ids = ENTRY_ID.findall(self._received)
        assert len(entry_ids) == DEPTH, self._received[:200]
        self._received = b""
        acknowledged = b"".join(
            [b"*4\r\n$4\r\nXACK\r\n$1\r\ns\r\n$1\r\ng\r\n$%d\r\n%b\r\n" % (len(i), i) for i in entry_ids]
        )
        self._request = acknowledged + self._read
        ages_s.append(now_s - self._due.popleft())
        if self._due:
            self.socket.sendall(self._request)

    def is_idle(self) -> bool:
        return not self._due


class Feeder:
    """Sends when it is due, one client after the other, and receives the replies."""

    def __init__(self, port: int, rate: int) -> None:
        self._clients: list[Producer | Worker] = []
        for number in range(PRODUCERS):
            self._clients += [Producer(port), Worker(port, b"carol%d" % number)]
        self._by_fd = {client.socket.fileno(): client for client in self._clients}
        self._poll = select.epoll()
        for fd in self._by_fd:
            self._poll.register(fd, select.EPOLLIN)
        self._every_s = sum(client.commands for client in self._clients) / len(self._clients) / rate
        self._next = 0
        self.sent = 0  # commands
        self.latest_s = 0.0  # how late this process itself was

    def feed(self, ages_s: list[float], goes_on: GoesOn) -> None:
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
            self._receive(ages_s, due_s - time.perf_counter())

    def drain(self) -> None:
        """Receive all replies that are on the way."""
        while not all(client.is_idle() for client in self._clients):
            self._receive([], 1.0)

    def close(self) -> None:
        self._poll.close()
        for client in self._clients:
            client.socket.close()

    def _receive(self, ages_s: list[float], wait_s: float) -> None:
        for fd, _ in self._poll.poll(max(wait_s, 0.0)):
            self._by_fd[fd].receive(time.perf_counter(), ages_s)


class Used:
    """What was used up to a moment: processor seconds, the server's page faults."""

    def __init__(self, pid: int) -> None:
        self.at_s = time.perf_counter()
        self.child_s = children_ns(pid) / 1e9
        self.server_s = cpu_ns(pid) / 1e9 - self.child_s
        self.client_s = time.process_time()
        self.faults = stat_fields(pid)[PAGE_FAULTS]
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        self.idle_s = (times[3] + times[4]) * TICK_NS / 1e9
        self.all_s = sum(times) * TICK_NS / 1e9


class RewriteEnd:
    """Watches a rewrite from outside, at no cost to the server: its temporary file is there until it is in force."""

    def __init__(self, directory: Path) -> None:
        self._folders = (directory, directory / "appendonlydir")
        self._has_begun = False
        self._began_s = time.perf_counter()
        self._ended_s = 0.0
        self._looked_s = 0.0

    def goes_on(self, now_s: float) -> bool:
        if self._ended_s:
            return now_s - self._ended_s < SETTLING_S
        if now_s - self._looked_s > LOOK_EVERY_S:
            self._looked_s = now_s
            is_there = any(path.name.startswith("temp-rewriteaof") for each in self._folders for path in each.iterdir())
            if self._has_begun and not is_there:
                self._ended_s = now_s
            self._has_begun |= is_there
            assert self._has_begun or now_s - self._began_s < LONGEST_BEGINNING_S, "no rewrite began"
        return True


def for_seconds(seconds: float) -> GoesOn:
    until_s = time.perf_counter() + seconds
    return lambda now_s: now_s < until_s


class Rewriting:
    """One server with its stream and its clients, and what its turns measured."""

    def __init__(self, server: Server, entries: int, rate: int) -> None:
        self._server = server
        self._link = Link(server.port)
        self._turns: dict[str, list[dict[str, float]]] = {"without": [], "during": []}
        fill(self._link, entries)
        self._feeder = Feeder(server.port, rate)
        self._feeder.feed([], for_seconds(WARM_S))
        self._feeder.drain()

    def without(self, seconds: float) -> None:
        self._measure("without", for_seconds(seconds))

    def during(self) -> None:
        self._link.socket.sendall(packed([(b"BGREWRITEAOF",)]))
        figures = self._measure("during", RewriteEnd(self._server.directory).goes_on)
        self._link.replies(1)
        figures["copied_mib"] = int(information(self._server.port, b"persistence")["aof_last_cow_size"]) / MIB
        figures["fork_ms"] = int(information(self._server.port, b"stats")["latest_fork_usec"]) / 1000
        print(f"  copied {figures['copied_mib']:.0f} MiB, fork {figures['fork_ms']:.1f} ms", flush=True)

    def kill_amid(self) -> int:
        """Kill the server while it rewrites and is fed; how many entries it had told its clients of."""
        self._link.socket.sendall(packed([(b"BGREWRITEAOF",)]))
        self._feeder.feed([], for_seconds(WARM_S))
        self._feeder.drain()
        self._link.replies(1)
        length = self._link.ask(b"XLEN", b"s")
        amid = information(self._server.port, b"persistence")["aof_rewrite_in_progress"] == "1"
        self._server.kill()
        self._feeder.close()
        print(f"{self._server.name:<10} killed {'amid' if amid else 'after'} a rewrite", flush=True)
        assert isinstance(length, int)
        return length

    def figures(self) -> dict[str, float]:
        """The median of the turns; `resident_mib` is of now."""
        row: dict[str, float] = {}
        for figure in ("slowest_ms", "p999_ms", "p50_ms", "server_percent"):
            for state, turns in self._turns.items():
                row[f"{figure} {state}"] = median(turn[figure] for turn in turns)
        for figure in ("child_s", "copied_mib", "fork_ms"):
            row[figure] = median(turn[figure] for turn in self._turns["during"])
        return row | {"resident_mib": resident_bytes(self._server.pid) / MIB}

    def _measure(self, state: str, goes_on: GoesOn) -> dict[str, float]:
        self._feeder.latest_s, sent = 0.0, self._feeder.sent
        ages_s: list[float] = []
        before = Used(self._server.pid)
        self._feeder.feed(ages_s, goes_on)
        after = Used(self._server.pid)
        self._feeder.drain()
        p50, _, p999 = percentiles(ages_s)
        spent_s = after.at_s - before.at_s
        figures = {
            "slowest_ms": 1000 * max(ages_s),
            "p999_ms": p999,
            "p50_ms": p50,
            "rate": (self._feeder.sent - sent) / spent_s,
            "seconds": spent_s,
            "server_percent": 100 * (after.server_s - before.server_s) / spent_s,
            "client_percent": 100 * (after.client_s - before.client_s) / spent_s,
            "idle_percent": 100 * (after.idle_s - before.idle_s) / max(after.all_s - before.all_s, 1e-9),
            "child_s": after.child_s - before.child_s,
            "faults_a_second": (after.faults - before.faults) / spent_s,
            "client_late_ms": 1000 * self._feeder.latest_s,
        }
        self._turns[state].append(figures)
        words = (f"{what} {figure:,.1f}" for what, figure in figures.items())
        print(f"{self._server.name:<10} {state:<8}", *words, sep="  ", flush=True)
        return figures


def fill(link: Link, entries: int) -> None:
    """Half of the entries pending with ten workers."""
    link.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")
    link.prepare([ADD] * entries)
    for number in range(entries // 2 // READ_AT_ONCE):
        name = b"worker%d" % (number % WORKERS)
        link.ask(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"%d" % READ_AT_ONCE, b"STREAMS", b"s", b">")


def rewrite(
    candidates: Sequence[Candidate], entries: int, rate: int, seconds: float, rewrites: int, policy: str
) -> Rows:
    """server -> figures; `seconds` are of a turn without a rewrite."""
    flags = ("--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0")
    found: Rows = {}
    with tempfile.TemporaryDirectory(prefix="bench-rewrite-") as folder, ExitStack() as stack:
        directories = {candidate.name: Path(folder, candidate.name) for candidate in candidates}
        runs = {}
        for candidate in candidates:
            directories[candidate.name].mkdir()
            server = stack.enter_context(running(candidate, *flags, directory=directories[candidate.name]))
            runs[candidate.name] = Rewriting(server, entries, rate)
        for _ in range(rewrites):
            for run in runs.values():
                run.without(seconds)
                run.during()
        for run in runs.values():
            run.without(seconds)
        for candidate in candidates:
            row = found[candidate.name] = runs[candidate.name].figures()
            row["entries at the kill"] = runs[candidate.name].kill_amid()
            began_s = time.perf_counter()
            with (
                running(candidate, *flags, directory=directories[candidate.name], start_s=LONG_START_S) as server,
                Link(server.port) as link,
            ):
                row["start_s"] = time.perf_counter() - began_s
                length = link.ask(b"XLEN", b"s")
            assert isinstance(length, int)
            row["after it"] = length
            print(
                f"{candidate.name:<10}",
                *(f"{what} {figure:,.1f}" for what, figure in row.items()),
                sep="  ",
                flush=True,
            )
    return found


# -- loading: CPU seconds of a start with a log, less those of a start with an empty one ------------------------------
#
#     pipelined    XADDs of one field, as producers that pipeline write them: a hundred in a millisecond
#     spread       the same, one in a millisecond
#     deliveries   what a server logs of 100,000 entries added, delivered by the hundred, and 90 of each hundred
#                  acknowledged by one XACK: each server loads its own log
#     one by one   the same, acknowledged by an XACK each
#
# The time of a loop in Python tells how fast the machine was just then.

MANIFEST: Final = b"file appendonly.aof.1.base.aof seq 1 type b\n"
LOGGING: Final = ("--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no")
FIRST_MS: Final = 1_795_300_000_000
IN_A_MS: Final = {"pipelined": 100, "spread": 1}
BATCH: Final = 100
ACKNOWLEDGED: Final = 90  # of a batch
ACKNOWLEDGED_AT_ONCE: Final = {"deliveries": ACKNOWLEDGED, "one by one": 1}
EMPTY: Final = "empty"


def loading(candidates: Sequence[Candidate], entries: int, delivered: int, rounds: int) -> Rows:
    """server -> log -> CPU seconds, the best of the rounds."""
    sizes = dict.fromkeys(IN_A_MS, entries) | dict.fromkeys(ACKNOWLEDGED_AT_ONCE, delivered) | {EMPTY: 0}
    best_s: Rows = {candidate.name: {} for candidate in candidates}
    with tempfile.TemporaryDirectory(prefix="bench-loading-") as folder:
        for candidate in candidates:
            for log, in_a_ms in IN_A_MS.items():
                write_log(Path(folder, candidate.name, log), xadd_lines(entries, in_a_ms))
            write_log(Path(folder, candidate.name, EMPTY), b"")
            for log, at_once in ACKNOWLEDGED_AT_ONCE.items():
                record_deliveries(candidate, delivered, at_once, Path(folder, candidate.name, log))
        slowness_s = []
        for _ in range(rounds):
            slowness_s.append(python_loop_s())
            for log, size in sizes.items():
                for candidate in candidates:
                    spent_s = loading_s(candidate, Path(folder, candidate.name, log), size)
                    best_s[candidate.name][log] = min(spent_s, best_s[candidate.name].get(log, spent_s))
    print(f"a million additions in Python: {min(slowness_s):.3f} to {max(slowness_s):.3f} s of CPU")
    found = {name: {log: row[log] - row[EMPTY] for log in sizes if log != EMPTY} for name, row in best_s.items()}
    references = dict.fromkeys(name for name in (candidates[0].name, REDIS) if name in found)
    for name, row in found.items():
        for log, spent_s in row.items():
            others = (f", {spent_s / found[other][log]:.2f} times {other}'s" for other in references if other != name)
            print(
                f"{name:<10} {log:<11} {spent_s:.3f} s, {sizes[log] / spent_s:,.0f} entries/s{''.join(others)}",
                flush=True,
            )
    return found


def xadd_lines(entries: int, in_a_ms: int) -> bytes:
    ids = (b"%d-%d" % (FIRST_MS + number // in_a_ms, number % in_a_ms) for number in range(entries))
    return packed([(b"SELECT", b"0"), *((b"XADD", b"s", entry_id, b"field", VALUE) for entry_id in ids)])


def write_log(root: Path, lines: bytes) -> None:
    """A log of one base file."""
    directory = root / "appendonlydir"
    directory.mkdir(parents=True)
    (directory / "appendonly.aof.1.base.aof").write_bytes(lines)
    (directory / "appendonly.aof.manifest").write_bytes(MANIFEST)


def record_deliveries(candidate: Candidate, entries: int, at_once: int, root: Path) -> None:
    """Have a server log a history of deliveries, so many acknowledged at once, and copy its log."""
    with running(candidate, *LOGGING) as server, Link(server.port) as link:
        link.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")
        for number in range(entries // BATCH):
            link.deliver([ADD] * BATCH)
            name = b"worker%d" % (number % WORKERS)
            read = link.ask(b"XREADGROUP", b"GROUP", b"g", name, b"COUNT", b"%d" % BATCH, b"STREAMS", b"s", b">")
            assert isinstance(read, list)
            done = [entry[0] for entry in read[0][1][:ACKNOWLEDGED]]
            link.deliver([(b"XACK", b"s", b"g", *done[at : at + at_once]) for at in range(0, len(done), at_once)])
        shutil.copytree(server.directory / "appendonlydir", root / "appendonlydir")


def loading_s(candidate: Candidate, root: Path, entries: int) -> float:
    """CPU time from a server's start until it answers; it must have all entries then."""
    with running(candidate, *LOGGING, directory=root, start_s=LONG_START_S) as server, Link(server.port) as link:
        spent_ns = cpu_ns(server.pid)
        found = link.ask(b"XLEN", b"s")
    assert found == entries, f"{candidate.name} has {found} of {entries} entries of {root.name}"
    return spent_ns / 1e9


def python_loop_s() -> float:
    """CPU seconds of a million additions: how slow the machine is."""
    began_s = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - began_s
