"""Every option of the source, as one row. `docs/pipeline.md` explains them to users; the defaults are here."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.pipeline.connector.connection.connection_options import Keys, Servers, read_keys, read_servers
from penstock.pipeline.connector.connection.option_reader import NO, YES, OptionReader
from penstock.pipeline.connector.schemas import TABLES
from penstock.pipeline.connector.values.payload_options import PayloadOptions, read_payload
from penstock.pipeline.errors import OptionError
from penstock.storage.streams import ids

ALWAYS, CERTAIN, NEVER = "true", "certain", "false"  # the values of failOnDataLoss
EARLIEST, LATEST, GROUP = "earliest", "latest", "group"
EVERY_OTHER = "*"  # in the JSON of startingId and its like: the streams that it does not name
CURSOR, SHARED = "cursor", "shared"
FETCH_BYTES, LARGEST_PAGE = 8 << 20, 1 << 30
BOUNDS = ("startingId", "startingTimestamp", "endingId", "endingTimestamp")

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Sizing:
    """How a batch becomes tasks, and a task requests."""

    entries_per_partition: int
    min_partitions: int
    max_partitions: int
    fetch: int  # entries a request


def read_sizing(reader: OptionReader, per_partition: int = 200_000, fetch: int = 5_000) -> Sizing:
    sizing = Sizing(
        entries_per_partition=reader.integer("entriesPerPartition", per_partition, 1),
        min_partitions=reader.integer("minPartitions", 1, 1),
        max_partitions=reader.integer("maxPartitions", 64, 1),
        fetch=reader.integer("fetchSize", fetch, 1, 1_000_000),
    )
    if sizing.min_partitions > sizing.max_partitions:
        if reader.has("maxPartitions"):
            raise reader.mistake("minPartitions", "is to be at most maxPartitions")
        return Sizing(sizing.entries_per_partition, sizing.min_partitions, sizing.min_partitions, sizing.fetch)
    return sizing


@dataclass(frozen=True, slots=True)
class Bound(Generic[Value]):
    """Where a query begins or ends: at `at`, except in the streams of `by_key`."""

    at: Value
    by_key: tuple[tuple[str, Value], ...] = ()

    def of(self, key: str) -> Value:
        return dict(self.by_key).get(key, self.at)


def _read_bound(
    reader: OptionReader,
    default: Value,
    by_id: str,
    read_id: Callable[[str], Value],
    by_time: str,
    read_time: Callable[[int], Value],
) -> Bound[Value]:
    """A bound from one of two options, whose value is for all streams or JSON with a value for each."""
    if reader.has(by_id) and reader.has(by_time):
        raise OptionError(f"give only one of the options {by_id!r} and {by_time!r}")
    name = by_time if reader.has(by_time) else by_id

    def read(word: str) -> Value:
        return read_id(word) if name == by_id else read_time(reader.moment_ms(name, word))

    word = reader.text(name)
    if word is None:
        return Bound(default)
    if not word.lstrip().startswith("{"):
        return Bound(read(word))
    try:
        by_key = json.loads(word)
    except ValueError:
        raise reader.mistake(name, "is no JSON") from None
    values = {key: read(str(by_key[key])) for key in sorted(by_key)}
    return Bound(values.pop(EVERY_OTHER, default), tuple(values.items()))


def read_start(reader: OptionReader, default: str) -> Bound[str]:
    """`startingId` or `startingTimestamp`: EARLIEST, LATEST, GROUP or the text of the first id to be read."""
    return _read_bound(
        reader,
        default,
        "startingId",
        lambda word: _place(reader, "startingId", word),
        "startingTimestamp",
        lambda moment_ms: f"{max(moment_ms, 0)}-0",
    )


def _place(reader: OptionReader, name: str, word: str) -> str:
    if word.lower() in (EARLIEST, LATEST, GROUP):
        return word.lower()
    try:
        return ids.text(ids.parse(word.encode())).decode()
    except ValueError:
        raise reader.mistake(name, "is to be earliest, latest, group or an id (1700000000000-0)") from None


@dataclass(frozen=True, slots=True)
class Entries:
    """The options of the table `entries`, batch and streaming."""

    servers: Servers
    keys: Keys
    sizing: Sizing
    start: Bound[str]
    end: Bound[int]  # an id, inclusive; ids.MAX: whatever there is
    fetch_bytes: int  # about as many in a page
    max_per_trigger: int | None
    max_bytes_per_trigger: int | None
    min_per_trigger: int | None
    max_delay_ms: int
    poll_ms: int
    on_loss: str  # ALWAYS, CERTAIN or NEVER: which losses end the query
    fail_on_missing: bool  # the query ends if a stream that it names is not there
    group: str | None
    group_mode: str
    group_force: bool
    consumer: str | None
    claim_min_idle_ms: int | None
    fail_fast: bool
    replace_bad_text: bool
    push_filters: bool
    payload: PayloadOptions | None

    @property
    def fail_on_loss(self) -> bool:
        """Whether a loss ends the query that is not certain to be one."""
        return self.on_loss == ALWAYS


def read_entries(options: Mapping[str, str], streaming: bool) -> Entries:
    """The options of the table `entries`; OptionError for a mistake."""
    reader = OptionReader(options, "streaming source" if streaming else "batch source")
    reader.choice("table", "entries", TABLES)
    found = Entries(
        servers=read_servers(reader),
        keys=read_keys(reader),
        sizing=read_sizing(reader),
        start=read_start(reader, LATEST if streaming else EARLIEST),
        end=_read_end(reader, streaming),
        fetch_bytes=reader.integer("fetchBytes", FETCH_BYTES, 1, LARGEST_PAGE),
        max_per_trigger=reader.integer("maxEntriesPerTrigger", None, 1),
        max_bytes_per_trigger=reader.integer("maxBytesPerTrigger", None, 1),
        min_per_trigger=reader.integer("minEntriesPerTrigger", None, 1),
        max_delay_ms=reader.duration_ms("maxTriggerDelay", "15m"),
        poll_ms=reader.duration_ms("pollTimeout", "500ms"),
        on_loss=_read_on_loss(reader),
        fail_on_missing=reader.flag("failOnMissingStream", False),
        group=reader.text("group"),
        group_mode=reader.choice("groupMode", CURSOR, (CURSOR, SHARED)),
        group_force=reader.flag("groupForce", False),
        consumer=reader.text("consumer"),
        claim_min_idle_ms=reader.duration_ms("claimMinIdle", None),
        fail_fast=reader.choice("mode", "PERMISSIVE", ("PERMISSIVE", "FAILFAST")) == "FAILFAST",
        replace_bad_text=reader.choice("decodeErrors", "strict", ("strict", "replace")) == "replace",
        push_filters=reader.flag("pushFilters", False),
        payload=read_payload(reader),
    )
    reader.end()
    _check(found, reader, streaming)
    return found


def _read_on_loss(reader: OptionReader) -> str:
    word = (reader.text("failOnDataLoss") or ALWAYS).lower()
    if word not in (*YES, *NO, CERTAIN):
        raise reader.mistake("failOnDataLoss", "is to be true, certain or false")
    return word if word == CERTAIN else ALWAYS if word in YES else NEVER


def _read_end(reader: OptionReader, streaming: bool) -> Bound[int]:
    """`endingId` (inclusive, as XRANGE has it) or `endingTimestamp` (exclusive, so that hours do not overlap)."""
    if streaming and (reader.has("endingId") or reader.has("endingTimestamp")):
        raise OptionError("a streaming query has no end: 'endingId' and 'endingTimestamp' are the batch source's")
    return _read_bound(
        reader,
        ids.MAX,
        "endingId",
        lambda word: _last_id(reader, word),
        "endingTimestamp",
        lambda moment_ms: (moment_ms << 64) - 1 if moment_ms > 0 else ids.ZERO,
    )


def _last_id(reader: OptionReader, word: str) -> int:
    if word.lower() == LATEST:
        return ids.MAX
    try:
        return ids.parse(word.encode(), ids.HALF)
    except ValueError:
        raise reader.mistake("endingId", "is to be latest or an id (1700000000000-0)") from None


def _check(found: Entries, reader: OptionReader, streaming: bool) -> None:
    """Refuse options that exclude each other. After `end`, because a mistyped name explains a missing option better."""
    if bool(found.keys.names) == (found.keys.pattern is not None):
        raise OptionError("give exactly one of the options 'stream' (keys) and 'streamPattern' (a glob for SCAN)")
    named = [key for key, _ in (*found.start.by_key, *found.end.by_key)]
    stray = [key for key in named if found.keys.pattern is None and key not in found.keys.names]
    if stray:
        given = " or ".join(repr(name) for name in BOUNDS if reader.has(name))
        raise OptionError(f"option {given} names the stream {stray[0]!r}, which is not among those of 'stream'")
    shared = found.group_mode == SHARED
    places = [found.start.at, *(place for _, place in found.start.by_key)]
    if found.group is None and (shared or found.consumer or GROUP in places):
        raise OptionError("'groupMode' shared, 'consumer' and 'startingId' group need the option 'group'")
    if (shared or found.group_force) and not streaming:
        raise OptionError("'groupMode' shared and 'groupForce' are the streaming source's")
    if not shared and (found.consumer or found.claim_min_idle_ms is not None):
        raise OptionError("'consumer' and 'claimMinIdle' need 'groupMode' shared")
    if shared and (found.min_per_trigger or GROUP in places):
        raise OptionError(
            "in 'groupMode' shared 'startingId' is where a group begins that is not there yet, and there is no "
            "'minEntriesPerTrigger'"
        )
