"""What a command costs as the stream and the pending list grow: flat or logarithmic, nowhere linear.

A stream and its group grow tenfold from step to step, half of the entries delivered to a thousand consumers in turn,
and at each size every command is timed on its own. History is read by a consumer with two pending entries, one before
and one behind all that the others were given in that step.
"""

from collections.abc import Iterator
from typing import Final

from bench.accounting import cpu_ns
from bench.compare import lay
from bench.link import Link, Request, packed
from bench.loads import GROUP, STREAM, VALUE, entry_id
from bench.servers import Pythons, running

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CONSUMERS: Final = 1000
COMMANDS: Final = 2000
BATCH: Final = 50
FLAGS: Final = ("--appendonly", "no")

Costs = dict[str, dict[str, list[float]]]  # server -> command -> microseconds, size by size


def measure(names: list[str], largest: int, pythons: Pythons) -> tuple[list[int], Costs]:
    sizes = [size for size in SIZES if size <= largest]
    costs: Costs = {}
    for name in names:
        of_server: dict[str, list[float]] = {}
        with running(name, *FLAGS, pythons=pythons) as server, Link(server.port) as link:
            ground = Ground(link)
            for size in sizes:
                ground.grow(size)
                for command, requests in commands(ground):
                    cost = cost_us(link, server.pid, requests)
                    of_server.setdefault(command, []).append(cost)
                print(
                    f"{name:<10}{size:>10}", *(f"{what} {cost[-1]:.1f}" for what, cost in of_server.items()), flush=True
                )
        costs[name] = of_server
    return sizes, costs


class Ground:
    """A stream that grows: entries 0 to length - 1, of which the first half is delivered."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.length = 0
        self.delivered = 0
        self.reader = b""
        lay(link, iter([(b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM")]))

    def grow(self, length: int) -> None:
        lay(self.link, (self.addition(number) for number in range(self.length, length)))
        self.length = length
        self.reader = b"reader of %d" % length
        lay(self.link, self._deliveries(length // 2 - self.delivered))

    def addition(self, number: int) -> Request:
        return b"XADD", STREAM, entry_id(number), b"field", VALUE

    def _deliveries(self, count: int) -> Iterator[Request]:
        """So many more to the consumers in turn; the reader of this step has the first and the last."""
        yield self.delivery(self.reader, 1)
        left = count - 2
        each = max(1, min(100, left // CONSUMERS))
        for number in range(left // each):
            yield self.delivery(b"consumer%d" % (number % CONSUMERS), each)
        yield self.delivery(self.reader, 1)
        self.delivered += left // each * each + 2

    def delivery(self, consumer: bytes, count: int) -> Request:
        return b"XREADGROUP", b"GROUP", GROUP, consumer, b"COUNT", b"%d" % count, b"STREAMS", STREAM, b">"


def commands(ground: Ground) -> Iterator[tuple[str, list[Request]]]:
    """Each command's requests; what one changes does not hinder the next."""
    few = min(COMMANDS, ground.delivered // 10)
    middle = ground.delivered // 2
    yield (
        "history of one consumer",
        [(b"XREADGROUP", b"GROUP", GROUP, ground.reader, b"COUNT", b"10", b"STREAMS", STREAM, b"0")] * COMMANDS,
    )
    yield "XADD", [ground.addition(ground.length + number) for number in range(COMMANDS)]
    ground.length += COMMANDS
    yield (
        "XREADGROUP > by one of 1,000",
        [ground.delivery(b"consumer%d" % (number * 7 % CONSUMERS), 1) for number in range(few)],
    )
    ground.delivered += few
    yield (
        "XREADGROUP CLAIM, COUNT 10",
        [(b"XREADGROUP", b"GROUP", GROUP, b"claimer", b"COUNT", b"10", b"CLAIM", b"0", b"STREAMS", STREAM, b">")] * few,
    )
    yield (
        "XCLAIM",
        [
            (b"XCLAIM", STREAM, GROUP, b"claimer%d" % (number % 7), b"0", entry_id(middle + number))
            for number in range(few)
        ],
    )
    yield "XACK", [(b"XACK", STREAM, GROUP, entry_id(middle + number)) for number in range(few)]
    yield "XDEL in the middle", [(b"XDEL", STREAM, entry_id(ground.length // 2 + number)) for number in range(few)]


def cost_us(link: Link, pid: int, requests: list[Request]) -> float:
    """CPU a command: the cheaper half of the batches, since noise only adds."""
    costs = []
    for at in range(0, len(requests), BATCH):
        batch = requests[at : at + BATCH]
        pipeline = packed(batch)
        was_ns = cpu_ns(pid)
        link.socket.sendall(pipeline)
        link.replies(len(batch))
        costs.append((cpu_ns(pid) - was_ns) / len(batch) / 1000)
    cheaper = sorted(costs)[: max(1, len(costs) // 2)]
    return sum(cheaper) / len(cheaper)
