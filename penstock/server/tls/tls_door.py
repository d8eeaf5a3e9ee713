"""A listening socket that speaks TLS: it accepts connections, and lets in those with a handshake that succeeds."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from penstock.server.connections.limits import is_reserved
from penstock.server.server_log import ServerLog
from penstock.server.tls.tls_transport import TlsTransport

MOST_HANDSHAKES: Final = 128  # at the same time; one more ends the oldest
HANDSHAKE_S: Final = 10.0
MOST_LOGGED: Final = 10  # failed handshakes that are written down in a second
PAUSE_S: Final = 1.0  # when the system has no file left for a connection


class TlsHandshakes:
    """The handshakes of one server that are going on.

    They are limited in number and in time, because each takes memory and processor time before the client has logged
    in. When there are too many, the oldest is ended: an honest client's takes a few milliseconds. Each uses the context
    of the moment at which it began, so that a new certificate holds for later clients.
    """

    __slots__ = ("_greet", "_journal", "_loop", "_reported", "_second", "_tasks", "context")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, server_log: ServerLog, greet: Callable[[], asyncio.Protocol]
    ) -> None:
        self._loop = loop
        self._journal = server_log
        self._greet = greet
        self._tasks: dict[asyncio.Task[None], None] = {}  # oldest first
        self._second = 0  # of the loop's time, in which `_reported` failures were written down
        self._reported = 0
        self.context: ssl.SSLContext | None = None

    def begin(self, link: socket.socket) -> None:
        """Shake hands over a connection that was accepted."""
        if len(self._tasks) >= MOST_HANDSHAKES:
            oldest = next(iter(self._tasks))
            del self._tasks[oldest]
            oldest.cancel()
        names = f"(addr={_name(link.getpeername)} laddr={_name(link.getsockname)})"
        task = self._loop.create_task(self._shake(link))
        self._tasks[task] = None
        task.add_done_callback(partial(self._ended, link, names))

    async def _shake(self, link: socket.socket) -> None:
        context = self.context
        assert context is not None, "without a context there is no listening socket"
        tls = TlsTransport(context, self._greet(), self._loop.create_future())
        try:
            await self._loop.connect_accepted_socket(cast("Callable[[], asyncio.Protocol]", lambda: tls), link)
            async with asyncio.timeout(HANDSHAKE_S):
                await tls.shaken
        except (OSError, asyncio.CancelledError):
            tls.abort()
            raise

    def _ended(self, link: socket.socket, names: str, task: asyncio.Task[None]) -> None:
        """Close the connection of one that failed, or was ended: in a burst before its first step, too."""
        self._tasks.pop(task, None)
        problem = asyncio.CancelledError() if task.cancelled() else task.exception()
        if problem is not None:
            reason = str(problem) or "the handshake took too long, or too many were going on"
            self._report(f"Error accepting a client connection: {reason} {names}")
            link.close()

    def _report(self, sentence: str) -> None:
        """Write a failure down, but not all of a flood: strangers must not fill the disk."""
        second = int(self._loop.time())
        if second != self._second:
            self._second, self._reported = second, 0
        self._reported += 1
        if self._reported <= MOST_LOGGED:
            self._journal.warning(sentence)

    def close(self) -> None:
        """End all of them."""
        for task in list(self._tasks):
            task.cancel()


class TlsDoor:
    """Accepts connections from one listening socket."""

    __slots__ = ("_handshakes", "_journal", "_listener", "_loop", "_resting")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, server_log: ServerLog, listener: socket.socket, handshakes: TlsHandshakes
    ) -> None:
        self._loop = loop
        self._journal = server_log
        self._listener = listener
        self._handshakes = handshakes
        self._resting: asyncio.TimerHandle | None = None

    def open(self, backlog: int) -> None:
        """Listen. OSError if another process does."""
        self._listener.listen(backlog)
        self._loop.add_reader(self._listener, self._accept, backlog)

    def _accept(self, most: int) -> None:
        for _ in range(most):
            try:
                link, _ = self._listener.accept()
                if is_reserved(link.fileno()):
                    link.close()
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:  # no file is left: the clients wait
                self._journal.warning(f"Accepting a client connection: {problem.strerror}")
                self._loop.remove_reader(self._listener)
                self._resting = self._loop.call_later(PAUSE_S, self._accept_again, most)
                return
            link.setblocking(False)
            self._handshakes.begin(link)

    def _accept_again(self, most: int) -> None:
        self._resting = None
        self._loop.add_reader(self._listener, self._accept, most)

    def close(self) -> None:
        """Stop listening. Connections stay."""
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()


def _name(name_of: Callable[[], object]) -> str:
    """An address as Redis shows it; it may be gone already."""
    try:
        name = name_of()
    except OSError:
        return "?"
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)
