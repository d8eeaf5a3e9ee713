"""Opens links to one embedded server."""

import asyncio
from itertools import count
from typing import Final

from penstock.server.turn import Turn
from penstock.testing.inline_loop import InlineLoop
from penstock.testing.links import LinkedSocket, LinkedStream

FIRST_PORT: Final = 50_000  # what CLIENT LIST shows of the first client; no such port is open


class Openings:
    """The turn and the loop of one server, for the clients' connections."""

    def __init__(self, turn: Turn, loop: InlineLoop) -> None:
        self._turn = turn
        self._loop = loop
        self._ports = count(FIRST_PORT)
        self.is_closed = False

    def socket(self, timeout_s: float | None) -> LinkedSocket:
        """For a blocking client. ConnectionRefusedError once the server has ended."""
        self._check()
        return LinkedSocket(self._turn, self._loop, next(self._ports), timeout_s)

    def stream(self, reader: asyncio.StreamReader, client_loop: asyncio.AbstractEventLoop) -> LinkedStream:
        """For a client in an event loop. ConnectionRefusedError once the server has ended."""
        self._check()
        return LinkedStream(self._turn, self._loop, next(self._ports), reader, client_loop)

    def _check(self) -> None:
        if self.is_closed:
            raise ConnectionRefusedError("the server has ended")
