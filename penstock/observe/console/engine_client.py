"""The console's connection to its server: an ordinary client's, over a pair of sockets instead of a network.

The server's loop has one end, as any other connection, so users and their rights, MONITOR, the slow log and CLIENT LIST
hold for the console. The console's loop, in a thread of its own, has the other. To the server it comes from where the
browser is: what only clients of this machine may do (`local`) is not for others by way of the console.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, cast

import hiredis

from penstock.engine.session import Endpoints
from penstock.observe.console.replies import checked
from penstock.protocol.reply import bulks
from penstock.server.connections.connection import Connection
from penstock.server.turns.turn import Turn

Words: TypeAlias = list[bytes]

PIECE: Final = 65536
MULTI: Final[Words] = [b"MULTI"]
PATIENCE_S: Final = 20.0  # for all replies to a pipeline


class Gone(Exception):
    """The connection has ended, or the server does not answer."""


class EngineDoor:
    """Makes connections to one server, for the console's loop."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._arriving: set[asyncio.Task[object]] = set()

    async def client(self, browser: Endpoints) -> "EngineClient":
        """A new connection, of the user that a client has before it logs in.

        browser: the addresses of the connection that asks for it. Gone if the server has ended, or has no descriptors
        left.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as problem:
            raise Gone(f"the server takes no connection: {problem.strerror}") from None
        ours.setblocking(False)
        theirs.setblocking(False)
        try:
            self._turn.loop.call_soon_threadsafe(self._let_in, theirs, browser)
        except RuntimeError:  # its loop is closed
            ours.close()
            theirs.close()
            raise Gone("the server has ended") from None
        reader, writer = await asyncio.open_connection(sock=ours, limit=PIECE)
        return EngineClient(reader, writer)

    def _let_in(self, link: socket.socket, browser: Endpoints) -> None:
        """Called in the server's loop."""
        loop = self._turn.loop
        greet = partial(Connection, self._turn, client=browser)
        arriving: asyncio.Task[object] = loop.create_task(
            loop.connect_accepted_socket(cast("Callable[[], asyncio.Protocol]", greet), link)
        )
        self._arriving.add(arriving)
        arriving.add_done_callback(self._arriving.discard)


class EngineClient:
    """One connection. Several requests of the page may use it: each pipeline is sent and answered as a whole.

    Replies are hiredis's: bytes, int, None, lists; an error is returned, not raised.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._replies = hiredis.Reader(notEnoughData=False)
        self._lock = asyncio.Lock()
        self._db = 0
        self.is_open = True

    async def ask(self, *words: bytes, db: int | None = None) -> Any:
        """One request's reply."""
        return (await self.pipeline([list(words)], db))[0]

    async def pipeline(self, requests: Sequence[Words], db: int | None = None) -> list[Any]:
        """The replies to some requests, in a database if one is named. Gone if the connection ends.

        The database and a transaction's MULTI are asked for first. RefusedByServer if that is refused: the requests are
        not sent, as they would be run in another database, or one by one. Replies are read to the end also where a page
        leaves before: others of its session use the connection.
        """
        return await asyncio.shield(self._pipeline(requests, db))

    async def _pipeline(self, requests: Sequence[Words], db: int | None) -> list[Any]:
        async with self._lock:
            if not self.is_open:
                raise Gone("the connection to the server has ended")
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return await self._carry_out(list(requests), db)
            except (OSError, TimeoutError, hiredis.ProtocolError) as problem:
                self.close()
                raise Gone(f"the server does not answer: {problem or 'it takes too long'}") from None
            except asyncio.CancelledError:
                self.close()  # what comes next on it would be a reply to this
                raise

    async def _carry_out(self, requests: list[Words], db: int | None) -> list[Any]:
        if db is not None and db != self._db:
            (selected,) = await self._exchange([[b"SELECT", b"%d" % db]])
            checked(selected)
            self._db = db
        if requests[:1] != [MULTI]:
            return await self._exchange(requests)
        (begun,) = await self._exchange([MULTI])
        return [checked(begun), *await self._exchange(requests[1:])]

    async def _exchange(self, requests: Sequence[Words]) -> list[Any]:
        self._writer.write(b"".join([bulks(words) for words in requests]))
        await self._writer.drain()
        replies: list[Any] = []
        while len(replies) < len(requests):
            piece = await self._reader.read(PIECE)
            if not piece:
                raise ConnectionResetError("it closed the connection")
            self._replies.feed(piece)
            while len(replies) < len(requests) and (reply := self._replies.gets()) is not False:
                replies.append(reply)
        return replies

    def close(self) -> None:
        self.is_open = False
        self._writer.close()
