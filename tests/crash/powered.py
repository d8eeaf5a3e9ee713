"""A server without a network and without a machine: connections, turns and a log on a disk in memory.

Its loop, clock, syncing thread and rewriting child are turned by hand, so that the power can go at any moment.
"""

import asyncio
from typing import Any, cast

import hiredis

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.server.connections.connection import Connection
from penstock.server.server_log import ServerLog
from penstock.server.turns.log_writer import AofWriter
from penstock.server.turns.turn import Turn
from tests.support.clock import NOW_MS
from tests.support.deferred_log import DeferredRewriteChild, DeferredThreads
from tests.support.engines import make_engine
from tests.support.fake_server import FakeLoop, FakeTransport
from tests.support.memory_disk import MemoryDisk
from tests.support.wire import pack

ROOT = "/tmp"  # in memory; the settings want a directory that exists
UNFINISHED = object()


class PowerLoss(BaseException):
    """Nothing runs any more. No handler of ours may catch it."""


class Peer:
    """One client: pipelines requests, and reads what has come."""

    def __init__(self, server: "PoweredServer") -> None:
        self._server = server
        self._transport = FakeTransport()
        self.connection = Connection(server.turn)
        self._transport.protocol = self.connection
        self.connection.connection_made(self._transport)
        self._reader = hiredis.Reader(notEnoughData=UNFINISHED)
        self.sent: list[list[bytes]] = []
        self.replies: list[object] = []

    def send(self, *requests: list[bytes]) -> None:
        """Without a turn of the loop."""
        self.sent += requests
        self.connection.data_received(b"".join(pack(*request) for request in requests))

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the connection."""
        return self._transport.closed

    def read(self) -> list[object]:
        """Replies that came since, which are added to `replies`."""
        self._reader.feed(b"".join(self._transport.written))
        self._transport.written.clear()
        came = []
        while (value := self._reader.gets()) is not UNFINISHED:
            came.append(value)
        self.replies += came
        return came

    def says(self, line: str) -> Any:
        """One request and its reply, which must come in this turn."""
        self.send(line.encode().split())
        self._server.loop.turn()
        came = self.read()
        assert len(came) == 1, came
        return came[0]


class PoweredServer:
    """A server on `disk`; UsageError where it does not start there."""

    def __init__(self, disk: MemoryDisk, **directives: str) -> None:
        self.disk = disk
        self.clock = ManualClock(NOW_MS)
        self.settings = Settings()
        pairs = {"dir": ROOT, "loglevel": "nothing", "appendfsync": "always"} | directives
        for name, value in pairs.items():
            self.settings.read_line([name.replace("_", "-"), value], set())
        self.said: list[str] = []
        self.engine = make_engine(self.clock, settings=self.settings)
        self.threads = DeferredThreads()
        self.rewriting = DeferredRewriteChild(disk, self.engine)
        self.durability = AofWriter(self.settings, self.engine, self.said.append, disk, self.threads, self.rewriting)
        self.loop = FakeLoop(self.clock)
        server_log = ServerLog(self.settings, self.clock)
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.durability.synced = lambda: None
        for _ in self.durability.loading():
            pass
        self.turn = Turn(self.engine, self.durability, server_log, loop, lambda: None)

    def later(self, ms: int) -> None:
        """Time passes, and the chores are done as ten times a second."""
        until_ms = self.clock.now_us() // 1000 + ms
        while (left_ms := until_ms - self.clock.now_us() // 1000) > 0:
            self.loop.pass_ms(min(100, left_ms))
            self.turn.look_after_log()
            self.loop.turn()

    def finish_syncs(self) -> None:
        """The syncing thread gets to its end; the loop hears of it."""
        self.threads.run()
        self.turn.look_after_log()
        self.loop.turn()

    def finish_rewriting(self) -> None:
        """The child gets to its end, and the thread that swaps files."""
        self.rewriting.write()
        self.turn.look_after_log()
        self.loop.turn()
        self.finish_syncs()
