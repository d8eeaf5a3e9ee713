"""The server's own CPU time a command, side by side, the servers in turn, several rounds.

Noise only adds to CPU time, so the cheapest round counts. In the first round every reply is kept and compared with
the reference's (Redis, where it knows the command).
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from bench import servers
from bench.accounting import cpu_ns
from bench.link import Link, Request, packed
from bench.loads import GROUP, STREAM, Load, read
from bench.percentiles import percentiles
from bench.servers import Server

LAYING_AT_ONCE = 1000
SLICES = 10  # of a round
AN_ID = re.compile(rb"\d{13}-\d+")
GIVEN = b"17000"  # how the ids begin that the loads give; the servers' own are of today


@dataclass(slots=True)
class Figures:
    """What a server took for a load: each round's CPU time a command, and the round trips of its batches."""

    cpu_us: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    trips_ms: list[float] = field(default_factory=list)
    replies: list[object] = field(default_factory=list)
    refusal: str = ""
    difference: str = ""

    @property
    def best_us(self) -> float:
        return min(self.cpu_us)


class Refused(Exception):
    """A server that does not know a command."""


def lay(link: Link, requests: Iterator[Request]) -> None:
    """Send what a load stands on."""
    chunk: list[Request] = []
    for request in requests:
        chunk.append(request)
        if len(chunk) == LAYING_AT_ONCE:
            deliver(link, chunk)
            chunk = []
    deliver(link, chunk)


def deliver(link: Link, requests: list[Request]) -> list[object]:
    link.socket.sendall(packed(requests))
    replies = link.replies(len(requests))
    for reply in replies:
        if isinstance(reply, Exception):
            raise Refused(str(reply))
    return replies


class Turn:
    """One round of a load on one server: laid, then run in slices between those of the others."""

    def __init__(self, load: Load, server: Server, pipelines: list[tuple[bytes, int]], keep: bool) -> None:
        self.load = load
        self.server = server
        self.pipelines = pipelines
        self.link = Link(server.port)
        self.cpu_ns = 0
        self.spent_s = 0.0
        self.done = 0
        self.trips_ms: list[float] = []
        self.kept: list[object] | None = [] if keep else None

    def lay(self, commands: int) -> None:
        """The ground of so many commands, on an empty server."""
        self.link.ask(b"FLUSHALL")
        lay(self.link, self.load.prepare(commands))

    def slice(self, start: int, end: int) -> None:
        was_ns, began_s = cpu_ns(self.server.pid), time.perf_counter()
        for pipeline, count in self.pipelines[start:end]:
            sent_s = time.perf_counter()
            replies = cycle(self.link, pipeline, count) if self.load.cycle else exchange(self.link, pipeline, count)
            self.trips_ms.append((time.perf_counter() - sent_s) * 1000)
            self.done += len(replies)
            if self.kept is not None:
                self.kept += replies
            if isinstance(replies[0], Exception):
                raise Refused(str(replies[0]))
        self.cpu_ns += cpu_ns(self.server.pid) - was_ns
        self.spent_s += time.perf_counter() - began_s

    def tell(self, figures: Figures) -> None:
        figures.cpu_us.append(self.cpu_ns / self.done / 1000)
        figures.rate.append(self.done / self.spent_s)
        figures.trips_ms += self.trips_ms
        if self.kept is not None:
            figures.replies = comparable(self.kept)


def run(load: Load, started: list[Server], scale: float, keep: bool, of_load: dict[str, Figures]) -> None:
    """One round of a load: every server a slice in turn, so that all see the same noise."""
    commands = max(load.batch, round(load.commands * scale / load.batch) * load.batch)
    requests = list(load.timed(commands))
    pipelines = [
        (packed(requests[at : at + load.batch]), min(load.batch, commands - at))
        for at in range(0, commands, load.batch)
    ]
    turns = []
    for server in started:
        if not of_load[server.name].refusal:
            own = pipelines[: max(1, len(pipelines) // server.slowness)]
            turns.append(Turn(load, server, own, keep))
    laid = []
    for turn in turns:
        try:
            turn.lay(commands // turn.server.slowness)
            laid.append(turn)
        except Refused as refusal:
            of_load[turn.server.name].refusal = str(refusal)
    for number in range(SLICES):
        for turn in list(laid):
            start, end = (len(turn.pipelines) * step // SLICES for step in (number, number + 1))
            try:
                turn.slice(start, end)
            except Refused as refusal:
                of_load[turn.server.name].refusal = str(refusal)
                laid.remove(turn)
    for turn in turns:
        turn.link.close()
    for turn in laid:
        turn.tell(of_load[turn.server.name])


def exchange(link: Link, pipeline: bytes, count: int) -> list[object]:
    link.socket.sendall(pipeline)
    return link.replies(count)


READ_TEN = packed([read(10)])


def cycle(link: Link, additions: bytes, count: int) -> list[object]:
    """Ten entries added, read and acknowledged: 10 XADD, 1 XREADGROUP, 1 XACK."""
    link.socket.sendall(additions + READ_TEN)
    replies = link.replies(count + 1)
    link.socket.sendall(packed([(b"XACK", STREAM, GROUP, *replies[:count])]))  # type: ignore[list-item]  # ids
    return replies + link.replies(1)


def comparable(replies: list[object]) -> list[object]:
    """Replies with every id a server made itself replaced by its number, in order of appearance.

    Idle times (the third of four in XPENDING's rows) are left out.
    """
    numbers: dict[bytes, int] = {}

    def plain(value: object) -> object:
        if isinstance(value, bytes) and AN_ID.fullmatch(value) and not value.startswith(GIVEN):
            return numbers.setdefault(value, len(numbers))
        if isinstance(value, list):
            if len(value) == 4 and isinstance(value[2], int) and isinstance(value[3], int):
                value = [value[0], value[1], None, value[3]]
            return [plain(part) for part in value]
        return value

    return [plain(reply) for reply in replies]


def measure(
    loads: list[Load], started: list[Server], rounds: int, scale: float
) -> dict[str, dict[str, dict[str, object]]]:
    """load -> server -> figures; a load that a server does not know has only the refusal."""
    found = {}
    for load in loads:
        of_load = {server.name: Figures() for server in started}
        for turn in range(rounds):
            run(load, started, scale, turn == 0, of_load)
        compare_replies(of_load)
        print(line(load, of_load), flush=True)
        found[load.name] = {name: kept(name, of_load) for name in of_load}
    return found


def compare_replies(of_load: dict[str, Figures]) -> None:
    """Note the first reply in which a server differs from the reference."""
    answered = {name: figures for name, figures in of_load.items() if not figures.refusal}
    reference = next((name for name in (servers.REDIS, servers.VALKEY, servers.PLAIN) if name in answered), "")
    for name, figures in answered.items():
        for got, want in zip(figures.replies, answered[reference].replies, strict=False):
            if got != want:
                figures.difference = f"{name} answers {str(got)[:300]}, {reference} {str(want)[:300]}"
                break
    for figures in of_load.values():
        figures.replies = []


def ratio_of(name: str, of_load: dict[str, Figures]) -> float:
    """A server's CPU time beside the better peer's: the median of the rounds, each of which has its own noise."""
    peers = [of_load[peer].cpu_us for peer in servers.PEERS if peer in of_load and not of_load[peer].refusal]
    rounds = zip(of_load[name].cpu_us, *peers, strict=True)
    return median([own / min(others) for own, *others in rounds if others] or [0.0])


def kept(name: str, of_load: dict[str, Figures]) -> dict[str, object]:
    figures = of_load[name]
    if figures.refusal:
        return {"refusal": figures.refusal}
    p50, p99, p999 = percentiles([trip_ms / 1000 for trip_ms in figures.trips_ms])
    return {
        "cpu_us": figures.best_us,
        "ratio": ratio_of(name, of_load),
        "rate": max(figures.rate),
        "p50_ms": p50,
        "p99_ms": p99,
        "p999_ms": p999,
        "difference": figures.difference,
    }


def line(load: Load, of_load: dict[str, Figures]) -> str:
    """One load's row: CPU a command, and our ratio to the better peer beside the floor."""
    text = f"{load.name:<22}"
    for figures in of_load.values():
        text += f" {'-' if figures.refusal else f'{figures.best_us:.2f}':>9}"
    for name, floor in ((servers.PLAIN, load.floor_plain), (servers.COMPILED, load.floor_compiled)):
        if name in of_load and not of_load[name].refusal:
            ratio = ratio_of(name, of_load)
            text += f"  {name} {ratio:5.2f} (floor {floor or '-'}){'  MISSED' if floor and ratio > floor else ''}"
    text += f"  goal {load.goal}" if load.goal else ""
    return text + "".join(f"\n    DIFFERS: {figures.difference}" for figures in of_load.values() if figures.difference)
