"""Write, then answer: the log is written at the end of a loop turn, and the turn's replies follow.

`always`: one sync a turn serves everybody's commands, before the replies. `everysec`: a thread syncs once a second;
once that has taken a second, turns wait for their write, for two seconds at the most: so no more than two seconds of
answers are in danger while a disk hangs, and a disk that is slow holds nobody up. `no`: the system syncs when it likes.

What fails refuses writers (MISCONF) and is tried again. After a sync that failed the file is not trusted any more:
only a fresh base and a fresh increment end the trouble (rebasing.py).
"""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeAlias

from penstock.config.directive_types import BadValue
from penstock.config.settings import Settings
from penstock.engine.aof.persistence import REWRITE
from penstock.engine.engine import Engine
from penstock.errors import UsageError
from penstock.server import loading
from penstock.server.aof_rewrite import AofRewrite
from penstock.server.log_threads import LogThreads, Threads
from penstock.server.rewrite_child import RewriteChild
from penstock.server.server_log import ServerLog
from penstock.server.sync_thread import SyncThread
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.disk import Disk, SystemDisk

LONGEST_SYNC_MS: Final = 1000  # before turns wait for it
LONGEST_WAIT_MS: Final = 2000  # of a turn for a sync that runs
SYNC_EVERY_MS: Final = 900  # cron comes ten times a second: nothing is older than a second when its sync begins
RETRY_MS: Final = 1000

Release: TypeAlias = Callable[[], None]
Refuse: TypeAlias = Callable[[bytes], None]


class AofWriter:
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
        threads: Threads | None = None,
        rewriting: RewriteChild | None = None,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.state = engine.persistence
        self.tell = tell or ServerLog(settings, engine.clock).notice
        self.disk: Disk = SystemDisk() if disk is None else disk
        self.threads: Threads = threads or LogThreads()
        self.log: AppendLog | None = None
        self.synced: Callable[[], object] | None = None
        self.syncing = SyncThread(self.threads)
        self.aof_rewrite = AofRewrite(self, rewriting or RewriteChild(self.disk, engine.keyspace, settings))
        self._waiting: list[tuple[Release, Refuse | None]] = []  # turns whose replies wait for the log
        self._waits_since_ms = 0
        self._turn_began_at = 0  # units appended before this turn
        self._tried_ms = 0
        self._owes_sync = False  # no thread could sync: writers are refused until one has
        self._annotated_s = 0  # the last second that was written into the log
        self.state.load_log = self._load_again
        self._annotates = self._syncs_always = False
        for name in ("aof-timestamp-enabled", "appendfsync"):
            settings.watch(name, self._heed)
        self._heed()
        settings.watch("appendonly", self._switch)

    # -- the start --------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, settings: Settings, engine: Engine, tell: Callable[[str], None] | None = None, disk: Disk | None = None
    ) -> "AofWriter":
        """Open and load the log, if there is to be one. UsageError where that is impossible."""
        durability = cls(settings, engine, tell, disk)
        for _ in durability.loading():
            pass
        return durability

    def loading(self) -> Iterator[tuple[int, int]]:
        """As `open`, in steps: yields the bytes done and the bytes in all. Clients may be answered in between.

        The engine stays `loading` until the log takes changes; after a UsageError, or where this is given up, for good:
        a write that was answered then would be lost.
        """
        if not self.settings.yes("appendonly"):
            loading.refuse_snapshot(self.settings, self.disk, None)
            return
        log: AppendLog | None = None
        try:
            log = loading.opened(self.settings, self.disk)
            loading.refuse_snapshot(self.settings, self.disk, log)
            yield from loading.read_into(self.engine, log, self.tell)
            log.start()
        except (OSError, UsageError) as failure:
            if log is not None:
                log.close()
            raise UsageError(str(failure)) from None
        self._use(log)
        self.engine.loading = False
        if not self.settings.yes("appendonly"):  # CONFIG SET, meanwhile
            self._give_up_log()
        elif log.directory.manifest.history:
            self.aof_rewrite.remove_history()

    def _use(self, log: AppendLog) -> None:
        self.log = self.state.log = log
        self.engine.effects.log = log
        self.engine.effects.start_of_file()
        self._turn_began_at = log.appended

    def now_ms(self) -> int:
        return self.engine.clock.now_us() // 1000

    def _heed(self) -> None:
        """What the settings say of every write."""
        self._annotates = self.settings.yes("aof-timestamp-enabled")
        self._syncs_always = self.settings.text("appendfsync") == "always"

    # -- a turn -----------------------------------------------------------------------------------------------------

    def end_of_turn(self, release: Release, refuse: Refuse | None = None) -> None:
        """Have the turn's units written, and synced where that is asked for; then let its replies out.

        One of the two is called, once, now or later; turns end in their order. `release` lets the replies out.
        `refuse`, given an error's text, lets them out too, but for those of requests that the log took units of: they
        get the error, for nobody knows what became of them.
        """
        log = self.log
        engine = self.engine
        if log is None:
            release()
        elif engine.trouble is not None or not (self._waiting or (log.buffered and not log.held)):
            # In trouble no write is tried now: whoever changed something (a reader that had waited) is told so.
            _end(release, refuse, engine.trouble if log.appended > self._turn_began_at else None)
        elif self._waiting or self._sync_lasts():
            if not self._waiting:
                self._waits_since_ms = self.now_ms()
            self._waiting.append((release, refuse))
            self._flush()
        else:
            is_written = self.write(log)
            _end(release, refuse, None if is_written else self.engine.trouble)
        if log is not None:
            self._turn_began_at = log.appended
        if engine.wanted_rewrite:
            self.aof_rewrite.start()

    def _sync_lasts(self) -> bool:
        """Whether a sync runs that has taken so long that turns wait for it."""
        return self.syncing.sync is not None and self.now_ms() - self.syncing.began_ms >= LONGEST_SYNC_MS

    def _flush(self) -> None:
        """Write what is buffered, and let the turns go that waited for it; unless they go on waiting."""
        log = self.log
        assert log is not None, "turns wait only for a log"
        if self._sync_lasts():
            if self.now_ms() - self._waits_since_ms < LONGEST_WAIT_MS:
                return
            self.state.delayed_syncs += 1
        self.write(log)
        self._end_turns()

    def _end_turns(self) -> None:
        waiting, self._waiting = self._waiting, []
        for release, refuse in waiting:
            _end(release, refuse, self.engine.trouble)

    def write(self, log: AppendLog) -> bool:
        """Write, and sync where the policy is `always`; whether that worked."""
        if self._annotates and log.buffered and not log.held:
            now_s = self.now_ms() // 1000
            if now_s != self._annotated_s:
                self._annotated_s = now_s
                log.annotate(b"#TS:%d\r\n" % now_s)
        try:
            log.write()
        except OSError as failure:
            self.fail(failure.strerror)
            return False
        if self._syncs_always and log.synced < log.written:
            return self.sync_now(log)
        return True

    def sync_now(self, log: AppendLog) -> bool:
        try:
            log.sync()
        except OSError as failure:
            log.hold()
            self.fail(failure.strerror)
            return False
        self._owes_sync = False
        self.engine.sync_waiting.settle(self.engine)
        return True

    def fail(self, why: str | None) -> None:
        """Writers are refused from here on."""
        if self.engine.trouble is None:
            self.tell(f"The log cannot be written: {why}. Writers are refused until it can.")
        self.engine.trouble = b"MISCONF Errors writing to the AOF file: " + (why or "").encode()
        self.state.writes_ok = False
        self._tried_ms = self.now_ms()

    def recover(self) -> None:
        if self.engine.trouble is not None:
            self.tell("The log can be written again.")
        self.engine.trouble = None
        self.state.writes_ok = True
        self._owes_sync = False

    @property
    def is_waiting(self) -> bool:
        """Whether a sync runs, or a turn waits for its write."""
        return self.syncing.sync is not None or bool(self._waiting)

    # -- time -------------------------------------------------------------------------------------------------------

    def cron(self) -> None:
        """To be called ten times a second, between two turns, and when `synced` was called."""
        self._end_sync()
        log = self.log
        if log is not None:
            if self._waiting:
                self._flush()
            if self.engine.trouble is not None and not log.held and self.now_ms() - self._tried_ms >= RETRY_MS:
                self._try_again(log)
            elif log.buffered and not self._waiting and self.engine.trouble is None:
                self.write(log)
        if not self.engine.loading:
            self.aof_rewrite.look_after()
        if self.log is not None:
            self._sync_if_due(self.log)

    def _try_again(self, log: AppendLog) -> None:
        """Writers are refused: can the log be written now, and synced, if that is what failed?"""
        self._tried_ms = self.now_ms()
        if not self.write(log):
            return
        if not self._owes_sync or log.synced == log.written:
            self.recover()
        elif self.syncing.sync is None:
            self.begin_sync(log)

    def _sync_if_due(self, log: AppendLog) -> None:
        if self._owes_sync:
            return  # tried again once a second
        if self.settings.text("appendfsync") != "everysec" or self.syncing.sync is not None:
            return
        if self.settings.yes("no-appendfsync-on-rewrite") and self.aof_rewrite.process.pid:
            return
        elapsed_ms = self.now_ms() - self.syncing.began_ms
        if log.synced < log.written and not 0 <= elapsed_ms < SYNC_EVERY_MS:
            self.begin_sync(log)

    def begin_sync(self, log: AppendLog) -> bool:
        """Have a thread sync; False where nothing needs that, or there can be no thread: writers are refused then."""
        try:
            self.state.sync_runs = self.syncing.begin(log, self.now_ms(), self.call_back())
        except (RuntimeError, MemoryError) as failure:
            self._owe_sync(failure)
            return False
        return self.state.sync_runs

    def _owe_sync(self, failure: BaseException) -> None:
        """A sync could not be tried. What everybody wrote is in danger until one has worked."""
        self._owes_sync = True
        self.fail(os.strerror(errno.ENOMEM) if isinstance(failure, MemoryError) else str(failure))

    def call_back(self) -> Callable[["Future[None]"], None]:
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
        log, running = self.log, self.syncing.sync
        try:
            sync = self.syncing.end()
        except OSError as failure:
            assert log is not None, "a log is not given up while it is synced"
            log.hold()
            self.fail(failure.strerror)
        except (RuntimeError, MemoryError) as failure:
            assert log is not None and running is not None, "a log is not given up while it is synced"
            if running.is_unsure:
                log.hold()
            self._owe_sync(failure)
        else:
            if sync is not None:
                assert log is not None, "a log is not given up while it is synced"
                log.end_sync(sync)
                if self._owes_sync:
                    self._owes_sync = False
                    if not log.buffered:  # else the next try, which writes
                        self.recover()
                self.engine.sync_waiting.settle(self.engine)
        self.state.sync_runs = self.syncing.sync is not None

    def finish_sync(self) -> None:
        """Wait for the sync that runs."""
        self.syncing.wait()
        self._end_sync()

    # -- changing and ending ----------------------------------------------------------------------------------------

    def _switch(self) -> None:
        """CONFIG SET appendonly."""
        wanted = self.settings.yes("appendonly")
        if wanted and self.log is None:
            self.aof_rewrite.stop()
            try:
                log = loading.opened(self.settings, self.disk)
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
        self.aof_rewrite.stop()
        self.finish_sync()
        self.aof_rewrite.finish_jobs()
        held = log.held
        safe = self.write(log) and self.sync_now(log) and not held
        self._end_turns()
        log.close()
        self.log = self.state.log = None
        self.engine.effects.log = None
        if self.engine.trouble is not None:
            self.recover()
        return safe

    def close(self) -> bool:
        """The server stops: end the child, write, sync, answer who waits; whether everything is safe."""
        safe = True
        if self.log is not None:
            safe = self._give_up_log()
        else:
            self.aof_rewrite.stop()
        self.threads.shutdown()
        return safe

    def _load_again(self) -> str:
        """DEBUG LOADAOF: empty the keyspace and read the files again; why that failed, or ""."""
        log = self.log
        if log is None:
            return "there is no log"
        self.finish_sync()
        self.aof_rewrite.finish_jobs()
        if log.held or not self.write(log):
            return "the log cannot be written"
        return loading.read_again(self.engine, log, self.tell)


def _end(release: Release, refuse: Refuse | None, trouble: bytes | None) -> None:
    """Let a turn's replies out; see Durability.end_of_turn."""
    if trouble is None or refuse is None:
        release()
    else:
        refuse(trouble)


def _ignore(answer: object) -> None:
    """A callback's answer is of no use to a thread."""
