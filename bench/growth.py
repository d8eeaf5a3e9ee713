"""What a command costs as the stream and the pending list grow: flat or logarithmic, nowhere linear.

A stream and its group grow tenfold from step to step. Half of the entries are pending with a thousand consumers, ten
at a time in turn, whatever the size; a reader of each step has one entry before all that the step gave to the others,
and one behind. At each size every command runs on its own, as often where there is room, and its cheaper half counts.
All commands have run before on a small stream that nobody measures: what a first time costs is no growth.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.accounting import cpu_ns, resident_bytes
from bench.compare import lay
from bench.link import Link, Request, packed
from bench.loads import GROUP, VALUE, entry_id
from bench.servers import Pythons, Server, running

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CONSUMERS: Final = 1000
AT_ONCE: Final = 10  # entries that a consumer is given
COMMANDS: Final = 2000
CLAIMS: Final = 100  # ten entries each: the smallest list is gone through more than once
BATCH: Final = 20
FLAGS: Final = ("--appendonly", "no")
MEASURED: Final = b"stream"
WARMING: Final = b"warming"
LONGEST_STEP_S: Final = 1200.0
MOST_OF_MEMORY: Final = 0.5  # of what the machine can spare

Costs = dict[str, dict[str, list[float]]]  # server -> command -> microseconds, size by size


def measure(names: list[str], largest: int, pythons: Pythons) -> tuple[list[int], Costs]:
    """The sizes that every server reached, and the costs at these."""
    print(
        f"CPU in microseconds a command: the cheaper half of up to {COMMANDS} in pipelines of {BATCH};\n"
        f"half of the entries are pending, {AT_ONCE} at a time given to {CONSUMERS:,} consumers in turn"
    )
    sizes = [size for size in SIZES if size <= largest]
    costs: Costs = {}
    for name in names:
        with running(name, *FLAGS, pythons=pythons) as server, Link(server.port) as link:
            costs[name] = of_server = grown(server, link, sizes)
        reached = min(len(of_command) for of_command in of_server.values())
        sizes = sizes[:reached]
    return sizes, {
        name: {what: cost[: len(sizes)] for what, cost in of_server.items()} for name, of_server in costs.items()
    }


def grown(server: Server, link: Link, sizes: list[int]) -> dict[str, list[float]]:
    """command -> microseconds at each size, up to the last that memory and time allow."""
    warm = Ground(link, WARMING)
    warm.grow(SIZES[0])
    for _, requests in commands(warm):
        cost_us(link, server.pid, requests)
    link.ask(b"DEL", WARMING)
    ground = Ground(link, MEASURED)
    of_server: dict[str, list[float]] = {}
    for size in sizes:
        began_s = time.perf_counter()
        ground.grow(size)
        for command, requests in commands(ground):
            cost = cost_us(link, server.pid, requests)
            if cost is not None:  # a server that does not know it has no row
                of_server.setdefault(command, []).append(cost)
        spent_s = time.perf_counter() - began_s
        resident = resident_bytes(server.pid)
        figures = (f"{what} {cost[-1]:.1f}" for what, cost in of_server.items())
        print(f"{server.name:<10}{size:>11,}", f"{spent_s:.0f} s, {resident >> 20} MiB", *figures, sep="  ", flush=True)
        if size < sizes[-1] and (obstacle := too_much(spent_s, resident)):
            print(f"{server.name:<10} goes no further: ten times as much {obstacle}", flush=True)
            break
    return of_server


def too_much(spent_s: float, resident: int) -> str:
    """Why ten times as many entries are not tried; empty where they are."""
    if 10 * spent_s > LONGEST_STEP_S:
        return f"would take {10 * spent_s:.0f} s"
    if 9 * resident > MOST_OF_MEMORY * spare_bytes():
        return f"would need {10 * resident >> 20} MiB"
    return ""


def spare_bytes() -> int:
    """Memory that the machine can still give."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) << 10


class Ground:
    """A stream that grows: entries 0 to length - 1, of which the first `delivered` were handed out."""

    def __init__(self, link: Link, key: bytes) -> None:
        self.link = link
        self.key = key
        self.length = 0
        self.delivered = 0
        self.given = 0  # the number of portions
        self.reader = b""
        lay(link, iter([(b"XGROUP", b"CREATE", key, GROUP, b"0", b"MKSTREAM")]))
        lay(link, ((b"XGROUP", b"CREATECONSUMER", key, GROUP, consumer(number)) for number in range(CONSUMERS)))

    def grow(self, length: int) -> None:
        lay(self.link, (self.addition(number) for number in range(self.length, length)))
        self.length = length
        self.reader = b"reader of %d" % length
        lay(self.link, self._deliveries(length // 2 - self.delivered))

    def addition(self, number: int) -> Request:
        return b"XADD", self.key, entry_id(number), b"field", VALUE

    def _deliveries(self, count: int) -> Iterator[Request]:
        """So many more; the reader of this step has the first and the last."""
        yield self.delivery(self.reader, 1)
        portions = (count - 2) // AT_ONCE
        for number in range(self.given, self.given + portions):
            yield self.delivery(consumer(number), AT_ONCE)
        yield self.delivery(self.reader, 1)
        self.given += portions
        self.delivered += portions * AT_ONCE + 2

    def delivery(self, name: bytes, count: int) -> Request:
        return b"XREADGROUP", b"GROUP", GROUP, name, b"COUNT", b"%d" % count, b"STREAMS", self.key, b">"


def consumer(number: int) -> bytes:
    return b"consumer%d" % (number % CONSUMERS)


def commands(ground: Ground) -> Iterator[tuple[str, list[Request]]]:
    """Each command's requests; what one changes does not hinder the next."""
    key = ground.key
    few = min(COMMANDS, ground.delivered * 2 // 5)
    middle = ground.delivered // 2
    history = (b"XREADGROUP", b"GROUP", GROUP, ground.reader, b"COUNT", b"10", b"STREAMS", key, b"0")
    claim = (b"XREADGROUP", b"GROUP", GROUP, b"claimer", b"COUNT", b"10", b"CLAIM", b"0", b"STREAMS", key, b">")
    yield "history of one consumer", [history] * few
    yield "XPENDING of one consumer", [(b"XPENDING", key, GROUP, b"-", b"+", b"10", ground.reader)] * few
    yield "XPENDING from the middle, COUNT 10", [(b"XPENDING", key, GROUP, entry_id(middle), b"+", b"10")] * few
    yield "XADD", [ground.addition(ground.length + number) for number in range(few)]
    ground.length += few
    yield "XREADGROUP > by one of 1,000", [ground.delivery(consumer(number * 7), 1) for number in range(few)]
    ground.delivered += few
    yield "XREADGROUP CLAIM, COUNT 10", [claim] * CLAIMS
    numbers = range(middle, middle + few)
    yield "XCLAIM", [(b"XCLAIM", key, GROUP, b"claimer%d" % (number % 7), b"0", entry_id(number)) for number in numbers]
    yield "XACK", [(b"XACK", key, GROUP, entry_id(number)) for number in numbers]
    # of what nobody has read: deleted pending entries would be another growth
    middle = (ground.delivered + ground.length - few) // 2
    yield "XDEL in the middle", [(b"XDEL", key, entry_id(number)) for number in range(middle, middle + few)]


def cost_us(link: Link, pid: int, requests: list[Request]) -> float | None:
    """CPU a command: the cheaper half of the batches, since noise only adds. None where the server refuses it."""
    costs = []
    for at in range(0, len(requests), BATCH):
        batch = requests[at : at + BATCH]
        pipeline = packed(batch)
        was_ns = cpu_ns(pid)
        link.socket.sendall(pipeline)
        replies = link.replies(len(batch))
        costs.append((cpu_ns(pid) - was_ns) / len(batch) / 1000)
        if any(isinstance(reply, Exception) for reply in replies):
            return None
    cheaper = sorted(costs)[: max(1, len(costs) // 2)]
    return sum(cheaper) / len(cheaper)
