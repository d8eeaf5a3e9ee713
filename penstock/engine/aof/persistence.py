"""The state of the log as the engine knows it: numbers for INFO, what is wanted, DEBUG RELOAD."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.engine.aof import aof_compat
from penstock.engine.aof.replay import Replay
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.context import Context
from penstock.errors import ReplyError
from penstock.storage.aof.append_log import AppendLog

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

REWRITE: Final = "rewrite"  # asked for by BGREWRITEAOF, by growth, or to begin a log


NEVER: Final = -1


class Persistence:
    """The state of one engine's log, kept up to date by the server; an engine without one has an empty one.

    `child` is what a rewriting, wanted or running, was asked for: REWRITE or "".
    """

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.log: AppendLog | None = None
        self.load_log: Callable[[], str] | None = None  # read the log's files again (DEBUG LOADAOF); why not, or ""
        self.child = ""
        self.rewrite_scheduled = False
        now_s = engine.clock.now_us() // 1_000_000
        # loading
        self.loading_started_s = now_s
        self.loading_total = 0
        self.loading_done = 0
        self.keys_loaded = 0
        # rewriting
        self.started_s = now_s
        self.rewrites = 0
        self.rewrite_failures = 0  # since the last success
        self.last_rewrite_seconds = NEVER
        self.child_started_s = 0
        self.progress = Progress()  # of the child that runs
        self.measured_s = 0  # when what it copied was measured, in unix seconds
        self.forks = 0
        self.fork_us = 0  # what the last one took
        self.most_copied = 0  # bytes, by the child that runs
        self.copied_by_rewrite = 0  # bytes, by the last child
        self.writes_ok = True
        self.delayed_syncs = 0
        self.sync_runs = False
        for name in ("aof-compat-version", "aof-compat-consumer"):
            engine.settings.watch(name, self._change_dialect)

    # -- what others ask --------------------------------------------------------------------------------------------

    def changes(self) -> int:
        return self._engine.context.dirty

    def began(self, purpose: str) -> None:
        """A rewriting was started."""
        self.child = purpose
        self.child_started_s = self._engine.clock.now_us() // 1_000_000
        self.progress = Progress()
        self.measured_s = self.most_copied = 0

    def heard(self, progress: Progress) -> None:
        """The child told how far it is."""
        if progress.copied != self.progress.copied or not self.measured_s:
            self.measured_s = self._engine.clock.now_us() // 1_000_000
        self.progress = progress
        self.most_copied = max(self.most_copied, progress.copied)

    def ended(self, worked: bool) -> None:
        """It is over."""
        now_s = self._engine.clock.now_us() // 1_000_000
        seconds = max(0, now_s - self.child_started_s)
        self.last_rewrite_seconds = seconds
        self.copied_by_rewrite = self.most_copied
        self.rewrites += worked
        self.rewrite_failures = 0 if worked else self.rewrite_failures + 1
        self.child = ""
        self.progress = Progress()
        self.measured_s = self.most_copied = 0

    def _change_dialect(self) -> None:
        """CONFIG SET: the log goes on in other words, and a fresh base says everything before in them."""
        self._engine.effects.dialect = aof_compat.of(self._engine.settings)
        if self.log is None:
            return
        if self.child:
            self.rewrite_scheduled = True
        else:
            self.child = REWRITE
            self._engine.wanted_rewrite = True

    def fields(self) -> list[tuple[str, str]]:
        """INFO persistence, in Redis's order (Redis 8.6.3)."""
        engine = self._engine
        now_s = engine.clock.now_us() // 1_000_000
        running_s = max(0, now_s - self.child_started_s)
        rewriting = self.child == REWRITE
        enabled = engine.settings.yes("appendonly")
        numbers: list[tuple[str, int | str]] = [
            ("loading", int(engine.loading)),
            ("async_loading", 0),
            ("current_cow_peak", self.most_copied),
            ("current_cow_size", self.progress.copied),
            ("current_cow_size_age", max(0, now_s - self.measured_s) if self.measured_s else 0),
            ("current_fork_perc", f"{100 * self.progress.share:.2f}"),
            ("current_save_keys_processed", self.progress.keys),
            ("current_save_keys_total", self.progress.keys_total),
            ("rdb_changes_since_last_save", self.changes()),
            ("rdb_bgsave_in_progress", 0),
            ("rdb_last_save_time", self.started_s),
            ("rdb_last_bgsave_status", "ok"),
            ("rdb_last_bgsave_time_sec", NEVER),
            ("rdb_current_bgsave_time_sec", NEVER),
            ("rdb_saves", 0),
            ("rdb_saves_consecutive_failures", 0),
            ("rdb_last_cow_size", 0),
            ("rdb_last_load_keys_expired", 0),
            ("rdb_last_load_keys_loaded", self.keys_loaded),
            ("aof_enabled", int(enabled)),
            ("aof_rewrite_in_progress", int(rewriting)),
            ("aof_rewrite_scheduled", int(self.rewrite_scheduled)),
            ("aof_last_rewrite_time_sec", self.last_rewrite_seconds),
            ("aof_current_rewrite_time_sec", running_s if rewriting else NEVER),
            ("aof_last_bgrewrite_status", "err" if self.rewrite_failures else "ok"),
            ("aof_rewrites", self.rewrites),
            ("aof_rewrites_consecutive_failures", self.rewrite_failures),
            ("aof_last_write_status", "ok" if self.writes_ok else "err"),
            ("aof_last_cow_size", self.copied_by_rewrite),
            ("module_fork_in_progress", 0),
            ("module_fork_last_cow_size", 0),
        ]
        if enabled and self.log is not None:
            numbers += [
                ("aof_current_size", self.log.total_size),
                ("aof_base_size", self.log.grown_from),
                ("aof_pending_rewrite", int(self.rewrite_scheduled)),
                ("aof_buffer_length", self.log.buffered),
                ("aof_pending_bio_fsync", int(self.sync_runs)),
                ("aof_delayed_fsync", self.delayed_syncs),
            ]
        if engine.loading:
            numbers += self._loading_fields(now_s)
        return [(name, str(number)) for name, number in numbers]

    def _loading_fields(self, now_s: int) -> list[tuple[str, int | str]]:
        total, done = self.loading_total, self.loading_done
        spent_s = max(0, now_s - self.loading_started_s)
        return [
            ("loading_start_time", self.loading_started_s),
            ("loading_total_bytes", total),
            ("loading_rdb_used_mem", 0),
            ("loading_loaded_bytes", done),
            ("loading_loaded_perc", f"{100 * done / total if total else 0:.2f}"),
            ("loading_eta_seconds", spent_s * (total - done) // done if done else 1),
        ]

    # -- DEBUG ------------------------------------------------------------------------------------------------------

    def reload(self, ctx: Context) -> None:
        """DEBUG RELOAD: what a rewrite would keep is all that is left; blocked readers go on waiting.

        Whoever watches a key that comes back finds it changed, as in Redis.
        """
        engine = self._engine
        chunks = list(base_lines(engine.keyspace, engine.settings, ctx.now_ms, aof_compat.Dialect()))
        with_log = engine.effects.log
        was_ready = dict(engine.blocking.ready)
        notified, engine.notified = engine.notified, ""  # nothing happens to the keys, for all that anybody sees
        for db in engine.keyspace.databases:
            db.clear()
        replay = Replay(engine, _nobody)
        replay.begin()
        try:
            replay.lines(chunks)
        finally:
            engine.loading = False
            engine.effects.log = with_log
            engine.blocking.ready = was_ready
            engine.notified = notified
        assert not replay.refused, "what this process writes it can read"

    def reload_from_log(self) -> None:
        """DEBUG LOADAOF: what a restart would find; without a log the same as `reload`."""
        if self.load_log is None or self.log is None:
            self.reload(self._engine.context)
        elif self.load_log():
            raise ReplyError(b"ERR Error trying to load the AOF files, check server logs")


def _nobody(line: str) -> None:
    """Takes lines that need no reader."""
