"""A server without a network and without a machine: connections, turns and a log on a disk in memory.

Its loop, clock, syncing thread and rewriting child are turned by hand, so that the power can go at any moment.
"""

import asyncio
import random
from typing import cast

import hiredis

from penstock.clock import ManualClock
from penstock.commands.engine import Engine
from penstock.commands.rewrite import base_lines
from penstock.server.connection import Connection
from penstock.server.durability import Durability
from penstock.server.journal import Journal
from penstock.server.rewriting import Rewriting
from penstock.server.turn import Turn
from penstock.settings import Settings
from penstock.storage.logdirectory import write_all
from tests.server.fakes import FakeLoop, FakeTransport
from tests.server.test_durability import LaterExecutor
from tests.storage.memorydisk import MemoryDisk

ROOT = "/tmp"  # in memory; the settings want a directory that exists
NOW_MS = 1_795_300_000_000
CHILD_PID = 4711
UNFINISHED = object()


class PowerLoss(BaseException):
    """Nothing runs any more. No handler of ours may catch it."""


class FakeRewriting(Rewriting):
    """A child that keeps the lines of its beginning, and writes them when it is told to."""

    __slots__ = ("_failure", "_lines", "_path", "_written")

    def __init__(self, disk: MemoryDisk, engine: Engine) -> None:
        super().__init__(disk, engine.keyspace, engine.settings)
        self._lines: list[bytes] = []
        self._path = ""
        self._written = False
        self._failure = ""

    def start(self, directory: str, now_ms: int) -> None:
        self.pid = CHILD_PID
        self._path = f"{directory}/temp-rewriteaof-bg-{self.pid}.aof"
        self._lines = list(base_lines(self.keyspace, self.settings, now_ms))
        self._written, self._failure = False, ""

    def write(self) -> None:
        if not self.pid or self._written:
            return
        self._written = True
        try:
            file = self.disk.create(self._path)
            for line in self._lines:
                write_all(file, line)
            file.sync()
        except OSError as failure:
            self._failure = str(failure)

    def poll(self) -> str | None:
        if not self._written:
            return None
        self.pid = 0
        return self._failure

    def kill(self) -> None:
        self.pid = 0


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
        self.connection.data_received(b"".join(hiredis.pack_command(tuple(request)) for request in requests))

    def read(self) -> list[object]:
        """Replies that came since, which are added to `replies`."""
        self._reader.feed(b"".join(self._transport.written))
        self._transport.written.clear()
        came = []
        while (value := self._reader.gets()) is not UNFINISHED:
            came.append(value)
        self.replies += came
        return came

    def says(self, line: str) -> object:
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
        self.engine = Engine(self.settings, self.clock, random.Random(1))
        self.executor = LaterExecutor()
        self.rewriting = FakeRewriting(disk, self.engine)
        self.durability = Durability(self.settings, self.engine, self.said.append, disk, self.executor, self.rewriting)
        self.loop = FakeLoop(self.clock)
        journal = Journal(self.settings, self.clock)
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.durability.synced = lambda: None
        for _ in self.durability.loading():
            pass
        self.turn = Turn(self.engine, self.durability, journal, loop, lambda: None)

    def later(self, ms: int) -> None:
        """Time passes, and the chores are done as ten times a second."""
        until_ms = self.clock.now_us() // 1000 + ms
        while (left_ms := until_ms - self.clock.now_us() // 1000) > 0:
            self.loop.pass_ms(min(100, left_ms))
            self.turn.look_after_log()
            self.loop.turn()

    def finish_syncs(self) -> None:
        """The syncing thread gets to its end; the loop hears of it."""
        self.executor.run()
        self.turn.look_after_log()
        self.loop.turn()

    def finish_rewriting(self) -> None:
        """The child gets to its end, and the thread that swaps files."""
        self.rewriting.write()
        self.turn.look_after_log()
        self.loop.turn()
        self.finish_syncs()
