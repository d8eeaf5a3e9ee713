"""The metrics' values of a server at one moment, read in the event loop in steps.

Each step takes some microseconds, so the loop can answer clients between two steps. Values of different steps may
therefore be of slightly different moments. Nothing is formatted here, and of streams nothing is computed that can be
computed later: the loop collects plain tuples, a thread makes StreamCounts and the like of them (stream_text.py).
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from penstock.commands.server import info_sections
from penstock.engine.context import Context
from penstock.engine.engine import Engine
from penstock.engine.session import NO_CLIENT
from penstock.engine.telemetry.statistics import RowStatistics
from penstock.engine.telemetry.stream_counts import KnownStreams, StreamTuples
from penstock.observe.stream_choice import StreamChoice

STREAMS_A_STEP: Final = 10
PARTS_PER_STREAM: Final = 4  # so many times the largest number of streams: the largest number of groups, of consumers
SECTIONS: Final[tuple[Callable[[Context], info_sections.Text], ...]] = (
    info_sections.server,
    info_sections.clients,
    info_sections.memory,
    info_sections.persistence,
    info_sections.stats,
    info_sections.replication,
    info_sections.cpu,
    info_sections.cluster,
)


class CommandCounts(NamedTuple):
    """The calls of one command; `percentiles` has pairs of percent and microseconds."""

    name: str
    calls: int
    usec: int
    rejected: int
    failed: int
    percentiles: list[tuple[str, float]]


class DatabaseCounts(NamedTuple):
    """The keys of one database."""

    db_index: int
    keys: int
    expiring: int
    mean_ttl_ms: int


class Snapshot:
    """The values of one moment.

    known: the streams of the snapshot before. choice: which streams are shown, from one snapshot to the next.
    """

    def __init__(self, known: KnownStreams | None = None, choice: StreamChoice | None = None) -> None:
        self.fields: dict[str, str] = {}  # of INFO
        self.commands: list[CommandCounts] = []
        self.errors: dict[str, int] = {}
        self.databases: list[DatabaseCounts] = []
        self.replicas_needed = 0  # min-replicas-to-write, and how many follow closely enough for it
        self.replicas_good = 0
        self.slow_requests = 0
        self.slow_requests_total = 0
        self.last_slow_usec = 0
        self.known: KnownStreams = known or {}
        self.tuples = StreamTuples(0, {})
        self.choice = choice or StreamChoice()


def take(engine: Engine, snapshot: Snapshot) -> Iterator[None]:
    """Fill a snapshot; the server may answer clients at each yield."""
    ctx = Context(engine.server, NO_CLIENT)
    for section in SECTIONS:
        ctx.begin(NO_CLIENT, engine.clock.now_us())
        snapshot.fields.update(info_sections.fields_of(section(ctx)))
        yield
    snapshot.replicas_needed, snapshot.replicas_good = ctx.replication.needed(), ctx.replication.good()
    snapshot.errors = {code.decode(errors="replace"): count for code, count in engine.statistics.errors.items()}
    for index, db in enumerate(engine.keyspace.databases):
        ttl_ms = info_sections.mean_ttl(db, engine.clock.now_us() // 1000)
        snapshot.databases.append(DatabaseCounts(index, len(db), len(db.expires), ttl_ms))
    slow_log = engine.telemetry.slow_log
    snapshot.slow_requests, snapshot.slow_requests_total = len(slow_log.requests), slow_log.next_id
    snapshot.last_slow_usec = slow_log.requests[0].amount if slow_log.requests else 0
    yield
    percents = engine.settings.text("latency-tracking-info-percentiles").split()
    if not engine.settings.yes("latency-tracking"):
        percents = []
    for name, row in list(engine.statistics.rows.items()):
        if row.calls or row.rejected:
            snapshot.commands.append(_command(name, row, percents))
            yield
    yield from _take_streams(engine, snapshot)


def _command(name: str, row: RowStatistics, percents: list[str]) -> CommandCounts:
    percentiles = [(percent, row.times.percentile(float(percent))) for percent in percents] if row.calls else []
    return CommandCounts(name.lower(), row.calls, row.usec, row.rejected, row.failed, percentiles)


def _take_streams(engine: Engine, snapshot: Snapshot) -> Iterator[None]:
    """The streams that the settings choose."""
    most = engine.settings.number("metrics-max-streams")
    snapshot.tuples = tuples = StreamTuples(most * PARTS_PER_STREAM, snapshot.known)
    choice = snapshot.choice
    yield from choice.choose(engine, most, engine.settings.text("metrics-streams"))
    for start in range(0, len(choice.chosen), STREAMS_A_STEP):
        for db_index, names in groupby(choice.chosen[start : start + STREAMS_A_STEP], lambda name: name[0]):
            streams = engine.keyspace.databases[db_index].streams
            some = [(key, streams[key]) for _, key in names if key in streams]
            if engine.blocking.by_key:
                for key, _ in some:
                    engine.blocking.note_seen(db_index, key)
            tuples.collect(db_index, some, engine.clock.now_us() // 1000)
        yield
