"""Loads the log's files into the engine, in steps, and logs the progress."""

from collections.abc import Callable, Iterator
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof.replay import Replay, load
from penstock.engine.engine import Engine
from penstock.errors import UsageError
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.disk import Disk
from penstock.storage.aof.log_directory import LogDirectory

PROGRESS_EVERY_MS: Final = 2000  # between log lines about a long load
HOW_TO_TAKE_OVER: Final = (
    "{folder}/{name} is a Redis snapshot (RDB), which Penstock does not read, and no log is loaded beside it. To keep"
    " what it holds, run `redis-server --dir {folder} --dbfilename {name} --appendonly no`, send it `CONFIG SET"
    " aof-use-rdb-preamble no` and `CONFIG SET appendonly yes`, wait until its INFO shows aof_rewrite_in_progress:0"
    " and aof_rewrite_scheduled:0, stop it, and start Penstock with appendonly yes; to start empty, move the file away."
)


def opened(settings: Settings, disk: Disk) -> AppendLog:
    """The log that the settings name, locked and not yet read. OSError or UsageError if it cannot be used."""
    text = settings.text
    log = AppendLog(LogDirectory(disk, text("dir"), text("appenddirname"), text("appendfilename")))
    log.directory.open()
    return log


def refuse_snapshot(settings: Settings, disk: Disk, log: AppendLog | None) -> None:
    """UsageError if `dir` has a snapshot of a Redis and no log: its keys would be missing."""
    folder, name = settings.text("dir"), settings.text("dbfilename")
    if not name or not disk.exists(f"{folder}/{name}") or (log is not None and log.directory.manifest.files()):
        return
    raise UsageError(HOW_TO_TAKE_OVER.format(folder=folder, name=name))


def read_into(engine: Engine, log: AppendLog, tell: Callable[[str], None]) -> Iterator[tuple[int, int]]:
    """Read all files of a log; yields the bytes done and the total.

    Clients may be answered between two steps. The engine is `loading`, also afterwards: the caller resets that when
    clients may be served. UsageError or OSError if the log cannot be loaded.
    """
    state, settings, clock = engine.persistence, engine.settings, engine.clock
    began_ms = told_ms = clock.now_us() // 1000
    state.loading_started_s = began_ms // 1000
    replay = Replay(engine, tell)
    replay.begin()
    mends, most = settings.yes("aof-load-truncated"), settings.number("aof-load-corrupt-tail-max-size")
    for state.loading_done, state.loading_total in load(replay, log, mends, most):
        yield state.loading_done, state.loading_total
        now_ms = clock.now_us() // 1000
        if now_ms - told_ms >= PROGRESS_EVERY_MS:
            told_ms = now_ms
            tell(progress(state.loading_done, state.loading_total, replay.applied, now_ms - began_ms))
    state.keys_loaded = sum(len(db) for db in engine.keyspace.databases)
    if replay.refused:
        tell(f"{replay.refused} lines of the log were refused and ignored.")
    spent_s = (clock.now_us() // 1000 - began_ms) / 1000
    tell(f"Loaded {state.keys_loaded} keys from {replay.applied} requests of the log in {spent_s:.3f} seconds.")


def progress(done: int, total: int, applied: int, spent_ms: int) -> str:
    """Progress as text: bytes read of the total, requests applied."""
    rate, bytes_rate = (count * 1000 // max(spent_ms, 1) for count in (applied, done))
    return f"Loading the log: {100 * done / total:.0f}%, {rate} requests and {bytes_rate / 1e6:.1f} MB a second."


def read_again(engine: Engine, log: AppendLog, tell: Callable[[str], None]) -> str:
    """DEBUG LOADAOF: empty the keyspace and read the files again; why that failed, or ""."""
    ready = dict(engine.blocking.ready)
    for db in engine.keyspace.databases:
        db.clear()
    try:
        for _ in read_into(engine, log, tell):
            pass
    except (OSError, UsageError) as failure:
        return str(failure)
    finally:
        engine.loading = False
        engine.effects.log = log
        engine.effects.start_of_file()
        engine.blocking.ready = ready
    return ""
