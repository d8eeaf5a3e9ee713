"""Resident memory of an entry and of a pending entry, each in a fresh process.

The best pattern: read by the thousand by one consumer. The worst: one entry a millisecond, read one by one by eight
consumers in turn, half of them acknowledged out of order and the rest claimed one by one.
"""

import random
from collections.abc import Callable, Iterator
from typing import Final

from bench.accounting import resident_bytes
from bench.compare import lay
from bench.link import Link, Request
from bench.loads import FIRST_MS, GROUP, STREAM, VALUE, entries, read
from bench.servers import Pythons, running

FLAGS: Final = ("--appendonly", "no")
SEED: Final = 6


def sparse_entries(count: int) -> Iterator[Request]:
    """One a millisecond."""
    for number in range(count):
        yield b"XADD", STREAM, sparse_id(number), b"field", VALUE
    yield b"XGROUP", b"CREATE", STREAM, GROUP, b"0"


def sparse_id(number: int) -> bytes:
    return b"%d-0" % (FIRST_MS + number)


def by_the_thousand(count: int) -> Iterator[Request]:
    for _ in range(count // 1000):
        yield read(1000)


def one_by_one(count: int) -> Iterator[Request]:
    """Half of the entries stay pending."""
    for number in range(count):
        yield read(1, b"consumer%d" % (number % 8))
    order = list(range(count))
    random.Random(SEED).shuffle(order)
    for number in order[: count // 2]:
        yield b"XACK", STREAM, GROUP, sparse_id(number)
    for number in order[count // 2 :]:
        yield b"XCLAIM", STREAM, GROUP, b"claimer%d" % (number % 8), b"0", sparse_id(number), b"JUSTID"


PATTERNS: Final[dict[str, tuple[Callable[[int], Iterator[Request]], Callable[[int], Iterator[Request]], float]]] = {
    "best": (entries, by_the_thousand, 1.0),
    "worst": (sparse_entries, one_by_one, 0.5),
}


def measure(names: list[str], count: int, pythons: Pythons) -> dict[str, dict[str, float]]:
    """server -> figure -> bytes."""
    found: dict[str, dict[str, float]] = {}
    for name in names:
        figures = found[name] = {}
        for pattern, (addition, delivery, pending) in PATTERNS.items():
            with running(name, *FLAGS, pythons=pythons) as server, Link(server.port) as link:
                empty = resident_bytes(server.pid)
                lay(link, addition(count))
                full = resident_bytes(server.pid)
                lay(link, delivery(count))
                figures[f"entry, {pattern}"] = (full - empty) / count
                figures[f"pending, {pattern}"] = (resident_bytes(server.pid) - full) / (count * pending)
        print(f"{name:<10}", *(f"{what} {figure:.0f}" for what, figure in figures.items()), sep="  ", flush=True)
    return found
