"""Faults of servers and networks that a test asks for. Each fault of a `with` block ends with the block."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import hiredis

from penstock.engine.engine import Engine
from penstock.errors import UsageError
from penstock.protocol.reply import bulks
from penstock.server.turns.log_writer import AofWriter
from penstock.testing.faults.failing_disk import FailingDisk
from penstock.testing.loops.inline_loop import InlineLoop

if TYPE_CHECKING:
    from penstock.testing.connections.links import Link

NO_RESET: Final = -1
OPENING: Final = frozenset({b"AUTH", b"CLIENT", b"HELLO", b"SELECT"})  # what libraries send when they connect
MISCONF: Final = b"MISCONF Errors writing to the AOF file: No space left on device"  # Redis 8.6.3, disk full


class Died(BaseException):
    """The process of a client has ended, as far as its code can tell: no `except Exception` catches this."""


class Faults:
    """The faults of one embedded server. They concern its clients in the process, not those of its socket.

    HELLO, AUTH, SELECT and CLIENT are not counted, lost or slow: whether a client is connected yet makes no difference.
    """

    Died: Final = Died

    def __init__(
        self, engine: Engine, loop: InlineLoop, log_writer: AofWriter, move_clock: Callable[[int], None]
    ) -> None:
        self._engine = engine
        self._move_clock = move_clock  # by microseconds
        self._loop = loop
        self._log_writer = log_writer
        self._links: dict[int, Link] = {}
        self._drops = 0
        self._delays = 0  # nested `delayed_replies`
        self._held: list[tuple[Link, bytes]] = []
        self._is_reachable = True
        self._deaths: list[bytes] = []  # commands after whose next reply a client dies
        self._requests_left = NO_RESET
        self._readers: dict[int, hiredis.Reader] = {}  # of requests, by port, until the reset
        self._slow_us = 0

    # -- the network ------------------------------------------------------------------------------------------------

    def drop_replies(self, count: int = 1) -> None:
        """Lose so many of the next replies: the request is done, and the client sees its connection break instead."""
        with self._loop.lock:
            self._drops += count

    def die_after(self, command: str) -> None:
        """The next client that has such a command answered dies before it sees the reply.

        Its call raises `Died`, its connection is closed, and what the command did stays done.
        """
        with self._loop.lock:
            self._deaths.append(command.upper().encode())

    def reset_after(self, requests: int) -> None:
        """Handle so many further requests, then break the connection that sends the next one.

        What its client has sent behind them is not done, and of what was done it gets no reply that it has not yet.
        """
        with self._loop.lock:
            self._requests_left = requests

    @contextmanager
    def slow(self, *, seconds: float = 0, milliseconds: float = 0) -> Iterator[None]:
        """The server's clock moves by so much before each piece of requests that a client sends; nothing sleeps."""
        before_us = self._slow_us
        self._slow_us = timedelta(seconds=seconds, milliseconds=milliseconds) // timedelta(microseconds=1)
        try:
            yield
        finally:
            self._slow_us = before_us

    @contextmanager
    def delayed_replies(self) -> Iterator[None]:
        """Requests are handled, and their replies arrive when the block ends."""
        with self._loop.lock:
            self._delays += 1
        try:
            yield
        finally:
            with self._loop.lock:
                self._delays -= 1
                if not self._delays:
                    held, self._held = self._held, []
                    for link, replies in held:
                        link.received(replies)

    def close_connections(self) -> None:
        """Break the connection of every client; they may connect again."""
        with self._loop.lock:
            for link in list(self._links.values()):
                link.end_soon()
            self._loop.run_due()

    @property
    def is_reachable(self) -> bool:
        """Whether clients can connect. Set to False, their connections break, too."""
        return self._is_reachable

    @is_reachable.setter
    def is_reachable(self, wanted: bool) -> None:
        with self._loop.lock:
            self._is_reachable = wanted
        if not wanted:
            self.close_connections()

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Connections break, and new ones are refused, until the block ends: the server keeps its keys."""
        self.is_reachable = False
        try:
            yield
        finally:
            self.is_reachable = True

    # -- the server -------------------------------------------------------------------------------------------------

    @contextmanager
    def refused_writes(self, error: bytes = MISCONF) -> Iterator[None]:
        """Writers are refused before they change anything, as on a full disk; readers are answered."""
        before = self._engine.conditions.trouble
        with self._loop.lock:
            self._engine.conditions.trouble = error
        try:
            yield
        finally:
            with self._loop.lock:
                self._engine.conditions.trouble = before

    @contextmanager
    def failing_log(self, code: int = errno.ENOSPC) -> Iterator[None]:
        """The log cannot be written, for the system's reason `code`.

        What had been changed when the first write failed stays, and is written when the block ends: it is confirmed;
        with appendfsync always its connection is closed instead. Later changes get MISCONF. UsageError for a server in
        memory, which has no log.
        """
        disk = self._log_writer.disk
        if not isinstance(disk, FailingDisk):
            raise UsageError("failing_log needs a server on a directory: this one has no log")
        with self._loop.lock:
            disk.error = OSError(code, os.strerror(code))
        try:
            yield
        finally:
            with self._loop.lock:
                disk.error = None
                self._log_writer.try_now()
                self._loop.run_due()

    @contextmanager
    def full_memory(self) -> Iterator[None]:
        """Requests that need memory are refused (OOM). UsageError if a policy would evict keys instead."""
        settings = self._engine.settings
        if settings.text("maxmemory-policy") != "noeviction":
            raise UsageError("full_memory needs maxmemory-policy noeviction: another policy would delete every key")
        before = settings.text("maxmemory")
        with self._loop.lock:
            settings.set_pairs([("maxmemory", "1")])
        try:
            yield
        finally:
            with self._loop.lock:
                settings.set_pairs([("maxmemory", before)])

    # -- what links call --------------------------------------------------------------------------------------------

    def opened(self, link: "Link") -> None:
        self._links[link.port] = link

    def end_abandoned(self) -> None:
        """End the links of clients whose event loop is closed: no other call will end them."""
        for link in list(self._links.values()):
            if link.is_abandoned():
                link.end_soon()

    def ended(self, link: "Link") -> None:
        self._links.pop(link.port, None)
        self._readers.pop(link.port, None)

    def requests_through(self, link: "Link", requests: bytes) -> bytes:
        """The part of a client's bytes that reaches the server; called with the lock held."""
        if self._slow_us and not _opens(requests):
            self._move_clock(self._slow_us)
        if self._requests_left == NO_RESET:
            return requests
        reader = self._readers.setdefault(link.port, hiredis.Reader(notEnoughData=None))
        reader.feed(requests)
        through = bytearray()
        while (words := reader.gets()) is not None:
            is_counted = words[0].upper() not in OPENING
            if is_counted and self._requests_left == 0:
                self._requests_left = NO_RESET
                self._readers.clear()
                link.is_reset = True
                break
            self._requests_left -= is_counted
            through += bulks(words)
        return bytes(through)

    def takes(self, link: "Link", replies: bytes, command: bytes) -> bool:
        """Whether a fault takes what the server sends to a client; command: what it answers first, in upper case."""
        if link.is_reset:
            return True
        if command in self._deaths:
            self._deaths.remove(command)
            link.dies(Died(command.decode()))
            return True
        if self._drops and command not in OPENING:
            self._drops -= 1
            link.end_soon()
            return True
        if self._delays:
            self._held.append((link, replies))
            return True
        return False


def _opens(requests: bytes) -> bool:
    """Whether a client sends what opens a connection only."""
    reader = hiredis.Reader(notEnoughData=None)
    reader.feed(requests)
    words = reader.gets()
    return words is not None and words[0].upper() in OPENING
