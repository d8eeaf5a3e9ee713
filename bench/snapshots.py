"""What RDB files cost: CPU seconds of SAVE, and of a start that loads the file less those of an empty start.

Each server saves and loads its own file of the same data: a stream of entries of one field and one of five, which come
by the hundred in a millisecond, or as many small keys.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.log import FIRST_MS, LONG_START_S, VALUE
from bench.servers import Candidate, Link, Request, cpu_ns, running

WITHOUT_LOG: Final = ("--appendonly", "no")
FILE: Final = "dump.rdb"

Rows = dict[str, dict[str, float]]  # server -> figures


def entry_ids(count: int) -> Iterator[bytes]:
    return (b"%d-%d" % (FIRST_MS + number // 100, number % 100) for number in range(count))


def entries_of_one_field(count: int) -> Iterator[Request]:
    return ((b"XADD", b"s", entry_id, b"field", VALUE) for entry_id in entry_ids(count))


def entries_of_five_fields(count: int) -> Iterator[Request]:
    for number, entry_id in enumerate(entry_ids(count)):
        flight, delay = b"%d" % (1000 + number % 4000), b"%d" % (number % 90 - 20)
        words = (b"carrier", b"UA", b"flight", flight, b"origin", b"EWR", b"dest", b"IAH", b"delay", delay)
        yield b"XADD", b"s", entry_id, *words


def small_keys(count: int) -> Iterator[Request]:
    return ((b"SET", b"key:%d" % number, b"value of %d" % number) for number in range(count))


DATA: Final[dict[str, Callable[[int], Iterator[Request]]]] = {
    "entries": entries_of_one_field,
    "entries of five fields": entries_of_five_fields,
    "small keys": small_keys,
}


def snapshots(candidates: Sequence[Candidate], count: int, rounds: int) -> Rows:
    """server -> what -> CPU seconds, the best of the rounds."""
    found: Rows = {candidate.name: {} for candidate in candidates}
    with tempfile.TemporaryDirectory(prefix="bench-snapshots-") as folder:
        for candidate in candidates:
            for what, requests in DATA.items():
                directory = Path(folder, candidate.name, what)
                directory.mkdir(parents=True)
                with running(candidate, *WITHOUT_LOG) as server, Link(server.port) as link:
                    link.prepare(requests(count))
                    assert link.ask(b"SAVE") == b"OK"
                    shutil.copy(server.directory / FILE, directory)
        empty_s: dict[str, float] = {}
        for _ in range(rounds):
            for candidate in candidates:
                with running(candidate, *WITHOUT_LOG) as server:
                    best(empty_s, candidate.name, cpu_ns(server.pid) / 1e9)
            for what in DATA:
                for candidate in candidates:
                    measure(candidate, Path(folder, candidate.name, what), what, found[candidate.name])
    for name, row in found.items():
        for what in DATA:
            row[loaded(what)] -= empty_s[name]
        print(f"{name:<10}", *(f"{what} {figure:.3f} s" for what, figure in row.items()), sep="  ", flush=True)
    return found


def measure(candidate: Candidate, directory: Path, what: str, row: dict[str, float]) -> None:
    with (
        running(candidate, *WITHOUT_LOG, directory=directory, start_s=LONG_START_S) as server,
        Link(server.port) as link,
    ):
        spent_ns = cpu_ns(server.pid)
        best(row, loaded(what), spent_ns / 1e9)
        assert link.ask(b"DBSIZE"), f"{candidate.name} has nothing of {what}"
        spent_ns = cpu_ns(server.pid)
        assert link.ask(b"SAVE") == b"OK"
        best(row, f"save: {what}", (cpu_ns(server.pid) - spent_ns) / 1e9)


def loaded(what: str) -> str:
    return f"load: {what}"


def best(row: dict[str, float], what: str, spent_s: float) -> None:
    row[what] = min(spent_s, row.get(what, spent_s))
