"""The sync that runs in a thread: once a second, or ahead of a rewriting; one at a time."""

from collections.abc import Callable
from concurrent.futures import Executor, Future

from penstock.storage.appendlog import AppendLog, Sync


class Syncing:
    """`sync` is the one that runs; `began_ms` is when that, or the last one, began."""

    __slots__ = ("_executor", "_future", "began_ms", "sync")

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._future: Future[None] | None = None
        self.sync: Sync | None = None
        self.began_ms = 0

    def begin(self, log: AppendLog, now_ms: int, call_back: Callable[["Future[None]"], None]) -> bool:
        """Have a thread make safe what is written now; False where nothing needs that."""
        sync = log.begin_sync()
        if sync is None:
            return False
        self.sync = sync
        self.began_ms = now_ms
        self._future = self._executor.submit(sync.run)
        self._future.add_done_callback(call_back)
        return True

    def end(self) -> Sync | None:
        """The sync that is over, once; None while it runs, or where there is none. OSError where it failed."""
        sync, future = self.sync, self._future
        if sync is None or future is None or not future.done():
            return None
        self.sync = self._future = None
        future.result()
        return sync

    def wait(self) -> None:
        """Until it is over; `end` tells how it went."""
        if self._future is not None:
            self._future.exception()
