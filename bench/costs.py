"""What a request costs: the server's own CPU time and how long clients wait, the servers in turn, several rounds.

Pipelines over one connection; bench/singles.py has one request at a time. Other programs only add to CPU time, so the
cheapest round counts; the ratio of two servers is the median of the rounds' ratios. In the first round every reply is
kept and compared with Redis's (or Valkey's, or plain Penstock's, if Redis does not know the command).
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from bench.loads import FIRST_MS, GROUP, STREAM, Load, read
from bench.servers import OURS, PEERS, PLAIN, REDIS, VALKEY, Link, Refused, Server, cpu_ns, packed, percentiles

SLICES: Final = 10  # of a round
OWN_ID: Final = re.compile(rb"\d{13}-\d+")
GIVEN_ID_START: Final = b"17000"  # of the ids that the loads give; ids that servers make are of today
OWN_FACTS: Final = {b"radix-tree-nodes", b"nacked-count"}  # of XINFO: as many nodes as a server's tree has; since 8.8
OF_FEW: Final = ", few rights"
FEW_RIGHTS: Final = (b"few", b"on", b"nopass", b"+xadd", b"+xreadgroup", b"+xack", b"+xclaim", b"~" + STREAM + b"*")
READ_TEN: Final = packed([read(10)])


# -- pipelines --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rounds:
    """One server's rounds of one load: CPU time a request, requests a second, round trips of the batches."""

    cpu_us: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    trips_ms: list[float] = field(default_factory=list)
    replies: list[object] = field(default_factory=list)
    refusal: str = ""
    difference: str = ""


class Turn:
    """One round of a load on one server: prepared, then run in slices between those of the other servers."""

    def __init__(self, load: Load, server: Server, batches: list[tuple[bytes, int]], keep_replies: bool) -> None:
        self.server = server
        self.batches = batches
        self._load = load
        self._link = Link(server.port)
        self._cpu_ns = 0
        self._spent_s = 0.0
        self._answered = 0
        self._trips_ms: list[float] = []
        self._kept: list[object] | None = [] if keep_replies else None

    def prepare(self, requests: int) -> None:
        """Empty the server, and send what so many timed requests need. A user has a database of its own."""
        self._link.deliver([(b"SELECT", b"1" if self.server.user else b"0"), (b"FLUSHDB",)])
        self._link.prepare(self._load.prepare(requests))
        if self.server.user:
            self._link.deliver([(b"AUTH", self.server.user, b"")])

    def slice(self, start: int, end: int) -> None:
        was_ns, began_s = cpu_ns(self.server.pid), time.perf_counter()
        for pipeline, count in self.batches[start:end]:
            sent_s = time.perf_counter()
            replies = cycle(self._link, pipeline, count) if self._load.cycle else exchange(self._link, pipeline, count)
            self._trips_ms.append((time.perf_counter() - sent_s) * 1000)
            self._answered += len(replies)
            if self._kept is not None:
                self._kept += replies
            if isinstance(replies[0], Exception):
                raise Refused(str(replies[0]))
        self._cpu_ns += cpu_ns(self.server.pid) - was_ns
        self._spent_s += time.perf_counter() - began_s

    def close(self) -> None:
        self._link.close()

    def add_to(self, rounds: Rounds) -> None:
        rounds.cpu_us.append(self._cpu_ns / self._answered / 1000)
        rounds.rate.append(self._answered / self._spent_s)
        rounds.trips_ms += self._trips_ms
        if self._kept is not None:
            rounds.replies = comparable(self._kept, self._load.of_many_streams)


def exchange(link: Link, pipeline: bytes, count: int) -> list[object]:
    link.socket.sendall(pipeline)
    return link.replies(count)


def cycle(link: Link, additions: bytes, count: int) -> list[object]:
    """Ten entries added, read and acknowledged: 10 XADD and 1 XREADGROUP in one pipeline, then 1 XACK."""
    link.socket.sendall(additions + READ_TEN)
    replies = link.replies(count + 1)
    link.socket.sendall(packed([(b"XACK", STREAM, GROUP, *replies[:count])]))  # type: ignore[arg-type]  # ids
    return replies + link.replies(1)


def run_round(load: Load, started: list[Server], scale: float, keep_replies: bool, table: dict[str, Rounds]) -> None:
    """One round of a load: each server runs a slice in turn, so that all see the same noise.

    The order changes from slice to slice: with one order, the second of two equal builds took 1.2 times the first.
    """
    chance = random.Random(load.name)
    count = max(load.batch, round(load.requests * scale / load.batch) * load.batch)
    requests = list(load.timed(count))
    batches = [
        (packed(part), len(part)) for at in range(0, count, load.batch) if (part := requests[at : at + load.batch])
    ]
    turns = [
        Turn(load, server, batches[: max(1, len(batches) // server.slowness)], keep_replies)
        for server in started
        if not table[server.name].refusal
    ]
    ready = []
    for turn in turns:
        try:
            turn.prepare(count // turn.server.slowness)
            ready.append(turn)
        except Refused as refusal:
            table[turn.server.name].refusal = str(refusal)
    for number in range(SLICES):
        for turn in chance.sample(ready, len(ready)):
            start, end = (len(turn.batches) * step // SLICES for step in (number, number + 1))
            try:
                turn.slice(start, end)
            except Refused as refusal:
                table[turn.server.name].refusal = str(refusal)
                ready.remove(turn)
    for turn in turns:
        turn.close()
    for turn in ready:
        turn.add_to(table[turn.server.name])


def pipelined(
    loads: Sequence[Load], started: list[Server], rounds: int, scale: float, compared: Sequence[str]
) -> dict[str, dict[str, dict[str, object]]]:
    """load -> server -> figures; a server that does not know a load's commands has only their refusal.

    `compared` are builds: the ratio of each to the first is printed.
    """
    found = {}
    for load in loads:
        table = {server.name: Rounds() for server in started}
        for number in range(rounds):
            run_round(load, started, scale, number == 0, table)
        compare_replies(table)
        print(line(load, table, compared), flush=True)
        found[load.name] = {name: summary(name, table) for name in table}
    return found


def restricted(
    loads: Sequence[Load], started: list[Server], rounds: int, scale: float
) -> dict[str, dict[str, dict[str, object]]]:
    """load -> server -> figures, in `few` those of a user that may use these commands and the stream's key alone.

    `of_default` is the ratio to the default user's CPU time, the median of the rounds.
    """
    few = []
    for server in started:
        with Link(server.port) as link:
            link.deliver([(b"ACL", b"SETUSER", *FEW_RIGHTS)])
        few.append(replace(server, name=f"{server.name}{OF_FEW}", user=FEW_RIGHTS[0]))
    found: dict[str, dict[str, dict[str, object]]] = {}
    for load in loads:
        table = {server.name: Rounds() for server in (*started, *few)}
        for number in range(rounds):
            run_round(load, [*started, *few], scale, number == 0, table)
        compare_replies(table)
        found[load.name] = {name: summary(name, table) for name in table}
        text = f"{load.name:<22}"
        for server in started:
            row = found[load.name][f"{server.name}{OF_FEW}"]
            row["of_default"] = ratio(f"{server.name}{OF_FEW}", [server.name], table)
            text += f"  {server.name} {row['cpu_us']:.2f}, {row['of_default']:.2f} of the default user's"
        print(text, flush=True)
    return found


def comparable(replies: list[object], of_many_streams: bool = False) -> list[object]:
    """Replies with each id that a server made replaced by its number, in order of appearance.

    of_many_streams: two streams can have the same id, if it was the same millisecond: each is 0 then. Times are left
    out: idle ones (the third of four in XPENDING's rows), and unix ms (XINFO STREAM FULL). So are the values of what a
    server tells of itself, and what only newer versions tell (OWN_FACTS).
    """
    numbers: dict[bytes, int] = {}

    def plain(value: object) -> object:
        if isinstance(value, bytes) and OWN_ID.fullmatch(value) and not value.startswith(GIVEN_ID_START):
            return 0 if of_many_streams else numbers.setdefault(value, len(numbers))
        if isinstance(value, list):
            if len(value) == 4 and isinstance(value[2], int) and isinstance(value[3], int):
                value = [value[0], value[1], None, value[3]]
            facts = [at for at, part in enumerate(value) if isinstance(part, bytes) and part in OWN_FACTS]
            return [plain(part) for at, part in enumerate(value) if at not in facts and at - 1 not in facts]
        return None if isinstance(value, int) and value >= FIRST_MS else value

    return [plain(reply) for reply in replies]


def compare_replies(table: dict[str, Rounds]) -> None:
    """Note the first reply in which a server differs from the reference; drop the replies."""
    answered = {name: rounds for name, rounds in table.items() if not rounds.refusal}
    reference = next((name for name in (REDIS, VALKEY, PLAIN, *answered) if name in answered), "")
    for name, rounds in answered.items():
        for got, want in zip(rounds.replies, answered[reference].replies, strict=False):
            if got != want:
                rounds.difference = f"{name} answers {str(got)[:300]}, {reference} {str(want)[:300]}"
                break
    for rounds in table.values():
        rounds.replies = []


def ratio(name: str, others: Sequence[str], table: dict[str, Rounds]) -> float:
    """A server's CPU time beside the cheapest of the others: the median of the rounds, or 0 if none of them ran."""
    peers = [table[other].cpu_us for other in others if other in table and not table[other].refusal]
    if not peers or table[name].refusal:
        return 0.0
    return float(median(own / min(of_round) for own, *of_round in zip(table[name].cpu_us, *peers, strict=True)))


def summary(name: str, table: dict[str, Rounds]) -> dict[str, object]:
    rounds = table[name]
    if rounds.refusal:
        return {"refusal": rounds.refusal}
    p50, p99, p999 = percentiles([trip / 1000 for trip in rounds.trips_ms])
    figures: dict[str, object] = {"cpu_us": min(rounds.cpu_us), "rate": max(rounds.rate)}
    figures |= {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}
    if name in OURS:
        figures["ratio"] = ratio(name, PEERS, table)
    if rounds.difference:
        figures["difference"] = rounds.difference
    return figures


def line(load: Load, table: dict[str, Rounds], compared: Sequence[str]) -> str:
    """One load's row: CPU a request of each server, then ratios: to the better peer, between builds."""
    text = f"{load.name:<22}"
    for rounds in table.values():
        text += f" {'-' if rounds.refusal else f'{min(rounds.cpu_us):.2f}':>9}"
    for name in OURS:
        floor = load.floor(name)
        if name in table and (of_peer := ratio(name, PEERS, table)):
            missed = "  MISSED" if floor and of_peer > floor else ""
            text += f"  {name} {of_peer:5.2f} (floor {floor or '-'}){missed}"
    text += f"  goal {load.goal}" if load.goal else ""
    for name in compared[1:]:
        if name in table and (of_first := ratio(name, compared[:1], table)):
            text += f"  {name} : {compared[0]} {of_first:.2f}"
    return text + "".join(f"\n    DIFFERS: {rounds.difference}" for rounds in table.values() if rounds.difference)


# -- rounds in which Spark takes part: each server in turn, until the JVM has compiled its own code --------------------

SparkRow = dict[str, float]  # "rate": a second; "server_us", "jvm_us", "jit_us", "workers_us": CPU of one

QUIET: Final = 0.05  # share of the compilers in the JVM's CPU time, below which a round counts
MOST_DROPPED: Final = 3  # rounds, for each one that is to count; then a round counts as it is


def in_turns(runs: Mapping[str, Callable[[], SparkRow]], rounds: int) -> dict[str, SparkRow]:
    """The medians of so many rounds, in which each server has its turn, and the lowest and highest rate.

    Rounds in which the JVM still compiled its own code come before them and are not counted; `dropped` says how many.
    """
    kept: dict[str, list[SparkRow]] = {name: [] for name in runs}
    dropped, most = 0, rounds * MOST_DROPPED
    names = list(runs)
    for _ in range(rounds + most):
        found = {name: runs[name]() for name in names}
        names.reverse()  # none of them is always the first
        is_loud = any(row["jit_us"] > QUIET * (row["jvm_us"] + row["jit_us"]) for row in found.values())
        if is_loud and dropped < most and not any(kept.values()):
            dropped += 1
            continue
        for name, row in found.items():
            kept[name].append(row)
        if all(len(rows) == rounds for rows in kept.values()):
            break
    return {name: medians_of(rows) | {"dropped": dropped} for name, rows in kept.items()}


def medians_of(rows: list[SparkRow]) -> SparkRow:
    rates = [row["rate"] for row in rows]
    medians = {figure: median(row[figure] for row in rows) for figure in rows[0]}
    return medians | {"lowest": min(rates), "highest": max(rates)}
