"""The threads that sync the log, swap its files and delete replaced ones, while the server goes on.

concurrent.futures' pool would keep a job for which no thread could be started, and would wait forever for a job of a
dead thread. Here both are errors, because a sync that never ends must not stay unnoticed.
"""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Final, Protocol

MOST: Final = 2  # a sync does not wait for a swap of files
LOOK_EVERY_S: Final = 0.1  # between two checks whether the awaited thread is alive


class Threads(Protocol):
    """Runs jobs: LogThreads, or in tests a class that runs them when the test says so."""

    def submit(self, job: Callable[[], None]) -> "Future[None]":
        """Run a job soon; RuntimeError or MemoryError, and the job is dropped, if no thread can be started."""

    def shutdown(self) -> None:
        """Wait until all jobs are done."""


class Job(Future[None]):
    """A job of one thread. If the thread dies, it is done, with a RuntimeError."""

    def __init__(self, call: Callable[[], None], thread: Thread) -> None:
        super().__init__()
        self.call = call
        self._runs_in = thread

    def done(self) -> bool:
        return super().done() or not self._runs_in.is_alive()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, or None; waits until the job is done. TimeoutError after so many seconds."""
        left_s = timeout
        while not self.done():
            with suppress(TimeoutError):
                return super().exception(LOOK_EVERY_S)
            if left_s is not None:
                left_s -= LOOK_EVERY_S
                if left_s <= 0:
                    raise TimeoutError
        if not super().done():
            return RuntimeError("the thread ended before its work did")
        return super().exception()

    def result(self, timeout: float | None = None) -> None:
        """Wait until the job is done; raises its error."""
        failure = self.exception()
        if failure is not None:
            raise failure


class LogThreads:
    """Up to `most` threads, each started when first needed, and again if it died."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._workers: list[Worker] = []

    def submit(self, job: Callable[[], None]) -> "Future[None]":
        return self._worker().take(job)

    def _worker(self) -> "Worker":
        """An idle worker, else a new one, else (at the limit, or if no thread can be started) the first one."""
        self._workers = [worker for worker in self._workers if worker.thread.is_alive()]
        for worker in self._workers:
            if worker.is_free():
                return worker
        if len(self._workers) == self._most:
            return self._workers[0]
        added = Worker()
        try:
            added.thread.start()
        except (RuntimeError, MemoryError):
            if not self._workers:
                raise
            return self._workers[0]
        self._workers.append(added)
        return added

    def shutdown(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []


class Worker:
    """One thread, which runs its jobs in order."""

    def __init__(self) -> None:
        self.thread = Thread(target=self._run, name="log", daemon=True)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._last: Job | None = None

    def is_free(self) -> bool:
        return self._last is None or self._last.done()

    def take(self, call: Callable[[], None]) -> Job:
        job = self._last = Job(call, self.thread)
        self._jobs.put(job)
        return job

    def end(self) -> None:
        self._jobs.put(None)
        self.thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job.call()
            except BaseException as failure:
                job.set_exception(failure)
            else:
                job.set_result(None)
