"""The log's threads, and the child that rewrites it, which do their work when a test says so."""

from collections.abc import Callable
from concurrent.futures import Future

from penstock.engine.aof import base_file
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.engine import Engine
from penstock.server.files.rewrite_child import RewriteChild
from penstock.storage.aof.disk import Disk
from penstock.storage.aof.log_directory import write_all

CHILD_PID = 4711


class DeferredFuture(Future[None]):
    """A caller that waits for it has its threads run."""

    def __init__(self, threads: "DeferredThreads") -> None:
        super().__init__()
        self._threads = threads

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._threads.run()
        return super().exception(timeout)

    def result(self, timeout: float | None = None) -> None:
        self._threads.run()
        super().result(timeout)


class DeferredThreads:
    """Runs what it was given when the test says so; takes nothing while it has a `refusal`."""

    def __init__(self) -> None:
        self.given: list[tuple[DeferredFuture, Callable[[], None]]] = []
        self.refusal: BaseException | None = None

    def submit(self, job: Callable[[], None]) -> Future[None]:
        if self.refusal is not None:
            raise self.refusal
        future = DeferredFuture(self)
        self.given.append((future, job))
        return future

    def run(self) -> None:
        given, self.given = self.given, []
        for future, job in given:
            try:
                job()
                future.set_result(None)
            except (OSError, MemoryError) as failure:
                future.set_exception(failure)

    def shutdown(self) -> None:
        self.run()


class DeferredRewriteChild(RewriteChild):
    """A child that keeps the lines of its beginning, and writes them when it is told to."""

    __slots__ = ("_failure", "_lines", "_path", "_written")

    def __init__(self, disk: Disk, engine: Engine) -> None:
        super().__init__(disk, engine.keyspace, engine.settings)
        self._lines: list[bytes] = []
        self._path = ""
        self._written = False
        self._failure = ""

    def start(self, directory: str, now_ms: int) -> None:
        self.pid = CHILD_PID
        self._path = f"{directory}/temp-rewriteaof-bg-{self.pid}.aof"
        self._lines = list(base_file.chunks(self.keyspace, self.settings, now_ms, Progress()))
        self._written, self._failure = False, ""

    def write(self) -> None:
        if not self.pid or self._written:
            return
        self._written = True
        try:
            file = self.disk.create(self._path)
            for line in self._lines:
                write_all(file, line)
            file.sync()
        except OSError as failure:
            self._failure = str(failure)

    def poll(self) -> str | None:
        if not self._written:
            return None
        self.pid = 0
        return self._failure

    def kill(self) -> None:
        self.pid = 0
