"""Errors that nobody caught, and what libraries complain of, go into the server's log instead of bare onto stderr."""

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final

from penstock.server.server_log import ServerLog

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

LIBRARIES: Final = logging.getLogger()  # asyncio's errors come here, aiohttp's, and those of metrics over HTTP


class LibraryMessages(logging.Handler):
    """Passes on warnings and errors of libraries."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self._tell(self.format(record))


@contextmanager
def told_in(server_log: ServerLog) -> Iterator[None]:
    """Tell of errors of the main thread, of other threads, of destructors and of libraries in a server's log.

    A traceback has a message for each line. An error that leaves the block ends the process: it is told by the hook, so
    the hooks stay.
    """

    def tell(text: str) -> None:
        for line in text.splitlines():
            server_log.warning(line)

    def tell_fatal(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        server_log.fatal("".join(traceback.format_exception(kind, error, trace)))

    def tell_thread(args: threading.ExceptHookArgs) -> None:
        name = "a thread" if args.thread is None else args.thread.name
        tell(f"Exception in {name}\n" + "".join(_formatted(args.exc_value)))

    def tell_unraisable(args: "UnraisableHookArgs") -> None:
        tell(f"{args.err_msg or 'Exception ignored in'} {args.object!r}\n" + "".join(_formatted(args.exc_value)))

    handler = LibraryMessages(tell)
    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook, threading.excepthook, sys.unraisablehook = tell_fatal, tell_thread, tell_unraisable
    LIBRARIES.addHandler(handler)
    yield
    LIBRARIES.removeHandler(handler)
    sys.excepthook, threading.excepthook, sys.unraisablehook = before


def _formatted(error: BaseException | None) -> list[str]:
    return [] if error is None else traceback.format_exception(error)
