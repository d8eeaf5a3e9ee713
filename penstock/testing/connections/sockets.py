"""Real sockets of an embedded server: a thread accepts, reads and writes; requests are handled under the lock."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.server.connections.connection import Connection
from penstock.server.listening import tcp_sockets, unix_socket
from penstock.server.turns.turn import Turn
from penstock.testing.loops.inline_loop import InlineLoop
from penstock.testing.loops.loop_thread import LoopThread


class Sockets:
    """The sockets of one server, from the constructor to `close`. UsageError where an address cannot be used."""

    def __init__(self, turn: Turn, inline: InlineLoop, thread: LoopThread, settings: Settings) -> None:
        self._turn = turn
        self._inline = inline
        self._thread = thread
        if settings.number("tls-port"):
            raise UsageError("a server inside the process does not speak TLS: set tls-port 0")
        self._path = settings.text("unixsocket")
        if self._path:
            listener = unix_socket(self._path, settings.number("unixsocketperm"))
            self.url = f"unix://{self._path}"
        else:
            listener, *others = tcp_sockets(settings, "port", settings.number("port"), turn.server_log)
            for other in others:
                other.close()
            host, port = listener.getsockname()[:2]
            settings.set_pairs([("port", str(port))])
            self.url = f"redis://{host}:{port}" if ":" not in host else f"redis://[{host}]:{port}"
        self._server = thread.run(self._listen(listener))

    async def _listen(self, listener: socket.socket) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        greet = cast(Callable[[], asyncio.Protocol], lambda: SocketLink(self._turn, self._inline, loop))
        if self._path:
            return await loop.create_unix_server(greet, sock=listener)
        return await loop.create_server(greet, sock=listener)

    def close(self) -> None:
        """Close the sockets, those of the clients too. Called without the lock."""
        self._thread.call_and_wait(self._stop)
        if self._path:
            Path(self._path).unlink(missing_ok=True)

    def _stop(self) -> None:
        self._server.close()
        for connection in list(self._turn.connections.values()):
            connection.close()


class SocketTransport:
    """asyncio's transport, for calls from any thread: what the server's Connection writes to."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._thread = threading.get_ident()

    def _call(self, function: Callable[..., object], *args: Any) -> None:
        if threading.get_ident() == self._thread:
            function(*args)
        else:
            with suppress(RuntimeError):  # the server's thread may have ended
                self._loop.call_soon_threadsafe(function, *args)

    def write(self, replies: bytes) -> None:
        self._call(self._transport.write, replies)

    def close(self) -> None:
        self._call(self._transport.close)

    def abort(self) -> None:
        self._call(self._transport.abort)

    def pause_reading(self) -> None:
        self._call(self._transport.pause_reading)

    def resume_reading(self) -> None:
        self._call(self._transport.resume_reading)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str) -> object:
        return self._transport.get_extra_info(name)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()


class SocketLink(asyncio.Protocol):
    """One client over a socket: each event is passed on with the lock held."""

    def __init__(self, turn: Turn, inline: InlineLoop, loop: asyncio.AbstractEventLoop) -> None:
        self._inline = inline
        self._loop = loop
        self._connection = Connection(turn)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        outer = SocketTransport(cast(asyncio.Transport, transport), self._loop)
        with self._inline.lock:
            self._connection.connection_made(cast(asyncio.Transport, outer))
            self._inline.run_due()

    def data_received(self, data: bytes) -> None:
        with self._inline.lock:
            self._connection.data_received(data)
            self._inline.run_due()

    def eof_received(self) -> bool:
        with self._inline.lock:
            stays = self._connection.eof_received()
            self._inline.run_due()
            return stays

    def connection_lost(self, exc: Exception | None) -> None:
        with self._inline.lock:
            self._connection.connection_lost(exc)
            self._inline.run_due()

    def pause_writing(self) -> None:
        with self._inline.lock:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        with self._inline.lock:
            self._connection.resume_writing()
            self._inline.run_due()
