"""Code that blocks, in a world: it has a stack of its own, and waits in virtual time.

The world and its fibers take turns in one thread, so that a world with fibers happens again by its number. What the
pipeline's connector asks of sockets and clocks (`connector_in`) is answered by the world, and asked in a fiber only.
"""

import asyncio
import gc
import random
import socket
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pytest
from greenlet import getcurrent, greenlet

from penstock.pipeline.connector.connection import client, cluster, missing_streams
from penstock.pipeline.connector.source import cursor_reader, shared_reader, stream_reader
from tests.world.loop import WorldLoop
from tests.world.network import ClientEnd, Network
from tests.world.process import Machine

CLOCKED: Final = (client, cluster, missing_streams, cursor_reader, shared_reader, stream_reader)
RANDOM: Final = (client, shared_reader, stream_reader)


class Ended(BaseException):
    """The world does not wait for this fiber any more. No handler of the product may catch it."""


class Fiber:
    """`run` gives what `work` returns or raises. Within, `wait_for` lets the world go on until a coroutine ends.

    warned: the texts of Python's warnings within. waits_left: so often `wait_for` waits, then it raises `death`.
    """

    death: type[Exception] = RuntimeError

    def __init__(self, work: Callable[[], Any]) -> None:
        self._stack = greenlet(work)
        self._stack.fiber = self
        self._is_over = False
        self.warned: list[str] = []
        self.waits_left: float = float("inf")

    async def run(self) -> Any:
        found = self._stack.switch()
        while not self._stack.dead:
            try:
                answer = await found
            except asyncio.CancelledError:
                self._is_over = True
                with suppress(Ended):
                    self._stack.throw(Ended())
                raise
            except Exception as problem:
                found = self._stack.throw(problem)
            else:
                found = self._stack.switch(answer)
        return found

    def wait_for(self, wanted: Coroutine[Any, Any, Any]) -> Any:
        if self._is_over:
            wanted.close()
            raise Ended
        self.waits_left -= 1
        if self.waits_left < 0:
            wanted.close()
            raise self.death
        world = self._stack.parent
        assert world is not None, "a fiber runs within a world"
        return world.switch(wanted)


class Socket(ClientEnd):
    """A client's socket, as far as the connector uses one."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._network = network
        self._received = bytearray()
        self._timeout_s: float | None = None
        self._arrival: asyncio.Event = asyncio.Event()

    async def open(self, machine: Machine) -> None:
        self.connected = await self._network.connect(lambda: machine.process, self)
        self.is_open = True

    def received(self, data: bytes) -> None:
        self._received += data
        self._arrival.set()

    def ended(self) -> None:
        self.is_open = False
        self._arrival.set()

    def setsockopt(self, *option: object) -> None:
        """There is none."""

    def settimeout(self, seconds: float | None) -> None:
        self._timeout_s = seconds

    def sendall(self, data: bytes) -> None:
        if not self.is_open or self.connected is None:
            raise ConnectionResetError("the connection is lost")
        self.connected.requests.send(bytes(data))

    def send(self, data: bytes) -> int:
        """The network takes all of it."""
        self.sendall(data)
        return len(data)

    def recv(self, most: int) -> bytes:
        if not self._received and self.is_open:
            if self._timeout_s == 0.0:
                raise BlockingIOError
            current().wait_for(self._arrives())  # not always that in which the connection was made
        found = bytes(self._received[:most])
        del self._received[:most]
        return found

    async def _arrives(self) -> None:
        self._arrival.clear()
        async with asyncio.timeout(self._timeout_s):
            await self._arrival.wait()

    def close(self) -> None:
        if self.is_open and self.connected is not None:
            self.connected.reset()
        self.is_open = False


class Sockets:
    """Stands for the module `socket`."""

    IPPROTO_TCP, TCP_NODELAY, gaierror = socket.IPPROTO_TCP, socket.TCP_NODELAY, socket.gaierror
    socket = socket.socket

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine

    def create_connection(self, address: tuple[str, int], timeout_s: float) -> Any:
        end = Socket(self._network)
        current().wait_for(end.open(self._machine))
        return end


class _Time:
    """Stands for the module `time`."""

    def __init__(self, loop: WorldLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.time()

    def sleep(self, seconds: float) -> None:
        current().wait_for(asyncio.sleep(seconds))


class _Secrets:
    """Stands for the module `secrets`: words that are the same in each run of a world."""

    def __init__(self) -> None:
        self._chance = random.Random(0)

    def token_hex(self, size: int) -> str:
        return self._chance.randbytes(size).hex()


def current() -> Fiber:
    fiber = _fiber_if_any()
    assert fiber is not None, "the connector is in a fiber"
    return fiber


def _fiber_if_any() -> Fiber | None:
    return getattr(getcurrent(), "fiber", None)


def _keep_warning(message: Warning | str, *place: object) -> None:
    """Stands for `warnings.showwarning`, which is the process's: fibers take turns, and each has its own warnings."""
    if (fiber := _fiber_if_any()) is not None:
        fiber.warned.append(str(message))


@contextmanager
def connector_in(network: Network, machine: Machine) -> Iterator[None]:
    """The connector's clients reach this machine, and its clocks go by this world's time."""
    clock = _Time(network.loop)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(client, "socket", Sockets(network, machine))
        patch.setattr(client, "time", clock)
        words = _Secrets()
        for module in RANDOM:
            patch.setattr(module, "secrets", words)
        for module in CLOCKED:
            patch.setattr(module, "now_s", clock.monotonic)
            patch.setattr(module, "pause_s", clock.sleep, raising=False)
        patch.setattr(warnings, "showwarning", _keep_warning)
        gc.disable()  # a client in a circle would close its socket at a moment of the collector's
        try:
            yield
        finally:
            gc.enable()
