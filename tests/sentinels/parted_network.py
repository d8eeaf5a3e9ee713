"""A network that can be parted, between servers of this machine: each server is reached through a relay.

A server connects from an address of its own (`bind-source-addr`), which tells a relay where a connection comes from.
While two places are parted, what is sent between them waits and nothing is closed, as with a cable that is pulled.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import TypeVar

from tests.support.reference_server import LOCALHOST

PIECE = 65_536
END_S = 10.0

Found = TypeVar("Found")


def source_address(server: int) -> str:
    """Where the server of this number connects from. All that is no server connects from LOCALHOST."""
    return f"127.0.0.{100 + server}"


class PartedNetwork:
    """Relays, numbered as the servers that they stand before."""

    def __init__(self, stack: ExitStack, servers: list[int]) -> None:
        """servers: their ports. `ports` are those of the relays."""
        self._loop = asyncio.new_event_loop()
        self._parted: frozenset[str] = frozenset()
        self._whole = asyncio.Event()
        self._whole.set()
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        stack.callback(self._end, thread)
        self.ports = [self._in_loop(self._listen(number, port)) for number, port in enumerate(servers)]

    def part(self, *servers: int) -> None:
        """Part these servers from the rest: they reach each other, and nothing else."""
        self._in_loop(self._set(frozenset(map(source_address, servers))))

    def heal(self) -> None:
        """What has waited goes on."""
        self._in_loop(self._set(frozenset()))

    async def _set(self, parted: frozenset[str]) -> None:
        self._parted = parted
        (self._whole.clear if parted else self._whole.set)()

    def _in_loop(self, work: Coroutine[None, None, Found]) -> Found:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(END_S)

    def _end(self, thread: threading.Thread) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join(END_S)

    async def _listen(self, number: int, port: int) -> int:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._relay(source_address(number), port, reader, writer)

        listening = await asyncio.start_server(relay, LOCALHOST, 0)
        own: int = listening.sockets[0].getsockname()[1]
        return own

    async def _relay(self, target: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side closes it."""
        source: str = writer.get_extra_info("peername")[0]
        with contextlib.suppress(OSError):
            await self._pass(source, target)
            further_reader, further_writer = await asyncio.open_connection(LOCALHOST, port)
            ways = [(reader, further_writer), (further_reader, writer)]
            pumps = [asyncio.create_task(self._pump(source, target, *way)) for way in ways]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            further_writer.close()
        writer.close()

    async def _pump(self, source: str, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                await self._pass(source, target)
                writer.write(piece)
                await writer.drain()
            await self._pass(source, target)

    async def _pass(self, source: str, target: str) -> None:
        """Wait while the two places are parted."""
        while (source in self._parted) != (target in self._parted):
            await self._whole.wait()
