"""What a server does beside its loop: threads become tasks, and a forked child writes at a later moment."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from penstock.engine.aof.rewrite_progress import Progress
from penstock.server.files.parent import Parent, ServerEndedError
from penstock.server.files.rewrite_child import Reporter, RewriteChild
from penstock.server.files.snapshots import SaveChild
from tests.support.deferred_log import DeferredThreads
from tests.world.disk import WorldDisk

if TYPE_CHECKING:
    from tests.world.process import Process

KILLED: Final = "it was killed"


class WorldThreads(DeferredThreads):
    """The log's threads: each job is done a little later, or when the server waits for it."""

    def __init__(self, process: "Process") -> None:
        super().__init__()
        self._process = process

    def submit(self, job: Callable[[], None]) -> "Future[None]":
        future = super().submit(job)
        self._process.loop.call_later(self._process.machine.thread_s(), self.run)
        return future


class WorldParent(Parent):
    """A child's server, as the child sees it. The system kills no child here: what a child does by itself is tried."""

    def __init__(self, process: "Process") -> None:
        self._process = process

    def bind(self) -> None:
        self.check()

    def check(self) -> None:
        if not self._process.is_alive:
            raise ServerEndedError


class WorldReporter(Reporter):
    """There is no pipe."""

    def __init__(self, process: "Process") -> None:
        self.progress = Progress()
        self.parent = WorldParent(process)

    def report(self, at_end: bool = False) -> None:
        self.parent.check()


class DeferredChild(RewriteChild):
    """A child that has its whole output at the fork, a base, and writes it at a later moment; it may be killed first.

    It outlives its server, unless the machine loses power.
    """

    def __init__(self, process: "Process") -> None:
        super().__init__(process.disk, process.engine.keyspace, process.settings)
        self.process = process
        self._held: list[bytes] = []
        self._problem: str | None = None  # None: it runs

    def start(self, directory: str, now_ms: int) -> None:
        machine = self.process.machine
        self.pid = machine.new_pid()
        self._problem = None
        self._held = list(super().chunks(now_ms, Progress()))
        machine.loop.call_later(
            machine.child_s(), self._come_to_end, self.pid, machine.boots, directory, now_ms, self._held
        )

    def chunks(self, now_ms: int, progress: Progress) -> Iterator[bytes]:
        return iter(self._held)

    def poll(self) -> str | None:
        if self._problem is not None:
            self.pid = 0
        return self._problem

    def kill(self) -> None:
        self.pid = 0

    def _come_to_end(self, pid: int, boots: int, directory: str, now_ms: int, held: list[bytes]) -> None:
        machine = self.process.machine
        if pid != self.pid or boots != machine.boots:
            return  # it was killed, or the machine was off
        if machine.chance.random() < machine.child_dies:
            self._problem = KILLED
            return
        self.disk, self._held = machine.disk, held
        machine.guard(self._be, machine.disk, self.path_of(directory, pid), now_ms)

    def _be(self, disk: WorldDisk, path: str, now_ms: int) -> None:
        locks = set(disk.locks)
        try:
            self._write(path, now_ms, WorldReporter(self.process))
        except ServerEndedError:
            self._problem = KILLED
        except OSError as failure:
            self._problem = str(failure)
        else:
            self._problem = ""
        finally:
            disk.locks &= locks  # its end frees them


class WorldSaveChild(DeferredChild, SaveChild):
    """Writes an RDB file."""
