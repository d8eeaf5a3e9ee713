"""Write, then answer: the log is written at the end of a loop turn, and the turn's replies follow.

`always`: one sync a turn serves everybody's commands, before the replies. `everysec`: a thread syncs once a second;
while it runs, turns wait for their write, for two seconds at the most. `no`: the system syncs when it likes.

What fails refuses writers (MISCONF) and is tried again. After a sync that failed the file is not trusted any more:
only a fresh base and a fresh increment end the trouble.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from penstock.commands.engine import Engine
from penstock.commands.persistence import REWRITE, SAVE
from penstock.commands.replay import Replay, load
from penstock.commands.rewrite import base_lines
from penstock.errors import UsageError
from penstock.kinds import BadValue
from penstock.server.journal import Journal
from penstock.server.rewriting import Rewriting
from penstock.settings import Settings
from penstock.storage.appendlog import AppendLog, Sync
from penstock.storage.disk import Disk, SystemDisk
from penstock.storage.logdirectory import LogDirectory

LONGEST_WAIT_MS: Final = 2000  # of a turn for a sync that runs
SYNC_EVERY_MS: Final = 900  # cron comes ten times a second: nothing is older than a second when its sync begins
FAILURES_AT_ONCE: Final = 3  # of a rewriting, before tries are delayed
LONGEST_DELAY_MIN: Final = 60
RETRY_MS: Final = 1000

Release: TypeAlias = Callable[[], None]
Refuse: TypeAlias = Callable[[bytes], None]

PROGRESS_EVERY_MS: Final = 2000  # lines about a long loading


class WaitingTurn:
    """A turn whose replies wait for the log. One of the two is called, once.

    release lets the replies out. refuse, given an error's text, lets them out too, but for those of requests that the
    log took units of: they get the error, for nobody knows what became of them.
    """

    __slots__ = ("refuse", "release")

    def __init__(self, release: Release, refuse: Refuse | None) -> None:
        self.release = release
        self.refuse = refuse

    def end(self, trouble: bytes | None) -> None:
        if trouble is None or self.refuse is None:
            self.release()
        else:
            self.refuse(trouble)


class Durability:
    """One server's log: `log` is None while `appendonly` is no.

    `tell` takes lines for a person; without it the server's journal does. `synced` is called from the syncing thread
    when cron has something to do; without it, the running loop calls cron.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        tell: Callable[[str], None] | None = None,
        disk: Disk | None = None,
        executor: Executor | None = None,
        rewriting: Rewriting | None = None,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.state = engine.persistence
        self.tell = tell or Journal(settings, engine.clock).notice
        self.disk: Disk = SystemDisk() if disk is None else disk
        self.log: AppendLog | None = None
        self.synced: Callable[[], object] | None = None
        self._executor: Executor = executor or ThreadPoolExecutor(1, "log")
        self._waiting: list[WaitingTurn] = []
        self._waits_since_ms = 0
        self._turn_began_at = 0  # units appended before this turn
        self._sync: Sync | None = None
        self._sync_future: Future[None] | None = None
        self._sync_began_ms = 0
        self._removal: Future[None] | None = None
        self._tried_ms = 0
        self._annotated_s = 0  # the last second that was written into the log
        self._rewrite_tried_ms = 0
        self._told_ms = 0  # when a rewriting's progress was last told
        self._synced_ahead = False  # a rewriting is about to begin, and the bulk of the log is safe
        self._dirty_at_start = 0
        self._rewriting = rewriting or Rewriting(self.disk, engine.keyspace, settings)
        self._spare: AppendLog | None = None  # appendonly no: a log that is open while its base is written
        self.state.save_now = self._save_now
        self.state.load_log = self._load_again
        settings.watch("appendonly", self._switch)

    # -- the start --------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, settings: Settings, engine: Engine, tell: Callable[[str], None] | None = None, disk: Disk | None = None
    ) -> "Durability":
        """Open and load the log, if there is to be one. UsageError where that is impossible."""
        durability = cls(settings, engine, tell, disk)
        for _ in durability.loading():
            pass
        return durability

    def loading(self) -> Iterator[tuple[int, int]]:
        """As `open`, in steps: yields the bytes done and the bytes in all. Clients may be answered in between."""
        if not self.settings.yes("appendonly"):
            return
        log: AppendLog | None = None
        try:
            log = self._opened()
            yield from self._load(log)
            log.start()
        except (OSError, UsageError) as failure:
            if log is not None:
                log.close()
            raise UsageError(str(failure)) from None
        self._use(log)
        if log.directory.manifest.history:
            self._remove_history()

    def _opened(self) -> AppendLog:
        text = self.settings.text
        log = AppendLog(LogDirectory(self.disk, text("dir"), text("appenddirname"), text("appendfilename")))
        log.directory.open()
        return log

    def _load(self, log: AppendLog) -> Iterator[tuple[int, int]]:
        state = self.state
        state.loading_started_s = self._now_ms() // 1000
        replay = Replay(self.engine, self.tell)
        replay.begin()
        mends, most = self.settings.yes("aof-load-truncated"), self.settings.number("aof-load-corrupt-tail-max-size")
        began_ms = told_ms = self._now_ms()
        try:
            for state.loading_done, state.loading_total in load(replay, log, mends, most):
                yield state.loading_done, state.loading_total
                if self._now_ms() - told_ms >= PROGRESS_EVERY_MS:
                    told_ms = self._now_ms()
                    self._tell_progress(replay.applied, told_ms - began_ms)
        finally:
            replay.end()
        state.keys_loaded = sum(len(db) for db in self.engine.keyspace.databases)
        if replay.refused:
            self.tell(f"{replay.refused} lines of the log were refused and ignored.")
        spent_s = (self._now_ms() - began_ms) / 1000
        self.tell(
            f"Loaded {state.keys_loaded} keys from {replay.applied} requests of the log in {spent_s:.3f} seconds."
        )

    def _tell_progress(self, applied: int, spent_ms: int) -> None:
        state = self.state
        percent = 100 * state.loading_done / state.loading_total
        rate, bytes_rate = (count * 1000 // max(spent_ms, 1) for count in (applied, state.loading_done))
        self.tell(f"Loading the log: {percent:.0f}%, {rate} requests and {bytes_rate / 1e6:.1f} MB a second.")

    def _use(self, log: AppendLog) -> None:
        self.log = self.state.log = log
        self.engine.effects.log = log
        self.engine.effects.start_of_file()
        self._turn_began_at = log.appended

    def _now_ms(self) -> int:
        return self.engine.clock.now_us() // 1000

    # -- a turn -----------------------------------------------------------------------------------------------------

    def end_of_turn(self, release: Release, refuse: Refuse | None = None) -> None:
        """Have the turn's units written, and synced where that is asked for; then let its replies out.

        One of the two is called (see WaitingTurn), now or later; turns end in their order.
        """
        log = self.log
        turn = WaitingTurn(release, refuse)
        if log is None:
            turn.end(None)
        elif self.engine.trouble is None and (self._waiting or (log.buffered and not log.held)):
            if not self._waiting:
                self._waits_since_ms = self._now_ms()
            self._waiting.append(turn)
            self._flush()
        else:
            # In trouble no write is tried now: whoever changed something (a reader that had waited) is told so.
            turn.end(self.engine.trouble if log.appended > self._turn_began_at else None)
        if log is not None:
            self._turn_began_at = log.appended
        if self.engine.wanted_rewrite:
            self._start_rewriting()

    def _flush(self) -> None:
        """Write what is buffered, and let the turns go that waited for it."""
        log = self.log
        assert log is not None, "turns wait only for a log"
        if self._sync is not None and self._waiting:
            if self._now_ms() - self._waits_since_ms < LONGEST_WAIT_MS:
                return
            self.state.delayed_syncs += 1
        self._write(log)
        self._end_turns()

    def _end_turns(self) -> None:
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            turn.end(self.engine.trouble)

    def _write(self, log: AppendLog) -> bool:
        """Write, and sync where the policy is `always`; whether that worked."""
        if log.buffered and not log.held and self.settings.yes("aof-timestamp-enabled"):
            now_s = self._now_ms() // 1000
            if now_s != self._annotated_s:
                self._annotated_s = now_s
                log.annotate(b"#TS:%d\r\n" % now_s)
        try:
            log.write()
        except OSError as failure:
            self._fail(failure)
            return False
        if self.settings.text("appendfsync") == "always" and log.synced < log.written:
            return self._sync_now(log)
        return True

    def _sync_now(self, log: AppendLog) -> bool:
        try:
            log.sync()
        except OSError as failure:
            log.hold()
            self._fail(failure)
            return False
        self.engine.sync_waiters.settle(self.engine)
        return True

    def _fail(self, failure: OSError) -> None:
        """Writers are refused from here on."""
        if self.engine.trouble is None:
            self.tell(f"The log cannot be written: {failure.strerror}. Writers are refused until it can.")
        self.engine.trouble = b"MISCONF Errors writing to the AOF file: " + (failure.strerror or "").encode()
        self.state.writes_ok = False
        self._tried_ms = self._now_ms()

    def _recover(self) -> None:
        if self.engine.trouble is not None:
            self.tell("The log can be written again.")
        self.engine.trouble = None
        self.state.writes_ok = True

    # -- time -------------------------------------------------------------------------------------------------------

    def cron(self) -> None:
        """To be called ten times a second, between two turns, and when `synced` was called."""
        self._end_sync()
        log = self.log
        if log is not None:
            if self._waiting:
                self._flush()
            if self.engine.trouble is not None and not log.held and self._now_ms() - self._tried_ms >= RETRY_MS:
                self._tried_ms = self._now_ms()
                if self._write(log):
                    self._recover()
            elif log.buffered and not self._waiting and self.engine.trouble is None:
                self._write(log)
        if self._removal is not None and self._removal.done():
            self._forget_history()
        self._look_after_child()
        if self.log is not None:
            self._sync_if_due(self.log)

    def _sync_if_due(self, log: AppendLog) -> None:
        if self.settings.text("appendfsync") != "everysec" or self._sync is not None:
            return
        if self.settings.yes("no-appendfsync-on-rewrite") and self._rewriting.pid:
            return
        elapsed_ms = self._now_ms() - self._sync_began_ms
        if log.synced < log.written and not 0 <= elapsed_ms < SYNC_EVERY_MS:
            self._begin_sync(log)

    def _begin_sync(self, log: AppendLog) -> None:
        sync = log.begin_sync()
        if sync is None:
            return
        self._sync = sync
        self._sync_began_ms = self._now_ms()
        self.state.sync_runs = True
        self._sync_future = self._executor.submit(sync.run)
        self._sync_future.add_done_callback(self._call_back())

    def _call_back(self) -> Callable[["Future[None]"], None]:
        """What a thread calls when it is done: cron is to come soon, in the loop's thread."""
        synced = self.synced
        if synced is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return lambda done: None  # no loop: whoever calls cron comes back to it
            synced = partial(loop.call_soon_threadsafe, self.cron)
        call = synced
        return lambda done: _ignore(call())

    def _end_sync(self) -> None:
        """Take note of a background sync that is over."""
        sync, future, log = self._sync, self._sync_future, self.log
        if sync is None or future is None or not future.done():
            return
        self._sync = self._sync_future = None
        self.state.sync_runs = False
        assert log is not None, "a log is not given up while it is synced"
        failure = future.exception()
        if failure is None:
            log.end_sync(sync)
            self.engine.sync_waiters.settle(self.engine)
        elif isinstance(failure, OSError):
            log.hold()
            self._fail(failure)
        else:
            raise failure

    # -- rewriting --------------------------------------------------------------------------------------------------

    def _look_after_child(self) -> None:
        if self._rewriting.pid:
            pid = self._rewriting.pid
            problem = self._rewriting.poll()
            self.state.heard(self._rewriting.progress)
            if problem is not None:
                self._end_rewriting(problem, pid)
            elif self._now_ms() - self._told_ms >= PROGRESS_EVERY_MS:
                self._told_ms = self._now_ms()
                self._tell_rewriting()
        elif self.engine.wanted_rewrite:
            self._start_rewriting()
        elif self.state.rewrite_scheduled or self.state.save_scheduled:
            self.state.child = REWRITE if self.state.rewrite_scheduled else SAVE
            self.state.rewrite_scheduled = self.state.save_scheduled = False
            self._start_rewriting()
        elif self.log is not None and self._wants_rewriting(self.log):
            self.state.child = REWRITE
            self._start_rewriting()

    def _tell_rewriting(self) -> None:
        progress = self._rewriting.progress
        percent, rate = 100 * progress.share, progress.written / max(self._now_ms() - self._rewrite_tried_ms, 1) / 1000
        self.tell(f"Rewriting the log: {percent:.0f}%, {rate:.1f} MB a second.")

    def _wants_rewriting(self, log: AppendLog) -> bool:
        """Whether it is time for one: the log grew enough, or can only go on with a fresh base."""
        since_ms = self._now_ms() - self._rewrite_tried_ms
        failures = self.state.rewrite_failures
        if log.held:
            return not failures or since_ms >= min(RETRY_MS << min(failures, 6), 60_000)
        percentage = self.settings.number("auto-aof-rewrite-percentage")
        size = log.total_size
        if not percentage or size <= self.settings.number("auto-aof-rewrite-min-size"):
            return False
        if failures >= FAILURES_AT_ONCE:
            delay_min = min(1 << (failures - FAILURES_AT_ONCE), LONGEST_DELAY_MIN)
            if since_ms < delay_min * 60_000:
                return False
        return size * 100 // max(log.grown_from, 1) - 100 >= percentage

    def _start_rewriting(self) -> None:
        """Begin as soon as no sync runs and nobody waits for a write: at once, or when cron comes back to it."""
        state = self.state
        self.engine.wanted_rewrite = bool(state.child)
        if not state.child or self.engine.busy or self._rewriting.pid or self._sync is not None or self._waiting:
            return
        if self.log is not None and not self._synced_ahead and self.log.synced < self.log.written:
            self._synced_ahead = True
            self._begin_sync(self.log)  # most of it in the thread; what comes meanwhile is synced below
            if self._sync is not None:
                return
        self._synced_ahead = False
        self.engine.wanted_rewrite = False
        self._rewrite_tried_ms = self._told_ms = self._now_ms()
        state.began(state.child)
        try:
            log = self._begin_rewrite()
            began_us = self.engine.clock.now_us()
            self._rewriting.start(log.directory.path, self._now_ms())
            state.forks += 1
            state.fork_us = max(self.engine.clock.now_us() - began_us, 0)
            self.tell(f"Rewriting the log: process {self._rewriting.pid} writes a fresh base.")
        except (OSError, UsageError) as failure:
            self._end_rewriting(str(failure), 0)

    def _begin_rewrite(self) -> AppendLog:
        """From here on units go to other files than those that the new base replaces."""
        log = self.log
        if log is None:
            log = self._spare = self._opened()
        elif not log.held and not (self._write(log) and self._sync_now(log)):
            raise OSError(0, "the log cannot be written")
        self.engine.effects.start_of_file()  # first: a rewriting that fails may have moved on to the next file already
        try:
            log.begin_rewrite()
        except OSError as failure:
            if log is self.log and log.held:
                self._fail(failure)
            raise
        self._dirty_at_start = self.engine.context.dirty
        return log

    def _end_rewriting(self, problem: str, pid: int) -> None:
        """The base is there, or is not going to be."""
        log = self.log if self._spare is None else self._spare
        was_held = log is not None and log.held
        if log is not None:
            temporary = log.directory.temporary_base(pid)
            if not problem:
                try:
                    log.finish_rewrite(temporary)
                except OSError as failure:
                    problem = str(failure)
            if problem:
                log.abandon_rewrite()
                with suppress(OSError):  # it is not there, or stays until the next start, which removes it
                    self.disk.remove(temporary)
        copied = self.state.most_copied
        self.state.ended(not problem)
        if problem:
            self.tell(f"Rewriting the log failed: {problem}. Everything stays as it was.")
        else:
            assert log is not None, "what has a base is a log"
            self.engine.context.dirty -= self._dirty_at_start
            spent_s = (self._now_ms() - self._rewrite_tried_ms) / 1000
            self.tell(
                f"The log has been rewritten in {spent_s:.1f} seconds: its base has {log.base_size} bytes;"
                f" {copied / 1048576:.1f} MiB of memory were copied meanwhile."
            )
            if log is self.log and was_held and not log.held:
                self._recover()
            if log is self.log:
                self._remove_history()
        self._close_spare()

    def _remove_history(self) -> None:
        if self.log is not None and self._removal is None and not self.settings.yes("aof-disable-auto-gc"):
            self._removal = self._executor.submit(self.log.directory.remove_history)
            self._removal.add_done_callback(self._call_back())

    def _forget_history(self) -> None:
        """Old files are gone, or what is left of them goes after the next rewriting."""
        assert self._removal is not None, "it is done"
        failure = self._removal.exception()
        self._removal = None
        try:
            if failure is not None:
                raise failure
            if self.log is not None:
                self.log.directory.forget_history()
                if self.log.directory.manifest.history:
                    self._remove_history()  # another rewriting ended meanwhile
        except OSError as problem:
            self.tell(f"Old files of the log stay for now: {problem}.")

    def _close_spare(self) -> None:
        """appendonly no: the base that was asked for is there; nobody writes to its increment."""
        if self._spare is not None:
            if self._spare.directory.manifest.history and not self.settings.yes("aof-disable-auto-gc"):
                with suppress(OSError):  # what stays is history to the next start too
                    self._spare.directory.remove_history()
                    self._spare.directory.forget_history()
            self._spare.close()
            self._spare = None

    def _save_now(self) -> str:
        """SAVE: a fresh base, written by this process; why it failed, or ""."""
        self._drain_sync()
        self._rewrite_tried_ms = self._now_ms()
        self.state.began(SAVE)
        problem = ""
        pid = 0  # no process of its own
        try:
            log = self._begin_rewrite()
            lines = base_lines(self.engine.keyspace, self.settings, self._now_ms())
            log.write_base(log.directory.temporary_base(pid), lines)
        except (OSError, UsageError) as failure:
            problem = str(failure)
        failures = self.state.save_failures
        self._end_rewriting(problem, pid)
        return problem or ("the disk refused it" if self.state.save_failures > failures else "")

    def _drain_sync(self) -> None:
        if self._sync_future is not None:
            self._sync_future.exception()  # waits
            self._end_sync()

    # -- changing and ending ----------------------------------------------------------------------------------------

    def _switch(self) -> None:
        """CONFIG SET appendonly."""
        wanted = self.settings.yes("appendonly")
        if wanted and self.log is None:
            if self._rewriting.pid:
                self._stop_child()
            try:
                log = self._opened()
            except (OSError, UsageError) as failure:
                raise BadValue(str(failure)) from None
            self._use(log)
            self.state.child = REWRITE
            self.engine.wanted_rewrite = True
        elif not wanted and self.log is not None:
            self._give_up_log()

    def _give_up_log(self) -> bool:
        """Write and sync what there is, and close; whether all of it is safe."""
        log = self.log
        assert log is not None, "there is one to give up"
        if self._rewriting.pid:
            self._stop_child()
        self._drain_sync()
        if self._removal is not None:
            self._removal.exception()  # waits
            self._forget_history()
        held = log.held
        safe = self._write(log) and self._sync_now(log) and not held
        self._end_turns()
        log.close()
        self.log = self.state.log = None
        self.engine.effects.log = None
        if self.engine.trouble is not None:
            self._recover()
        return safe

    def _stop_child(self) -> None:
        pid = self._rewriting.pid
        self._rewriting.kill()
        self._end_rewriting("it was stopped", pid)

    def close(self) -> bool:
        """The server stops: end the child, write, sync, answer who waits; whether everything is safe."""
        safe = True
        if self.log is not None:
            safe = self._give_up_log()
        elif self._rewriting.pid:
            self._stop_child()
        self._executor.shutdown()
        return safe

    def _load_again(self) -> str:
        """DEBUG LOADAOF: empty the keyspace and read the files again; why that failed, or ""."""
        log = self.log
        if log is None:
            return "there is no log"
        self._drain_sync()
        if log.held or not self._write(log):
            return "the log cannot be written"
        ready = dict(self.engine.waiters.ready)
        for db in self.engine.keyspace.databases:
            db.clear()
        try:
            for _ in self._load(log):
                pass
        except (OSError, UsageError) as failure:
            return str(failure)
        finally:
            self.engine.effects.log = log
            self.engine.waiters.ready = ready
        return ""


def _ignore(answer: object) -> None:
    """A callback's answer is of no use to a thread."""
