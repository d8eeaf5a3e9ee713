"""Serves the console over HTTP (the directive console-port), beside the server and in its process.

A thread with an event loop of its own does all of it, so the server's loop never waits for a page; it sees the console
as clients that send ordinary requests.
"""

import asyncio
import socket
from contextlib import suppress
from threading import Thread
from typing import Final

from aiohttp import web

from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.observe.console.engine_client import EngineDoor
from penstock.observe.console.web import Console
from penstock.server.listening import tcp_socket
from penstock.server.turns.turn import Turn

MOST_CONNECTIONS: Final = 128
KEEP_ALIVE_S: Final = 30.0
END_S: Final = 0.5  # what open requests may take at the end
MOST_LINE: Final = 8190  # bytes of a request's line, of a header


class NoRoom(asyncio.Protocol):
    """Closes a connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class ConsoleServer:
    """The console of one server, from `start` to `stop`. Port 0 takes a free one: see `port`."""

    def __init__(self, settings: Settings) -> None:
        self._host = settings.text("console-bind")
        self.port = settings.number("console-port")

    def start(self, turn: Turn) -> None:
        """Listen; UsageError if that is impossible."""
        try:
            listener = tcp_socket(self._host, self.port)
            listener.listen()
        except OSError as problem:
            raise UsageError(
                f"cannot listen on {self._host}:{self.port} (console-port): {problem.strerror or problem}"
            ) from None
        self.port = listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        Thread(target=self._run, args=(turn, listener), name="penstock-console", daemon=True).start()
        shown = f"[{self._host}]" if ":" in self._host else self._host
        turn.server_log.notice(f"Console at http://{shown}:{self.port}/")

    def stop(self) -> None:
        """Stop listening, and end every page's connection; waits for nothing."""
        with suppress(RuntimeError):  # its loop has ended
            self._loop.call_soon_threadsafe(self._ending.set)

    def _run(self, turn: Turn, listener: socket.socket) -> None:
        """The thread."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(turn, listener))

    async def _serve(self, turn: Turn, listener: socket.socket) -> None:
        console = Console(EngineDoor(turn), turn.engine.settings, self.port, self._loop.time)
        app = web.AppRunner(
            console.app(),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=KEEP_ALIVE_S,
            max_line_size=MOST_LINE,
            max_field_size=MOST_LINE,
            shutdown_timeout=END_S,
        )
        await app.setup()
        http = app.server
        assert http is not None, "setup makes it"

        def greet() -> asyncio.Protocol:
            return http() if len(http.connections) < MOST_CONNECTIONS else NoRoom()

        server = await self._loop.create_server(greet, sock=listener)
        await self._ending.wait()
        console.ending.set()
        server.close()
        await app.cleanup()
