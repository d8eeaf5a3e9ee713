"""The sink operations `ack` and `nack`: acknowledge, or release with XNACK, the pending entries that rows name.

The rows are those of the table `pending`, or any with their columns: `stream`, `group` and `id` (`_stream` and `_id`
will do, and the options `stream` and `group` stand for a column), `endpoint` where there are several.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request
from penstock.pipeline.connector.sink.ledger import text_of
from penstock.pipeline.connector.sink.row_encoder import as_bytes
from penstock.pipeline.connector.sink.sink_options import SinkOptions
from penstock.pipeline.errors import OptionError, PipelineError

FATAL: Final = 2**63 - 1  # deliveries of an entry that XNACK has marked so (Redis 8.8)


class Operation(Protocol):
    """What a task does with its rows at one endpoint."""

    skipped: int  # rows whose entries were not pending any more

    def put(self, batch: Any) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class PendingRow:
    """A pending entry as a row names it. `deliveries` or `consumer` None: the row lacks it, or there is no owner."""

    id: bytes
    deliveries: int | None = None
    consumer: bytes | None = None
    reason: bytes | None = None


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

    def held(self, batch: Any) -> dict[tuple[bytes, bytes], list[PendingRow]]:
        """The entries of a batch, by stream and group."""
        count = batch.num_rows
        streams = self._texts(batch, self.stream, self._options.stream, count)
        groups = self._texts(batch, self.group, self._options.group, count)
        ids = self._texts(batch, self.id, None, count)
        deliveries = batch.column("deliveries").to_pylist() if "deliveries" in self._names else [None] * count
        consumers = self._optional(batch, "consumer", count)
        reasons = self._optional(batch, "reason", count)
        found: dict[tuple[bytes, bytes], list[PendingRow]] = {}
        for at in range(count):
            held = PendingRow(ids[at], deliveries[at], consumers[at], reasons[at])
            found.setdefault((streams[at], groups[at]), []).append(held)
        return found

    def _texts(self, batch: Any, column: str | None, option: str | None, count: int) -> list[bytes]:
        if column is None:
            return [str(option).encode()] * count
        texts = as_bytes(batch.column(column))
        if texts.null_count:
            raise PipelineError(f"{column} must not be null: it says which entry is meant")
        found: list[bytes] = texts.to_pylist()
        return found

    def _optional(self, batch: Any, column: str, count: int) -> list[bytes | None]:
        found: list[bytes | None] = (
            as_bytes(batch.column(column)).to_pylist() if column in self._names else [None] * count
        )
        return found


def chunks(held: list[PendingRow], size: int) -> Iterator[list[PendingRow]]:
    for first in range(0, len(held), size):
        yield held[first : first + size]


class Ack:
    """XACK, which is idempotent."""

    def __init__(self, client: Client, options: SinkOptions, names: Sequence[str]) -> None:
        self._client = client
        self._columns = Columns(options, names)
        self._size = options.pipeline
        self.skipped = 0

    def put(self, batch: Any) -> None:
        requests: list[Request] = []
        rows = 0
        for (stream, group), all_held in self._columns.held(batch).items():
            for held in chunks(all_held, self._size):
                requests.append(["XACK", stream, group, *(one.id for one in held)])
                rows += len(held)
        done = sum(checked(reply, "XACK") for reply in self._client.pipeline(requests))
        self.skipped += rows - done

    def end(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self._client.close()


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
        for (stream, group), all_held in self._columns.held(batch).items():
            for held in chunks(all_held, self._options.pipeline):
                ours = held if not self._options.min_idle_ms else self._claimed(stream, group, held)
                self._give_back(stream, group, ours)
                self.skipped += len(held) - len(ours)

    def _claimed(self, stream: bytes, group: bytes, held: list[PendingRow]) -> list[PendingRow]:
        """The entries that were idle for `minIdle`, claimed for our consumer so that no other works on them."""
        ids = [one.id for one in held]
        options = self._options
        request: Request = ["XCLAIM", stream, group, options.consumer, options.min_idle_ms, *ids, "JUSTID"]
        taken = set(checked(self._client.call(*request), "XCLAIM"))
        return [one for one in held if one.id in taken]

    def _give_back(self, stream: bytes, group: bytes, held: list[PendingRow]) -> None:
        by_count: dict[int | None, list[bytes]] = {}
        for one in held:
            by_count.setdefault(self._count_of(one), []).append(one.id)
        requests: list[Request] = []
        for count, ids in by_count.items():
            words: list[str | bytes | int] = ["XNACK", stream, group, self._options.nack_mode, "IDS", len(ids), *ids]
            requests.append(words if count is None else [*words, "RETRYCOUNT", count])
        done = 0
        for reply in self._client.pipeline(requests):
            if isinstance(reply, ReplyError) and reply.text.startswith(b"ERR unknown command"):
                raise PipelineError("the operation 'nack' needs a server with XNACK: Penstock, or Redis 8.8 and later")
            done += checked(reply, "XNACK")
        self.skipped += len(held) - done

    def _count_of(self, held: PendingRow) -> int | None:
        if self._options.retry_count is not None:
            return self._options.retry_count
        if self._options.nack_mode == "SILENT" and held.deliveries is not None:
            return max(held.deliveries - 1, 0)
        return None

    def end(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self._client.close()


def checked(reply: Reply, what: str) -> Reply:
    """The reply; PipelineError if it is an error reply."""
    if isinstance(reply, ReplyError):
        raise PipelineError(f"{what} is refused: {text_of(reply)}")
    return reply
