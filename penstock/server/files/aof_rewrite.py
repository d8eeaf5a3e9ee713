"""A rewrite of the log: when it starts, the child process, the swap of files, deleting the replaced files.

`rewrite_child.py` has the child that writes the new base file. At the end a thread swaps files and syncs directories
while the server goes on; one such job at a time changes the manifest.
"""

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.engine.aof.persistence import REWRITE
from penstock.errors import UsageError
from penstock.server.files import loading
from penstock.server.files.rewrite_child import RewriteChild
from penstock.storage.aof.append_log import AppendLog, Swap

if TYPE_CHECKING:
    from penstock.server.turns.log_writer import AofWriter

FAILURES_AT_ONCE: Final = 3  # of a rewrite, before the next tries are delayed
LONGEST_DELAY_MIN: Final = 60
RETRY_MS: Final = 1000  # for a log that can only go on with a new base file; doubled after each failure
LONGEST_RETRY_MS: Final = 60_000
STOPPED: Final = "it was stopped"  # no failure: the caller that stopped the child goes on in another way
PROGRESS_EVERY_MS: Final = 2000  # between log lines about a long rewrite


class AofRewrite:
    """Rewrites of one server's log, or, with appendonly no, of a log that is open only while its base is written."""

    __slots__ = (
        "_engine", "_log_writer", "_logged_ms", "_removal", "_report", "_settings", "_spare", "_state", "_swap",
        "_swapped_pid", "_swapping", "_synced_ahead", "_tried_ms", "process",
    )  # fmt: skip

    def __init__(self, log_writer: "AofWriter", process: RewriteChild) -> None:
        self._log_writer = log_writer
        self._engine = log_writer.engine
        self._settings = log_writer.settings
        self._state = log_writer.state
        self._report = log_writer.report
        self.process = process
        self._tried_ms = 0
        self._logged_ms = 0  # when progress was last logged
        self._synced_ahead = False  # a rewrite is about to begin, and most of the log is synced
        self._spare: AppendLog | None = None
        self._swap: Swap | None = None
        self._swapping: Future[None] | None = None
        self._swapped_pid = 0  # pid of the child that wrote the base
        self._removal: Future[None] | None = None

    # -- when it is time --------------------------------------------------------------------------------------------

    def look_after(self) -> None:
        """Called by cron: take the next step of a rewrite, or start one if it is time."""
        if self._removal is not None and self._removal.done():
            self._forget_history()
        log = self._log_writer.log
        if self._swapping is not None:
            if self._swapping.done():
                self._end("", self._swapped_pid)
        elif self.process.pid:
            self._look_after_process()
        elif self._engine.persistence.wanted_rewrite:
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
        log = self._log_writer.log
        if problem == "" and self._spare is None and log is not None and not log.writes_held:
            self._swapped_pid = pid
            self._swap = log.swap(log.directory.temporary_base(pid))
            try:
                self._swapping = self._log_writer.threads.submit(self._swap.run)
            except (RuntimeError, MemoryError):
                self._end("", pid)  # no thread: swap here
            else:
                self._swapping.add_done_callback(self._log_writer.call_back())
        elif problem is not None:
            self._end(problem, pid)
        elif self._log_writer.passed_ms() - self._logged_ms >= PROGRESS_EVERY_MS:
            self._logged_ms = self._log_writer.passed_ms()
            progress = self.process.progress
            rate = progress.written / max(self._logged_ms - self._tried_ms, 1) / 1000
            self._report(f"Rewriting the log: {100 * progress.share:.0f}%, {rate:.1f} MB a second.")

    def _is_time(self, log: AppendLog) -> bool:
        """Whether the log grew enough, or cannot be written without a new base file."""
        since_ms = self._log_writer.passed_ms() - self._tried_ms
        failures = self._state.rewrite_failures
        if log.writes_held:
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
        """Whether a child writes a base, or a thread changes the manifest."""
        return bool(self.process.pid) or self._swapping is not None or self._removal is not None

    # -- beginning --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the child as soon as no sync runs and no turn waits for a write: now, or when cron calls again."""
        log_writer, state, engine = self._log_writer, self._state, self._engine
        engine.persistence.wanted_rewrite = bool(state.child)
        is_early = engine.conditions.busy or engine.conditions.loading or log_writer.is_waiting
        if not state.child or is_early or self.is_busy or state.saves.runs:
            return
        log = log_writer.log
        if log is not None and not self._synced_ahead and log.synced < log.written:
            self._synced_ahead = True
            if log_writer.begin_sync(log):  # most of it in the thread; later units are synced below
                return
        self._synced_ahead = False
        engine.persistence.wanted_rewrite = False
        self._tried_ms = self._logged_ms = log_writer.passed_ms()
        state.began(state.child)
        try:
            log = self._move_on()
            began_us = engine.clock.monotonic_us()
            self.process.start(log.directory.path, log_writer.now_ms())
            state.forks += 1
            state.fork_us = engine.clock.monotonic_us() - began_us
            self._report(f"Background append only file rewriting started by pid {self.process.pid}")
        except (OSError, UsageError) as failure:
            self._end(str(failure), 0)

    def _move_on(self) -> AppendLog:
        """Send new units to files that the new base does not replace. OSError or UsageError if that fails."""
        log_writer = self._log_writer
        log = log_writer.log
        if log is None:
            log = self._spare = loading.opened(self._settings, log_writer.disk)
        elif not log.writes_held and not (log_writer.write(log) and log_writer.sync_now(log)):
            raise OSError(0, "the log cannot be written")
        self._engine.effects.start_of_file()  # first: a rewrite that fails may have changed files already
        try:
            log.begin_rewrite()
        except OSError as failure:
            if log is log_writer.log and log.writes_held:
                log_writer.fail(failure.strerror)
            raise
        finally:
            if log.needs_room and log is log_writer.log:
                log_writer.reserve(log, 0)
        return log

    # -- ending -----------------------------------------------------------------------------------------------------

    def _end(self, problem: str, pid: int) -> None:
        """The child has ended: put its base in force, or clean up after `problem`."""
        log_writer = self._log_writer
        log = log_writer.log if self._spare is None else self._spare
        was_held = log is not None and log.writes_held
        if log is not None:
            temporary = log.directory.temporary_base(pid)
            if not problem:
                try:
                    self._put_in_force(log, temporary)
                except (OSError, RuntimeError, MemoryError) as failure:
                    problem = str(failure) or "no memory"
            if problem:
                log.abandon_rewrite()
                with suppress(OSError):  # there is none, or the next start removes it
                    log_writer.disk.remove(temporary)
        copied = self._state.most_copied
        self._state.ended(not problem, is_counted=problem != STOPPED)
        if problem:
            self._report(f"Rewriting the log failed: {problem}. The log is unchanged.")
            if problem != STOPPED:
                self._refuse_without_base()
        else:
            assert log is not None, "a base was written for a log"
            spent_s = (log_writer.passed_ms() - self._tried_ms) / 1000
            self._report(
                f"Background AOF rewrite finished successfully in {spent_s:.1f} seconds: the base has {log.base_size}"
                f" bytes, {copied / 1048576:.1f} MiB of memory were copied meanwhile."
            )
            if log is log_writer.log and was_held and not log.writes_held:
                log_writer.begins_again(log)
            elif log is log_writer.log and log.needs_room:
                log_writer.reserve(log, 0)
            if log is log_writer.log:
                self.remove_history()
        self._close_spare()

    def _refuse_without_base(self) -> None:
        """The log cannot be written without a new base, and that failed: refuse writers until there is one."""
        log = self._log_writer.log
        if log is not None and log.writes_held and self._engine.conditions.trouble is None:
            self._log_writer.fail("its base file cannot be written")

    def _put_in_force(self, log: AppendLog, temporary: str) -> None:
        """Swap the files, or take the result of the thread that did.

        OSError if the swap failed; RuntimeError or MemoryError if the thread failed.
        """
        swap, swapping = self._swap, self._swapping
        self._swap = self._swapping = None
        if swap is None or swapping is None:
            log.finish_rewrite(temporary)
        else:
            swapping.result()
            log.end_swap(swap)

    def stop(self, problem: str = STOPPED) -> None:
        """Kill the child, if one runs; a base that is complete is put in force."""
        self.finish_jobs()
        pid = self.process.pid
        if pid:
            self.process.kill()
            self._end(problem, pid)

    def _close_spare(self) -> None:
        """appendonly no: close the log of the new base; nothing is written to its incremental file."""
        if self._spare is not None:
            if self._spare.directory.manifest.history and not self._settings.yes("aof-disable-auto-gc"):
                with suppress(OSError):  # the next start deletes what is left
                    self._spare.directory.remove_history()
            self._spare.close()
            self._spare = None

    # -- history ----------------------------------------------------------------------------------------------------

    def remove_history(self) -> None:
        """Delete, in a thread, the files that the manifest marks as history."""
        log = self._log_writer.log
        if log is not None and self._removal is None and not self._settings.yes("aof-disable-auto-gc"):
            try:
                self._removal = self._log_writer.threads.submit(log.directory.remove_history)
            except (RuntimeError, MemoryError) as failure:
                self._report(f"Replaced files of the log were not deleted: {failure or 'no memory'}.")
            else:
                self._removal.add_done_callback(self._log_writer.call_back())

    def finish_jobs(self) -> None:
        """Wait for the threads that change the manifest."""
        if self._swapping is not None:
            self._swapping.exception()
            self._end("", self._swapped_pid)
        if self._removal is not None:
            self._removal.exception()
            self._forget_history()

    def _forget_history(self) -> None:
        """Note that the replaced files are deleted; what is left of them is deleted after the next rewrite."""
        assert self._removal is not None, "it is done"
        failure = self._removal.exception()
        self._removal = None
        if isinstance(failure, OSError | RuntimeError | MemoryError):
            self._report(f"Replaced files of the log were not deleted: {failure or 'no memory'}.")
        elif failure is not None:
            raise failure
