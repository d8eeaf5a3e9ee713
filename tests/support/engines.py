"""Engines for tests: their chance has a seed, and their clock stands still unless a test turns it."""

import random
from collections.abc import Callable, Iterable
from typing import Any

from penstock.clock import Clock, ManualClock
from penstock.commands import registry
from penstock.commands.registry import new_engine
from penstock.config.settings import Settings
from penstock.engine.aof.replay import Replay
from penstock.engine.effects import EffectLog
from penstock.engine.engine import Engine
from penstock.engine.rdb import rdb_saving
from penstock.engine.rdb.rdb_loading import RdbLoading
from penstock.engine.table import client_compat
from penstock.engine.table.command_lookup import CommandLookup
from penstock.engine.table.command_table import Command, Handler, ReplayHandler
from penstock.storage.aof.log_directory import write_all
from penstock.storage.rdb.rdb_writer import RdbWriter
from tests.support.clock import NOW_MS
from tests.support.memory_disk import MemoryDisk


def make_engine(clock: Clock | None = None, log: EffectLog | None = None, settings: Settings | None = None) -> Engine:
    """An engine; by default its clock stands at NOW_MS, it has no log, and its settings are the defaults."""
    return new_engine(settings or Settings(), clock or ManualClock(NOW_MS), random.Random(1), log=log)


def engine_with_loader(change: Callable[[str, ReplayHandler], ReplayHandler | None]) -> Engine:
    """As `make_engine`, with other loader's functions: `change` gets each with the name of its command."""
    rows: dict[bytes, Command] = {}
    for name, row in registry.table().items():
        rows[name] = row.as_known(row.declared, row.subcommands)
        if row.replay_handler is not None:
            rows[name].replay_handler = change(row.name, row.replay_handler)
    settings = Settings()
    commands = CommandLookup(rows, client_compat.of(settings), ())
    return Engine(settings, ManualClock(NOW_MS), random.Random(1), commands)


def engine_with_handler(name: str, handler: Handler, log: EffectLog) -> Engine:
    """As `make_engine`, with another function for one command."""
    rows = {key: row.as_known(row.declared, row.subcommands) for key, row in registry.table().items()}
    rows[name.encode()].handler = handler
    settings = Settings()
    commands = CommandLookup(rows, client_compat.of(settings), ())
    return Engine(settings, ManualClock(NOW_MS), random.Random(1), commands, log)


class EngineProxy:
    """Something that behaves as the engine inside it, and does more besides."""

    engine: Engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def value_of(engine: Engine | EngineProxy, key: bytes, database: int = 0) -> Any:
    """The value kept at a key; which type it has, the test knows that put it there."""
    return engine.keyspace.databases[database].values[key]


def settings_with(**directives: str) -> Settings:
    """Settings as a configuration file gives them: settings_with(compat_version="8.2")."""
    settings = Settings()
    for name, value in directives.items():
        settings.read_line([name.replace("_", "-"), value], set())
    return settings


def loaded_engine(
    units: Iterable[bytes],
    now_ms: int = NOW_MS,
    reports: list[str] | None = None,
    clock: Clock | None = None,
    settings: Settings | None = None,
) -> Engine:
    """An engine that has loaded a log. What the loader reports goes to `reports`; without them nothing may be."""
    engine = make_engine(clock or ManualClock(now_ms), settings=settings)
    told: list[str] = []
    replay = Replay(engine.server, told.append)
    replay.begin()
    replay.lines(units)
    replay.end()
    if reports is None:
        assert not told, f"a line of the log was refused: {told}"
    else:
        reports += told
    return engine


def rdb_based_engine(engine: Engine, now_ms: int) -> Engine:
    """An engine that has loaded what a rewrite of another's log writes as an RDB file."""
    snapshot = rdb_saving.base_of(engine.keyspace, engine.settings, now_ms)
    assert snapshot is not None, "the newest Redis reads all of it"
    return _with_file(snapshot, ManualClock(now_ms), keeps_expired=True)


def saved_engine(engine: Engine, now_ms: int, clock: Clock | None = None, settings: Settings | None = None) -> Engine:
    """An engine that has loaded what SAVE of another writes."""
    snapshot = rdb_saving.snapshot_of(engine.keyspace, engine.settings, now_ms)
    return _with_file(snapshot, clock or ManualClock(now_ms), settings)


def copied_engine(engine: Engine, now_ms: int) -> Engine:
    """An engine that has loaded another's snapshot as a replica of it does."""
    snapshot = rdb_saving.snapshot_of(engine.keyspace, engine.settings, now_ms)
    return _with_file(snapshot, ManualClock(now_ms), keeps_expired=True)


def _with_file(
    snapshot: RdbWriter, clock: Clock, settings: Settings | None = None, keeps_expired: bool = False
) -> Engine:
    """An engine that has loaded an RDB file."""
    disk = MemoryDisk()
    file = disk.create("/base.rdb")
    write_all(file, b"".join(snapshot.chunks()))
    again = make_engine(clock, settings=settings)
    told: list[str] = []
    for _ in RdbLoading(again.server, disk, "/base.rdb", told.append, keeps_expired).run():
        pass
    assert not told, told
    return again
