"""What the metrics show of a server at one moment: read in the event loop, step by step.

Each step takes some microseconds, so the loop can answer clients between two steps. Values of different steps may
therefore be of slightly different moments. Nothing is formatted here, and of streams nothing is computed that can be
computed later: the loop collects plain tuples, a thread makes StreamCounts and the like of them (stream_text.py).
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from penstock.commands.server import info_sections
from penstock.engine.context import Context
from penstock.engine.engine import Engine
from penstock.engine.matching.globs import matches
from penstock.engine.memory.value_sizes import memory_usage
from penstock.engine.session import NOBODY
from penstock.engine.telemetry.statistics import RowStatistics
from penstock.storage.streams.group import Group
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending_list import NONE_LIVE
from penstock.storage.streams.stream import Stream

EVERY_STREAM: Final = b"*"
STREAMS_A_STEP: Final = 10
NAMES_A_STEP: Final = 200  # stream names compared with the pattern
PARTS_PER_STREAM: Final = 4  # so many times the largest number of streams: the largest number of groups, of consumers
SECTIONS: Final[tuple[Callable[[Context], info_sections.Fields], ...]] = (
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


class StreamCounts(NamedTuple):
    """One stream."""

    db_index: int
    key: bytes
    length: int
    nodes: int
    groups: int
    last_id: StreamId
    max_deleted_id: StreamId
    first_id: StreamId
    entries_added: int
    memory: int  # in bytes, by estimate


class GroupCounts(NamedTuple):
    """One group of a stream. `entries_read` is UNKNOWN, and `lag` None, if they cannot be computed."""

    db_index: int
    key: bytes
    name: bytes
    consumers: int
    pending: int
    released: int
    last_delivered_id: StreamId
    entries_read: int
    lag: int | None
    oldest_ms: int  # when the pending entry that waits longest was delivered, unix time; NONE_LIVE if there is none
    redeliveries: int
    dead_letters: int
    now_ms: int

    @property
    def oldest_idle_ms(self) -> int:
        return 0 if self.oldest_ms == NONE_LIVE else max(self.now_ms - self.oldest_ms, 0)


class ConsumerCounts(NamedTuple):
    """One consumer of a group."""

    db_index: int
    key: bytes
    group: bytes
    name: bytes
    pending: int
    seen_ms: int
    now_ms: int

    @property
    def idle_ms(self) -> int:
        return max(self.now_ms - self.seen_ms, 0)


# The same without names, which take five times as long to make.
StreamTuple: TypeAlias = tuple[int, bytes, int, int, int, StreamId, StreamId, StreamId, int, int]
GroupTuple: TypeAlias = tuple[int, bytes, bytes, int, int, int, StreamId, int, int | None, int, int, int, int]
ConsumerTuple: TypeAlias = tuple[int, bytes, bytes, bytes, int, int, int]


class Snapshot:
    """The values, and how many streams, groups and consumers were left out because there are too many."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}  # of INFO
        self.commands: list[CommandCounts] = []
        self.errors: dict[str, int] = {}
        self.databases: list[DatabaseCounts] = []
        self.slow_requests = 0
        self.slow_requests_total = 0
        self.last_slow_usec = 0
        self.stream_tuples: list[StreamTuple] = []
        self.group_tuples: list[GroupTuple] = []
        self.consumer_tuples: list[ConsumerTuple] = []
        self.streams_left_out = 0
        self.groups_left_out = 0
        self.consumers_left_out = 0


def take(engine: Engine, snapshot: Snapshot) -> Iterator[None]:
    """Fill a snapshot; the server may answer clients at each yield."""
    ctx = Context(engine, NOBODY)
    for section in SECTIONS:
        ctx.begin(NOBODY, engine.clock.now_us())
        snapshot.fields.update(section(ctx))
        yield
    snapshot.errors = {code.decode(errors="replace"): count for code, count in engine.statistics.errors.items()}
    for index, db in enumerate(engine.keyspace.databases):
        ttl_ms = info_sections.mean_ttl(db, engine.clock.now_us() // 1000)
        snapshot.databases.append(DatabaseCounts(index, len(db), len(db.expires), ttl_ms))
    slow_log = engine.slow_log
    snapshot.slow_requests, snapshot.slow_requests_total = len(slow_log.requests), slow_log.next_id
    snapshot.last_slow_usec = slow_log.requests[0].usec if slow_log.requests else 0
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
    """The streams that the settings choose, the oldest keys first."""
    most = engine.settings.number("metrics-max-streams")
    for db_index, db in enumerate(engine.keyspace.databases):
        chosen: list[bytes] = []
        yield from _choose(engine, db_index, most - len(snapshot.stream_tuples), chosen, snapshot)
        for start in range(0, len(chosen), STREAMS_A_STEP):
            now_ms = engine.clock.now_us() // 1000
            for key in chosen[start : start + STREAMS_A_STEP]:
                stream = db.streams.get(key)
                if stream is not None:
                    if engine.blocking.by_key:
                        engine.blocking.settle(db_index, key)
                    _add_stream(db_index, key, stream, snapshot, most * PARTS_PER_STREAM, now_ms)
            yield


def _choose(engine: Engine, db_index: int, most: int, chosen: list[bytes], snapshot: Snapshot) -> Iterator[None]:
    """The names of at most so many streams of a database that match the pattern; the rest is counted."""
    pattern = engine.settings.text("metrics-streams").encode(errors="surrogateescape")
    streams = engine.keyspace.databases[db_index].streams
    if pattern == EVERY_STREAM:
        chosen.extend(islice(streams, most))
        snapshot.streams_left_out += len(streams) - len(chosen)
        return
    names = list(streams)
    for start in range(0, len(names), NAMES_A_STEP):
        matching = [name for name in names[start : start + NAMES_A_STEP] if matches(pattern, name)]
        kept = matching[: most - len(chosen)]
        chosen.extend(kept)
        snapshot.streams_left_out += len(matching) - len(kept)
        yield


def _add_stream(db_index: int, key: bytes, stream: Stream, snapshot: Snapshot, most_parts: int, now_ms: int) -> None:
    groups = stream.groups
    snapshot.stream_tuples.append(
        (
            db_index,
            key,
            stream.length,
            len(stream.nodes),
            len(groups),
            stream.last_id,
            stream.max_deleted_id,
            stream.first_id,
            stream.entries_added,
            memory_usage(key, stream),
        )
    )
    if groups:
        left = most_parts - len(snapshot.group_tuples)
        snapshot.groups_left_out += max(len(groups) - left, 0)
        for group in islice(groups.values(), left):
            _add_group(db_index, key, stream, group, snapshot, most_parts, now_ms)


def _add_group(
    db_index: int, key: bytes, stream: Stream, group: Group, snapshot: Snapshot, most_parts: int, now_ms: int
) -> None:
    name, consumers, policy = group.name, group.consumers, group.policy
    snapshot.group_tuples.append(
        (
            db_index,
            key,
            name,
            len(consumers),
            group.pending,
            group.released,
            group.last_id,
            group.entries_read,
            stream.lag(group),
            group.oldest_owned_ms() if group.pending else NONE_LIVE,
            group.redeliveries,
            0 if policy is None else policy.dead_lettered,
            now_ms,
        )
    )
    if consumers:
        left = most_parts - len(snapshot.consumer_tuples)
        snapshot.consumers_left_out += max(len(consumers) - left, 0)
        snapshot.consumer_tuples += [
            (db_index, key, name, one.name, one.pending, one.seen_ms, now_ms)
            for one in islice(consumers.values(), left)
        ]
