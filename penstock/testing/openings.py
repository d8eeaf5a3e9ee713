"""Opens links to one embedded server."""

import asyncio
from itertools import count
from typing import Final

from penstock.server.turns.turn import Turn
from penstock.testing.connections.links import LinkedSocket, LinkedStream
from penstock.testing.faults.failing import Faults
from penstock.testing.loops.inline_loop import InlineLoop
from penstock.testing.trace import Trace

FIRST_PORT: Final = 50_000  # what CLIENT LIST shows of the first client; no such port is open


class Openings:
    """The turn and the loop of one server, for the clients' connections.

    A link is opened with the lock held, because `Server.close` closes with it what is open: a link that is opened later
    is refused, and would wait for ever if it were not.
    """

    def __init__(self, turn: Turn, loop: InlineLoop, faults: Faults, trace: Trace) -> None:
        self._turn = turn
        self._loop = loop
        self._faults = faults
        self._trace = trace
        self._ports = count(FIRST_PORT)
        self.is_closed = False

    def socket(self, timeout_s: float | None) -> LinkedSocket:
        """For a blocking client. ConnectionRefusedError once the server has ended."""
        with self._loop.lock:
            port = self._port()
            return LinkedSocket(self._turn, self._loop, port, self._faults, self._trace.client(port), timeout_s)

    def stream(self, reader: asyncio.StreamReader, client_loop: asyncio.AbstractEventLoop) -> LinkedStream:
        """For a client in an event loop. ConnectionRefusedError once the server has ended."""
        with self._loop.lock:
            self._faults.end_abandoned()
            port = self._port()
            traced = self._trace.client(port)
            return LinkedStream(self._turn, self._loop, port, self._faults, traced, reader, client_loop)

    def become(self, other: "Openings") -> None:
        """From now on open links to the server that another one is for: clients know this one."""
        self._turn, self._loop, self._faults = other._turn, other._loop, other._faults
        self.is_closed = False

    def _port(self) -> int:
        if self.is_closed or not self._faults.is_reachable:
            raise ConnectionRefusedError("the server has ended" if self.is_closed else "the server is unreachable")
        return next(self._ports)
