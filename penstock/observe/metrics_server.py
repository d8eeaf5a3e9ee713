"""Answers Prometheus over HTTP (the directive metrics-port), beside the server and in its process.

Threads answer the scrapes, and format the text. The values are read by the event loop, a few at a time
(snapshot.py): READ_S in a row at most, then clients are served for PAUSE_S.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Final

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

from penstock.config.settings import Settings
from penstock.engine.engine import Engine
from penstock.errors import UsageError
from penstock.observe import families, snapshot
from penstock.observe.snapshot import Snapshot
from penstock.server.turn import Turn

READ_S: Final = 0.001
STEPS_A_TURN: Final = 100
PAUSE_S: Final = 0.002
BUSY_PAUSE_S: Final = 0.05  # a script has the keyspace
LONGEST_S: Final = 8.0  # for reading the values; Prometheus itself gives up after 10 s


class SnapshotReader:
    """Reads one snapshot in the event loop's pauses. `taken` has it when it is complete."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._snapshot = Snapshot()
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
    """What prometheus_client asks for the server's metrics, in a thread of each scrape. One scrape at a time."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._lock = Lock()

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read the server."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of a new snapshot, or `redis_up 0` if the server does not get to it, or ends."""
        with self._lock:
            reader = SnapshotReader(self._engine, self._loop)
            try:
                self._loop.call_soon_threadsafe(reader.read)
                taken = reader.taken.result(LONGEST_S)
            except (TimeoutError, RuntimeError):  # a script runs for long; the loop is closed
                reader.taken.cancel()
                yield families.single("redis_up", "Whether the server's values could be read.", 0)
                return
        yield from families.of_snapshot(taken)


class MetricsServer:
    """Serves the metrics of one server over HTTP, from `start` to `stop`. Port 0 takes a free one: see `port`."""

    def __init__(self, settings: Settings) -> None:
        self._host = settings.text("metrics-bind")
        self.port = settings.number("metrics-port")
        self.registry = CollectorRegistry()

    def start(self, turn: Turn) -> None:
        """Listen; UsageError if that is impossible."""
        self.registry.register(ServerCollector(turn.engine, turn.loop))
        ProcessCollector(registry=self.registry)
        try:
            self._http, self._thread = start_http_server(self.port, self._host, self.registry)
        except OSError as problem:
            raise UsageError(
                f"cannot listen on {self._host}:{self.port} (metrics-port): {problem.strerror or problem}"
            ) from None
        self.port = self._http.server_port
        turn.server_log.notice(f"Metrics for Prometheus at http://{self._host}:{self.port}/metrics")

    def stop(self) -> None:
        """Stop listening. A scrape that is being answered may get `redis_up 0`."""
        Thread(target=self._close, name="penstock-metrics-end", daemon=True).start()

    def _close(self) -> None:
        self._http.shutdown()  # waits for the listening thread
        self._http.server_close()
