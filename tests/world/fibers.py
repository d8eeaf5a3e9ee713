"""Code that blocks, in a world: it runs in a thread of its own while the world stands still, and waits in virtual time.

The world and the thread take turns, so that a world with fibers happens again by its number. What the pipeline's
connector asks of sockets and clocks (`connector_in`) is answered by the world; elsewhere it is the system's.
"""

import asyncio
import gc
import socket
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from penstock.pipeline.connector.connection import client, cluster, missing_streams
from penstock.pipeline.connector.source import cursor_reader, shared_reader, stream_reader
from tests.world.loop import WorldLoop
from tests.world.network import ClientEnd, Network
from tests.world.process import Machine

CLOCKED: Final = (client, cluster, missing_streams, cursor_reader, shared_reader, stream_reader)
HERE: Final = threading.local()


class Ended(BaseException):
    """The world does not wait for this fiber any more. No handler of the product may catch it."""


class Fiber:
    """`run` gives what `work` returns or raises. In the thread, `wait_for` lets the world go on until a task ends.

    warned: the texts of Python's warnings in the thread.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._world_waits, self._thread_waits = threading.Semaphore(0), threading.Semaphore(0)
        self._wanted: Coroutine[Any, Any, Any] | None = None
        self._answer: Any = None
        self._problem: BaseException | None = None
        self._is_over = False
        self.warned: list[str] = []

    async def run(self) -> Any:
        thread = threading.Thread(target=self._be, daemon=True)
        thread.start()
        while True:
            self._world_waits.acquire()
            if self._wanted is None:
                break
            wanted, self._wanted = self._wanted, None
            self._answer = self._problem = None
            try:
                self._answer = await wanted
            except asyncio.CancelledError:
                self._problem, self._is_over = Ended(), True
            except Exception as problem:
                self._problem = problem
            self._thread_waits.release()
        thread.join()
        if self._problem is not None:
            raise asyncio.CancelledError if isinstance(self._problem, Ended) else self._problem
        return self._answer

    def wait_for(self, wanted: Coroutine[Any, Any, Any]) -> Any:
        if self._is_over:
            wanted.close()
            raise Ended
        self._wanted = wanted
        self._world_waits.release()
        self._thread_waits.acquire()
        if self._problem is not None:
            raise self._problem
        return self._answer

    def _be(self) -> None:
        HERE.fiber = self
        try:
            self._answer, self._problem = self._work(), None
        except BaseException as problem:
            self._problem = problem
        self._world_waits.release()


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
            fiber = _fiber()  # not always that in which the connection was made
            assert fiber is not None, "the connector is in a fiber"
            fiber.wait_for(self._arrives())
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


class _Sockets:
    """Stands for the module `socket`."""

    IPPROTO_TCP, TCP_NODELAY, gaierror = socket.IPPROTO_TCP, socket.TCP_NODELAY, socket.gaierror
    socket = socket.socket

    def __init__(self, network: Network, machine: Machine) -> None:
        self._network = network
        self._machine = machine

    def create_connection(self, address: tuple[str, int], timeout_s: float) -> Any:
        if (fiber := _fiber()) is None:
            return socket.create_connection(address, timeout_s)
        end = Socket(self._network)
        fiber.wait_for(end.open(self._machine))
        return end


class _Time:
    """Stands for the module `time`."""

    def __init__(self, loop: WorldLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return time.monotonic() if _fiber() is None else self._loop.time()

    def sleep(self, seconds: float) -> None:
        if (fiber := _fiber()) is None:
            time.sleep(seconds)
        else:
            fiber.wait_for(asyncio.sleep(seconds))


def _fiber() -> Fiber | None:
    return getattr(HERE, "fiber", None)


def _keep_warning(message: Warning | str, *place: object) -> None:
    """Stands for `warnings.showwarning`, which is the process's: fibers take turns, and each has its own warnings."""
    if (fiber := _fiber()) is not None:
        fiber.warned.append(str(message))


@contextmanager
def connector_in(network: Network, machine: Machine) -> Iterator[None]:
    """The connector's clients reach this machine, and its clocks go by this world's time."""
    clock = _Time(network.loop)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(client, "socket", _Sockets(network, machine))
        patch.setattr(client, "time", clock)
        for module in CLOCKED:
            patch.setattr(module, "now_s", clock.monotonic)
            patch.setattr(module, "pause_s", clock.sleep, raising=False)
        patch.setattr(warnings, "showwarning", _keep_warning)
        gc.disable()  # a client in a circle would close its socket at a moment of the collector's
        try:
            yield
        finally:
            gc.enable()
