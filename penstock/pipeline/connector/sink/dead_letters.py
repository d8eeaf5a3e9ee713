"""The sink operation `deadletter`: moves pending entries to a dead-letter stream, copy and XACK in one transaction.

It is safe to run twice, in a task that is run again or in two jobs at the same time. An entry is claimed first, which
works only while it is pending and has been idle for `minIdle`. The copy has the entry's id as its idempotency key
(IDMP), if the server knows that. A copy of an entry that turns out to have been acknowledged meanwhile is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, bulk_strings, packed, text_of
from penstock.pipeline.connector.connection.stream_info import refused
from penstock.pipeline.connector.sink.idempotent_writes import IdmpSettings
from penstock.pipeline.connector.sink.pending_operations import FATAL, Columns, among, checked, chunks, with_ids
from penstock.pipeline.connector.sink.resp_columns import BINARY, Headers, Texts, join
from penstock.pipeline.connector.sink.sink_options import KEY_HERE, SinkOptions
from penstock.pipeline.connector.source.entry_pages import Page, decode
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids

PAGE_SPARE: Final = 2  # a page of entries may have so many times those that are wanted


@dataclass(frozen=True, slots=True)
class Route:
    """Source stream and group, and the dead-letter stream."""

    stream: bytes
    group: bytes
    dead: bytes


class DeadLetters:
    """Moves the entries that rows name. `skipped` counts those no longer pending, or not idle for long enough."""

    def __init__(self, client: Client, options: SinkOptions, names: Sequence[str]) -> None:
        self._client = client
        self._options = options
        self._columns = Columns(options, names)
        self._headers = Headers()
        self._remembers: dict[bytes, bool] = {}  # by dead-letter stream: does it know IDMP?
        self.skipped = 0

    def put(self, batch: Any) -> None:
        for stream, group, all_rows in self._columns.by_group(batch):
            dead = self._options.dead_letter_stream.replace(KEY_HERE, stream.decode("utf-8", "surrogateescape"))
            route = Route(stream, group, dead.encode("utf-8", "surrogateescape"))
            if route.dead == stream:
                raise PipelineError(f"the dead letters of {stream!r} would go to the stream itself")
            for rows in chunks(all_rows, self._options.pipeline):
                self.skipped += rows.num_rows - self._move(route, rows)

    def end(self) -> None:
        """Nothing is kept back."""

    def _move(self, route: Route, rows: Any) -> int:
        """How many of the entries were moved."""
        ours = self._taken(route, Wanted(rows))
        count = len(ours)
        if not count:
            return 0
        with_key = self._knows_idmp(route.dead)
        letters = self._letters(route, ours.rows, fields_of(self._client, route.stream, ours), with_key)
        acknowledge = b"*4\r\n" + bulk_strings([b"XACK", route.stream, route.group])
        acks = Texts(join([acknowledge, self._headers.of(ours.ids), ours.ids, b"\r\n"]))
        # Copies first, then acknowledgements: the server runs neighbours of one shape together.
        requests: list[bytes | memoryview] = [
            packed("MULTI"),
            packed("XREVRANGE", route.dead, "+", "-", "COUNT", 1),
            letters.between(0, count),
            acks.between(0, count),
            packed("EXEC"),
        ]
        # No retry: if the connection breaks the task fails, and its next try sees which entries are still pending.
        *_, answer = replies = self._client.exchange(b"".join(requests), 2 * count + 3, retry=False)
        if not isinstance(answer, list):
            reason = next((text_of(reply) for reply in replies if isinstance(reply, ReplyError)), "EXEC did nothing")
            raise PipelineError(f"dead letters cannot be written to {route.dead!r}: {reason}")
        return self._settle(route, ours.rows, answer)

    def _taken(self, route: Route, wanted: "Wanted") -> "Wanted":
        """The entries claimed now, and those that an earlier try had claimed and did not move."""
        consumer = self._options.consumer.encode()
        claim = [b"XCLAIM", route.stream, route.group, consumer, b"%d" % self._options.min_idle_ms]
        requests = [
            packed("TYPE", route.dead),
            packed("XPENDING", route.stream, route.group, wanted.first, wanted.last, len(wanted), consumer),
            with_ids(claim, self._headers.words(wanted.ids), b"JUSTID"),
        ]
        kind, mine, taken = self._client.exchange(b"".join(requests), len(requests), retry=True)
        if checked(kind, "TYPE", route.dead, route.group) not in (b"stream", b"none"):
            raise PipelineError(f"the key {route.dead!r} holds a {kind.decode()}: dead letters need a stream")
        taken, mine = (
            checked(reply, what, route.stream, route.group) for reply, what in ((taken, "XCLAIM"), (mine, "XPENDING"))
        )
        found = [*taken, *(row[0] for row in mine)]
        ours = among(wanted.ids, found)
        return wanted if pc.all(ours).as_py() else Wanted(wanted.rows.filter(ours))

    def _letters(self, route: Route, rows: Any, fields: Any, with_key: bool) -> Texts:
        """The XADDs of dead letters: the entry's fields, where it comes from, and why it is moved."""
        entry_ids = rows.column("id")
        begin = bulk_strings([b"XADD", route.dead])
        fixed = 3 + 6  # words: command, key and id; what _stream, _group and _id are
        parts: list[Any] = []
        if with_key:
            iids = join([route.stream + b":", entry_ids])
            begin += bulk_strings([b"IDMP", b"dead:" + route.group])
            parts = [self._headers.of(iids), iids, b"\r\n"]
            fixed += 3
        texts, pairs = self._headers.pairs(fields, skip_nulls=True)
        origin = bulk_strings([b"_stream", route.stream, b"_group", route.group, b"_id"])
        ends, words = _ends(rows, fields)
        parts += [b"$1\r\n*\r\n", texts, origin, self._headers.of(entry_ids), entry_ids, b"\r\n", ends]
        count = pc.add(pc.multiply(pairs, 2), pc.add(words, fixed)).cast(pa.string()).cast(BINARY)
        return Texts(join([b"*", count, b"\r\n" + begin, *parts]))

    def _knows_idmp(self, dead: bytes) -> bool:
        """Whether the server knows IDMP; the first time, the dead-letter stream is created with its settings."""
        if dead not in self._remembers:
            known = self._client.call("COMMAND", "INFO", "XCFGSET")
            self._remembers[dead] = bool(known and known[0])
            if self._remembers[dead]:
                IdmpSettings(self._client, creates=True).prepare([dead])
        return self._remembers[dead]

    def _settle(self, route: Route, ours: Any, answer: list[Reply]) -> int:
        """Delete copies of entries that were acknowledged meanwhile, and count the others."""
        newest, *replies = answer
        count: int = ours.num_rows
        if replies[count:].count(1) == count and ReplyError not in set(map(type, replies)):
            return count
        before = ids.parse(newest[0][0]) if newest and not isinstance(newest, ReplyError) else ids.ZERO
        moved = 0
        in_vain: list[bytes] = []
        lost: list[int] = []
        reason = ""
        for at, (copy, acknowledged) in enumerate(zip(replies[:count], replies[count:], strict=True)):
            for reply in (copy, acknowledged):
                if isinstance(reply, ReplyError):
                    reason = text_of(reply)
            if isinstance(copy, ReplyError):
                lost.append(at)
            elif acknowledged == 1:
                moved += 1
            elif ids.parse(copy) > before:  # else IDMP returned the id of another job's copy
                in_vain.append(copy)
        if in_vain:
            self._client.call("XDEL", route.dead, *in_vain)
        if lost:
            self._make_pending_again(route, ours.take(lost), reason)
        if reason:
            raise PipelineError(f"dead letters cannot be written to {route.dead!r}: {reason}")
        return moved

    def _make_pending_again(self, route: Route, lost: Any, reason: str) -> None:
        """Make entries pending again that were acknowledged although their copy was refused in the transaction."""
        again: list[Request] = []
        for row in lost.to_pylist():
            count = 1 if row["deliveries"] is None else row["deliveries"]
            claim: Request = ["XCLAIM", route.stream, route.group, self._options.consumer, 0, row["id"]]
            again.append([*claim, "RETRYCOUNT", count, "FORCE", "JUSTID"])
        for request, reply in zip(again, self._client.pipeline(again), strict=True):
            if isinstance(reply, ReplyError):
                raise PipelineError(
                    f"dead letters cannot be written to {route.dead!r}: {reason}. The entry {request[5]!r} of "
                    f"{route.stream!r} was acknowledged in group {route.group!r}, and cannot be made pending again: "
                    f"{text_of(reply)}"
                )


def _ends(rows: Any, fields: Any) -> tuple[Any, Any]:
    """The words that end each letter, and their number: `_deliveries`, `_consumer` and `_reason`.

    O(rows) in C, and in Python for those ends that are different.
    """
    known: list[list[Any]] = []
    codes = pc.is_null(fields).cast(pa.int64())
    for name in ("deliveries", "consumer", "reason"):
        column = rows.column(name).dictionary_encode("encode")
        known.append(column.dictionary.to_pylist())
        codes = pc.add(pc.multiply(codes, len(known[-1])), column.indices)
    distinct = codes.dictionary_encode()
    ends = []
    for code in distinct.dictionary.to_pylist():
        values: list[Any] = []
        for some in reversed(known):
            code, at = divmod(code, len(some))
            values.append(some[at])
        reason, consumer, deliveries = values
        ends.append(_end(deliveries, consumer, reason, is_gone=bool(code)))
    texts = pa.array([bulk_strings(words) for words in ends], BINARY)
    counts = pa.array(list(map(len, ends)), pa.int64())
    return texts.take(distinct.indices), counts.take(distinct.indices)


def _end(deliveries: int | None, consumer: bytes | None, reason: bytes | None, is_gone: bool) -> list[bytes]:
    words: list[bytes] = []
    if deliveries is not None:
        words += [b"_deliveries", b"%d" % deliveries]
    if consumer:
        words += [b"_consumer", consumer]
    if reason is None:
        reason = b"its entry is gone" if is_gone else _reason(deliveries)
    return [*words, b"_reason", reason]


def _reason(deliveries: int | None) -> bytes:
    if deliveries is None:
        return b"moved by a job"
    return b"fatal" if deliveries == FATAL else b"delivered %d times" % deliveries


# -- the entries ------------------------------------------------------------------------------------------------------


class Wanted:
    """Rows that name entries, each entry once; their ids, and the order of these. O(n log n).

    PipelineError for what is no id.
    """

    __slots__ = ("ids", "ms", "order", "rows", "seq")

    def __init__(self, rows: Any) -> None:
        self.ids = rows.column("id")
        distinct = self.ids.unique()
        if len(distinct) < len(self.ids):
            rows = rows.take(pc.index_in(distinct, value_set=self.ids))
            self.ids = distinct
        self.rows = rows
        try:
            found = ids.parse_all(self.ids.to_pylist())
        except ValueError as mistake:
            raise PipelineError(f"{mistake} is no id of an entry") from None
        self.ms: Any = numpy.frombuffer(found.ms, numpy.uint64)
        self.seq: Any = numpy.frombuffer(found.seq, numpy.uint64)
        self.order: Any = numpy.lexsort((self.seq, self.ms))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def first(self) -> bytes:
        return self.text(self.order[0])

    @property
    def last(self) -> bytes:
        return self.text(self.order[-1])

    def text(self, at: Any) -> bytes:
        found: bytes = self.ids[int(at)].as_py()
        return found

    def beyond(self, left: Any, entry_id: int) -> Any:
        """Those of some places with higher ids."""
        ms, seq = self.ms[left], self.seq[left]
        high, low = numpy.uint64(entry_id >> 64), numpy.uint64(entry_id & ids.HALF)
        return left[(ms > high) | ((ms == high) & (seq > low))]


def fields_of(client: Client, stream: bytes, wanted: Wanted) -> Any:
    """The fields of entries as a map array, null for those that are gone.

    Neighbours are read by the range that they are in; where most of a range is not wanted, ids are asked one by one.
    """
    pages: list[Page] = []
    left = wanted.order
    is_dense = True
    while len(left) and is_dense:
        most = PAGE_SPARE * len(left)
        page = _page(client, stream, [["XRANGE", stream, wanted.text(left[0]), wanted.text(left[-1]), "COUNT", most]])
        pages.append(page)
        if len(page) < most:
            left = left[:0]
            break
        beyond = wanted.beyond(left, ids.parse(page.last_id()))
        is_dense = PAGE_SPARE * 2 * (len(left) - len(beyond)) >= len(page)
        left = beyond
    if len(left):
        texts = [wanted.text(at) for at in left]
        pages.append(_page(client, stream, [["XRANGE", stream, entry_id, entry_id] for entry_id in texts]))
    there = pa.concat_arrays([page.texts(page.id_at).cast(BINARY) for page in pages])
    fields = pa.concat_arrays([_fields(page) for page in pages])
    return fields if there.equals(wanted.ids) else fields.take(pc.index_in(wanted.ids, value_set=there))


def _page(client: Client, stream: bytes, requests: list[Request]) -> Page:
    try:
        return decode(client.framed(b"".join(packed(*words) for words in requests)), len(requests))
    except ReplyError as refusal:
        raise refused(client, stream, refusal) from None


def _fields(page: Page) -> Any:
    names, values = (page.texts(at).cast(BINARY) for at in (page.name_at, page.value_at))
    return pa.MapArray.from_arrays(pa.array(page.offsets), names, values)
