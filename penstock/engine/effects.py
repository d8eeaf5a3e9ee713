"""Effects: the changes of a request as lines for the log, collected while it runs and passed on as one unit.

A unit of several lines is wrapped in MULTI and EXEC. `SELECT n` precedes a line for another database than that of
the line before it in the file (Redis 8.6.3).
"""

from typing import Final, Protocol

from penstock.engine.aof.aof_compat import AofCompat
from penstock.protocol import private_lines, reply

MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
NO_DATABASE: Final = -1


class EffectLog(Protocol):
    """Where units go (storage/aof/append_log.py; a list in tests)."""

    def append(self, unit: bytes) -> None:
        """Take one unit: whole requests in RESP, to be replayed together or not at all."""


def pack(words: tuple[bytes, ...]) -> bytes:
    """A request as the bytes that ask for it."""
    return reply.bulks(list(words))


def newer(words: list[bytes], is_known: bool) -> bytes:
    """A request that what loads the log may not know: as such, or as a private line."""
    return reply.bulks(words) if is_known else private_lines.packed(words)


class BothLogs:
    """The server's own log, and the stream to its replicas."""

    __slots__ = ("_log", "_stream")

    def __init__(self, log: EffectLog, stream: EffectLog) -> None:
        self._log = log
        self._stream = stream

    def append(self, unit: bytes) -> None:
        self._log.append(unit)
        self._stream.append(unit)


class Effects:
    """The unit that is being collected, and the database that the log's reader is in.

    log: where units go. It is the server's own log (`use`), the stream to its replicas (`replicate`), or both.

    `line` is the first line that was collected and not handed over yet, empty where nothing was: most units have one
    only. `_further` are those behind it, with the numbers of their databases.
    """

    __slots__ = ("_database", "_further", "_line_db", "_own_log", "_stream", "compat", "is_one_unit", "line",
        "log", "units",
    )  # fmt: skip

    def __init__(self, log: EffectLog | None, compat: AofCompat) -> None:
        self._own_log = log
        self._stream: EffectLog | None = None
        self.log = log  # None: nothing is kept (no log and no replicas; while the log is replayed)
        self.compat = compat
        self.line = b""
        self._line_db = NO_DATABASE
        self._further: list[tuple[int, bytes]] = []
        self._database = NO_DATABASE
        self.units = 0  # handed over so far
        self.is_one_unit = False  # all that is collected until end_unit belongs together (EXEC)

    def use(self, log: EffectLog | None) -> None:
        """The server's own log from here on; None: it has none."""
        self._own_log = log
        self._choose()

    def replicate(self, stream: EffectLog | None) -> None:
        """The stream to replicas from here on; None: there are no replicas."""
        self._stream = stream
        self._choose()

    def mute(self) -> None:
        """Nothing is kept until `unmute`."""
        self.log = None

    def unmute(self) -> None:
        """As before `mute`."""
        self._choose()

    def _choose(self) -> None:
        own, stream = self._own_log, self._stream
        if own is not None and stream is not None:
            self.log = BothLogs(own, stream)
        else:
            self.log = own if stream is None else stream
        self._database = NO_DATABASE

    def add(self, db_index: int, words: tuple[bytes, ...]) -> None:
        if self.log is not None:
            self.add_packed(db_index, pack(words))

    def add_packed(self, db_index: int, line: bytes) -> None:
        """As `add`, of a request that is packed already."""
        if self.log is None:
            return
        if self.line:
            self._further.append((db_index, line))
        else:
            self.line, self._line_db = line, db_index

    def add_units(self, db_index: int, lines: list[bytes]) -> None:
        """Hand over packed requests, each a unit of its own; while one unit is collected, they are part of it."""
        if self.log is None:
            return
        if self.is_one_unit or self.line:
            for line in lines:
                self.add_packed(db_index, line)
            return
        self.units += len(lines)
        if db_index != self._database:
            self._database = db_index
            lines = [pack((b"SELECT", b"%d" % db_index)), *lines]
        self.log.append(b"".join(lines))

    def cut_unit(self) -> None:
        """Hand over what was collected of a transaction: what follows in it goes elsewhere."""
        is_one_unit = self.is_one_unit
        self.end_unit()
        self.is_one_unit = is_one_unit

    def start_of_file(self) -> None:
        """A new incremental file begins: its first line is preceded by SELECT."""
        self._database = NO_DATABASE

    def end_unit(self) -> None:
        """Hand over what was collected, if anything was."""
        self.is_one_unit = False
        line = self.line
        if not line:
            return
        self.line = b""
        log = self.log
        if not self._further and self._line_db == self._database and log is not None:
            self.units += 1
            log.append(line)
            return
        further = self._further
        if further:
            self._further = []
        if log is None:
            return
        self.units += 1
        parts = [MULTI] if further else []
        for db_index, packed in [(self._line_db, line), *further]:
            if db_index != self._database:
                self._database = db_index
                parts.append(pack((b"SELECT", b"%d" % db_index)))
            parts.append(packed)
        if further:
            parts.append(EXEC)
        log.append(b"".join(parts))
