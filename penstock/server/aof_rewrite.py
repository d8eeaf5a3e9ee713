"""The life of a rewriting: wanted, begun, looked after, ended; then the files that it replaced are deleted.

`rewriting.py` has the process that writes the fresh base. What swaps files in the end, and syncs directories for it,
runs in a thread while the server goes on; one such job at a time changes the manifest.
"""

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.engine.aof.persistence import REWRITE
from penstock.errors import UsageError
from penstock.server import loading
from penstock.server.rewrite_child import RewriteChild
from penstock.storage.aof.append_log import AppendLog, Swap

if TYPE_CHECKING:
    from penstock.server.log_writer import AofWriter

FAILURES_AT_ONCE: Final = 3  # of a rewriting, before tries are delayed
LONGEST_DELAY_MIN: Final = 60
RETRY_MS: Final = 1000  # of a log that can only go on with a fresh base; then twice as long each time
LONGEST_RETRY_MS: Final = 60_000
PROGRESS_EVERY_MS: Final = 2000  # lines about a long rewriting


class AofRewrite:
    """The fresh bases of one server's log, or of one that is open only while its base is written (appendonly no)."""

    __slots__ = (
        "_engine", "_keeper", "_removal", "_settings", "_spare", "_state", "_swap", "_swapped_pid",
        "_swapping", "_synced_ahead", "_tell", "_told_ms", "_tried_ms", "process",
    )  # fmt: skip

    def __init__(self, log_writer: "AofWriter", process: RewriteChild) -> None:
        self._keeper = log_writer
        self._engine = log_writer.engine
        self._settings = log_writer.settings
        self._state = log_writer.state
        self._tell = log_writer.tell
        self.process = process
        self._tried_ms = 0
        self._told_ms = 0  # when progress was last told
        self._synced_ahead = False  # a rewriting is about to begin, and the bulk of the log is safe
        self._spare: AppendLog | None = None
        self._swap: Swap | None = None
        self._swapping: Future[None] | None = None
        self._swapped_pid = 0  # of the process that wrote the base
        self._removal: Future[None] | None = None

    # -- when it is time --------------------------------------------------------------------------------------------

    def look_after(self) -> None:
        """What cron does about it."""
        if self._removal is not None and self._removal.done():
            self._forget_history()
        log = self._keeper.log
        if self._swapping is not None:
            if self._swapping.done():
                self._end("", self._swapped_pid)
        elif self.process.pid:
            self._look_after_process()
        elif self._engine.wanted_rewrite:
            self.start()
        elif self._state.rewrite_scheduled:
            self._state.child = REWRITE
            self._state.rewrite_scheduled = False
            self.start()
        elif log is not None and self._is_time(log):
            self._state.child = REWRITE
            self.start()

    def _look_after_process(self) -> None:
        pid = self.process.pid
        problem = self.process.poll()
        self._state.heard(self.process.progress)
        log = self._keeper.log
        if problem == "" and self._spare is None and log is not None and not log.held:
            self._swapped_pid = pid
            self._swap = log.swap(log.directory.temporary_base(pid))
            try:
                self._swapping = self._keeper.threads.submit(self._swap.run)
            except (RuntimeError, MemoryError):
                self._end("", pid)  # here and now, without a thread
            else:
                self._swapping.add_done_callback(self._keeper.call_back())
        elif problem is not None:
            self._end(problem, pid)
        elif self._keeper.now_ms() - self._told_ms >= PROGRESS_EVERY_MS:
            self._told_ms = self._keeper.now_ms()
            progress = self.process.progress
            rate = progress.written / max(self._told_ms - self._tried_ms, 1) / 1000
            self._tell(f"Rewriting the log: {100 * progress.share:.0f}%, {rate:.1f} MB a second.")

    def _is_time(self, log: AppendLog) -> bool:
        """Whether the log grew enough, or can only go on with a fresh base."""
        since_ms = self._keeper.now_ms() - self._tried_ms
        failures = self._state.rewrite_failures
        if log.held:
            return not failures or since_ms >= min(RETRY_MS << min(failures, 6), LONGEST_RETRY_MS)
        percentage = self._settings.number("auto-aof-rewrite-percentage")
        size = log.total_size
        if not percentage or size <= self._settings.number("auto-aof-rewrite-min-size"):
            return False
        if failures >= FAILURES_AT_ONCE:
            delay_min = min(1 << (failures - FAILURES_AT_ONCE), LONGEST_DELAY_MIN)
            if since_ms < delay_min * 60_000:
                return False
        return size * 100 // max(log.grown_from, 1) - 100 >= percentage

    @property
    def is_busy(self) -> bool:
        """Whether a process writes a base, or a thread changes the manifest."""
        return bool(self.process.pid) or self._swapping is not None or self._removal is not None

    # -- beginning --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin as soon as no sync runs and nobody waits for a write: at once, or when cron comes back to it."""
        log_writer, state, engine = self._keeper, self._state, self._engine
        engine.wanted_rewrite = bool(state.child)
        if not state.child or engine.busy or self.is_busy or log_writer.is_waiting:
            return
        log = log_writer.log
        if log is not None and not self._synced_ahead and log.synced < log.written:
            self._synced_ahead = True
            if log_writer.begin_sync(log):  # most of it in the thread; what comes meanwhile is synced below
                return
        self._synced_ahead = False
        engine.wanted_rewrite = False
        self._tried_ms = self._told_ms = log_writer.now_ms()
        state.began(state.child)
        try:
            log = self._move_on()
            began_us = engine.clock.now_us()
            self.process.start(log.directory.path, log_writer.now_ms())
            state.forks += 1
            state.fork_us = max(engine.clock.now_us() - began_us, 0)
            self._tell(f"Rewriting the log: process {self.process.pid} writes a fresh base.")
        except (OSError, UsageError) as failure:
            self._end(str(failure), 0)

    def _move_on(self) -> AppendLog:
        """From here on units go to other files than those that the new base replaces."""
        log_writer = self._keeper
        log = log_writer.log
        if log is None:
            log = self._spare = loading.opened(self._settings, log_writer.disk)
        elif not log.held and not (log_writer.write(log) and log_writer.sync_now(log)):
            raise OSError(0, "the log cannot be written")
        self._engine.effects.start_of_file()  # first: a rewriting that fails may have moved on already
        try:
            log.begin_rewrite()
        except OSError as failure:
            if log is log_writer.log and log.held:
                log_writer.fail(failure.strerror)
            raise
        return log

    # -- ending -----------------------------------------------------------------------------------------------------

    def _end(self, problem: str, pid: int) -> None:
        """The base is there, or is not going to be."""
        log_writer = self._keeper
        log = log_writer.log if self._spare is None else self._spare
        was_held = log is not None and log.held
        if log is not None:
            temporary = log.directory.temporary_base(pid)
            if not problem:
                try:
                    self._put_in_force(log, temporary)
                except (OSError, RuntimeError, MemoryError) as failure:
                    problem = str(failure) or "no memory"
            if problem:
                log.abandon_rewrite()
                with suppress(OSError):  # it is not there, or stays until the next start, which removes it
                    log_writer.disk.remove(temporary)
        copied = self._state.most_copied
        self._state.ended(not problem)
        if problem:
            self._tell(f"Rewriting the log failed: {problem}. Everything stays as it was.")
        else:
            assert log is not None, "what has a base is a log"
            spent_s = (log_writer.now_ms() - self._tried_ms) / 1000
            self._tell(
                f"The log has been rewritten in {spent_s:.1f} seconds: its base has {log.base_size} bytes;"
                f" {copied / 1048576:.1f} MiB of memory were copied meanwhile."
            )
            if log is log_writer.log and was_held and not log.held:
                log_writer.recover()
            if log is log_writer.log:
                self.remove_history()
        self._close_spare()

    def _put_in_force(self, log: AppendLog, temporary: str) -> None:
        """Swap the files, unless a thread has tried that.

        OSError where it failed; RuntimeError or MemoryError where the thread did.
        """
        swap, swapping = self._swap, self._swapping
        self._swap = self._swapping = None
        if swap is None or swapping is None:
            log.finish_rewrite(temporary)
        else:
            swapping.result()
            log.end_swap(swap)

    def stop(self) -> None:
        """End the process, if one runs; a base that is there already takes its place."""
        self.finish_jobs()
        pid = self.process.pid
        if pid:
            self.process.kill()
            self._end("it was stopped", pid)

    def _close_spare(self) -> None:
        """appendonly no: the base that was asked for is there; nobody writes to its increment."""
        if self._spare is not None:
            if self._spare.directory.manifest.history and not self._settings.yes("aof-disable-auto-gc"):
                with suppress(OSError):  # what stays is history to the next start too
                    self._spare.directory.remove_history()
            self._spare.close()
            self._spare = None

    # -- history ----------------------------------------------------------------------------------------------------

    def remove_history(self) -> None:
        """Delete in a thread what the manifest calls history."""
        log = self._keeper.log
        if log is not None and self._removal is None and not self._settings.yes("aof-disable-auto-gc"):
            try:
                self._removal = self._keeper.threads.submit(log.directory.remove_history)
            except (RuntimeError, MemoryError) as failure:
                self._tell(f"Old files of the log stay for now: {failure or 'no memory'}.")
            else:
                self._removal.add_done_callback(self._keeper.call_back())

    def finish_jobs(self) -> None:
        """Wait for the threads that change the manifest."""
        if self._swapping is not None:
            self._swapping.exception()
            self._end("", self._swapped_pid)
        if self._removal is not None:
            self._removal.exception()
            self._forget_history()

    def _forget_history(self) -> None:
        """Old files are gone, or what is left of them goes after the next rewriting."""
        assert self._removal is not None, "it is done"
        failure = self._removal.exception()
        self._removal = None
        if isinstance(failure, OSError | RuntimeError | MemoryError):
            self._tell(f"Old files of the log stay for now: {failure or 'no memory'}.")
        elif failure is not None:
            raise failure
