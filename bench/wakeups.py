"""How soon a blocked reader hears of an entry, among 1 to 10,000 that wait for the same stream.

Every reader is a connection in XREADGROUP BLOCK 0 of one group. An entry is added, the reader who has waited longest
is served, and blocks again; the time from the XADD to the reader's reply is its latency.
"""

import resource
import select
import time
from typing import Final

from bench.accounting import cpu_ns
from bench.link import Link, packed
from bench.loads import ADD, GROUP, STREAM
from bench.percentiles import percentiles
from bench.servers import Absent, Pythons, running

COUNTS: Final = (1, 100, 1_000, 10_000)
FILES: Final = 10_500
WAKES: Final = 500
FEW: Final = 20  # of a server that takes this long
LONG_S: Final = 0.05
FLAGS: Final = ("--maxclients", "15000")
PARKED: Final = packed(
    [(b"XREADGROUP", b"GROUP", GROUP, b"reader", b"COUNT", b"1", b"BLOCK", b"0", b"STREAMS", STREAM, b">")]
)
ADDITION: Final = packed([ADD])


def measure(names: list[str], largest: int, pythons: Pythons) -> dict[str, dict[str, dict[str, float]]]:
    """server -> number of readers -> figures."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, FILES * 2) if hard == resource.RLIM_INFINITY else min(hard, max(soft, FILES * 2))
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in names:
        for count in COUNTS:
            if count > largest or (name == "fakeredis" and count > 1_000):  # a thread each
                continue
            try:
                with running(name, *FLAGS, pythons=pythons) as server:
                    figures = wake(server.port, server.pid, count)
            except (Absent, OSError) as reason:
                print(f"{name} with {count}: {reason}", flush=True)
                continue
            found.setdefault(name, {})[str(count)] = figures
            text = "  ".join(f"{what} {figure:.3f}" for what, figure in figures.items())
            print(f"{name:<10}{count:>7} readers  {text}", flush=True)
    return found


def wake(port: int, pid: int, count: int) -> dict[str, float]:
    readers: list[Link] = []
    with Link(port) as producer, select.epoll() as poll:
        producer.ask(b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM")
        if not may_block(port):
            raise Absent("answers XREADGROUP BLOCK 0 at once: no reader of a group waits")
        by_number = {}
        for _ in range(count):
            link = Link(port)
            readers.append(link)
            link.socket.sendall(PARKED)
            by_number[link.socket.fileno()] = link
            poll.register(link.socket.fileno(), select.EPOLLIN)
        while blocked(producer) < count:
            time.sleep(0.1)
        ages: list[float] = []
        was_ns = 0
        wakes = WAKES
        while len(ages) < wakes:
            if len(ages) == FEW:
                was_ns = cpu_ns(pid)
                if sum(ages) > FEW * LONG_S:
                    break
            sent_s = time.perf_counter()
            producer.socket.sendall(ADDITION)
            ((number, _),) = poll.poll(60, 1)
            ages.append(time.perf_counter() - sent_s)
            reader = by_number[number]
            reader.replies(1)
            producer.replies(1)
            reader.socket.sendall(PARKED)
        used_ns = cpu_ns(pid) - was_ns
        for link in readers:
            link.close()
    timed = len(ages) - FEW
    p50, p99, p999 = percentiles(ages)
    figures = {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}
    return figures | ({"cpu_us": used_ns / timed / 1000} if timed > 0 else {})


def may_block(port: int) -> bool:
    """Whether a reader of a group waits; fakeredis's TCP server (2.40) tells it at once that there is nothing."""
    with Link(port) as reader:
        reader.socket.sendall(PARKED)
        return not select.select([reader.socket], [], [], 1.0)[0]


def blocked(link: Link) -> int:
    """How many clients wait."""
    told = link.ask(b"INFO", b"clients")
    assert isinstance(told, bytes), f"INFO answered {told!r}"
    return int(told.partition(b"blocked_clients:")[2].split()[0])
