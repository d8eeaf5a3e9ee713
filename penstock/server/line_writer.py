"""Writes lines without waiting: a reader that stops reading, of a pipe or a terminal, must not stop the server.

Lines for which there is no room are lost, and counted. The next line that is written comes behind one that says so.
"""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

WITHOUT_WAITING: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY


class LineWriter:
    """missing: makes the line that tells how many are missing."""

    __slots__ = ("_lost", "_missing", "_rest", "_terminal")

    def __init__(self, missing: Callable[[int], str]) -> None:
        self._missing = missing
        self._lost = 0
        self._rest = b""  # of a line that was written in part
        self._terminal = -1  # our own descriptor of the terminal

    def append(self, path: str, lines: str) -> None:
        """Write to a file, which is opened for each call, so that it can be rotated without a signal."""
        try:
            fd = os.open(path, WITHOUT_WAITING | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError:
            self._lost += lines.count("\n")
            return
        self._write(fd, lines.encode(errors="backslashreplace"), lines.count("\n"))
        os.close(fd)

    def say(self, stream: TextIO, lines: str) -> None:
        """Write to standard output or standard error."""
        try:
            fd = stream.fileno()
        except (OSError, ValueError):  # it was replaced by an object in memory, or is closed
            with suppress(OSError, ValueError):
                stream.write(lines)
                stream.flush()
            return
        text = lines.encode(stream.encoding, "backslashreplace")
        self._write(self._own(fd) if os.isatty(fd) else fd, text, lines.count("\n"))

    def _own(self, fd: int) -> int:
        """A descriptor of the terminal that never waits: that of standard output is shared with other processes.

        A terminal counts as ready while it has room for one byte, and then a line would wait. A pipe does not.
        """
        if self._terminal < 0:
            with suppress(OSError):  # it is of another container, say
                self._terminal = os.open(os.ttyname(fd), WITHOUT_WAITING)
        return fd if self._terminal < 0 else self._terminal

    def _write(self, fd: int, text: bytes, count: int) -> None:
        if self._rest:
            self._rest = _left_of(fd, self._rest)
        if not self._rest:
            if self._lost:
                text = self._missing(self._lost).encode() + text
            rest = _left_of(fd, text)
            if len(rest) < len(text):
                self._rest, self._lost = rest, 0
                return
        self._lost += count


def _left_of(fd: int, text: bytes) -> bytes:
    """Write what there is room for; what is left."""
    at = 0
    room = select.poll()  # unlike select(), it takes descriptors beyond 1023
    room.register(fd, select.POLLOUT)
    with suppress(OSError):  # no room, a full disk, or no reader any more
        while at < len(text) and room.poll(0):
            at += os.write(fd, text[at : at + select.PIPE_BUF])  # a pipe that is ready takes as much at once
    return text[at:]
