"""The state of the log as the engine knows it: numbers for INFO, and what is wanted."""

from collections.abc import Callable
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.conditions import Conditions
from penstock.engine.rdb.save_state import SaveState
from penstock.engine.telemetry.decimals import two_decimals
from penstock.storage.aof.append_log import AppendLog

REWRITE: Final = "rewrite"  # asked for by BGREWRITEAOF, by growth, or to begin a log
NEVER: Final = -1


def discard(line: str) -> None:
    """Takes lines that need no reader."""


def begin_nothing() -> None:
    """Nothing is kept."""


class Persistence:
    """The state of one engine's log, kept up to date by the server; an engine without one has an empty one.

    `child` is what a rewriting, wanted or running, was asked for: REWRITE or "". changes: changes since the start.
    """

    def __init__(self, settings: Settings, clock: Clock, conditions: Conditions, changes: Callable[[], int]) -> None:
        self._settings = settings
        self._conditions = conditions
        self._clock = clock
        self.changes = changes
        self.log: AppendLog | None = None
        self.report: Callable[[str], None] = discard  # takes lines for the server's log
        self.begin_anew: Callable[[], None] = begin_nothing  # all data are others: keep those from here on
        self.load_log: Callable[[], str] | None = None  # read the log's files again (DEBUG LOADAOF); why not, or ""
        self.wanted_rewrite = False  # the caller of the engine is to begin one
        self.wanted_shutdown = False  # the caller is to end the server
        self.child = ""
        self.rewrite_scheduled = False
        now_s = clock.now_us() // 1_000_000
        # loading
        self.loading_started_s = now_s
        self.loading_total = 0
        self.loading_done = 0
        self.keys_loaded = 0
        self.keys_expired = 0  # that were not loaded for that reason
        # rewriting
        self.started_s = now_s
        self.rewrites = 0
        self.rewrite_failures = 0  # since the last success
        self.last_rewrite_seconds = NEVER
        self.child_started_s = 0
        self.progress = Progress()  # of the child that runs
        self.measured_s = 0  # when its copied memory was measured; as `_passed_s`
        self.forks = 0
        self.fork_us = 0  # what the last one took
        self.most_copied = 0  # bytes, by the child that runs
        self.copied_by_rewrite = 0  # bytes, by the last child
        self.writes_ok = True
        self.delayed_syncs = 0
        self.sync_runs = False
        self.saves = SaveState(settings, clock, changes)

    # -- what others ask --------------------------------------------------------------------------------------------

    def _passed_s(self) -> int:
        """Seconds of the time that never jumps."""
        return self._clock.monotonic_us() // 1_000_000

    def appended_units(self) -> int:
        """How many units were appended to the log; 0 without a log."""
        return 0 if self.log is None else self.log.appended

    def synced_units(self) -> int:
        """How many units are as safe as appendfsync makes them: synced; with `no`, written (Redis 8.6.3)."""
        log = self.log
        if log is None:
            return 0
        return log.written if self._settings.text("appendfsync") == "no" else log.synced

    def may_end(self, is_forced: bool) -> bool:
        """Whether the server may end now: not while the data are in no file (Redis 8.6.3), unless that is forced."""
        if self.log is None or not self.log.lacks_base:
            return True
        if is_forced:
            self.report("The log's first base file is not written yet. The server ends all the same: changes are lost.")
        else:
            self.report("The log's first base file is not written yet, so the server goes on.")
        return is_forced

    def began(self, purpose: str) -> None:
        """A rewriting was started."""
        self.child = purpose
        self.child_started_s = self._passed_s()
        self.progress = Progress()
        self.measured_s = self.most_copied = 0

    def heard(self, progress: Progress) -> None:
        """The child reported its progress."""
        if progress.copied != self.progress.copied or not self.measured_s:
            self.measured_s = self._passed_s()
        self.progress = progress
        self.most_copied = max(self.most_copied, progress.copied)

    def ended(self, worked: bool, is_counted: bool = True) -> None:
        """It is over. is_counted: as a success or a failure; a child that was stopped is neither (Redis 8.6.3)."""
        seconds = self._passed_s() - self.child_started_s
        self.last_rewrite_seconds = seconds
        self.copied_by_rewrite = self.most_copied
        if is_counted:
            self.rewrites += worked
            self.rewrite_failures = 0 if worked else self.rewrite_failures + 1
        self.child = ""
        self.forget_progress()

    def forget_progress(self) -> None:
        """No child runs any more."""
        self.progress = Progress()
        self.measured_s = self.most_copied = 0

    def want_new_base(self) -> bool:
        """The log's commands are now those of another version: a new base file is needed, in that version.

        Returns whether the caller must start the rewrite now; if one runs, the next starts after it.
        """
        if self.log is None:
            return False
        if self.child:
            self.rewrite_scheduled = True
            return False
        self.child = REWRITE
        return True

    def info(self) -> str:
        """INFO persistence: its lines, each ended by CR LF, in Redis's order (Redis 8.6.3)."""
        now_s = self._clock.now_us() // 1_000_000
        rewriting = self.child == REWRITE
        running_s = self._passed_s() - self.child_started_s if rewriting else NEVER
        measured_s = self._passed_s() - self.measured_s if self.measured_s else 0
        saves = self.saves
        enabled = self._settings.yes("appendonly")
        save_status = "ok" if saves.works else "err"
        rewrite_status = "err" if self.rewrite_failures else "ok"
        write_status = "ok" if self.writes_ok else "err"
        text = (
            f"loading:{int(self._conditions.loading)}\r\n"
            "async_loading:0\r\n"
            f"current_cow_peak:{self.most_copied}\r\n"
            f"current_cow_size:{self.progress.copied}\r\n"
            f"current_cow_size_age:{measured_s}\r\n"
            f"current_fork_perc:{two_decimals(100 * self.progress.share)}\r\n"
            f"current_save_keys_processed:{self.progress.keys}\r\n"
            f"current_save_keys_total:{self.progress.keys_total}\r\n"
            f"rdb_changes_since_last_save:{saves.changes()}\r\n"
            f"rdb_bgsave_in_progress:{int(saves.runs)}\r\n"
            f"rdb_last_save_time:{saves.last_save_s}\r\n"
            f"rdb_last_bgsave_status:{save_status}\r\n"
            f"rdb_last_bgsave_time_sec:{saves.last_seconds}\r\n"
            f"rdb_current_bgsave_time_sec:{saves.running_seconds()}\r\n"
            f"rdb_saves:{saves.saves}\r\n"
            f"rdb_saves_consecutive_failures:{saves.failures}\r\n"
            f"rdb_last_cow_size:{saves.copied_bytes}\r\n"
            f"rdb_last_load_keys_expired:{self.keys_expired}\r\n"
            f"rdb_last_load_keys_loaded:{self.keys_loaded}\r\n"
            f"aof_enabled:{int(enabled)}\r\n"
            f"aof_rewrite_in_progress:{int(rewriting)}\r\n"
            f"aof_rewrite_scheduled:{int(self.rewrite_scheduled)}\r\n"
            f"aof_last_rewrite_time_sec:{self.last_rewrite_seconds}\r\n"
            f"aof_current_rewrite_time_sec:{running_s}\r\n"
            f"aof_last_bgrewrite_status:{rewrite_status}\r\n"
            f"aof_rewrites:{self.rewrites}\r\n"
            f"aof_rewrites_consecutive_failures:{self.rewrite_failures}\r\n"
            f"aof_last_write_status:{write_status}\r\n"
            f"aof_last_cow_size:{self.copied_by_rewrite}\r\n"
            "module_fork_in_progress:0\r\n"
            "module_fork_last_cow_size:0\r\n"
        )
        if enabled and self.log is not None:
            text += (
                f"penstock_aof_base_written:{int(not self.log.lacks_base)}\r\n"
                f"aof_current_size:{self.log.total_size}\r\n"
                f"aof_base_size:{self.log.grown_from}\r\n"
                f"aof_pending_rewrite:{int(self.rewrite_scheduled)}\r\n"
                f"aof_buffer_length:{self.log.buffered}\r\n"
                f"aof_pending_bio_fsync:{int(self.sync_runs)}\r\n"
                f"aof_delayed_fsync:{self.delayed_syncs}\r\n"
            )
        text += "backup_in_progress:0\r\n"
        return text + self._loading_info(now_s) if self._conditions.loading else text

    def _loading_info(self, now_s: int) -> str:
        total, done = self.loading_total, self.loading_done
        spent_s = max(0, now_s - self.loading_started_s)
        return (
            f"loading_start_time:{self.loading_started_s}\r\n"
            f"loading_total_bytes:{total}\r\n"
            "loading_rdb_used_mem:0\r\n"
            f"loading_loaded_bytes:{done}\r\n"
            f"loading_loaded_perc:{two_decimals(100 * done / total if total else 0.0)}\r\n"
            f"loading_eta_seconds:{spent_s * (total - done) // done if done else 1}\r\n"
        )
