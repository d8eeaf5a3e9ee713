"""CPU of commands by how many keys, streams, groups, consumers, clients or members there are: flat, nowhere linear.

Each kind of thing grows tenfold from step to step in a server of its own. At each size a command is sent COMMANDS
times, in pipelines of BATCH in two passes; of the batches the cheaper half counts (scale.cost_us). A command that is
marked ONCE is sent alone, once, when nothing was asked before: what is made for it is counted. LINEAR ones grow in
Redis, too: they are sent FEW times.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench.scale import PASSES, cost_us, too_much
from bench.servers import (
    WITHOUT_LOG,
    Candidate,
    Link,
    Refused,
    Request,
    allow_open_files,
    cpu_ns,
    resident_bytes,
    running,
)  # fmt: skip

COMMANDS: Final = 400
FEW: Final = 40
ONCE: Final = "once: "
LINEAR: Final = "linear: "
WORDS_AT_ONCE: Final = 1000
CLIENTS: Final = "clients"
MOST_OPEN: Final = ("--maxclients", "15000")

Costs = dict[str, dict[str, dict[int, float]]]  # server -> thing, command -> microseconds by size


@dataclass(frozen=True, slots=True)
class Thing:
    """What there are many of.

    fill: the request that makes the thing {n}, or a command that takes `each` behind its key for many things at a
    time. before: requests that are sent first. commands: each a line; {n} counts requests, {size} is how many things
    there are, {middle} half of that, {last} one less. A line with several requests, separated by `;`, is one command.
    """

    largest: int
    fill: str
    commands: tuple[str, ...]
    each: str = ""
    before: tuple[str, ...] = ()


GROWN: Final[dict[str, Thing]] = {
    "keys": Thing(1_000_000, "SET key:{n} v", (
        "once: SCAN 0", "once: RANDOMKEY", "SET new:{n} v; DEL new:{n}", "GET key:{middle}", "RANDOMKEY", "DBSIZE",
        "SCAN 0 COUNT 10", "SCAN 0 TYPE stream", "INFO", "RENAME key:{n} other; RENAME other key:{n}",
    )),
    "expiring keys": Thing(1_000_000, "SET key:{n} v EX 1{n}", (
        "once: INFO", "SET new:{n} v EX 500; DEL new:{n}", "GET key:{middle}", "EXPIRE key:{n} 7{n}",
        "PERSIST key:{n}; EXPIRE key:{n} 9{n}", "INFO", "RANDOMKEY",
    )),
    "streams": Thing(100_000, "XADD stream:{n} 1-1 f v", (
        "once: SCAN 0 TYPE stream", "XADD stream:{middle} * f v", "XREAD COUNT 1 STREAMS stream:{middle} 0-0", "DBSIZE",
        "INFO", "XADD new:{n} * f v; DEL new:{n}",
    )),
    "groups": Thing(100_000, "XGROUP CREATE s g:{n} 0", (
        "XADD s * f v", "XREADGROUP GROUP g:{middle} c COUNT 1 STREAMS s >", "XACK s g:{middle} 1-1",
        "XGROUP CREATE s new:{n} $; XGROUP DESTROY s new:{n}", "XPENDING s g:{middle}", "XINFO STREAM s",
        "XTRIM s MAXLEN 100",
    ), before=("XADD s 1-1 f v", "XADD s 1-2 f v")),
    "consumers": Thing(100_000, "XREADGROUP GROUP g c:{n} COUNT 1 STREAMS s >", (
        "XADD s * f v; XREADGROUP GROUP g c:{middle} COUNT 1 STREAMS s >", "XPENDING s g - + 10 c:{middle}",
        "XREADGROUP GROUP g c:{middle} COUNT 1 STREAMS s 0",
        "XGROUP CREATECONSUMER s g n:{n}; XGROUP DELCONSUMER s g n:{n}",
        "XAUTOCLAIM s g c:{middle} 0 0 COUNT 1 JUSTID", "linear: XPENDING s g",
    ), before=("XGROUP CREATE s g 0 MKSTREAM",), each="XADD s * f v"),
    CLIENTS: Thing(10_000, "", (
        "PING", "SET key v", "INFO", "PUBLISH channel text", "XADD s * f v", "linear: CLIENT LIST",
    )),
    "members of a set": Thing(1_000_000, "SADD k", (
        "once: SRANDMEMBER k", "SADD k new:{n}; SREM k new:{n}", "SISMEMBER k m:{middle}", "SCARD k", "SRANDMEMBER k",
        "SPOP k; SADD k new:{n}", "SSCAN k 0", "SMISMEMBER k a b m:0",
    ), each="m:{n}"),
    "members of a sorted set": Thing(1_000_000, "ZADD k", (
        "once: ZSCAN k 0", "ZADD k {middle}.5 new:{n}; ZREM k new:{n}", "ZINCRBY k 1 m:{middle}", "ZSCORE k m:{middle}",
        "ZRANK k m:{middle}", "ZRANGE k {middle} {middle}", "ZRANGEBYSCORE k {middle} +inf LIMIT 0 10",
        "ZPOPMIN k; ZADD k 0 m:0", "ZCOUNT k 1 {middle}", "ZRANDMEMBER k",
    ), each="{n} m:{n}"),
    "fields of a hash": Thing(1_000_000, "HSET k", (
        "once: HRANDFIELD k", "HSET k new:{n} v; HDEL k new:{n}", "HGET k m:{middle}", "HSET k m:{middle} w", "HLEN k",
        "HRANDFIELD k", "HSCAN k 0 COUNT 10",
    ), each="m:{n} v"),
    "items of a list": Thing(1_000_000, "RPUSH k", (
        "LINDEX k {middle}", "LPUSH k x; LPOP k", "RPUSH k x; RPOP k", "LSET k {middle} m:{middle}",
        "LRANGE k {middle} {middle}",
        "LINSERT k BEFORE m:0 x; LREM k 1 x", "LINDEX k {last}", "LPOS k m:0",
        "linear: LPOS k nothing", "LRANGE k -10 -1", "RPOPLPUSH k k; LMOVE k k LEFT RIGHT",
    ), each="m:{n}"),
}  # fmt: skip


def sizes(candidates: Sequence[Candidate], largest: int) -> Costs:
    """server -> "thing: command" -> microseconds by size."""
    allow_open_files()
    costs: Costs = {}
    for candidate in candidates:
        found = costs[candidate.name] = {}
        for name, thing in GROWN.items():
            for command, of_sizes in costs_of(candidate, name, thing, min(largest, thing.largest)).items():
                found[f"{name}: {command}"] = of_sizes
                figures = (f"{size:,} {cost:.1f}" for size, cost in of_sizes.items())
                print(f"{candidate.name:<10}{name}: {command}", *figures, sep="  ", flush=True)
    return costs


def costs_of(candidate: Candidate, name: str, thing: Thing, largest: int) -> dict[str, dict[int, float]]:
    """command -> microseconds by size, up to the last that memory and time allow."""
    found: dict[str, dict[int, float]] = {command: {} for command in thing.commands}
    with ExitStack() as stack:
        server = stack.enter_context(running(candidate, *WITHOUT_LOG, *MOST_OPEN))
        link = stack.enter_context(Link(server.port))
        link.prepare(map(words, thing.before))
        size, made = 1, 0
        while size <= largest:
            began_s = time.perf_counter()
            if name == CLIENTS:
                for _ in range(made, size):
                    stack.enter_context(Link(server.port)).ask(b"PING")
            else:
                link.prepare(requests_for(thing, made, size))
            made = size
            for command, of_sizes in found.items():
                try:
                    of_sizes[size] = cost_of(link, server.pid, command, size)
                except Refused:
                    continue
            if too_much(time.perf_counter() - began_s, resident_bytes(server.pid)):
                break
            size *= 10
    return {command: of_sizes for command, of_sizes in found.items() if of_sizes}


def requests_for(thing: Thing, first: int, stop: int) -> Iterator[Request]:
    """What makes the things from one number up to another."""
    many = " " not in thing.fill.partition(" ")[2]  # a command and its key
    if not many or not thing.each:
        for number in range(first, stop):
            yield from requests_of(f"{thing.each};{thing.fill}" if thing.each else thing.fill, number, stop)
        return
    for start in range(first, stop, WORDS_AT_ONCE):
        numbers = range(start, min(start + WORDS_AT_ONCE, stop))
        yield words(" ".join([thing.fill, *(thing.each.format(n=number) for number in numbers)]))


def cost_of(link: Link, pid: int, command: str, size: int) -> float:
    """CPU of one command in microseconds. Refused if the server refuses it."""
    if command.startswith(ONCE):
        (request,) = requests_of(command.removeprefix(ONCE), 0, size)
        was_ns = cpu_ns(pid)
        link.deliver([request])
        return (cpu_ns(pid) - was_ns) / 1000
    count = FEW if command.startswith(LINEAR) else COMMANDS
    line = command.removeprefix(LINEAR)
    parts = line.count(";") + 1
    passes = [
        [request for number in range(start, start + count) for request in requests_of(line, number % size, size)]
        for start in range(0, count * PASSES, count)
    ]
    return min(cost_us(link, pid, of_pass) for of_pass in passes) * parts


def requests_of(line: str, number: int, size: int) -> Iterable[Request]:
    filled = line.format(n=number, size=size, middle=size // 2, last=size - 1)
    return [words(part) for part in filled.split(";")]


def words(line: str) -> Request:
    return tuple(line.encode().split())
