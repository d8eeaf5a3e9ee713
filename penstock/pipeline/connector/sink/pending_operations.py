"""The sink operations `ack` and `nack`: acknowledge, or release with XNACK, the pending entries that rows name.

The rows are those of the table `pending`, or any with their columns: `stream`, `group` and `id` (`_stream` and `_id`
will do, and the options `stream` and `group` stand for a column), `endpoint` where there are several.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, bulk_strings, text_of
from penstock.pipeline.connector.sink.resp_columns import BINARY, Headers, Texts, as_bytes
from penstock.pipeline.connector.sink.sink_options import SinkOptions
from penstock.pipeline.errors import OptionError, PipelineError

FATAL: Final = 2**63 - 1  # deliveries of an entry that XNACK has marked so (Redis 8.8)

# The rows of one group: `deliveries` null where a row has none, `consumer` also where there is no owner.
ROWS: Final = pa.schema([("id", BINARY), ("deliveries", pa.int64()), ("consumer", BINARY), ("reason", BINARY)])


class Operation(Protocol):
    """A task's operation on the entries of its rows at one endpoint."""

    skipped: int  # rows of entries that were not pending any more

    def put(self, batch: Any) -> None: ...

    def end(self) -> None: ...


class Columns:
    """The columns, or options, that name stream, group and id. OptionError if one is missing."""

    def __init__(self, options: SinkOptions, names: Sequence[str]) -> None:
        self._options = options
        self._names = names
        self.stream = self._named("stream", options.stream, "stream", "_stream")
        self.group = self._named("group", options.group, "group")
        self.id = self._named("id", None, "id", "_id")

    def _named(self, what: str, option: str | None, *columns: str) -> str | None:
        if option is not None:
            return None
        for column in columns:
            if column in self._names:
                return column
        options = "" if what == "id" else f" or an option {what!r}"
        raise OptionError(
            f"the operation {self._options.operation!r} needs a column {columns[0]!r}{options}: it is done to "
            "pending entries, and the table 'pending' has all that is needed"
        )

    def by_group(self, batch: Any) -> Iterator[tuple[bytes, bytes, Any]]:
        """The rows of a batch by stream and group: record batches of the schema ROWS. O(n log n)."""
        streams, stream_of = self._named_by(batch, self.stream, self._options.stream)
        groups, group_of = self._named_by(batch, self.group, self._options.group)
        rows = pa.RecordBatch.from_arrays([self._column(batch, field) for field in ROWS], schema=ROWS)
        if len(streams) == len(groups) == 1:
            yield streams[0], groups[0], rows
            return
        pairs = stream_of * len(groups) + group_of
        order = numpy.argsort(pairs, kind="stable")
        pairs, rows = pairs[order], rows.take(pa.array(order))
        bounds: list[int] = [0, *(numpy.flatnonzero(numpy.diff(pairs)) + 1).tolist(), len(pairs)]
        for first, behind in pairwise(bounds):
            if behind > first:
                stream, group = divmod(int(pairs[first]), len(groups))
                yield streams[stream], groups[group], rows.slice(first, behind - first)

    def _named_by(self, batch: Any, column: str | None, option: str | None) -> tuple[list[bytes], Any]:
        """The streams, or groups, of a batch, and which of them each row names (an array)."""
        if column is None:
            return [str(option).encode()], numpy.zeros(batch.num_rows, numpy.int64)
        texts = self._present(batch, column).dictionary_encode()
        return texts.dictionary.to_pylist(), texts.indices.to_numpy().astype(numpy.int64)

    def _present(self, batch: Any, column: str) -> Any:
        texts = as_bytes(batch.column(column))
        if texts.null_count:
            raise PipelineError(f"{column} must not be null: it says which entry is meant")
        return texts

    def _column(self, batch: Any, field: Any) -> Any:
        if field.name == "id":
            assert self.id is not None, "no option stands for it"
            return self._present(batch, self.id)
        if field.name not in self._names:
            return pa.nulls(batch.num_rows, field.type)
        column = batch.column(field.name)
        return as_bytes(column) if field.type == BINARY else column.cast(field.type)


def chunks(rows: Any, size: int) -> Iterator[Any]:
    for first in range(0, rows.num_rows, size):
        yield rows.slice(first, size)


class Ack:
    """XACK, which is idempotent."""

    def __init__(self, client: Client, options: SinkOptions, names: Sequence[str]) -> None:
        self._client = client
        self._columns = Columns(options, names)
        self._size = options.pipeline
        self._headers = Headers()
        self.skipped = 0

    def put(self, batch: Any) -> None:
        requests: list[bytes] = []
        asked: list[tuple[bytes, bytes, int]] = []
        for stream, group, all_rows in self._columns.by_group(batch):
            for rows in chunks(all_rows, self._size):
                requests.append(with_ids([b"XACK", stream, group], self._headers.words(rows.column("id"))))
                asked.append((stream, group, rows.num_rows))
        replies = self._client.exchange(b"".join(requests), len(requests), retry=True)
        for (stream, group, count), reply in zip(asked, replies, strict=True):
            done = checked(reply, "XACK", stream, group)
            if not done:
                self._refuse_no_group(stream, group)
            self.skipped += count - done

    def _refuse_no_group(self, stream: bytes, group: bytes) -> None:
        """PipelineError if there is no such group; XACK's reply does not show that."""
        (reply,) = self._client.pipeline([["XPENDING", stream, group]])
        checked(reply, "XACK", stream, group)

    def end(self) -> None:
        """Nothing is kept back."""


class Nack:
    """XNACK (Penstock, Redis 8.8): the entries lose their owner, and the next consumer that claims gets them.

    FAIL keeps the delivery count, SILENT decrements it, FATAL sets it to the maximum. SILENT is sent with the resulting
    count (RETRYCOUNT) if the rows have theirs, so that a task that is run again does not decrement it twice.
    """

    def __init__(self, client: Client, options: SinkOptions, names: Sequence[str]) -> None:
        self._client = client
        self._options = options
        self._columns = Columns(options, names)
        self.skipped = 0

    def put(self, batch: Any) -> None:
        for stream, group, all_rows in self._columns.by_group(batch):
            for rows in chunks(all_rows, self._options.pipeline):
                ours = rows if not self._options.min_idle_ms else self._claimed(stream, group, rows)
                self._give_back(stream, group, ours)
                self.skipped += rows.num_rows - ours.num_rows

    def _claimed(self, stream: bytes, group: bytes, rows: Any) -> Any:
        """The entries that were idle for `minIdle`, claimed for our consumer so that no other works on them."""
        ids = rows.column("id").to_pylist()
        options = self._options
        request: Request = ["XCLAIM", stream, group, options.consumer, options.min_idle_ms, *ids, "JUSTID"]
        return rows.filter(
            among(rows.column("id"), checked(self._client.pipeline([request])[0], "XCLAIM", stream, group))
        )

    def _give_back(self, stream: bytes, group: bytes, rows: Any) -> None:
        by_count: dict[int | None, list[bytes]] = {}
        for entry_id, deliveries in zip(
            rows.column("id").to_pylist(), rows.column("deliveries").to_pylist(), strict=True
        ):
            by_count.setdefault(self._count_of(deliveries), []).append(entry_id)
        requests: list[Request] = []
        for count, ids in by_count.items():
            words: list[str | bytes | int] = ["XNACK", stream, group, self._options.nack_mode, "IDS", len(ids), *ids]
            requests.append(words if count is None else [*words, "RETRYCOUNT", count])
        done = 0
        for reply in self._client.pipeline(requests):
            if isinstance(reply, ReplyError) and reply.text.startswith(b"ERR unknown command"):
                raise PipelineError("the operation 'nack' needs a server with XNACK: Penstock, or Redis 8.8 and later")
            done += checked(reply, "XNACK", stream, group)
        self.skipped += rows.num_rows - done

    def _count_of(self, deliveries: int | None) -> int | None:
        if self._options.retry_count is not None:
            return self._options.retry_count
        if self._options.nack_mode == "SILENT" and deliveries is not None:
            return max(deliveries - 1, 0)
        return None

    def end(self) -> None:
        """Nothing is kept back."""


def checked(reply: Reply, what: str, stream: bytes, group: bytes) -> Reply:
    """The reply; PipelineError if it is an error reply."""
    if isinstance(reply, ReplyError):
        where = f"stream {stream.decode(errors='replace')!r}, group {group.decode(errors='replace')!r}"
        raise PipelineError(f"{where}: {what} is refused: {text_of(reply)}")
    return reply


def among(entry_ids: Any, some: list[bytes]) -> Any:
    """Which of the ids (an array) are among some others."""
    return pc.is_in(entry_ids, value_set=pa.array(some, BINARY))


def with_ids(words: list[bytes], id_words: Any, *behind: bytes) -> bytes:
    """A request of these words, ids that are RESP words already (an array), and other words behind them."""
    count = len(words) + len(id_words) + len(behind)
    texts = Texts(id_words).between(0, len(id_words))
    return b"".join([b"*%d\r\n" % count, bulk_strings(words), texts, bulk_strings(list(behind))])
