"""The server's log of messages: lines in Redis's form, on the console or in a file.

4711:M 21 Nov 2026 09:00:00.123 * Ready to accept connections tcp
"""

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.server.line_writer import LineWriter

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

LEVELS: Final = ("debug", "verbose", "notice", "warning", "nothing")
VERBOSE: Final = 1
WARNING: Final = 3
LIBRARIES: Final = logging.getLogger()  # asyncio's errors come here, aiohttp's, and those of metrics over HTTP
MARKS: Final = (".", "-", "*", "#")  # by level


class ServerLog:
    """Writes messages; those below `loglevel` are dropped.

    Without a logfile they go to standard output. The server never waits for a reader (line_writer.py).

    is_verbose: whether `verbose` writes: to be asked first where a message's words take long to make.
    """

    __slots__ = ("_clock", "_errors", "_level", "_output", "_settings", "is_verbose")

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._output = LineWriter(self._missing)
        self._errors = LineWriter(self._missing)
        self._read_level()
        settings.watch("loglevel", self._read_level)

    def _read_level(self) -> None:
        self._level = LEVELS.index(self._settings.text("loglevel"))
        self.is_verbose = self._level <= VERBOSE

    def begin(self) -> None:
        """UsageError where the logfile cannot be written."""
        path = self._settings.text("logfile")
        if path:
            write_file(path, "logfile", "", "a")

    def debug(self, sentence: str) -> None:
        self._write(0, sentence)

    def verbose(self, sentence: str) -> None:
        self._write(VERBOSE, sentence)

    def notice(self, sentence: str) -> None:
        self._write(2, sentence)

    def warning(self, sentence: str) -> None:
        self._write(WARNING, sentence)

    def fatal(self, text: str) -> None:
        """Why the server ends, in lines: said whatever the level is; on stderr, and in the logfile."""
        lines = "".join([self._line(WARNING, line) for line in text.splitlines()])
        path = self._settings.text("logfile")
        if path:
            self._output.append(path, lines)
        self._errors.say(sys.stderr, lines)

    def _write(self, level: int, sentence: str) -> None:
        if level < self._level:
            return
        line = self._line(level, sentence)
        path = self._settings.text("logfile")
        if path:
            self._output.append(path, line)
        else:
            self._output.say(sys.stdout, line)

    def _missing(self, lines: int) -> str:
        return self._line(WARNING, f"{lines} lines are missing here: there was no room, or they were not read")

    def _line(self, level: int, sentence: str) -> str:
        now = datetime.fromtimestamp(self._clock.now_us() / 1_000_000)
        stamp = f"{now:%d %b %Y %H:%M:%S}.{now.microsecond // 1000:03}"
        return f"{os.getpid()}:M {stamp} {MARKS[level]} {sentence}\n"


def write_file(path: str, directive: str, text: str, mode: str) -> None:
    """Write the file that a directive names. UsageError, in one sentence, where that fails.

    A named pipe is refused: without a reader, opening it would wait for ever. /dev/stdout of a shell's
    pipe has no name of its own and is written.
    """
    problem = "it is a named pipe"
    try:
        if not (Path(path).is_fifo() and Path(os.path.realpath(path)).exists()):
            with Path(path).open(mode, encoding="utf-8") as file:
                file.write(text)
            return
    except OSError as failure:
        problem = failure.strerror or str(failure)
    raise UsageError(f"cannot write the {directive} {path}: {problem}")


# -- uncaught errors -------------------------------------------------------------------------------------------------


class LibraryMessages(logging.Handler):
    """Passes on warnings and errors of libraries."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report(self.format(record))


@contextmanager
def uncaught_errors_logged_in(server_log: ServerLog) -> Iterator[None]:
    """Write errors of the main thread, of other threads, of destructors and of libraries into a server's log.

    A traceback has a message for each line. An error that leaves the block ends the process: it is written by the hook,
    so the hooks stay.
    """

    def report(text: str) -> None:
        for line in text.splitlines():
            server_log.warning(line)

    def report_fatal(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        server_log.fatal("".join(traceback.format_exception(kind, error, trace)))

    def report_thread(args: threading.ExceptHookArgs) -> None:
        name = "a thread" if args.thread is None else args.thread.name
        report(f"Exception in {name}\n" + "".join(_formatted(args.exc_value)))

    def report_unraisable(args: "UnraisableHookArgs") -> None:
        report(f"{args.err_msg or 'Exception ignored in'} {args.object!r}\n" + "".join(_formatted(args.exc_value)))

    handler = LibraryMessages(report)
    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook, threading.excepthook, sys.unraisablehook = report_fatal, report_thread, report_unraisable
    LIBRARIES.addHandler(handler)
    yield
    LIBRARIES.removeHandler(handler)
    sys.excepthook, threading.excepthook, sys.unraisablehook = before


def _formatted(error: BaseException | None) -> list[str]:
    return [] if error is None else traceback.format_exception(error)
