"""A thread for scripts that may take long: the caller waits a while, then goes on without it."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from penstock.engine.scripting.script_runner import Lock
from penstock.protocol import reply

NAME: Final = "scripts"
STACK_BYTES: Final = 16 * 1024 * 1024  # a script's 200 levels of C take two; some systems give a thread less
NO_THREAD: Final = reply.error(b"ERR the server could not start a thread for the script")
NO_MEMORY: Final = reply.error(b"ERR not enough memory")


class ScriptThread:
    """A ScriptRunner of one thread, one job at a time. The thread begins with the first job and ends with the process.

    `wake` is called, in the thread, when a job is over that is not waited for any more; its answer is then in `late`.
    A thread that could not begin, or ended, is tried again with the next job.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self.lock: Lock = threading.RLock()
        self._jobs: SimpleQueue[Callable[[], bytes]] = SimpleQueue()
        self._done: SimpleQueue[bytes] = SimpleQueue()
        self._given_up_lock = threading.Lock()
        self._given_up = False
        self._runs_in: threading.Thread | None = None
        self.late = b""
        self._wake = wake

    def run(self, job: Callable[[], bytes], seconds: float) -> bytes | None:
        if self._runs_in is None or not self._runs_in.is_alive():
            try:
                self._begin()
            except (RuntimeError, MemoryError):
                self._runs_in = None
                return NO_THREAD
        self._given_up = False
        self._jobs.put(job)
        try:
            return self._done.get(timeout=seconds)
        except Empty:
            pass
        with self._given_up_lock:
            try:
                return self._done.get_nowait()
            except Empty:
                self._given_up = True
                return None

    def _begin(self) -> None:
        """Start the thread, with queues of its own: one that ended badly may have left something in them."""
        self._jobs, self._done = SimpleQueue(), SimpleQueue()
        before = threading.stack_size(STACK_BYTES)
        try:
            self._runs_in = threading.Thread(target=self._serve, args=(self._jobs, self._done), name=NAME, daemon=True)
            self._runs_in.start()
        finally:
            threading.stack_size(before)

    def _serve(self, jobs: SimpleQueue[Callable[[], bytes]], done: SimpleQueue[bytes]) -> None:
        while True:
            answer = _answer(jobs.get())
            with self._given_up_lock:
                given_up = self._given_up
                if given_up:
                    self.late = answer
                else:
                    done.put(answer)
            if given_up:
                self._wake()


def _answer(job: Callable[[], bytes]) -> bytes:
    """The job's reply, or an error if it fails: without a reply the server would stay busy."""
    try:
        return job()
    except MemoryError:
        return NO_MEMORY
    except Exception as failure:
        return reply.error(b"ERR internal error: %b" % type(failure).__name__.encode())
