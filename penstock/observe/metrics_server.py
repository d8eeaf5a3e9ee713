"""Answers Prometheus over HTTP (the directive metrics-port), beside the server and in its process.

Threads answer the scrapes, and format the text. The values are read by the event loop, a few at a time
(snapshot.py): READ_S in a row at most, then clients are served for PAUSE_S.
"""

import asyncio
import io
import logging
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from typing import Final, TextIO
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.engine.telemetry.stream_counts import KnownStreams
from penstock.errors import UsageError
from penstock.observe import families, snapshot, stream_text
from penstock.observe.snapshot import Snapshot
from penstock.server.turns.turn import Turn

MESSAGES: Final = logging.getLogger("penstock.metrics")  # see server/server_log.py
PATHS: Final = ("/", "/metrics")
READ_S: Final = 0.001
STEPS_A_TURN: Final = 20
PAUSE_S: Final = 0.002
BUSY_PAUSE_S: Final = 0.05  # a script has the keyspace
FORMAT_PAUSE_S: Final = 0.0001  # after each piece of text
LONGEST_S: Final = 8.0  # for reading the values; Prometheus itself gives up after 10 s
PATIENCE_S: Final = 30.0  # for a client of the port


class SnapshotReader:
    """Reads one snapshot in the event loop's pauses. `taken` has it when it is complete."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop, known: KnownStreams | None = None) -> None:
        self._engine = engine
        self._loop = loop
        self._snapshot = Snapshot(known)
        self._steps = snapshot.take(engine, self._snapshot)
        self.taken: Future[Snapshot] = Future()

    def read(self) -> None:
        """Take some steps, and come back for the others; called in the loop."""
        if self.taken.cancelled():
            return
        if self._engine.busy:
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
    """What prometheus_client asks for the metrics of the server as a whole."""

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
    """Reads the server for threads that ask, and makes the text for them. One scrape is made at a time."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._lock = Lock()
        self._known: KnownStreams = {}

    def text(self) -> bytes:
        """The metrics; `redis_up 0` if the event loop does not get to them in LONGEST_S, or has ended."""
        with self._lock:
            taken = self._taken()
            registry = CollectorRegistry()
            registry.register(ServerCollector(taken))
            ProcessCollector(registry=registry)
            parts = [generate_latest(registry)]
            if taken is not None:
                self._known = taken.tuples.by_key()
                for piece in stream_text.pieces(taken):
                    parts.append(piece.encode())
                    time.sleep(FORMAT_PAUSE_S)  # the event loop has the interpreter
            return b"".join(parts)

    def _taken(self) -> Snapshot | None:
        reader = SnapshotReader(self._engine, self._loop, self._known)
        try:
            self._loop.call_soon_threadsafe(reader.read)
            return reader.taken.result(LONGEST_S)
        except (TimeoutError, RuntimeError):  # a script runs for long; the loop is closed
            reader.taken.cancel()
            return None


class SilentHandler(WSGIRequestHandler):
    """Tells nobody of each scrape. A client that sends no request is left after PATIENCE_S."""

    timeout = PATIENCE_S

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def get_stderr(self) -> TextIO:
        """Where wsgiref writes the traceback of a scrape that failed."""
        return ErrorText()


class ErrorText(io.StringIO):
    """A text that becomes a message when it is flushed."""

    def flush(self) -> None:
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        if text:
            MESSAGES.error("%s", text)


class HttpServer(ThreadingMixIn, WSGIServer):
    """A thread for each scrape."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection failed, for the reason that is being handled."""
        if not isinstance(sys.exception(), OSError):  # who broke it knows
            MESSAGES.exception("A connection of %s failed", client_address)


class HttpServer6(HttpServer):
    """The same on an address of IPv6."""

    address_family = socket.AF_INET6


class MetricsServer:
    """Serves the metrics of one server over HTTP, from `start` to `stop`. Port 0 takes a free one: see `port`."""

    def __init__(self, settings: Settings) -> None:
        self._host = settings.text("metrics-bind")
        self.port = settings.number("metrics-port")

    def start(self, turn: Turn) -> None:
        """Listen; UsageError if that is impossible."""
        scraper = Scraper(turn.engine, turn.loop)

        def app(request: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
            if request["PATH_INFO"] not in PATHS:
                start_response("404 Not Found", [("Content-Type", "text/plain")])
                return [b"the metrics are at /metrics\n"]
            text = scraper.text()
            start_response("200 OK", [("Content-Type", CONTENT_TYPE_PLAIN_0_0_4), ("Content-Length", str(len(text)))])
            return [text]

        kind = HttpServer6 if ":" in self._host else HttpServer
        try:
            self._http = make_server(self._host, self.port, app, kind, SilentHandler)
        except OSError as problem:
            raise UsageError(
                f"cannot listen on {self._host}:{self.port} (metrics-port): {problem.strerror or problem}"
            ) from None
        Thread(target=self._http.serve_forever, name="penstock-metrics", daemon=True).start()
        self.port = self._http.server_port
        turn.server_log.notice(f"Metrics for Prometheus at http://{self._host}:{self.port}/metrics")

    def stop(self) -> None:
        """Stop listening. A scrape that is being answered may get `redis_up 0`."""
        Thread(target=self._close, name="penstock-metrics-end", daemon=True).start()

    def _close(self) -> None:
        self._http.shutdown()  # waits for the listening thread
        self._http.server_close()
