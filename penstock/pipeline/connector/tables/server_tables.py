"""The tables `groups`, `consumers` and `streams`, from XINFO; and what they share with `pending` (pending_table.py)."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, mapping
from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.connection_options import Keys, Servers
from penstock.pipeline.connector.connection.stream_info import ABSENT, StreamState, find_keys
from penstock.pipeline.connector.placeholder import is_placeholder
from penstock.pipeline.connector.source.id_ranges import how_many
from penstock.pipeline.connector.source.source_options import Sizing
from penstock.pipeline.connector.worker import keep_modules
from penstock.pipeline.errors import OptionError, ShortErrors
from penstock.storage.streams import ids

KEYS_A_TASK: Final = 500


@dataclass(frozen=True, slots=True)
class Source:
    """The options of a table."""

    table: str
    servers: Servers
    keys: Keys
    group: bytes | None
    sizing: Sizing


class TableTask(InputPartition):
    """One server and some of its keys."""

    def __init__(self, endpoint: str, keys: list[bytes]) -> None:
        super().__init__((endpoint, keys))


class TableReader(ShortErrors, DataSourceReader):
    """Base of the tables' readers. `columns` are the names that a schema may have."""

    columns: tuple[str, ...] = ()

    def __init__(self, source: Source, schema: Any) -> None:
        self.source = source
        self.schema = schema
        for name in schema.names:
            if name not in self.columns:
                known = ", ".join(self.columns)
                raise OptionError(f"the table {source.table!r} has no column {name!r}: it has {known}")

    def batch(self, columns: Mapping[str, Any], count: int) -> Any:
        """The columns that the schema asks for."""
        arrow = to_arrow_schema(self.schema, timezone="UTC")
        arrays = [
            columns[field.name].cast(field.type)
            if isinstance(columns[field.name], pyarrow.Array)
            else pyarrow.array(columns[field.name], field.type)
            for field in arrow
        ]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=arrow)


class RowsReader(TableReader):
    """`groups`, `consumers` and `streams`: some requests a key, all keys of a task in one round trip."""

    def __init__(self, source: Source, schema: Any) -> None:
        self.columns = tuple(_ROWS[source.table][0].split())
        super().__init__(source, schema)

    def partitions(self) -> list[Any]:
        tasks: list[Any] = []
        for endpoint in self.source.servers.endpoints:
            with connect(endpoint, self.source.servers.access) as client:
                keys = find_keys(client, self.source.keys)
            sizing = self.source.sizing
            count = how_many(len(keys), KEYS_A_TASK, sizing.min_partitions, sizing.max_partitions)
            tasks += [TableTask(endpoint.name, keys[at::count]) for at in range(count) if keys[at::count]]
        return tasks

    def read(self, partition: Any) -> Iterator[Any]:
        keep_modules()
        if is_placeholder(partition):
            return
        endpoint, keys = partition.value
        rows_of = _ROWS[self.source.table][1]
        with connect(self.source.servers.by_name()[endpoint], self.source.servers.access) as client:
            rows = [(endpoint, *row) for row in rows_of(client, keys, self.source.group)]
        yield self.batch({name: [row[at] for row in rows] for at, name in enumerate(self.columns)}, len(rows))


def present(client: Client, keys: list[bytes], *subcommand: str) -> Iterator[tuple[bytes, Any]]:
    """XINFO of every key that is a stream now. Keys that were deleted since, or have another type, are left out."""
    for key, reply in zip(keys, client.pipeline([[*subcommand, key] for key in keys]), strict=True):
        if not isinstance(reply, ReplyError):
            yield key, reply
        elif not reply.text.startswith((ABSENT, b"WRONGTYPE")):
            raise reply


def text(word: bytes) -> str:
    return word.decode(errors="replace")


def policy(fields: Mapping[bytes, Any]) -> str | None:
    """What Penstock's PENSTOCK.POLICY has set and counted, as JSON; null where there is none, as at other servers.

    >>> policy({b"length": 1, b"penstock-policy": [b"maxlen", 10, b"maxage", None, b"refs", b"keepref"]})
    '{"maxlen": 10, "maxage": null, "refs": "keepref"}'
    """
    if b"penstock-policy" not in fields:
        return None
    said = mapping(fields[b"penstock-policy"])
    return json.dumps({text(name): text(word) if isinstance(word, bytes) else word for name, word in said.items()})


def _streams(client: Client, keys: list[bytes], group: bytes | None) -> Iterator[tuple[Any, ...]]:
    sizes = dict(zip(keys, client.pipeline([["MEMORY", "USAGE", key] for key in keys]), strict=True))
    for key, reply in present(client, keys, "XINFO", "STREAM"):
        state, fields = StreamState.of(reply), mapping(reply)
        first = text(ids.text(state.first)) if state.length else None
        size = sizes[key] if isinstance(sizes[key], int) else None  # not every server has MEMORY USAGE
        yield (
            text(key),
            state.length,
            first,
            text(ids.text(state.last)),
            state.added,
            text(ids.text(state.max_deleted)),
            fields[b"groups"],
            size,
            policy(fields),
        )


def _groups(client: Client, keys: list[bytes], group: bytes | None) -> Iterator[tuple[Any, ...]]:
    streams = {key: StreamState.of(reply) for key, reply in present(client, keys, "XINFO", "STREAM")}
    for key, reply in present(client, list(streams), "XINFO", "GROUPS"):
        state = streams[key]
        for pairs in reply:
            one = mapping(pairs)
            if group in (None, one[b"name"]):
                yield (
                    text(key),
                    text(one[b"name"]),
                    one[b"consumers"],
                    one[b"pending"],
                    text(one[b"last-delivered-id"]),
                    one[b"entries-read"],
                    one[b"lag"],
                    state.length,
                    text(ids.text(state.last)),
                    state.added,
                    policy(one),
                )


def _consumers(client: Client, keys: list[bytes], group: bytes | None) -> Iterator[tuple[Any, ...]]:
    groups = [
        (key, name)
        for key, reply in present(client, keys, "XINFO", "GROUPS")
        for name in (mapping(pairs)[b"name"] for pairs in reply)
        if group in (None, name)
    ]
    replies = client.pipeline([["XINFO", "CONSUMERS", key, name] for key, name in groups])
    for (key, name), reply in zip(groups, replies, strict=True):
        for pairs in () if isinstance(reply, ReplyError) else reply:
            one = mapping(pairs)
            yield text(key), text(name), text(one[b"name"]), one[b"pending"], one[b"idle"], one.get(b"inactive")


RowsOf = Callable[[Client, list[bytes], bytes | None], Iterator[tuple[Any, ...]]]
_ROWS: Final[dict[str, tuple[str, RowsOf]]] = {  # by table: the columns, and what makes the rows
    "streams": ("endpoint stream length first_id last_id entries_added max_deleted_id groups bytes policy", _streams),
    "groups": (
        "endpoint stream group consumers pending last_delivered_id entries_read lag length last_generated_id"
        " entries_added policy",
        _groups,
    ),
    "consumers": ("endpoint stream group consumer pending idle_ms inactive_ms", _consumers),
}
