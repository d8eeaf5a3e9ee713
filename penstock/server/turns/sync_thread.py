"""The sync in a thread: once a second, or before a rewrite; one at a time."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from penstock.server.turns.log_threads import Threads
from penstock.storage.aof.append_log import AppendLog, Sync

SLOW_S: Final = 1.0
IS_SLOW: Final = (
    "The disk takes long to sync the log, and the server waits. If it is ending, a second signal ends it now."
)


class SyncThread:
    """`sync` is the sync in progress; `began_ms` is when it, or the last one, began."""

    __slots__ = ("_future", "_threads", "began_ms", "sync")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._future: Future[None] | None = None
        self.sync: Sync | None = None
        self.began_ms = 0

    def begin(self, log: AppendLog, now_ms: int, call_back: Callable[["Future[None]"], None]) -> bool:
        """Start to sync what is written; False if everything is synced.

        RuntimeError or MemoryError, without a sync, if no thread can be started.
        """
        sync = log.begin_sync()
        if sync is None:
            return False
        self._future = self._threads.submit(sync.run)
        self.sync = sync
        self.began_ms = now_ms
        self._future.add_done_callback(call_back)
        return True

    def end(self) -> Sync | None:
        """The sync that has ended, once; None while it runs or if there is none. OSError if it failed.

        MemoryError or RuntimeError if the thread failed: then `Sync.is_unsure` says whether the file can be trusted.
        """
        sync, future = self.sync, self._future
        if sync is None or future is None or not future.done():
            return None
        self.sync = self._future = None
        future.result()
        return sync

    def wait(self, report: Callable[[str], None]) -> None:
        """Wait until it has ended; `end` has the result. A line is reported where that takes long."""
        if self._future is not None:
            try:
                self._future.exception(SLOW_S)
            except TimeoutError:
                report(IS_SLOW)
                self._future.exception()
