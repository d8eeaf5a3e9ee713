"""The sync that runs in a thread: once a second, or ahead of a rewriting; one at a time."""

from collections.abc import Callable
from concurrent.futures import Future

from penstock.server.log_threads import Threads
from penstock.storage.aof.append_log import AppendLog, Sync


class SyncThread:
    """`sync` is the one that runs; `began_ms` is when that, or the last one, began."""

    __slots__ = ("_future", "_threads", "began_ms", "sync")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._future: Future[None] | None = None
        self.sync: Sync | None = None
        self.began_ms = 0

    def begin(self, log: AppendLog, now_ms: int, call_back: Callable[["Future[None]"], None]) -> bool:
        """Have a thread make safe what is written now; False where nothing needs that.

        RuntimeError or MemoryError, and no sync runs, where there can be no thread.
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
        """The sync that is over, once; None while it runs, or where there is none. OSError where it failed.

        MemoryError or RuntimeError where the thread did: then `Sync.is_unsure` says whether the file may be trusted.
        """
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
