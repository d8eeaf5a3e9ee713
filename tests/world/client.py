"""A client: it sends requests, waits for replies, and does not know what became of a request whose reply never came."""

import asyncio
from collections import deque
from typing import Any, Final

import hiredis

from penstock.protocol.reply import bulks
from tests.world.network import ClientEnd, Network
from tests.world.process import Machine

RETRY_S: Final = 0.2
UNFINISHED: Final = object()


class Lost(Exception):
    """The connection is lost: what became of the requests without replies is not known."""


class Client(ClientEnd):
    """One client of a machine's server, with a connection at a time."""

    def __init__(self, network: Network, machine: Machine) -> None:
        super().__init__()
        self._network = network
        self.machine = machine
        self._reader = hiredis.Reader(notEnoughData=UNFINISHED)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._has_ended = False  # it sends no more on this connection

    async def open(self) -> None:
        """Connect; again until there is a server."""
        while not self.is_open:
            try:
                self._reader = hiredis.Reader(notEnoughData=UNFINISHED)
                self.connected = None
                self.connected = await self._network.connect(lambda: self.machine.process, self)
                self.is_open, self._has_ended = True, False
            except ConnectionRefusedError:
                await asyncio.sleep(RETRY_S)

    def send(self, *requests: tuple[bytes, ...]) -> "list[asyncio.Future[Any]]":
        """Send requests at once; their replies. Lost where there is no connection."""
        if not self.is_open or self.connected is None or self._has_ended:
            self.reset()
            raise Lost
        replies: list[asyncio.Future[Any]] = [self._network.loop.create_future() for _ in requests]
        self._waiting.extend(replies)
        self.connected.requests.send(b"".join(bulks(list(words)) for words in requests))
        return replies

    async def ask(self, *words: bytes) -> Any:
        """The reply to one request: bytes, an int, a list, None or a hiredis.ReplyError. Lost if it never comes."""
        return await self.send(words)[0]

    def received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (value := self._reader.gets()) is not UNFINISHED:
            self.take(value)

    def take(self, value: Any) -> None:
        """What the server sent: the reply to the oldest request that waits."""
        reply = self._waiting.popleft()
        if not reply.done():
            reply.set_result(value)

    def ended(self) -> None:
        """The server, or its process, has closed the connection."""
        self.is_open = False
        waiting, self._waiting = self._waiting, deque()
        for reply in waiting:
            if not reply.done():
                reply.set_exception(Lost())
                reply.exception()  # asyncio need not say that nothing took it

    def half_close(self) -> None:
        """Send no more, and wait for the replies to what was sent."""
        if self.is_open and self.connected is not None:
            self._has_ended = True
            self.connected.half_close()

    def reset(self) -> None:
        """The client's machine or process is gone."""
        if self.is_open and self.connected is not None:
            self.connected.reset()
            self.ended()


def is_refusal(reply: object) -> bool:
    return isinstance(reply, hiredis.ReplyError)
