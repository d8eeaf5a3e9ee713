"""How long a client waits: for a start, for an entry that it blocks for, while another command is long, under a steady
load; and what a large leased group costs.

Every age counts from when the request was due, so that a late answer also makes those behind it late.
"""

import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from statistics import median
from typing import Final

from bench.loads import ADD, GROUP, READ_AT_ONCE, STREAM, VALUE, Requests, entries, entry_id, read
from bench.scale import small_keys
from bench.servers import (
    FAKE,
    LOCALHOST,
    RECEIVE_BYTES,
    WITHOUT_LOG,
    Absent,
    Candidate,
    Link,
    Request,
    Server,
    allow_open_files,
    cpu_ns,
    information,
    packed,
    percentiles,
    resident_bytes,
    running,
)  # fmt: skip

PING: Final = packed([(b"PING",)])
SHORT_REPLY_BYTES: Final = 64

Rows = dict[str, dict[str, float]]  # server -> figures


def told(name: str, figures: dict[str, float]) -> str:
    return "  ".join([f"{name:<10}", *(f"{what} {figure:.3f}" for what, figure in figures.items())])


# -- starts: how long until a server answers PING ---------------------------------------------------------------------

EMBEDDED: Final = """
import time
from penstock.testing.embedded import Server
began_s = time.perf_counter()
with Server():
    print(1000 * (time.perf_counter() - began_s))
"""


def starts(candidates: Sequence[Candidate], rounds: int) -> Rows:
    """server -> figures: medians of so many starts with an empty log, and of servers inside a process."""
    found: dict[str, dict[str, list[float]]] = {candidate.name: {} for candidate in candidates}
    for _ in range(rounds):
        for candidate in candidates:
            began_s = time.perf_counter()
            with running(candidate) as server:
                figures = {"ms": 1000 * (time.perf_counter() - began_s), "CPU ms": cpu_ns(server.pid) / 1e6}
            if candidate.is_penstock:
                figures["ms inside a process, after the import"] = start_inside_ms(candidate)
            for what, figure in figures.items():
                found[candidate.name].setdefault(what, []).append(figure)
    medians = {name: {what: median(each) for what, each in row.items()} for name, row in found.items()}
    for name, row in medians.items():
        print(told(name, row), flush=True)
    return medians


def start_inside_ms(candidate: Candidate) -> float:
    words = [str(candidate.python), "-P", "-c", EMBEDDED]
    ran = subprocess.run(words, env=candidate.environment(), stdout=subprocess.PIPE, text=True, check=True)
    return float(ran.stdout)


# -- wake-ups: how soon a blocked reader gets an entry, among 1 to 10,000 that block for the same stream --------------
#
# Each reader is a connection in XREADGROUP BLOCK 0 of one group. An entry is added, the reader that has waited longest
# is served, and blocks again. Its latency is the time from the XADD to its reply.

READERS: Final = (1, 100, 1_000, 10_000)
MOST_OF_FAKE: Final = 1_000  # it has a thread for each
WAKE_UPS: Final = 500
WARM_WAKE_UPS: Final = 20
SLOW_S: Final = 0.05  # a server with first wake-ups of this length is not asked for more
BLOCKED_READ: Final = packed(
    [(b"XREADGROUP", b"GROUP", GROUP, b"reader", b"COUNT", b"1", b"BLOCK", b"0", b"STREAMS", STREAM, b">")]
)
ADDITION: Final = packed([ADD])


def wakeups(candidates: Sequence[Candidate], most: int) -> dict[str, Rows]:
    """server -> number of readers -> figures."""
    allow_open_files()
    found: dict[str, Rows] = {}
    for count in READERS:
        for candidate in candidates:
            if count > most or (candidate.name == FAKE and count > MOST_OF_FAKE):
                continue
            try:
                with running(candidate, "--maxclients", "15000") as server:
                    figures = wake(server, count)
            except (Absent, OSError) as reason:
                print(f"{candidate.name} with {count}: {reason}", flush=True)
                continue
            found.setdefault(candidate.name, {})[str(count)] = figures
            print(f"{count:>7} readers", told(candidate.name, figures), flush=True)
    return found


def wake(server: Server, count: int) -> dict[str, float]:
    with ExitStack() as stack, Link(server.port) as producer, select.epoll() as poll:
        producer.ask(b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM")
        if not may_block(server.port):
            raise Absent("answers XREADGROUP BLOCK 0 at once: no reader of a group waits")
        readers: dict[int, Link] = {}
        for _ in range(count):
            link = stack.enter_context(Link(server.port))
            link.socket.sendall(BLOCKED_READ)
            readers[link.socket.fileno()] = link
            poll.register(link.socket.fileno(), select.EPOLLIN)
        while int(information(server.port, b"clients")["blocked_clients"]) < count:
            time.sleep(0.1)
        ages_s: list[float] = []
        was_ns = 0
        while len(ages_s) < WAKE_UPS:
            if len(ages_s) == WARM_WAKE_UPS:
                was_ns = cpu_ns(server.pid)
                if sum(ages_s) > WARM_WAKE_UPS * SLOW_S:
                    break
            sent_s = time.perf_counter()
            producer.socket.sendall(ADDITION)
            ((number, _),) = poll.poll(60, 1)
            ages_s.append(time.perf_counter() - sent_s)
            readers[number].replies(1)
            producer.replies(1)
            readers[number].socket.sendall(BLOCKED_READ)
        used_ns = cpu_ns(server.pid) - was_ns
    p50, p99, p999 = percentiles(ages_s)
    figures = {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}
    timed = len(ages_s) - WARM_WAKE_UPS
    return figures | ({"cpu_us": used_ns / timed / 1000} if timed > 0 else {})


def may_block(port: int) -> bool:
    """Whether a reader of a group waits; fakeredis's TCP server (2.40) answers at once that there is nothing."""
    with Link(port) as reader:
        reader.socket.sendall(BLOCKED_READ)
        return not select.select([reader.socket], [], [], 1.0)[0]


# -- stalls: the longest that another client waits while one command goes through a million entries -------------------
#
# A probe sends PING every millisecond. The large reply is received and not parsed.

PROBE_EVERY_S: Final = 0.001
END: Final = b"$3\r\nend\r\n"
LONG_COMMANDS: Final[dict[str, Request]] = {
    "XRANGE": (b"XRANGE", STREAM, b"-", b"+"),
    "DEL": (b"DEL", STREAM),
    "FLUSHALL": (b"FLUSHALL",),
    "XTRIM to 0": (b"XTRIM", STREAM, b"MAXLEN", b"0"),
    "rewrite": (b"BGREWRITEAOF",),
    "SCAN": (b"SCAN", b"0"),  # beside as many keys
}
LOGGING: Final = ("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--appendfsync")


def stalls(candidates: Sequence[Candidate], count: int, rounds: int) -> Rows:
    """server -> command -> ms; the best of the rounds, because other programs only add."""
    found: Rows = {candidate.name: {} for candidate in candidates}
    for command, request in LONG_COMMANDS.items():
        for _ in range(rounds):
            for candidate in candidates:
                with running(candidate, *LOGGING, "no") as server:
                    longest_ms = stall_ms(server.port, request, count)
                row = found[candidate.name]
                row[command] = min(longest_ms, row.get(command, longest_ms))
        print(f"{command:<12}", *(f"{name} {row[command]:.1f} ms" for name, row in found.items()), sep="  ", flush=True)
    return found


def stall_ms(port: int, request: Request, count: int) -> float:
    with Link(port) as busy, Link(port) as probe:
        busy.prepare(small_keys(count) if request[0] == b"SCAN" else entries(count))
        busy.socket.sendall(packed([request, (b"ECHO", b"end")]))
        longest_s = max(probe_ages(busy, probe), default=0.0)
        while request[0] == b"BGREWRITEAOF" and information(port, b"persistence")["aof_rewrite_in_progress"] == "1":
            busy.socket.sendall(packed([(b"ECHO", b"end")]))
            longest_s = max([longest_s, *probe_ages(busy, probe)])
    return longest_s * 1000


def probe_ages(busy: Link, probe: Link) -> Iterator[float]:
    """Ages in seconds of the probe's replies until the busy link has received END."""
    last = b""
    due_s = time.perf_counter()
    is_waiting = False
    while True:
        readable, _, _ = select.select([busy.socket, probe.socket], [], [], max(0.0, due_s - time.perf_counter()))
        if busy.socket in readable:
            received = busy.socket.recv(RECEIVE_BYTES)
            assert received, "the server closed the connection"
            last = (last + received)[-len(END) :]
        if probe.socket in readable:
            probe.socket.recv(SHORT_REPLY_BYTES)
            yield time.perf_counter() - due_s
            is_waiting = False
            due_s = max(due_s + PROBE_EVERY_S, time.perf_counter())
        if last == END and not is_waiting:
            return
        if not is_waiting and time.perf_counter() >= due_s:
            probe.socket.sendall(PING)
            is_waiting = True


# -- steady: how long a PING takes while 20,000 commands a second come in and a million entries are kept --------------
#
# Half of the entries are pending. The commands are XADD with MAXLEN ~, XREADGROUP, XACK and SET with an expiry, sent
# when they are due; half-way the log is rewritten. How late the sender itself was is reported too.

TICK_S: Final = 0.005
STEADY_PROBE_S: Final = 0.002


def steady(candidates: Sequence[Candidate], count: int, rate: int, seconds: float) -> Rows:
    found: Rows = {}
    for candidate in candidates:
        with running(candidate, *LOGGING, "everysec") as server, Link(server.port) as load, Link(server.port) as probe:
            load.prepare(entries(count))
            load.prepare([read(READ_AT_ONCE)] * (count // 2 // READ_AT_ONCE))
            found[candidate.name] = drive(load, probe, count, rate, seconds)
        print(told(candidate.name, found[candidate.name]), flush=True)
    return found


def tick_requests(tick: int, count: int, length: int) -> bytes:
    """The requests of one tick; each XACK is for the oldest entry that is pending."""
    requests: list[Request] = []
    first = tick * (count // 4)
    for number in range(count // 4):
        requests.append((b"XADD", STREAM, b"MAXLEN", b"~", b"%d" % length, b"*", b"field", VALUE))
        requests.append(read(1, b"consumer%d" % (number % 8)))
        requests.append((b"XACK", STREAM, GROUP, entry_id(first + number)))
        requests.append((b"SET", b"key%d" % ((first + number) % 100_000), VALUE, b"PX", b"2000"))
    return packed(requests)


def drive(load: Link, probe: Link, length: int, rate: int, seconds: float) -> dict[str, float]:
    batches = [tick_requests(tick, int(rate * TICK_S), length) for tick in range(int(seconds / TICK_S))]
    ages_s: list[float] = []
    late_s = 0.0
    backlog = b""
    sent = 0
    began_s = time.perf_counter()
    ping_due_s = began_s
    is_waiting = is_rewritten = False
    load.socket.setblocking(False)
    while sent < len(batches) or backlog:
        now_s = time.perf_counter()
        batch_due_s = began_s + sent * TICK_S
        if sent < len(batches) and now_s >= batch_due_s:
            late_s = max(late_s, now_s - batch_due_s)
            backlog += batches[sent]
            sent += 1
            if not is_rewritten and sent > len(batches) // 2:
                backlog += packed([(b"BGREWRITEAOF",)])
                is_rewritten = True
        if not is_waiting and now_s >= ping_due_s:
            probe.socket.sendall(PING)
            is_waiting = True
        next_s = min(batch_due_s + TICK_S, ping_due_s if not is_waiting else now_s + 1)
        readable, writable, _ = select.select(
            [load.socket, probe.socket], [load.socket] if backlog else [], [], max(0.0, next_s - time.perf_counter())
        )
        if probe.socket in readable:
            probe.socket.recv(SHORT_REPLY_BYTES)
            ages_s.append(time.perf_counter() - ping_due_s)
            is_waiting = False
            ping_due_s = max(ping_due_s + STEADY_PROBE_S, time.perf_counter())
        if load.socket in readable:
            load.socket.recv(RECEIVE_BYTES)
        if writable:
            backlog = backlog[load.socket.send(backlog) :]
    p50, p99, p999 = percentiles(ages_s)
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "p999_ms": p999,
        "slowest_ms": max(ages_s) * 1000,
        "rate": len(batches) * int(rate * TICK_S) / (time.perf_counter() - began_s),
        "sender_late_ms": late_s * 1000,
    }


# -- policies: what a large leased group costs; a tenth of its entries held, a blocked reader for each hundred of them -
#
# Nothing may grow with what is not due. An hour is ACKWAIT for what is not to end meanwhile, and a day the holds.

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
                for what, figure in chain(measured(server, link, count), of_options(server, link, count)):
                    of_server[what] = figure
                    print(f"{candidate.name:<10}{what:<70}{figure:>12.1f}", flush=True)
    return found


# Each with a hundred tenants, of which one has nine tenths of the entries. What is limited is never short.
GROUP_OPTIONS: Final = (
    b"", b"RATE 100000 1000", b"INFLIGHT 100000", b"KEY tenant PARALLEL 50", b"KEY tenant PARALLEL 50 FAIR YES",
    b"PRIORITY level", b"PRIORITY level AGING 60000", b"EXPIRE 86400000", b"ONDISCONNECT RELEASE",
)  # fmt: skip
STREAM_OPTIONS: Final = (b"", b"MAXLEN 10000", b"MAXBYTES 1000000", b"MAXLEN 10000 ACKED IDLEGROUP 60000")
READ_OF_OPTION: Final = 10_000  # entries at most
TENANTS: Final = 100


def of_options(server: Server, link: Link, count: int) -> Iterator[tuple[str, float]]:
    """What reads one by one cost with each option of a group, and pipelines of XADDs with those of a stream."""
    pid, entries = server.pid, min(count, READ_OF_OPTION)
    for options in GROUP_OPTIONS:
        link.ask(b"DEL", STREAM)
        link.prepare([*of_tenants(entries), (b"XGROUP", b"CREATE", STREAM, GROUP, b"0")])
        words = (b"ACKWAIT", b"%d" % HOUR_MS, *options.split())
        link.deliver([(POLICY, STREAM, b"GROUP", GROUP, *words)])
        was_ns = cpu_ns(pid)
        for _ in range(entries // 10):
            acknowledge_one(link)
        yield f"CPU of a read and an XACK, {shown(options)}, us", (cpu_ns(pid) - was_ns) / (entries // 10) / 1000
    for options in STREAM_OPTIONS:
        link.ask(b"DEL", STREAM)
        link.prepare([*of_tenants(10), (b"XGROUP", b"CREATE", STREAM, GROUP, b"0")])
        link.deliver([(POLICY, STREAM, *options.split())] if options else [])
        was_ns = cpu_ns(pid)
        link.prepare(of_tenants(entries))
        yield f"CPU of an XADD, {shown(options)}, us", (cpu_ns(pid) - was_ns) / entries / 1000
    link.ask(b"DEL", STREAM)


def shown(options: bytes) -> str:
    return options.decode() or "none of them"


def of_tenants(count: int) -> Requests:
    for number in range(count):
        tenant = number % TENANTS if number % 10 == 0 else 0
        fields = (b"tenant", b"t%d" % tenant, b"level", b"%d" % (number % 7), b"field", VALUE)
        yield b"XADD", STREAM, b"*", *fields


def acknowledge_one(link: Link) -> None:
    reply = link.ask(b"XREADGROUP", b"GROUP", GROUP, b"worker", b"COUNT", b"1", b"STREAMS", STREAM, b">")
    assert isinstance(reply, list), "there is an entry"
    link.ask(b"XACK", STREAM, GROUP, reply[0][1][0][0])


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
            link.ask(b"XNACK", STREAM, GROUP, b"SILENT", b"IDS", b"1", leased_id(10 * number + 1))
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


def leased_id(number: int) -> bytes:
    return b"%d-0" % (number + 1)


def additions(count: int) -> Requests:
    for number in range(count):
        yield b"XADD", STREAM, leased_id(number), b"field", VALUE
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0"


def reads(count: int, name: bytes) -> Requests:
    for _ in range(count):
        yield b"XREADGROUP", b"GROUP", GROUP, name, b"COUNT", b"%d" % AT_ONCE, b"STREAMS", STREAM, b">"


def holds(count: int) -> Requests:
    """Every tenth entry is held, each hundred until a moment of its own."""
    for first in range(0, count, AT_ONCE):
        ids = [leased_id(10 * number) for number in range(first, min(first + AT_ONCE, count))]
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
