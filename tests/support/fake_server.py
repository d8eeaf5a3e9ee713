"""A server without a network: a loop turned by hand, transports that keep what was written, a log that waits."""

import asyncio
from collections.abc import Callable
from typing import cast

from penstock.clock import ManualClock
from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.server.connections.connection import Connection
from penstock.server.server_log import ServerLog
from penstock.server.turns.turn import Turn
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.log_directory import LogDirectory
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine
from tests.support.memory_disk import MemoryDisk


class FakeTimer:
    def __init__(self, when_s: float, callback: Callable[[], None]) -> None:
        self.when_s = when_s
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Runs what was called soon when a test says so; its time is the engine's clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._soon: list[Callable[[], None]] = []
        self.fired = 0  # timers
        self.timers: list[FakeTimer] = []

    def time(self) -> float:
        return self._clock.monotonic_us() / 1_000_000

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(self.time() + delay_s, callback)
        self.timers.append(timer)
        return timer

    def turn_once(self) -> None:
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()

    def turn(self) -> None:
        """Until nothing is left to do at this moment."""
        while self._soon:
            self.turn_once()

    def pass_ms(self, ms: int) -> None:
        """Let time pass, then run what became due."""
        self._clock.advance(ms)
        due = [timer for timer in self.timers if timer.when_s <= self.time() and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer not in due and not timer.cancelled]
        self.fired += len(due)
        for timer in due:
            timer.callback()
        self.turn()


class FakeTransport(asyncio.Transport):
    """Keeps what was written. A `slow` peer takes nothing until `take` is called."""

    def __init__(
        self, peer: object = ("127.0.0.1", 50000), slow: bool = False, local: object = ("127.0.0.1", 6379)
    ) -> None:
        super().__init__({"peername": peer, "sockname": local})
        self.asked: list[str] = []  # what the connection wanted to know
        self.known = True  # its addresses
        self.written: list[bytes] = []
        self.slow = slow
        self.unsent = 0
        self.closed = False
        self.aborted = False
        self.reads = True
        self.protocol: Connection | None = None

    def get_extra_info(self, name: str, default: object = None) -> object:
        self.asked.append(name)
        return super().get_extra_info(name, default) if self.known else default

    def forget(self) -> None:
        """The addresses cannot be asked for any more."""
        self.known = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0, "the connection wants to hear of every byte that waits"

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if self.slow and self.protocol is not None:
            was_empty = not self.unsent
            self.unsent += len(data)
            if was_empty:
                self.protocol.pause_writing()

    def take(self) -> None:
        """The peer reads everything."""
        assert self.protocol is not None
        self.unsent = 0
        self.protocol.resume_writing()

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


class NoFile:
    """Takes units and keeps none: the engine counts that there were some."""

    def append(self, unit: bytes) -> None:
        """Nothing to do."""


class FakeLogWriter:
    """A log that lets replies out at once, or when told, or fails."""

    def __init__(self) -> None:
        self.holds = False
        self.reads_go = False  # while it holds
        self.is_kept = True
        self.held: list[Callable[[bool], None]] = []
        self.turns = 0
        self.closed = False

    def end_of_turn(self, finish: Callable[[bool], None]) -> bool:
        self.turns += 1
        if self.is_kept and self.holds:
            self.held.append(finish)
        else:
            finish(self.is_kept)
        return self.reads_go

    def sync(self) -> None:
        """Everything that waited goes out."""
        held, self.held = self.held, []
        for finish in held:
            finish(self.is_kept)

    def cron(self) -> None:
        """Nothing to do."""

    def close(self) -> bool:
        self.sync()
        self.closed = True
        return True


class Client:
    """One connection as its peer sees it."""

    def __init__(self, fake_server: "FakeServer", transport: FakeTransport) -> None:
        self._server = fake_server
        self.transport = transport
        self.connection = Connection(fake_server.turn)
        transport.protocol = self.connection
        self.connection.connection_made(transport)

    @property
    def session(self) -> Session:
        return self.connection.session

    def sends(self, data: bytes) -> None:
        """Without a turn of the loop."""
        self.connection.data_received(data)

    def says(self, data: bytes) -> bytes:
        """What comes back once the loop has nothing left to do."""
        self.sends(data)
        self._server.loop.turn()
        return self.received()

    def received(self) -> bytes:
        """What was written since one looked last."""
        written, self.transport.written = b"".join(self.transport.written), []
        return written


class FakeServer:
    """An engine, a turn, and as many clients as a test wants."""

    def __init__(self, **directives: str) -> None:
        self.clock = self.new_clock()
        self.settings = Settings()
        for name, value in directives.items():
            self.settings.set_pairs([(name.replace("_", "-"), value)])
        self.settings.set_pairs([("loglevel", "nothing")])
        self.engine = make_engine(self.clock, settings=self.settings)
        self.engine.effects.use(NoFile())
        self.log_writer = FakeLogWriter()
        self.loop = FakeLoop(self.clock)
        self.stops: list[str] = []
        server_log = ServerLog(self.settings, self.clock)
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.turn = Turn(self.engine, self.log_writer, server_log, loop, lambda: self.stops.append("stop"))

    def new_clock(self) -> ManualClock:
        """The clock of the engine and the loop."""
        return ManualClock(NOW_MS)

    def connect(
        self, peer: object = ("127.0.0.1", 50000), slow: bool = False, local: object = ("127.0.0.1", 6379)
    ) -> Client:
        return Client(self, FakeTransport(peer, slow, local))

    def keeps_a_log(self) -> None:
        """Changes are counted from here on."""
        log = AppendLog(LogDirectory(MemoryDisk(), "/data", "appendonlydir", "appendonly.aof"))
        self.engine.persistence.log = log
        self.engine.effects.use(log)
