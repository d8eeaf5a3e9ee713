"""A log's requests as the columns of the table `aof`.

Database, time and transaction come from other lines (SELECT, `#TS:`, MULTI and EXEC). At the start of a split they are
unknown (null) until the first such line; at the start of a file they are known.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import numpy
import pyarrow as pa

from penstock.pipeline.aof.log_columns import LogBlocks, LogColumns
from penstock.pipeline.aof.log_files import DamagedLog, bytes_of, opened
from penstock.pipeline.aof.log_splits import Split
from penstock.protocol.log_reader import STAMP, Bytes, LogBlock, Request, only_zeros

COLUMNS: Final = ("file", "file_seq", "offset", "ts", "db", "command", "key", "args", "in_multi", "split")
WHAT_HELPS: Final = "raise splitBytes, or set it to 0, which reads each file in one piece"

MULTI, EXEC = b"MULTI", b"EXEC"
CHANGERS: Final = frozenset((MULTI, EXEC, b"SELECT"))  # of database or transaction
NO_KEY: Final = -1
KEYLESS: Final = frozenset(
    b"SELECT MULTI EXEC FLUSHALL FLUSHDB SWAPDB PUBLISH SPUBLISH SCRIPT FUNCTION PING REPLCONF".split()
)
SECOND_WORD: Final = frozenset(b"XGROUP".split())  # its subcommand stands before the key
NUMBERED: Final = frozenset(b"EVAL EVALSHA FCALL".split())  # script, number of keys, keys

_SECOND: Final = 1_000_000  # in a timestamp's microseconds


class LogContext:
    """Database, time and transaction of the next line, from the lines before it; None if unknown."""

    __slots__ = ("db", "in_multi", "ts")

    def __init__(self, db: int | None = 0, ts: int | None = None, in_multi: bool | None = False) -> None:
        """That of a file's first line, where nothing else is given."""
        self.db = db
        self.ts = ts
        self.in_multi = in_multi

    def read(self, command: bytes, request: Request) -> None:
        """Update from MULTI, EXEC or SELECT, in upper case."""
        if command == MULTI:
            self.in_multi = True
        elif command == EXEC:
            self.in_multi = False
        elif len(request) > 1 and request[1].isdigit():  # SELECT
            self.db = int(request[1])


def time_of(text: bytes, at: int, otherwise: int | None) -> int | None:
    """The microseconds of the annotation at an offset of a block; `otherwise` if it is not a time."""
    line = text[at : text.find(b"\n", at)]
    seconds = line.removeprefix(STAMP).strip()
    return int(seconds) * _SECOND if line.startswith(STAMP) and seconds.isdigit() else otherwise


class Commands:
    """A cache: for each command name as written, its name in upper case and which word is the key."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, int]] = {}

    def of(self, name: bytes) -> tuple[str, int]:
        """Its name in upper case, and which word is the key."""
        found = self._known.get(name)
        if found is None:
            upper = name.upper()
            key_at = NO_KEY if upper in KEYLESS else 2 if upper in SECOND_WORD else 3 if upper in NUMBERED else 1
            found = self._known[name] = (upper.decode("utf-8", "backslashreplace"), key_at)
        return found


class Rows:
    """The columns of a batch while it is filled."""

    __slots__ = ("_commands", "_context", "commands", "db", "in_multi", "keys", "offsets", "requests", "ts")

    def __init__(self, context: LogContext, commands: Commands) -> None:
        self._context = context
        self._commands = commands
        self.requests: list[Request] = []
        self.offsets: list[int] = []
        self.commands: list[str] = []
        self.keys: list[bytes | None] = []
        self.db: list[int | None] = []
        self.ts: list[int | None] = []
        self.in_multi: list[bool | None] = []

    def add(self, block: LogBlock) -> None:
        """Append a block's requests; the time of each is that of the annotation before it."""
        context, of = self._context, self._commands.of
        for request, offset in zip(block.requests, block.offsets(), strict=True):
            if not request:
                context.ts = time_of(block.text, offset - block.offset, context.ts)
                continue
            command, key_at = of(request[0])
            name = request[0].upper()
            if name in CHANGERS:
                context.read(name, request)
            self.requests.append(request)
            self.offsets.append(offset)
            self.commands.append(command)
            self.keys.append(request[key_at] if 0 < key_at < len(request) else None)
            self.db.append(context.db)
            self.ts.append(context.ts)
            self.in_multi.append(True if name == EXEC else context.in_multi)

    def batch(self, split: Split, schema: pa.Schema) -> pa.RecordBatch:
        """The columns that the schema names, in its order and types."""
        count = len(self.requests)
        columns: dict[str, Any] = {}
        for field in schema:
            match field.name:
                case "file":
                    column = pa.repeat(pa.scalar(split.part.name, pa.string()), count)
                case "file_seq":
                    column = pa.repeat(pa.scalar(split.part.seq, pa.int64()), count)
                case "split":
                    column = pa.repeat(pa.scalar(split.number, pa.int64()), count)
                case "offset":
                    column = pa.array(self.offsets, pa.int64())
                case "ts":
                    column = pa.array(self.ts, pa.int64()).cast(pa.timestamp("us", "UTC"))
                case "db":
                    column = pa.array(self.db, pa.int64())
                case "command":
                    column = pa.array(self.commands, pa.string())
                case "key":
                    column = _words(self.keys, field.type)
                case "args":
                    column = self._args(field.type)
                case _:
                    column = pa.array(self.in_multi, pa.bool_())
            columns[field.name] = column if column.type == field.type else column.cast(field.type)
        return pa.RecordBatch.from_arrays([columns[field.name] for field in schema], schema=schema)

    def _args(self, wanted: pa.DataType) -> pa.Array:
        """The words behind the name, of each request."""
        ends = [0]
        end = 0
        for request in self.requests:
            end += len(request) - 1
            ends.append(end)
        words = list(chain.from_iterable([request[1:] for request in self.requests]))
        values = _words(words, wanted.value_type)
        array = pa.LargeListArray if pa.types.is_large_list(wanted) else pa.ListArray
        offsets = pa.array(ends, pa.int64() if pa.types.is_large_list(wanted) else pa.int32())
        return array.from_arrays(offsets, values, type=wanted)


def _words(words: list[Any], wanted: pa.DataType) -> pa.Array:
    """Words as a column; in a string column, bytes that are not UTF-8 become U+FFFD."""
    if not (pa.types.is_string(wanted) or pa.types.is_large_string(wanted)):
        return pa.array(words, wanted)
    try:
        return pa.array(words, pa.large_binary()).cast(wanted)
    except pa.ArrowInvalid:
        return pa.array([None if word is None else word.decode("utf-8", "replace") for word in words], wanted)


class ColumnRows:
    """The rows of requests that were found as columns."""

    __slots__ = ("_columns", "_context", "_kinds")

    def __init__(self, columns: LogColumns, context: LogContext, commands: Commands) -> None:
        """`context` becomes that behind the requests."""
        self._columns = columns
        self._context = context
        names, kinds = columns.names()
        self._kinds = [commands.of(name) for name in names], kinds

    def batch(self, split: Split, schema: pa.Schema) -> pa.RecordBatch:
        """The columns that the schema names, in its order and types."""
        columns, count = self._columns, len(self._columns)
        known, kinds = self._kinds
        contexts, of_row = self._contexts()
        made = []
        for field in schema:
            match field.name:
                case "file":
                    column = pa.repeat(pa.scalar(split.part.name, pa.string()), count)
                case "file_seq":
                    column = pa.repeat(pa.scalar(split.part.seq, pa.int64()), count)
                case "split":
                    column = pa.repeat(pa.scalar(split.number, pa.int64()), count)
                case "offset":
                    column = pa.array(columns.starts + columns.offset)
                case "ts":
                    times = pa.array([ts for _, ts, _ in contexts], pa.int64())
                    column = times.take(of_row).cast(pa.timestamp("us", "UTC"))
                case "db":
                    column = pa.array([db for db, _, _ in contexts], pa.int64()).take(of_row)
                case "command":
                    column = pa.array([command for command, _ in known], pa.string()).take(pa.array(kinds))
                case "key":
                    column = _text_column(columns.word(numpy.array([key_at for _, key_at in known])[kinds]), field.type)
                case "args":
                    column = self._args(field.type)
                case _:
                    column = pa.array([in_multi for _, _, in_multi in contexts], pa.bool_()).take(of_row)
            made.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(made, schema=schema)

    def _contexts(self) -> tuple[list[tuple[int | None, int | None, bool | None]], pa.Array]:
        """Database, time and transaction in stretches, and the stretch of each row."""
        columns, context = self._columns, self._context
        stretches = [(context.db, context.ts, context.in_multi)]
        begins = [0]
        for row, request, line in columns.changes(CHANGERS):
            begins.append(row)
            if not request:
                context.ts = time_of(line + b"\n", 0, context.ts)
            else:
                command = request[0].upper()
                if command == EXEC:
                    stretches.append((context.db, context.ts, True))  # EXEC ends what it is in
                    begins.append(row + 1)
                context.read(command, request)
            stretches.append((context.db, context.ts, context.in_multi))
        lengths = numpy.diff(numpy.array([*begins, len(columns)]))
        return stretches, pa.array(numpy.repeat(numpy.arange(len(stretches)), lengths))

    def _args(self, wanted: pa.DataType) -> pa.Array:
        offsets, words = self._columns.words_after_name()
        large = pa.types.is_large_list(wanted)
        array = pa.LargeListArray if large else pa.ListArray
        places = pa.array(offsets, pa.int64() if large else pa.int32())
        return array.from_arrays(places, _text_column(words, wanted.value_type), type=wanted)


def _text_column(words: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A binary array in the wanted type; in a string column, bytes that are not UTF-8 become U+FFFD."""
    try:
        return words.cast(wanted)
    except pa.ArrowInvalid:
        return _words(words.to_pylist(), wanted)


def batches(split: Split, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one split.

    DamagedLog if its bytes are not requests, or the next split does not begin where this one ends. An incomplete
    request at the end of the log's last file is ignored, as a loading server ignores it.
    """
    context, commands = LogContext(split.db, split.ts, split.in_multi), Commands()
    with opened(split.part.path) as file:
        read = bytes_of(file)
        blocks = LogBlocks(read, split.start, split.end)
        while (block := blocks.next_block()) is not None:
            if isinstance(block, LogColumns):
                yield ColumnRows(block, context, commands).batch(split, schema)
                continue
            rows = Rows(context, commands)
            rows.add(block)
            if rows.requests:
                yield rows.batch(split, schema)
        _check_end(blocks, split, read)


def _check_end(reader: LogBlocks, split: Split, read: Bytes) -> None:
    """DamagedLog, unless there is nothing behind a split's requests, or only what a crash leaves."""
    damage = reader.damage
    if reader.is_cut_off and not split.is_end:
        raise DamagedLog(_not_even(split))
    if damage is not None and not (split.is_end and only_zeros(read, damage.offset)):
        raise DamagedLog(f"{split.part.path}: {damage} (the split from byte {split.start})")


def _not_even(split: Split) -> str:
    if split.end == split.part.size:
        return f"{split.part.path} ends within a request, and is not the log's last file: it is damaged"
    return (
        f"{split.part.path}: byte {split.end} was taken for the beginning of a request and is within one "
        f"(a value that looks like a log?): {WHAT_HELPS}"
    )
