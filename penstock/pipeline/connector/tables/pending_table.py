"""The table `pending`: a row for each pending entry, with the entry's fields if the schema has a column `fields`.

Pages of a pending entries list are read one after another while the server goes on, so they are not a snapshot. Only
the columns of the schema are made.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy
import pyarrow
import pyarrow.compute as compute
from pyspark.sql.datasource import Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, mapping, packed
from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.stream_info import find_keys
from penstock.pipeline.connector.placeholder import is_placeholder
from penstock.pipeline.connector.source.entry_columns import halves_of, keys_once, moments
from penstock.pipeline.connector.source.entry_pages import decode
from penstock.pipeline.connector.source.id_ranges import IdRange, cut, how_many, pack
from penstock.pipeline.connector.source.range_splitter import exclusive, find_cuts
from penstock.pipeline.connector.tables.pending_conditions import Conditions
from penstock.pipeline.connector.tables.pending_pages import NO_OWNER, PendingPage, decode_pending
from penstock.pipeline.connector.tables.server_tables import Source, TableReader, present, text
from penstock.pipeline.connector.values.text_values import Texts
from penstock.pipeline.connector.worker import keep_modules
from penstock.storage.streams import ids

FATAL: Final = 2**63 - 1  # the delivery count of an entry that XNACK has declared fatal (Redis 8.8)
READABLE: Final = Texts(replace_bad_text=True)  # a name or value that is not UTF-8 has U+FFFD in it
PAYLOADS_AT_ONCE: Final = 500
COLUMNS: Final = "endpoint stream group consumer id timestamp idle_ms delivered_at deliveries nacked fatal fields"


class PendingTask(InputPartition):
    """Parts of pending entries lists, and the group of each. A range's key is the stream's."""

    def __init__(self, ranges: tuple[IdRange, ...], groups: tuple[bytes, ...]) -> None:
        super().__init__((ranges, groups))


class PendingReader(TableReader):
    """A row for every pending entry."""

    columns = tuple(COLUMNS.split())

    def __init__(self, source: Source, schema: Any) -> None:
        super().__init__(source, schema)
        self.conditions = Conditions()

    def partitions(self) -> list[Any]:
        lists: list[tuple[IdRange, bytes]] = []
        for endpoint in self.source.servers.endpoints:
            with connect(endpoint, self.source.servers.access) as client:
                lists += self._lists(client, find_keys(client, self.source.keys))
        total = sum(id_range.weight for id_range, _ in lists)
        sizing = self.source.sizing
        tasks = how_many(total, sizing.entries_per_partition, sizing.min_partitions, sizing.max_partitions)
        groups_of: dict[IdRange, list[bytes]] = {}
        for endpoint in self.source.servers.endpoints:
            with connect(endpoint, self.source.servers.access) as client:
                for id_range, group in lists:
                    if id_range.endpoint == endpoint.name:
                        for part in self._parts(client, id_range, -(-total // tasks)):
                            groups_of.setdefault(part, []).append(group)
        ranges = [id_range for id_range, groups in groups_of.items() for _ in groups]
        return [
            PendingTask(some, tuple(groups_of[id_range].pop() for id_range in some)) for some in pack(ranges, tasks)
        ]

    def _lists(self, client: Client, keys: list[bytes]) -> Iterator[tuple[IdRange, bytes]]:
        """The whole pending entries list of each group, if it is not empty."""
        wanted = [
            (key, one[b"name"])
            for key, reply in present(client, keys, "XINFO", "GROUPS")
            for one in map(mapping, reply)
            if one[b"pending"] and self.source.group in (None, one[b"name"])
            if self.conditions.allow(text(key), text(one[b"name"]))
        ]
        replies = client.pipeline([["XPENDING", key, group] for key, group in wanted])
        for (key, group), reply in zip(wanted, replies, strict=True):
            if not isinstance(reply, ReplyError) and reply[0]:
                first, last = ids.parse(reply[1]), ids.parse(reply[2])
                weight = self.conditions.weight(reply[0], reply[3])
                if weight:
                    yield IdRange(client.endpoint.name, key, max(first - 1, ids.ZERO), last, weight), group

    def _parts(self, client: Client, id_range: IdRange, per_task: int) -> list[IdRange]:
        """A long list in parts, split by the stream's entries: most pending entries are still in the stream."""
        count = -(-id_range.weight // max(per_task, 1))
        cuts = find_cuts(client, id_range.key, id_range.after, id_range.upto, id_range.weight, count)
        spans = cut(id_range.after, id_range.upto, cuts)
        weight = -(-id_range.weight // len(spans))
        return [IdRange(id_range.endpoint, id_range.key, after, upto, weight) for after, upto in spans]

    def read(self, partition: Any) -> Iterator[Any]:
        keep_modules()
        if is_placeholder(partition):
            return
        for id_range, group in zip(*partition.value, strict=True):
            with connect(self.source.servers.by_name()[id_range.endpoint], self.source.servers.access) as client:
                yield from self._pages(client, id_range, group)

    def _pages(self, client: Client, id_range: IdRange, group: bytes) -> Iterator[Any]:
        fetch = self.source.sizing.fetch
        ahead = "fields" not in self.schema.names  # nothing else is asked between two pages
        request = self._request(id_range, group, exclusive(id_range.after))
        while True:
            try:
                page = decode_pending(client.framed(request))
            except ReplyError as refusal:
                if refusal.text.startswith(b"NOGROUP"):
                    return  # the group was destroyed since the read was planned
                raise
            is_last = len(page) < fetch
            if not is_last:
                request = self._request(id_range, group, b"(" + page.last_id())
                if ahead:
                    client.send_ahead(request)
            page = self.conditions.chosen(page)
            if len(page):
                yield self._page_batch(client, id_range, group, page)
            if is_last:
                return

    def _request(self, id_range: IdRange, group: bytes, after: bytes) -> bytes:
        """XPENDING and TIME."""
        idle, consumer = self.conditions.words()
        upto, fetch = ids.text(id_range.upto), self.source.sizing.fetch
        return packed("XPENDING", id_range.key, group, *idle, after, upto, fetch, *consumer) + packed("TIME")

    def _page_batch(self, client: Client, id_range: IdRange, group: bytes, page: PendingPage) -> Any:
        count = len(page)
        nacked = page.idle_ms == NO_OWNER
        released = nacked if nacked.any() else None
        kind = pyarrow.timestamp("us", "UTC")
        columns: dict[str, Any] = {}
        for name in self.schema.names:
            match name:
                case "endpoint":
                    column = _all(id_range.endpoint, count)
                case "stream":
                    column = _all(text(id_range.key), count)
                case "group":
                    column = _all(text(group), count)
                case "consumer":
                    column = _nulled(READABLE.cast(page.consumers(), pyarrow.string()), nacked)
                case "id":
                    column = page.id_texts().cast(pyarrow.string())
                case "timestamp":
                    column = moments(halves_of(page.id_texts())[0], kind)
                case "idle_ms":
                    column = pyarrow.array(page.idle_ms, mask=released)
                case "delivered_at":
                    column = pyarrow.array((page.now_ms - page.idle_ms) * 1000, mask=released).cast(kind)
                case "deliveries":
                    column = pyarrow.array(page.deliveries)
                case "nacked":
                    column = pyarrow.array(nacked)
                case "fatal":
                    column = pyarrow.array(page.deliveries == FATAL)
                case _:
                    column = self._fields(client, id_range.key, page.id_texts().to_pylist())
            columns[name] = column
        return self.batch(columns, count)

    def _fields(self, client: Client, key: bytes, wanted: list[bytes]) -> Any:
        """The entries' fields; null for an entry that was deleted and is still pending."""
        kind = to_arrow_schema(self.schema, timezone="UTC").field("fields").type
        parts = []
        for at in range(0, len(wanted), PAYLOADS_AT_ONCE):
            some = wanted[at : at + PAYLOADS_AT_ONCE]
            page = decode(client.framed(b"".join(packed("XRANGE", key, one, one) for one in some)), len(some))
            there = numpy.array(page.counts, bool)
            names = READABLE.cast(page.texts(page.name_at), kind.key_type)
            values = READABLE.cast(page.texts(page.value_at), kind.item_type)
            begins, names, values = keys_once(page, names, values)
            offsets: Any = numpy.zeros(len(some) + 1, numpy.int32)
            offsets[1:][there] = numpy.diff(begins)
            numpy.cumsum(offsets, out=offsets)
            mask = pyarrow.array(~there) if not there.all() else None
            parts.append(pyarrow.MapArray.from_arrays(pyarrow.array(offsets), names, values, kind, mask=mask))
        return pyarrow.concat_arrays(parts)


class FilteringPendingReader(PendingReader):
    """A reader that takes conditions; Spark fails on one that offers that while the setting is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Use what can be used. Spark evaluates the conditions that are returned row by row."""
        return [one for one in filters if not self.conditions.take(one)]


def _all(text: str, count: int) -> Any:
    return pyarrow.repeat(pyarrow.scalar(text, pyarrow.string()), count)


def _nulled(texts: Any, where: Any) -> Any:
    return compute.if_else(pyarrow.array(where), pyarrow.scalar(None, texts.type), texts) if where.any() else texts
