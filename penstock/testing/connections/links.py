"""How a client in the process reaches the server: the transport that a server's connection writes to."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.server.connections.connection import Connection
from penstock.testing.loops.inline_loop import LONGEST_WAIT_S

if TYPE_CHECKING:
    import asyncio

    from penstock.server.turns.turn import Turn
    from penstock.testing.faults.failing import Faults
    from penstock.testing.loops.inline_loop import InlineLoop
    from penstock.testing.trace import ClientTrace

HOST: Final = "127.0.0.1"
PIECE: Final = 65536


class LinkTransport:
    """The server's end of a link: the transport that its Connection writes to, with the lock held."""

    __slots__ = ("_link", "_port")

    def __init__(self, link: "Link", port: int) -> None:
        self._link = link
        self._port = port

    def write(self, replies: bytes) -> None:
        self._link.arrived(replies)

    def close(self) -> None:
        self._link.end_soon()

    abort = close

    def is_closing(self) -> bool:
        return not self._link.is_open

    def get_extra_info(self, name: str) -> tuple[str, int] | None:
        return {"peername": (HOST, self._port), "sockname": (HOST, 0)}.get(name)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nothing to do: sent bytes are handled at once, or kept by the connection."""

    def resume_reading(self) -> None:
        """As pause_reading."""


class Link:
    """One client of the server in this process: what the client calls, in its thread. Every call takes the lock.

    `received` and `ended` say what to do with a reply's bytes, and with the end of the connection; they are called with
    the lock held, perhaps in another thread.
    """

    def __init__(self, turn: "Turn", loop: "InlineLoop", port: int, faults: "Faults", trace: "ClientTrace") -> None:
        self._loop = loop
        self.port = port
        self.is_open = True
        self.is_reset = False  # a fault breaks the connection: nothing is received any more
        self._connection = Connection(turn)
        self._faults = faults
        self._trace = trace
        with loop.lock:
            faults.opened(self)
            self._connection.connection_made(cast("asyncio.Transport", LinkTransport(self, port)))
            loop.run_due()

    def send(self, requests: bytes) -> None:
        """Have requests handled; what is answered at once has been received when this returns."""
        with self._loop.lock:
            if self.is_open:
                requests = self._faults.requests_through(self, requests)
                if requests:
                    self._trace.sent(requests)
                    self._connection.data_received(requests)
                if self.is_reset:
                    self.end_soon()
                self._loop.run_due()

    def close(self) -> None:
        """The client closes the connection."""
        with self._loop.lock:
            self.end_soon()
            self._loop.run_due()

    def end_soon(self) -> None:
        """The connection is closed, by the client or by the server."""
        if self.is_open:
            self.is_open = False
            self._loop.call_soon(self._lose)

    def _lose(self) -> None:
        self._connection.connection_lost(None)
        self._faults.ended(self)
        self._trace.ended()
        self.ended()

    def is_abandoned(self) -> bool:
        """Whether the client can neither read nor close any more."""
        return False

    def arrived(self, replies: bytes) -> None:
        """The server sent something, unless a fault takes it."""
        if not self._faults.takes(self, replies, self._trace.command_asked()):
            self._trace.received(replies)
            self.received(replies)

    def received(self, replies: bytes) -> None:
        """Give the client what the server sent."""
        raise NotImplementedError

    def ended(self) -> None:
        """The connection is closed."""
        raise NotImplementedError

    def dies(self, death: BaseException) -> None:
        """The client's calls raise `death` from here on; its connection is closed."""
        self.end_soon()


class LinkedSocket(Link):
    """A link that a thread reads like a socket: what redis-py's blocking client asks of one."""

    def __init__(
        self,
        turn: "Turn",
        loop: "InlineLoop",
        port: int,
        faults: "Faults",
        trace: "ClientTrace",
        timeout_s: float | None,
    ) -> None:
        self._timeout_s = timeout_s
        self._inbox = bytearray()
        self._has_ended = False
        self._death: BaseException | None = None
        self._arrival = threading.Condition()
        super().__init__(turn, loop, port, faults, trace)

    def received(self, replies: bytes) -> None:
        with self._arrival:
            self._inbox += replies
            self._arrival.notify_all()

    def ended(self) -> None:
        with self._arrival:
            self._has_ended = True
            self._arrival.notify_all()

    def dies(self, death: BaseException) -> None:
        self._death = death
        super().dies(death)

    # -- socket -------------------------------------------------------------------------------------------------------

    def sendall(self, requests: bytes) -> None:
        if self._has_ended:
            raise BrokenPipeError("the server has closed the connection")
        self.send(bytes(requests))

    def recv_into(self, buffer: bytearray) -> int:
        piece = self.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """At most so many bytes, empty at the end of the connection; TimeoutError after the timeout."""
        if not self._inbox and not self.wait(self._timeout_s):
            raise TimeoutError("timed out")
        if self._death is not None:
            raise self._death
        with self._arrival:
            piece = bytes(self._inbox[:size])
            del self._inbox[:size]
            return piece

    def wait(self, timeout_s: float | None) -> bool:
        """Whether something can be read, or the end was reached, after at most so long."""
        if self._inbox or self._has_ended:
            return True
        if timeout_s == 0:
            return False
        self._loop.start_thread()
        with self._arrival:
            if timeout_s is not None:
                return self._arrival.wait_for(self._has_something, timeout_s)
            while not self._arrival.wait_for(self._has_something, LONGEST_WAIT_S):
                self._loop.start_thread()
            return True

    def _has_something(self) -> bool:
        return self._has_ended or len(self._inbox) > 0

    @property
    def is_at_end(self) -> bool:
        return self._has_ended and not self._inbox

    def pending(self) -> int:
        return len(self._inbox)

    def settimeout(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s

    def gettimeout(self) -> float | None:
        return self._timeout_s

    def getsockname(self) -> tuple[str, int]:
        return HOST, self.port

    def shutdown(self, how: int) -> None:
        self.close()


class LinkedStream(Link):
    """A link that an event loop reads: the writer of redis-py's asyncio client; `reader` gets the replies."""

    def __init__(
        self,
        turn: "Turn",
        loop: "InlineLoop",
        port: int,
        faults: "Faults",
        trace: "ClientTrace",
        reader: "asyncio.StreamReader",
        client_loop: "asyncio.AbstractEventLoop",
    ) -> None:
        self._reader = reader
        self._client_loop = client_loop
        self._thread = threading.get_ident()
        self._answered = False
        self.transport = self
        super().__init__(turn, loop, port, faults, trace)

    def _call(self, function: Callable[..., object], *args: Any) -> None:
        """Call in the client's thread: now if this is it. A client whose loop is closed does not read any more."""
        if self.is_abandoned():
            return
        if threading.get_ident() == self._thread:
            function(*args)
        else:
            with suppress(RuntimeError):  # the client's loop may be closed
                self._client_loop.call_soon_threadsafe(function, *args)

    def is_abandoned(self) -> bool:
        return self._client_loop.is_closed()

    def received(self, replies: bytes) -> None:
        self._answered = True
        self._call(self._reader.feed_data, replies)

    def ended(self) -> None:
        self._answered = True
        self._call(self._reader.feed_eof)

    def dies(self, death: BaseException) -> None:
        self._answered = True
        self._call(self._reader.set_exception, death)
        super().dies(death)

    # -- StreamWriter -------------------------------------------------------------------------------------------------

    def writelines(self, pieces: list[bytes]) -> None:
        if not self.is_open:
            raise ConnectionResetError("the server has closed the connection")
        self._answered = False
        self.send(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if not self._answered:
            self._loop.start_thread()  # a client waits for a reply

    def get_extra_info(self, name: str) -> None:
        """There is no socket."""

    def abort(self) -> None:
        self.close()

    async def drain(self) -> None:
        """All was handled."""

    def is_closing(self) -> bool:
        return not self.is_open

    async def wait_closed(self) -> None:
        """It is closed at once."""
