"""Writes the log at the end of each turn of the event loop; the turn's replies are sent after that.

`always`: one sync a turn, for the requests of all clients, before the replies. `everysec`: a thread syncs once a
second. If a sync takes longer than a second, turns wait to be written, for at most two seconds: so a hanging disk
endangers at most two seconds of replies, and a slow one delays no client. `no`: the system decides when to sync.

Room is reserved ahead of writing. If there is none, or the log cannot be written, writers are refused (MISCONF) before
they change anything, and it is tried again. A change that was made when its write failed is kept and written later;
`always` does not confirm it, and closes the connection. After a failed sync the file is not trusted any more: only a
rewrite, with a new base and a new incremental file, ends the refusals.

A log that begins (CONFIG SET appendonly yes), or begins anew with the data of a master, is not in force until its base
is. With `always`, replies that report changes wait for that. What changes meanwhile waits in memory, and beyond 16 MB
in a file. If that cannot be written, the base fails, and writers are refused until there is one.
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
from penstock.engine.state import LOG_FAILING
from penstock.errors import UsageError, sentence_of
from penstock.server.files import loading
from penstock.server.files.aof_rewrite import AofRewrite
from penstock.server.files.rewrite_child import RewriteChild
from penstock.server.files.snapshots import Snapshots
from penstock.server.server_log import ServerLog
from penstock.server.turns.log_threads import LogThreads, Threads
from penstock.server.turns.sync_thread import SyncThread
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.disk import Disk, SystemDisk

LONGEST_SYNC_MS: Final = 1000  # of a sync, before turns wait for it
LONGEST_WAIT_MS: Final = 2000  # of a turn for a sync in progress
SYNC_EVERY_MS: Final = 900  # cron runs ten times a second: a sync begins before a unit is a second old
RETRY_MS: Final = 1000
MOST_WAITING: Final = 16 << 20  # bytes of a log without a base that wait in memory
MOST_KEPT: Final = 256 << 20  # bytes of a replica's log that wait in memory; then a new base is to have them

Finish: TypeAlias = Callable[[bool], None]
"""Sends a turn's replies. It gets whether its units are kept: written, or in memory where the policy allows that."""


class AofWriter:
    """The log of one server: `log` is None while `appendonly` is no.

    `report` gets log lines; without it the server log gets them. `synced` is called from the syncing thread when cron
    has something to do; without it, the running loop calls cron.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        report: Callable[[str], None] | None = None,
        disk: Disk | None = None,
        threads: Threads | None = None,
        rewriting: RewriteChild | None = None,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.state = engine.persistence
        self.report = report or ServerLog(settings, engine.clock).notice
        self.disk: Disk = SystemDisk() if disk is None else disk
        self.threads: Threads = threads or LogThreads()
        self.log: AppendLog | None = None
        self.synced: Callable[[], object] | None = None
        self.syncing = SyncThread(self.threads)
        self.aof_rewrite = AofRewrite(self, rewriting or RewriteChild(self.disk, engine.keyspace, settings))
        self.snapshots = Snapshots(settings, engine, self.disk, self.report)
        self._waiting: list[Finish] = []  # of turns with replies that wait for the log
        self._waits_since_ms = 0
        self._turn_began_at = 0  # units appended before this turn
        self._tried_ms = 0
        self._sync_due = False  # no thread could sync: writers are refused until a sync has worked
        self._has_logged_room = False  # that the file system cannot reserve any
        self.most_kept = MOST_KEPT
        self.most_waiting = MOST_WAITING
        self._annotated_s = 0  # the last second for which the log has an annotation
        self.state.report = self.report
        self.state.begin_anew = self.begin_anew
        self.state.load_log = self._load_again
        self.state.saves.load = self._load_snapshot
        self._annotates = self._syncs_always = self._syncs_never = False
        for name in ("aof-timestamp-enabled", "appendfsync"):
            settings.watch(name, self._read_settings)
        self._read_settings()
        settings.watch("appendonly", self._begin_log, may_refuse=True)
        settings.watch("appendonly", self._end_log)

    # -- the start --------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, settings: Settings, engine: Engine, report: Callable[[str], None] | None = None, disk: Disk | None = None
    ) -> "AofWriter":
        """Open and load the log, unless appendonly is no. UsageError if that fails."""
        durability = cls(settings, engine, report, disk)
        for _ in durability.loading():
            pass
        return durability

    def loading(self) -> Iterator[tuple[int, int]]:
        """As `open`, in steps: yields the bytes done and the total. Clients may be answered between two steps.

        The engine stays `loading` until the log accepts units. After a UsageError, or if the steps are not taken to the
        end, it stays `loading` for good: a write that was answered then would be lost.
        """
        self.snapshots.remove_leftovers()
        if not self.settings.yes("appendonly"):
            for _ in self.snapshots.claim():
                yield 0, 0
            try:
                yield from loading.read_snapshot(self.engine, self.disk, self.report)
            except OSError as failure:
                raise UsageError(sentence_of(failure)) from None
            self.engine.conditions.loading = False
            return
        log: AppendLog | None = None
        try:
            log = loading.opened(self.settings, self.disk)
            yield from loading.read_into(self.engine, log, self.report)
            log.start()
        except (OSError, UsageError) as failure:
            if log is not None:
                log.close()
            raise UsageError(sentence_of(failure)) from None
        self._use(log)
        if log.writes_held:
            self.fail("a sync failed before this start")
        self.engine.conditions.loading = False
        if not self.settings.yes("appendonly"):  # CONFIG SET, meanwhile
            self._give_up_log()
        elif log.directory.manifest.history:
            self.aof_rewrite.remove_history()

    def _use(self, log: AppendLog) -> None:
        self.log = self.state.log = log
        self.engine.effects.use(log)
        self._turn_began_at = log.appended
        if log.needs_room:
            self.reserve(log, 0)

    def now_ms(self) -> int:
        return self.engine.clock.now_us() // 1000

    def passed_ms(self) -> int:
        """A time that never jumps, for whatever lasts."""
        return self.engine.clock.monotonic_us() // 1000

    def _read_settings(self) -> None:
        """Read the settings that every write needs."""
        self._annotates = self.settings.yes("aof-timestamp-enabled")
        self._syncs_always = self.settings.text("appendfsync") == "always"
        self._syncs_never = self.settings.text("appendfsync") == "no"
        self.engine.waiting.answer_waits()  # CONFIG SET: with `no`, what is written is enough

    # -- a turn -----------------------------------------------------------------------------------------------------

    def end_of_turn(self, finish: Finish) -> bool:
        """Write the turn's units, sync them if the policy is `always`, then have the turn's replies sent.

        `finish` is called once, now or later; turns that wait end together. Returns whether replies to connections
        without changes may be sent at once although the turn waits: for a base, which may take minutes.
        """
        log = self.log
        engine = self.engine
        awaits_base = False
        if log is None:
            finish(True)
        elif log.writes_held:
            awaits_base = log.appended > self._turn_began_at and self._awaits_base(log)
            if awaits_base:
                self._waiting.append(finish)
            else:
                finish(log.appended == self._turn_began_at or not self._syncs_always)
        elif not self._waiting and (
            not log.buffered
            # While writers are refused, only a change that was made all the same is tried: a blocked reader may have
            # been served, or a key have expired.
            or (engine.conditions.bits & LOG_FAILING and log.appended <= self._turn_began_at)
        ):
            finish(True)
        elif self._waiting or (self.syncing.sync is not None and self._sync_lasts()):
            if not self._waiting:
                self._waits_since_ms = self.passed_ms()
            self._waiting.append(finish)
            self._flush()
        else:
            finish(self.write(log) or not self._syncs_always)
        if log is not None:
            self._turn_began_at = log.appended
        if engine.persistence.wanted_rewrite:
            self.aof_rewrite.start()
        return awaits_base

    def _awaits_base(self, log: AppendLog) -> bool:
        """Whether replies that report changes wait for a base which is being written."""
        return log.writes_held and self._syncs_always and self.engine.conditions.trouble is None

    def _set_aside(self, log: AppendLog) -> None:
        """Have the units that wait for a base out of memory; without them, that base is of no use."""
        if self._annotates:
            self._annotate(log)
        try:
            log.set_aside()
        except OSError as failure:
            self.aof_rewrite.stop(failure.strerror or str(failure))

    def _sync_lasts(self) -> bool:
        """Whether a sync in progress has taken so long that turns wait for it."""
        return self.syncing.sync is not None and self.passed_ms() - self.syncing.began_ms >= LONGEST_SYNC_MS

    def _flush(self) -> None:
        """Write what is buffered, and end the turns that waited for it, unless they must wait on."""
        log = self.log
        assert log is not None, "turns wait only for a log"
        if self._awaits_base(log):
            return
        if not log.writes_held and self._sync_lasts():
            if self.passed_ms() - self._waits_since_ms < LONGEST_WAIT_MS:
                return
            self.state.delayed_syncs += 1
        self._end_turns(not log.writes_held and self.write(log))

    def _end_turns(self, is_written: bool) -> None:
        waiting, self._waiting = self._waiting, []
        for finish in waiting:
            finish(is_written or not self._syncs_always)

    def write(self, log: AppendLog) -> bool:
        """Write, and sync if the policy is `always`; whether that worked. Then see to the room for what comes next."""
        if self._annotates and not log.writes_held:
            self._annotate(log)
        before = log.size
        try:
            log.write()
        except OSError as failure:
            self.fail(failure.strerror)
            return False
        if self._syncs_always and log.synced < log.written and not self.sync_now(log):
            return False
        if self._syncs_never:
            self.engine.waiting.answer_waits()
        if log.needs_room:
            self.reserve(log, log.size - before)
        return True

    def _annotate(self, log: AppendLog) -> None:
        """Begin what is to be written with the time, if the second is a new one."""
        if log.buffered:
            now_s = self.now_ms() // 1000
            if now_s != self._annotated_s:
                self._annotated_s = now_s
                log.annotate(b"#TS:%d\r\n" % now_s)

    def reserve(self, log: AppendLog, last_write: int) -> None:
        """Reserve room for what comes next; refuse writers if there is none. last_write: bytes of the last turn."""
        try:
            reserves = log.reserve(last_write)
        except OSError as failure:
            self.fail(failure.strerror)
            return
        if not reserves and not self._has_logged_room:
            self._has_logged_room = True
            self.report(
                "The file system of the log cannot reserve room ahead: a full disk is met by the first change that does"
                " not fit, and only the changes after it are refused."
            )

    def sync_now(self, log: AppendLog) -> bool:
        try:
            log.sync()
        except OSError as failure:
            log.hold()
            self.fail(failure.strerror)
            return False
        self._sync_due = False
        self.engine.waiting.answer_waits()
        return True

    def fail(self, why: str | None) -> None:
        """Refuse writers from now on; `why` is shown to them."""
        if self.engine.conditions.trouble is None:
            self.report(f"The log cannot be written: {why}. Writers are refused until it can." + self._kept_text())
        self.engine.conditions.trouble = b"MISCONF Errors writing to the AOF file: " + (why or "").encode()
        self.state.writes_ok = False
        self._tried_ms = self.passed_ms()

    def _kept_text(self) -> str:
        """A sentence about the changes that are not in the log yet; "" if there are none."""
        log = self.log
        if log is None or log.written == log.appended:
            return ""
        if self._syncs_always:
            return " Changes that were made already are not confirmed: their connections are closed."
        return " Changes that were made already are confirmed, and kept in memory until they can be written."

    def begins_again(self, log: AppendLog) -> None:
        """A held log has its base: writers are served again, if there is room, and turns that waited end."""
        self._sync_due = False
        self.reserve(log, 0)
        if not log.needs_room:
            self.recover()
        if self._waiting:
            self._flush()
        elif log.buffered:
            self.write(log)
        self.engine.waiting.answer_waits()

    def recover(self) -> None:
        if self.engine.conditions.trouble is not None:
            self.report("The log can be written again.")
        self.engine.conditions.trouble = None
        self.state.writes_ok = True
        self._sync_due = False

    @property
    def is_waiting(self) -> bool:
        """Whether a sync runs, or a turn waits for its write. (A turn that waits for a base does not count.)"""
        return self.syncing.sync is not None or (
            bool(self._waiting) and self.log is not None and not self.log.writes_held
        )

    # -- time -------------------------------------------------------------------------------------------------------

    def cron(self) -> None:
        """Sync, retry, rewrite: called ten times a second between two turns, and after `synced`."""
        self._end_sync()
        log = self.log
        if log is not None:
            if log.writes_held and log.buffered > self.most_waiting:
                self._set_aside(log)
            if self._waiting:
                self._flush()
            if (
                self.engine.conditions.trouble is not None
                and not log.writes_held
                and self.passed_ms() - self._tried_ms >= RETRY_MS
            ):
                self._try_again(log)
            elif log.buffered and not self._waiting and self.engine.conditions.trouble is None:
                self.write(log)
        if not self.engine.conditions.loading:
            self.aof_rewrite.look_after()
        self.snapshots.look_after()
        if self.log is not None:
            self._sync_if_due(self.log)

    def try_now(self) -> None:
        """While writers are refused: try at once, not only when the next attempt is due."""
        self._tried_ms = self.passed_ms() - RETRY_MS
        self.cron()

    def _try_again(self, log: AppendLog) -> None:
        """While writers are refused: try to write, and to sync if the sync failed; recover if that works."""
        self._tried_ms = self.passed_ms()
        if not self.write(log) and log.buffered > self.most_kept and self.engine.replication.master is not None:
            # What a master sends is not refused. A held log forgets it whenever a base is begun.
            log.hold()
        if log.buffered or log.needs_room or log.writes_held:
            return
        if not self._sync_due or log.synced == log.written:
            self.recover()
        elif self.syncing.sync is None:
            self.begin_sync(log)

    def _sync_if_due(self, log: AppendLog) -> None:
        if self._sync_due:
            return  # tried again once a second
        if self.settings.text("appendfsync") == "no" or self.syncing.sync is not None:
            return  # with always, there is something to sync where it was another policy before
        if self.settings.yes("no-appendfsync-on-rewrite") and self.aof_rewrite.process.pid:
            return
        elapsed_ms = self.passed_ms() - self.syncing.began_ms
        if log.synced < log.written and not 0 <= elapsed_ms < SYNC_EVERY_MS:
            self.begin_sync(log)

    def begin_sync(self, log: AppendLog) -> bool:
        """Sync in a thread. False if all is synced, or if no thread could be started: then writers are refused."""
        try:
            self.state.sync_runs = self.syncing.begin(log, self.passed_ms(), self.call_back())
        except (RuntimeError, MemoryError) as failure:
            self._refuse_until_synced(failure)
            return False
        return self.state.sync_runs

    def _refuse_until_synced(self, failure: BaseException) -> None:
        """No sync could be started: refuse writers until one has worked, because unsynced units may be lost."""
        self._sync_due = True
        self.fail(os.strerror(errno.ENOMEM) if isinstance(failure, MemoryError) else str(failure))

    def call_back(self) -> Callable[["Future[None]"], None]:
        """Called by a thread when it is done: it schedules cron in the loop's thread."""
        synced = self.synced
        if synced is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return lambda done: None  # no loop: the next cron does it
            synced = partial(loop.call_soon_threadsafe, self.cron)
        call = synced
        return lambda done: _ignore(call())

    def _end_sync(self) -> None:
        """Note the result of a background sync that has ended."""
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
            self._refuse_until_synced(failure)
        else:
            if sync is not None:
                assert log is not None, "a log is not given up while it is synced"
                log.end_sync(sync)
                if self._sync_due:
                    self._sync_due = False
                    if not log.buffered and not log.needs_room:  # else the next try, which writes
                        self.recover()
                self.engine.waiting.answer_waits()
        self.state.sync_runs = self.syncing.sync is not None

    def finish_sync(self) -> None:
        """Wait for the sync in progress."""
        self.syncing.wait(self.report)
        self._end_sync()

    # -- changing and ending ----------------------------------------------------------------------------------------

    def _begin_log(self) -> None:
        """CONFIG SET appendonly yes."""
        if self.settings.yes("appendonly") and self.log is None:
            self.aof_rewrite.stop()
            try:
                log = loading.opened(self.settings, self.disk)
            except (OSError, UsageError) as failure:
                raise BadValue(str(failure)) from None
            self._use(log)
            self._log_base_begins()
            self.state.child = REWRITE
            self.engine.persistence.wanted_rewrite = True

    def _end_log(self) -> None:
        """CONFIG SET appendonly no."""
        if not self.settings.yes("appendonly") and self.log is not None:
            self._give_up_log()

    def _log_base_begins(self) -> None:
        what = "Replies to changes wait" if self._syncs_always else "Changes are confirmed, and kept in memory only,"
        self.report(f"The log begins with a base file, which is to be written. {what} until it is.")

    def _give_up_log(self) -> bool:
        """Write, sync and close the log; whether everything is on the disk."""
        log = self.log
        assert log is not None, "there is one to give up"
        self.aof_rewrite.stop()
        self.finish_sync()
        self.aof_rewrite.finish_jobs()
        safe = not log.writes_held and self.write(log) and self._sync_last(log)
        self._end_turns(safe or not self.settings.yes("appendonly"))  # without a log, nothing more is promised
        log.close()
        self.log = self.state.log = None
        self.engine.effects.use(None)
        self.engine.waiting.answer_waits()
        self.engine.conditions.trouble = None
        self.state.writes_ok = True
        self._sync_due = False
        return safe

    def _sync_last(self, log: AppendLog) -> bool:
        """As `sync_now`, but in the thread: signals are heard while a disk takes long."""
        self.begin_sync(log)
        self.finish_sync()
        return not log.writes_held and (log.synced == log.written or self.sync_now(log))

    def begin_anew(self) -> None:
        """All data are others now (a master's): the log begins with a copy of them; the old one stays until then.

        Without a log, the RDB file is saved soon: no save point counts what came with a copy.
        """
        self.aof_rewrite.stop()
        self.finish_sync()
        self.aof_rewrite.finish_jobs()
        if self.log is not None:
            self.log.begin_anew()
            self._log_base_begins()
        elif self.state.saves.points():
            self.state.saves.scheduled = True
            self.engine.server.context.dirty += 1  # a save that fails is tried again as after a change

    def close(self) -> bool:
        """At the end: kill the children, write, sync, end the waiting turns; whether everything is on the disk."""
        safe = True
        self.snapshots.stop()
        self.snapshots.release()
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
        if log.writes_held or not self.write(log):
            return "the log cannot be written"
        return loading.read_again(self.engine, log, self.report)

    def _load_snapshot(self, empties: bool, merges: bool) -> str:
        """DEBUG RELOAD with options: read the RDB file; the log begins anew with what is there then."""
        log = self.log
        if log is not None:
            self.finish_sync()
            self.aof_rewrite.finish_jobs()
            if log.writes_held or not self.write(log):
                return "the log cannot be written"
        problem = loading.read_snapshot_again(self.engine, self.disk, self.report, empties, merges)
        if problem:
            self.report(f"DEBUG RELOAD: {problem}.")
        else:
            self.begin_anew()
        return problem


def _ignore(answer: object) -> None:
    """Drops the result of a callback."""
