"""What a server opens by itself: its connection to a master, the pipe of a child, and the tasks that use them."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from penstock.config.settings import Settings
from penstock.engine.aof.rewrite_progress import Progress
from penstock.server.replication.snapshot_child import PipeChild, SnapshotChild
from penstock.storage.aof.disk import Disk
from penstock.storage.keyspace import Keyspace
from tests.world.disk import Killed
from tests.world.machinery import KILLED, DeferredChild
from tests.world.network import HOST, ClientEnd, Network

if TYPE_CHECKING:
    from tests.world.process import Process

OWNER: Final[ContextVar["Process"]] = ContextVar("process whose code runs")
PIECE_S: Final = 0.02  # at least, from one piece of a child's pipe to the next


def let_servers_connect(network: Network) -> None:
    """The loop of this network's world makes the connections, pipes and tasks that servers ask asyncio for."""
    loop = network.loop

    async def connect(new_protocol: Callable[[], Any], host: str, port: int, **options: Any) -> tuple[Any, Any]:
        end = LinkEnd(network, OWNER.get(), new_protocol())
        await end.open(port)
        return end, end.protocol

    async def read_pipe(new_protocol: Callable[[], Any], pipe: Any) -> tuple[Any, Any]:
        child = OWNER.get().pipes.pop(pipe.fileno())
        protocol = new_protocol()
        return ReadPipe(child, protocol, pipe), protocol

    def make_task(of: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        owner = OWNER.get(None)
        if owner is None:
            return asyncio.Task(work, loop=of, **options)
        task = asyncio.Task(_while_alive(owner, work), loop=of, **options)
        owner.tasks[task] = None
        task.add_done_callback(lambda _: work.close())  # of a task that is cancelled before its first step
        task.add_done_callback(owner.forget_task)
        return task

    loop.create_connection = connect  # type: ignore[method-assign, assignment]  # asyncio's has many options
    loop.connect_read_pipe = read_pipe  # type: ignore[method-assign, assignment]
    loop.set_task_factory(make_task)  # type: ignore[arg-type]  # of what servers use: no futures


async def _while_alive(owner: "Process", work: Coroutine[Any, Any, Any]) -> Any:
    """A task of a process: it ends where its disk says that the process is dead."""
    try:
        return await work
    except Killed:
        if owner.is_alive:
            owner.machine.crash(loses_power=False)
        return None


class LinkEnd(ClientEnd):
    """A server's end of its connection to a master: a transport of asyncio's."""

    def __init__(self, network: Network, process: "Process", protocol: Any) -> None:
        super().__init__()
        self.network = network
        self.process = process
        self.place = process.machine.name
        self.protocol = protocol
        self._is_over = False

    async def open(self, port: int) -> None:
        """OSError where nothing listens."""
        machine = self.network.machines.get(port)
        if machine is None:
            raise ConnectionRefusedError
        self.connected = await self.network.connect(lambda: machine.process, self)
        self.is_open = True
        self.process.links[self] = None
        self.network.links_made_s.append(self.network.loop.time())
        self.protocol.connection_made(self)

    # -- what the network tells ---------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        self.process.guard(self.protocol.data_received, data)

    def ended(self) -> None:
        self.is_open = False
        self.process.guard(self._end)

    def _end(self) -> None:
        """Bytes that came are read first."""
        if not self._is_over:
            self.protocol.eof_received()

    def _lose(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.protocol.connection_lost(None)

    # -- as a transport -----------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self.is_open and self.connected is not None:
            self.connected.requests.send(bytes(data))

    def abort(self) -> None:
        self.process.links.pop(self, None)
        if self.is_open and self.connected is not None:
            self.connected.reset()
        self.is_open = False
        self.network.loop.call_soon(self.process.guard, self._lose)

    close = abort

    def is_closing(self) -> bool:
        return not self.is_open

    def get_extra_info(self, name: str, default: object = None) -> object:
        return {"peername": (HOST, 0)}.get(name, default)

    def pause_reading(self) -> None:
        assert self.connected is not None, "it is open"
        self.connected.replies.is_stopped = True

    def resume_reading(self) -> None:
        assert self.connected is not None, "it is open"
        self.network.loop.call_soon(self.connected.replies.read_on)


class ReadPipe:
    """The server's end of a child's pipe: what the child had at its fork comes in pieces."""

    def __init__(self, child: "WorldPipeChild", protocol: Any, pipe: Any) -> None:
        self._child = child
        self._protocol = protocol
        self._pipe = pipe
        self._is_paused = self._is_closed = False
        protocol.connection_made(self)
        self._later()

    def _later(self) -> None:
        process = self._child.process
        wait_s = PIECE_S + process.machine.child_s() / 3
        process.machine.loop.call_later(wait_s, process.guard, self._go_on)

    def _go_on(self) -> None:
        if self._is_closed:
            return
        if self._is_paused:
            self._later()
        elif piece := self._child.next_piece():
            self._protocol.data_received(piece)
            self._later()
        else:
            self._protocol.eof_received()

    def close(self) -> None:
        self._is_closed = True
        self._pipe.close()

    def is_closing(self) -> bool:
        return self._is_closed

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False


class WorldSyncChild(DeferredChild, SnapshotChild):
    """Writes a copy for replicas into a file."""


class WorldPipeChild(WorldSyncChild, PipeChild):
    """Writes a copy for replicas into a pipe; it may be killed amid it."""

    def start(self, directory: str, now_ms: int) -> None:
        machine = self.process.machine
        self.pid = machine.new_pid()
        self._problem = None
        self.reading, writing = os.pipe()
        os.close(writing)
        self.process.pipes[self.reading] = self
        output = b"".join(SnapshotChild.chunks(self, now_ms, Progress()))
        size = max(len(output) // machine.chance.choice((1, 3, 8)), 1)
        self._pieces = [output[at : at + size] for at in range(0, len(output), size)]

    def next_piece(self) -> bytes:
        """b"" at the end of the child."""
        machine = self.process.machine
        if machine.chance.random() < machine.child_dies / 3:
            self._problem = KILLED
            return b""
        if not self._pieces:
            self._problem = ""
            return b""
        return self._pieces.pop(0)


def new_child(process: "Process") -> Callable[[bool, Disk, Keyspace, Settings], SnapshotChild]:
    """Makes the children of a process that write copies for replicas."""
    return lambda without_file, *_: (WorldPipeChild if without_file else WorldSyncChild)(process)
