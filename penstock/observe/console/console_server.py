"""The console over HTTP (the directive console-port). The server sees it as clients that send ordinary requests."""

from asyncio import AbstractEventLoop
from typing import Final

from aiohttp import web

from penstock.config.settings import Settings
from penstock.observe.console.engine_client import EngineDoor
from penstock.observe.console.web import Console
from penstock.observe.http_server import HttpServer
from penstock.server.turns.turn import Turn

MOST_CONNECTIONS: Final = 128


class ConsoleServer:
    """The console of one server, from `start` to `stop`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http = HttpServer("console", settings, MOST_CONNECTIONS)

    def start(self, turn: Turn) -> None:
        """Listen; UsageError if that is impossible."""

        def app(loop: AbstractEventLoop) -> web.Application:
            return Console(EngineDoor(turn), self._settings, self._http, loop.time).app()

        self._http.start(turn, app)
        turn.server_log.notice(f"Console at {self._http.url}")

    def stop(self) -> None:
        """Stop listening, and end every page's connection; waits for nothing."""
        self._http.stop()
