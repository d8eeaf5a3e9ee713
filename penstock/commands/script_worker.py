"""A thread for scripts that may take long: whoever asked waits a while, then goes on without it."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

NAME: Final = "scripts"


class Worker:
    """One thread, one job at a time. The thread begins with the first job and ends with the process.

    `wake` is called, in the thread, when a job is over that nobody waits for any more; its answer is then in `late`.
    """

    __slots__ = ("_begun", "_done", "_given_up", "_jobs", "_lock", "late", "wake")

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], bytes]] = SimpleQueue()
        self._done: SimpleQueue[bytes] = SimpleQueue()
        self._lock = threading.Lock()
        self._given_up = False
        self._begun = False
        self.late = b""
        self.wake: Callable[[], None] | None = None

    def run(self, job: Callable[[], bytes], seconds: float) -> bytes | None:
        """What the job answers; None where it takes longer than so many seconds: `wake` tells of its end."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._serve, name=NAME, daemon=True).start()
        self._given_up = False
        self._jobs.put(job)
        try:
            return self._done.get(timeout=seconds)
        except Empty:
            pass
        with self._lock:
            try:
                return self._done.get_nowait()
            except Empty:
                self._given_up = True
                return None

    def _serve(self) -> None:
        while True:
            answer = self._jobs.get()()
            with self._lock:
                given_up = self._given_up
                if given_up:
                    self.late = answer
                else:
                    self._done.put(answer)
            if given_up and self.wake is not None:
                self.wake()
