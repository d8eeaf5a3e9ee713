"""Checks an RDB file without keeping its data: its content, and what a start would leave out or refuse."""

from collections.abc import Callable
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.rdb import rdb_values
from penstock.storage.aof.disk import Disk
from penstock.storage.keyspace import type_name
from penstock.storage.rdb import rdb_reader
from penstock.storage.rdb.errors import BadRdb, shown
from penstock.storage.rdb.rdb_reader import RdbReader
from penstock.storage.rdb.source import FileSource
from penstock.storage.streams.listpack_nodes import StreamLimits

STEPS: Final = 1000  # between two tellings of how far it is
MOST_CORRECTED: Final = 20  # keys that are shown


class RdbFindings:
    """The contents of an RDB file.

    counts: keys by type. end: bytes up to which it was read, its checksum included. problem: what is wrong, in words.
    left_out: names of modules with data that a start leaves out. corrected: what it puts right in keys, the first ones.
    """

    __slots__ = (
        "corrected", "counts", "empty", "end", "expiring", "left_out", "libraries", "problem", "version", "written_by",
    )  # fmt: skip

    def __init__(self) -> None:
        self.version = 0
        self.written_by = ""
        self.counts: dict[str, int] = {}
        self.expiring = 0  # keys with a time of expiry
        self.empty = 0  # keys without a value
        self.libraries = 0
        self.left_out: list[str] = []
        self.corrected: list[str] = []
        self.end = 0
        self.problem = ""

    @property
    def keys(self) -> int:
        return sum(self.counts.values())


def look_through(disk: Disk, path: str, progress: Callable[[int], None]) -> RdbFindings:
    """Read everything as a start does, a key at a time. `progress` gets the bytes done."""
    found = RdbFindings()
    settings = Settings()
    reader = RdbReader(FileSource(disk, path), rdb_values.stream_defaults(settings, StreamLimits(0, 0)), verifies=True)
    try:
        reader.begin()
        found.version = reader.version
        _count(reader, found, progress)
    except BadRdb as problem:
        found.problem = str(problem)
    found.end = reader.source.position()
    found.left_out = sorted(set(reader.left_out))
    found.written_by = _written_by(reader)
    return found


def _count(reader: RdbReader, found: RdbFindings, progress: Callable[[int], None]) -> None:
    steps = 0
    met = rdb_reader.OTHER
    seen: dict[int, set[bytes]] = {}  # keys by database
    while met != rdb_reader.END:
        met = reader.step()
        if met == rdb_reader.KEY:
            if reader.corrections and len(found.corrected) < MOST_CORRECTED:
                found.corrected.append(reader.corrected())
            name = type_name(reader.value).decode()
            found.counts[name] = found.counts.get(name, 0) + 1
            found.expiring += reader.expires_ms != rdb_reader.NOT_GIVEN
            keys = seen.setdefault(reader.db_index, set())
            if reader.key in keys:
                raise BadRdb(f"it has the key {shown(reader.key)} twice in database {reader.db_index}")
            keys.add(reader.key)
        elif met == rdb_reader.EMPTY_KEY:
            found.empty += 1
        elif met == rdb_reader.LIBRARY:
            found.libraries += 1
        steps += 1
        if steps % STEPS == 0:
            progress(reader.source.position())


def _written_by(reader: RdbReader) -> str:
    for name, server in ((b"penstock-ver", "Penstock"), (b"valkey-ver", "Valkey"), (b"redis-ver", "Redis")):
        if name in reader.aux:
            return f"{server} {reader.aux[name].decode('utf-8', 'backslashreplace')}"
    return ""
