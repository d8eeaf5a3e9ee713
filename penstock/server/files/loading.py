"""Loads the log's files, or a snapshot, into the engine, in steps, and logs the progress."""

from collections.abc import Callable, Iterator
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof.replay import Replay, load
from penstock.engine.engine import Engine
from penstock.engine.policies import policy_notes
from penstock.engine.rdb import rdb_check
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.errors import UsageError
from penstock.storage.aof.append_log import AppendLog
from penstock.storage.aof.disk import Disk
from penstock.storage.aof.log_directory import LogDirectory

PROGRESS_EVERY_MS: Final = 2000  # between log lines about a long load
LOG: Final = "append only file"  # as Redis's log calls them: programs that start servers wait for the line
SNAPSHOT: Final = "disk"


def opened(settings: Settings, disk: Disk) -> AppendLog:
    """The log that the settings name, locked and not yet read. OSError or UsageError if it cannot be used."""
    text = settings.text
    log = AppendLog(LogDirectory(disk, text("dir"), text("appenddirname"), text("appendfilename"), text("dbfilename")))
    log.directory.open()
    return log


def read_into(engine: Engine, log: AppendLog, report: Callable[[str], None]) -> Iterator[tuple[int, int]]:
    """Read all files of a log, or the snapshot that it is to begin with; yields the bytes done and the bytes in all.

    Clients may be answered between two steps. The engine is `loading`, also afterwards: the caller resets that when
    clients may be served. UsageError or OSError if the log cannot be loaded.
    """
    settings, directory = engine.settings, log.directory
    replay = Replay(engine.server, report)
    if directory.finds_snapshot():
        yield from _with_reports(engine, replay, SNAPSHOT, _snapshot(replay, directory.disk, directory.snapshot_path))
        report(f"There is no log yet: it begins with a copy of {directory.snapshot_path}, which is not read again.")
        for _ in directory.adopt_snapshot():
            yield engine.persistence.loading_done, engine.persistence.loading_total
        return
    mends, most = settings.yes("aof-load-truncated"), settings.number("aof-load-corrupt-tail-max-size")
    yield from _with_reports(engine, replay, LOG, load(replay, log, mends, most))
    if not engine.persistence.keys_loaded and directory.snapshot and directory.disk.exists(directory.snapshot_path):
        report(f"Warning: {directory.snapshot_path} is not read, because there is a log. The log holds no keys.")


def read_snapshot(engine: Engine, disk: Disk, report: Callable[[str], None]) -> Iterator[tuple[int, int]]:
    """Without a log: as `read_into` for the RDB file that the settings name, if there is one."""
    folder, name = engine.settings.text("dir"), engine.settings.text("dbfilename")
    if name and disk.exists(f"{folder}/{name}"):
        replay = Replay(engine.server, report)
        yield from _with_reports(engine, replay, SNAPSHOT, _snapshot(replay, disk, f"{folder}/{name}"))


def _snapshot(replay: Replay, disk: Disk, path: str) -> Iterator[tuple[int, int]]:
    size = disk.size(path)
    for done in replay.snapshot(disk, path):
        yield done, size


def _with_reports(
    engine: Engine, replay: Replay, place: str, loading: Iterator[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The same steps, with their progress in INFO and in the log. place: LOG or SNAPSHOT."""
    state, clock, report = engine.persistence, engine.clock, replay.report
    began_ms = reported_ms = clock.monotonic_us() // 1000
    state.loading_started_s = clock.now_us() // 1_000_000
    replay.begin()
    for state.loading_done, state.loading_total in loading:
        yield state.loading_done, state.loading_total
        now_ms = clock.monotonic_us() // 1000
        if now_ms - reported_ms >= PROGRESS_EVERY_MS:
            reported_ms = now_ms
            report(progress(state.loading_done, state.loading_total, replay, now_ms - began_ms))
    state.keys_loaded = sum(len(db) for db in engine.keyspace.databases)
    state.keys_expired = replay.expired
    state.saves.loaded()
    if replay.skipped:
        names = ", ".join([f"{name} ({count})" for name, count in sorted(replay.skipped.items())])
        total = sum(replay.skipped.values())
        report(f"Warning: {total} lines of the log name no command and were left out (aof-skip-unknown): {names}")
    if replay.refused:
        report(f"{replay.refused} lines of the log were refused and ignored.")
    if asleep := policy_notes.sleeping(engine.server):
        report(asleep)
    spent_s = (clock.monotonic_us() // 1000 - began_ms) / 1000
    report(f"DB loaded from {place}: {spent_s:.3f} seconds, {state.keys_loaded} keys from {source_of(replay)}")


def source_of(replay: Replay) -> str:
    """The source of the loaded data, in words."""
    if not replay.keys and not replay.expired:
        return f"{replay.applied} requests of the log"
    expired = f" ({replay.expired} more had expired)" if replay.expired else ""
    requests = f" and {replay.applied} requests of the log" if replay.applied else ""
    return f"an RDB file{expired}{requests}"


def progress(done: int, total: int, replay: Replay, spent_ms: int) -> str:
    """How far a loading is, in words: bytes of bytes in all, requests applied, keys of an RDB file."""
    rate, bytes_rate = (count * 1000 // max(spent_ms, 1) for count in (replay.applied, done))
    if not replay.applied:
        return f"Loading the RDB file: {100 * done / total:.0f}%, {bytes_rate / 1e6:.1f} MB a second."
    return f"Loading the log: {100 * done / total:.0f}%, {rate} requests and {bytes_rate / 1e6:.1f} MB a second."


def read_snapshot_again(engine: Engine, disk: Disk, report: Callable[[str], None], empties: bool, merges: bool) -> str:
    """DEBUG RELOAD NOSAVE: read the RDB file while clients stay; why that failed, or "". A bad file changes nothing."""
    path = f"{engine.settings.text('dir')}/{engine.settings.text('dbfilename')}"
    ready = dict(engine.blocking.ready)
    notified = engine.server.key_events.letters
    engine.server.key_events.choose("")
    engine.effects.mute()
    try:
        if problem := rdb_check.look_through(disk, path, lambda done: None).problem:
            return f"{path}: {problem}"
        if empties:
            for db in engine.keyspace.databases:
                db.clear()
            engine.scripts.libraries.flush()
        engine.conditions.loading = True
        for _ in RdbLoading(engine.server, disk, path, report, merges=merges).run():
            pass
    except (OSError, UsageError) as failure:
        return str(failure)
    finally:
        engine.conditions.loading = False
        engine.effects.unmute()
        engine.blocking.ready = ready
        engine.server.key_events.choose(notified)
    return ""


def read_again(engine: Engine, log: AppendLog, report: Callable[[str], None]) -> str:
    """DEBUG LOADAOF: empty the keyspace and read the files again; why that failed, or ""."""
    ready = dict(engine.blocking.ready)
    for db in engine.keyspace.databases:
        db.clear()
    try:
        for _ in read_into(engine, log, report):
            pass
    except (OSError, UsageError) as failure:
        return str(failure)
    finally:
        engine.conditions.loading = False
        engine.effects.use(log)
        engine.effects.start_of_file()
        engine.blocking.ready = ready
    return ""
