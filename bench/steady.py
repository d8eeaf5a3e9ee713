"""A million entries, half of them pending, and 20,000 commands a second: how long a PING waits meanwhile.

The commands are XADD with MAXLEN ~, XREADGROUP, XACK and SET with an expiry, sent when they are due; half-way the log
is rewritten. A PING every two milliseconds is aged from when it was due. How late the sender itself was stands beside.
"""

import select
import time
from typing import Final

from bench.compare import lay
from bench.link import Link, packed
from bench.loads import GROUP, READ_AT_ONCE, STREAM, VALUE, entries, entry_id, read
from bench.percentiles import percentiles
from bench.servers import Pythons, running

FLAGS: Final = ("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
TICK_S: Final = 0.005
PING_S: Final = 0.002
PING: Final = packed([(b"PING",)])
CHUNK: Final = 1 << 20


def mix(tick: int, count: int, length: int) -> bytes:
    """So many commands of one tick; what is acknowledged is the oldest that is pending."""
    requests = []
    first = tick * (count // 4)
    for number in range(count // 4):
        requests.append((b"XADD", STREAM, b"MAXLEN", b"~", b"%d" % length, b"*", b"field", VALUE))
        requests.append(read(1, b"consumer%d" % (number % 8)))
        requests.append((b"XACK", STREAM, GROUP, entry_id(first + number)))
        requests.append((b"SET", b"key%d" % ((first + number) % 100_000), VALUE, b"PX", b"2000"))
    return packed(requests)


def measure(names: list[str], count: int, rate: int, seconds: float, pythons: Pythons) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name in names:
        with running(name, *FLAGS, pythons=pythons) as server, Link(server.port) as load, Link(server.port) as probe:
            lay(load, entries(count))
            lay(load, iter([read(READ_AT_ONCE)] * (count // 2 // READ_AT_ONCE)))
            figures = found[name] = drive(load, probe, count, rate, seconds)
        print(f"{name:<10}", *(f"{what} {figure:.2f}" for what, figure in figures.items()), sep="  ", flush=True)
    return found


def drive(load: Link, probe: Link, length: int, rate: int, seconds: float) -> dict[str, float]:
    batches = [mix(tick, int(rate * TICK_S), length) for tick in range(int(seconds / TICK_S))]
    ages: list[float] = []
    late_s = 0.0
    backlog = b""
    sent = 0
    began_s = time.perf_counter()
    ping_due_s = began_s
    waiting = rewritten = False
    load.socket.setblocking(False)
    while sent < len(batches) or backlog:
        now_s = time.perf_counter()
        batch_due_s = began_s + sent * TICK_S
        if sent < len(batches) and now_s >= batch_due_s:
            late_s = max(late_s, now_s - batch_due_s)
            backlog += batches[sent]
            sent += 1
            if not rewritten and sent > len(batches) // 2:
                backlog += packed([(b"BGREWRITEAOF",)])
                rewritten = True
        if not waiting and now_s >= ping_due_s:
            probe.socket.sendall(PING)
            waiting = True
        next_s = min(batch_due_s + TICK_S, ping_due_s if not waiting else now_s + 1)
        readable, writable, _ = select.select(
            [load.socket, probe.socket], [load.socket] if backlog else [], [], max(0.0, next_s - time.perf_counter())
        )
        if probe.socket in readable:
            probe.socket.recv(64)
            ages.append(time.perf_counter() - ping_due_s)
            waiting = False
            ping_due_s = max(ping_due_s + PING_S, time.perf_counter())
        if load.socket in readable:
            load.socket.recv(CHUNK)
        if writable:
            backlog = backlog[load.socket.send(backlog) :]
    p50, p99, p999 = percentiles(ages)
    spent_s = time.perf_counter() - began_s
    return {
        "p50_ms": p50,
        "p99_ms": p99,
        "p999_ms": p999,
        "slowest_ms": max(ages) * 1000,
        "rate": len(batches) * int(rate * TICK_S) / spent_s,
        "sender_late_ms": late_s * 1000,
    }
