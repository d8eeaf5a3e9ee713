"""Answers Prometheus over HTTP (the directive metrics-port).

The thread of the port formats the text. The values are read by the server's event loop, a few at a time (snapshot.py):
READ_S in a row at most, then clients are served for PAUSE_S.
"""

import asyncio
import base64
import hmac
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.engine.telemetry.stream_counts import KnownStreams
from penstock.observe import families, snapshot, stream_text
from penstock.observe.http_server import Handler, HttpServer, names_an_address
from penstock.observe.snapshot import Snapshot
from penstock.observe.stream_choice import StreamChoice
from penstock.server.turns.turn import Turn

MOST_CONNECTIONS: Final = 16
PATHS: Final = ("/", "/metrics")
READ_S: Final = 0.001
STEPS_A_TURN: Final = 20
PAUSE_S: Final = 0.002
BUSY_PAUSE_S: Final = 0.05  # a script has the keyspace
FORMAT_PAUSE_S: Final = 0.0001  # after each piece of text
LONGEST_S: Final = 8.0  # for reading the values; Prometheus itself gives up after 10 s
WRONG_PASSWORD_S: Final = 1.0  # until it is refused: MOST_CONNECTIONS guesses a second
NAMELESS: Final = (
    "Without metrics-password the metrics are answered under an address or localhost only, not under a name.\n"
)


class SnapshotReader:
    """Reads one snapshot in the event loop's pauses. `taken` has it when it is complete."""

    def __init__(
        self,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        known: KnownStreams | None = None,
        choice: StreamChoice | None = None,
    ) -> None:
        self._engine = engine
        self._loop = loop
        self._snapshot = Snapshot(known, choice)
        self._steps = snapshot.take(engine, self._snapshot)
        self.taken: Future[Snapshot] = Future()

    def read(self) -> None:
        """Take some steps, and come back for the others; called in the loop."""
        if self.taken.cancelled():
            return
        if self._engine.conditions.busy:
            self._loop.call_later(BUSY_PAUSE_S, self.read)
            return
        until_s = self._loop.time() + READ_S
        for _ in range(STEPS_A_TURN):
            try:
                next(self._steps)
            except StopIteration:
                if self.taken.set_running_or_notify_cancel():
                    self.taken.set_result(self._snapshot)
                return
            except Exception as bug:  # the scrape fails; the server goes on
                self.taken.set_exception(bug)
                return
            if self._loop.time() >= until_s:
                break
        self._loop.call_later(PAUSE_S, self.read)


class ServerCollector(Collector):
    """The collector that prometheus_client asks for the metrics of the server as a whole."""

    def __init__(self, taken: Snapshot | None) -> None:
        self._taken = taken

    def describe(self) -> list[Metric]:
        """Nothing, so that registering does not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of the snapshot, `redis_up 0` without one."""
        if self._taken is None:
            return iter([families.single("redis_up", "Whether the server's values could be read.", 0)])
        return families.of_snapshot(self._taken)


class Scraper:
    """Reads the server, and makes the text. One scrape is made at a time; requests that come meanwhile share it."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        """loop: the server's."""
        self._engine = engine
        self._loop = loop
        self._making: asyncio.Task[bytes] | None = None
        self._known: KnownStreams = {}
        self._choice = StreamChoice()

    async def text(self) -> bytes:
        """The metrics; `redis_up 0` if the server's loop does not get to them in LONGEST_S, or has ended."""
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._made())
        return await asyncio.shield(self._making)

    async def _made(self) -> bytes:
        taken = await self._taken()
        registry = CollectorRegistry()
        registry.register(ServerCollector(taken))
        ProcessCollector(registry=registry)
        parts = [generate_latest(registry)]
        if taken is not None:
            self._known = taken.tuples.by_key()
            for piece in stream_text.pieces(taken):
                parts.append(piece.encode())
                time.sleep(FORMAT_PAUSE_S)  # the server's loop has the interpreter; asyncio's shortest sleep is 1 ms
                await asyncio.sleep(0)
        return b"".join(parts)

    async def _taken(self) -> Snapshot | None:
        reader = SnapshotReader(self._engine, self._loop, self._known, self._choice)
        try:
            self._loop.call_soon_threadsafe(reader.read)
            return await asyncio.wait_for(asyncio.wrap_future(reader.taken), LONGEST_S)
        except (TimeoutError, RuntimeError):  # a script runs for long; the loop is closed
            reader.taken.cancel()
            return None


class MetricsPage:
    """The answers of the port. With metrics-password a scrape has to have it."""

    def __init__(self, scraper: Scraper, settings: Settings, http: HttpServer) -> None:
        self._scraper = scraper
        self._settings = settings
        self._http = http

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        for path in PATHS:
            app.router.add_get(path, self._metrics)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        self._http.know(request)
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return web.Response(status=404, text="the metrics are at /metrics\n")

    async def _refusal(self, request: web.Request) -> web.Response | None:
        """Why a request gets no metrics; None for one that does.

        Prometheus sends a password by `basic_auth` (any name) or as the credentials of `authorization` (Bearer).
        """
        password = self._settings.text("metrics-password").encode(errors="surrogateescape")
        if not password:
            return None if names_an_address(request) else web.Response(status=403, text=NAMELESS)
        given = request.headers.get("Authorization")
        if given is not None:
            if hmac.compare_digest(password_in(given), password):
                return None
            await asyncio.sleep(WRONG_PASSWORD_S)
        wanted = {"WWW-Authenticate": 'Basic realm="metrics", charset="UTF-8"'}
        return web.Response(status=401, headers=wanted, text="The metrics need the password of metrics-password.\n")

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=await self._scraper.text(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def password_in(authorization: str) -> bytes:
    """The password in a header Authorization; empty if there is none, which no password is.

    >>> password_in("Bearer secret"), password_in("Basic cHJvbWV0aGV1czpzZWNyZXQ="), password_in("Basic ?")
    (b'secret', b'secret', b'')
    """
    kind, _, credentials = authorization.strip().partition(" ")
    if kind.lower() == "bearer":
        return credentials.strip().encode(errors="surrogateescape")
    try:
        return base64.b64decode(credentials, validate=True).partition(b":")[2] if kind.lower() == "basic" else b""
    except ValueError:
        return b""


class MetricsServer:
    """The metrics of one server, from `start` to `stop`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http = HttpServer("metrics", settings, MOST_CONNECTIONS)

    def start(self, turn: Turn) -> None:
        """Listen; UsageError if that is impossible."""
        scraper = Scraper(turn.engine, turn.loop)
        self._http.start(turn, lambda loop: MetricsPage(scraper, self._settings, self._http).app())
        turn.server_log.notice(f"Metrics for Prometheus at {self._http.url}metrics")

    def stop(self) -> None:
        """Stop listening. A scrape that is being answered is broken off."""
        self._http.stop()
