"""The table `aof` as a stream: what a server writes into its log, as it writes it (change capture).

An offset is a file and a byte, and has the splits of the batch that ends there, so a batch that is run again has the
same rows. The driver reads what is new once, to find where requests begin; so a split is never wrong, and has its
database, time and transaction from its first row on. A batch ends between transactions.

    {"v": 1, "file": "appendonly.aof.2.incr.aof", "increment": 2, "byte": 61, "db": 0, "ts": null, "multi": false,
     "splits": [["data/appendonlydir/appendonly.aof.2.incr.aof", 2, 0, 61, 0, null, false]]}

A rewrite replaces the files that it began with by a new base, which holds nothing new, and the query goes on with the
next increment. A file that was not read to its end before the server removed it is a loss (`failOnDataLoss`). The
driver holds the file that it stands in open, so that it can ask a removed one how far it went. It does not read more
through that handle: a batch is read by other processes, perhaps elsewhere, and again after a restart.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.pipeline.aof import log_files, log_splits
from penstock.pipeline.aof.log_columns import LogBlocks, LogColumns
from penstock.pipeline.aof.log_files import DamagedLog, LogPart, bytes_of, opened
from penstock.pipeline.aof.log_rows import CHANGERS, MULTI, LogContext, time_of
from penstock.pipeline.aof.log_splits import Split
from penstock.pipeline.aof.log_table import LogPartition, LogTask, check_schema
from penstock.pipeline.connector.connection.client import now_s, pause_s
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.schemas import TABLES
from penstock.pipeline.errors import OptionError, PipelineError, report_loss
from penstock.protocol.log_reader import LogBlock, Request, only_zeros

VERSION: Final = 1
EARLIEST, LATEST = "earliest", "latest"
MOST_BYTES: Final = 64 * 1024 * 1024  # the driver looks through them, at 200 MB a second and more
LOOK_EVERY_S: Final = 0.05  # at a file that does not grow
BLOCK_BYTES: Final = 128 * 1024  # read at once to find where a batch ends


@dataclass(frozen=True, slots=True)
class StreamOptions:
    path: str
    split_bytes: int
    max_bytes: int
    start: str
    poll_ms: int
    fail_on_loss: bool


def create_reader(options: Mapping[str, str], schema: StructType) -> "LogStreamReader":
    """The reader of a streaming query; OptionError for options or columns that the table does not have."""
    reader = OptionReader(options, "streaming log table")
    reader.choice("table", "aof", TABLES)
    path = reader.text("path")
    found = StreamOptions(
        path=(path or "").removeprefix("file://"),
        split_bytes=reader.integer("splitBytes", log_splits.SPLIT_BYTES // 8, 1),
        max_bytes=reader.integer("maxBytesPerTrigger", MOST_BYTES, 1),
        start=reader.choice("startingOffset", LATEST, (EARLIEST, LATEST)),
        poll_ms=reader.duration_ms("pollTimeout", "500ms"),
        fail_on_loss=reader.flag("failOnDataLoss", True),
    )
    reader.end()
    if path is None:
        raise OptionError("the table 'aof' needs the path of a log: its directory, its manifest, or one file")
    check_schema(schema)
    return LogStreamReader(found, schema)


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two requests, and what is known there of the next one."""

    file: str
    increment: int
    byte: int
    db: int | None = 0
    ts: int | None = None
    in_multi: bool | None = False

    def json(self, splits: list[Split]) -> dict[str, Any]:
        rows = [[one.part.path, one.part.seq, one.start, one.end, one.db, one.ts, one.in_multi] for one in splits]
        return {
            "v": VERSION,
            "file": self.file,
            "increment": self.increment,
            "byte": self.byte,
            "db": self.db,
            "ts": self.ts,
            "multi": self.in_multi,
            "splits": rows,
        }


def position_of(offset: dict[str, Any]) -> Position:
    """PipelineError for an offset that another table, or a later version, wrote."""
    if offset.get("v") != VERSION or "byte" not in offset:
        raise PipelineError("the checkpoint was not written by this version of the streaming table 'aof'")
    return Position(offset["file"], offset["increment"], offset["byte"], offset["db"], offset["ts"], offset["multi"])


class LogStreamReader(LogTask, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The driver's reader. Executors get a copy of it, to which `_held` means nothing."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        super().__init__(schema)
        self.options = options
        self._until: LogPart | None = None  # Trigger.AvailableNow: the last file, as it was at the start
        self._held: tuple[str, int, int] | None = None  # a file's name, increment and descriptor

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The log's beginning, or the end of what is there now: that is found by reading the last file."""
        parts = self._parts()
        if not parts:
            raise PipelineError(f"{self.options.path} has no file that can be read yet")
        if self.options.start == EARLIEST:
            return _beginning(parts[0]).json([])
        found = self._walk(parts[-1:], _beginning(parts[-1]), most=parts[-1].size + 1)
        return found[0].json([])

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._until = self._parts()[-1]

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()  # bytes, not rows, are limited

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The end of the next batch, or `start` if nothing was written for `pollTimeout`."""
        place = position_of(start)
        due_s = now_s() + self.options.poll_ms / 1000
        while True:
            parts = self._parts_from(place)
            end, splits = self._walk(parts, self._resumed(place, parts), self.options.max_bytes)
            self._hold(end, parts)
            if splits or (end.file, end.increment) != (place.file, place.increment):
                return end.json(splits)
            if self._until is not None or now_s() >= due_s:
                return start
            pause_s(LOOK_EVERY_S)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch, from its offset alone."""
        found: list[InputPartition] = []
        for number, (path, seq, first, last, db, ts, in_multi) in enumerate(end["splits"]):
            part = LogPart(path, seq, last, is_last=False)
            found.append(LogPartition(Split(part, number, first, last, db, ts, in_multi)))
        return found

    def commit(self, end: dict[str, Any]) -> None:
        """There is nothing to commit."""

    def stop(self) -> None:
        """Close what is held open."""
        if self._held is not None:
            os.close(self._held[2])
            self._held = None

    # -- files --------------------------------------------------------------------------------------------------------

    def _parts(self) -> list[LogPart]:
        """The log's files now; with Trigger.AvailableNow as far as it went at the start."""
        parts, _ = log_files.parts_of(self.options.path)  # a base in RDB form is left out: it holds no commands
        until = self._until
        if until is None:
            return parts
        for at, part in enumerate(parts):
            if (part.name, part.increment) == (until.name, until.increment):
                return [*parts[:at], replace(part, size=until.size, is_last=True)]
        return parts

    def _parts_from(self, place: Position) -> list[LogPart]:
        """The files from a position on; DataLoss, or a warning, if what follows it is gone."""
        parts = self._parts()
        for at, part in enumerate(parts):
            if (part.name, part.increment) == (place.file, place.increment):
                if part.size >= place.byte:
                    return parts[at:]
                report_loss(
                    f"{part.path} has {part.size} bytes, and {place.byte} were read: it was cut or replaced",
                    self.options.fail_on_loss,
                )
                return [part] if part.is_last else parts[at + 1 :]
        if not parts:
            return []
        later = [part for part in parts if place.increment and part.increment > place.increment]
        if not later or later[0].increment != place.increment + 1:
            report_loss(
                f"{place.file} was removed by a rewrite before its end was read, or what followed it",
                self.options.fail_on_loss,
            )
            return later or parts
        old = f"{parts[0].path.rpartition('/')[0]}/{place.file}"
        rest = log_files.size_of(old)
        if rest is not None and rest >= place.byte:
            return [LogPart(old, later[0].seq - 1, rest, False, place.increment), *later]
        end = self._end_of_removed(place)
        if end is None:
            report_loss(f"{place.file} was removed by a rewrite before its end was seen", self.options.fail_on_loss)
        elif end > place.byte:
            report_loss(
                f"{place.file} was removed by a rewrite before its last {end - place.byte} bytes were read",
                self.options.fail_on_loss,
            )
        return later

    def _hold(self, place: Position, parts: list[LogPart]) -> None:
        """Hold the increment of a position open, if it is a file of this machine."""
        if self._held is not None and self._held[:2] == (place.file, place.increment):
            return
        self.stop()
        for part in parts:
            if place.increment and (part.name, part.increment) == (place.file, place.increment):
                with contextlib.suppress(OSError):  # a URL, or gone
                    self._held = (place.file, place.increment, os.open(part.path, os.O_RDONLY))

    def _end_of_removed(self, place: Position) -> int | None:
        """How many bytes the file of a position had when it was removed; None where it was not held open."""
        if self._held is None or self._held[:2] != (place.file, place.increment):
            return None
        return os.fstat(self._held[2]).st_size

    def _resumed(self, place: Position, parts: list[LogPart]) -> Position:
        """The position, or the beginning of the first file where that is another one."""
        if not parts:
            return place
        first = parts[0]
        same = (first.name, first.increment) == (place.file, place.increment) and first.size >= place.byte
        return place if same else _beginning(first)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _walk(self, parts: list[LogPart], place: Position, most: int) -> tuple[Position, list[Split]]:
        """The last position between transactions within `most` bytes, and the splits up to it.

        A transaction that is longer than that is read to its end, if the end is there.
        """
        splits: list[Split] = []
        read = 0
        for part in parts:
            if (part.name, part.increment) != (place.file, place.increment):
                place = _beginning(part)
            end = self._walk_file(part, place, most - read, splits)
            read += end.byte - place.byte
            place = end
            if end.byte < part.size or read >= most:
                break
        return place, splits

    def _walk_file(self, part: LogPart, place: Position, most: int, splits: list[Split]) -> Position:
        """How far one file can be read; appends its splits."""
        if most <= 0 or place.byte >= part.size:
            return place
        with opened(part.path) as file:
            read = bytes_of(file)
            # A batch and its splits end between blocks, so these are small.
            reader = LogBlocks(read, place.byte, part.size, BLOCK_BYTES)
            begin = safe = place
            context = LogContext(place.db, place.ts, place.in_multi)
            while (block := reader.next_block()) is not None:
                safe = _last_outside(block, context, safe)
                if safe.byte - begin.byte >= self.options.split_bytes:
                    splits.append(_split(part, len(splits), begin, safe))
                    begin = safe
                if safe.byte - place.byte >= most:
                    break
            else:
                self._check_end(part, reader, bool(context.in_multi), only_zeros(read, reader.offset))
        if safe.byte > begin.byte:
            splits.append(_split(part, len(splits), begin, safe))
        return safe

    def _check_end(self, part: LogPart, reader: LogBlocks, in_multi: bool, zeros_follow: bool) -> None:
        """DamagedLog, unless the file's end is only not there yet."""
        if reader.damage is not None and not (part.is_last and zeros_follow):
            raise DamagedLog(f"{part.path}: {reader.damage}")
        if (reader.is_cut_off or in_multi) and not part.is_last:
            within = "a request" if reader.is_cut_off else "a transaction"
            raise DamagedLog(f"{part.path} ends within {within}, and is not the log's last file: it is damaged")


def _beginning(part: LogPart) -> Position:
    return Position(part.name, part.increment, 0)


def _split(part: LogPart, number: int, begin: Position, end: Position) -> Split:
    return Split(part, number, begin.byte, end.byte, begin.db, begin.ts, begin.in_multi)


def _last_outside(block: LogColumns | LogBlock, context: LogContext, before: Position) -> Position:
    """The last position in a block that is outside of any transaction; `before` if there is none.

    `context` is that of the block's beginning, and becomes that of its end.
    """
    begun = None  # the position of the MULTI that is open
    for offset, request, line in _changes_of(block):
        if not request:
            context.ts = time_of(line + b"\n", 0, context.ts)
            continue
        name = request[0].upper()
        if name == MULTI:
            begun = replace(before, byte=offset, db=context.db, ts=context.ts, in_multi=False)
        context.read(name, request)
    if not context.in_multi:
        return replace(before, byte=block.offset + block.taken, db=context.db, ts=context.ts, in_multi=False)
    return begun or before


def _changes_of(block: LogColumns | LogBlock) -> Iterator[tuple[int, Request, bytes]]:
    """Where a block changes database, transaction or time: the offset, and the request or the annotation's line."""
    if isinstance(block, LogColumns):
        for row, request, line in block.changes(CHANGERS):
            yield block.offset + (int(block.starts[row]) if request else 0), request, line
        return
    places = [at for at, request in enumerate(block.requests) if not request or request[0].upper() in CHANGERS]
    offsets = block.offsets() if places else []
    for at in places:
        first = offsets[at] - block.offset
        request = block.requests[at]
        yield offsets[at], request, b"" if request else block.text[first : block.text.find(b"\n", first)]
