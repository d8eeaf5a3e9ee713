"""Rows that the server deduplicates: by an idempotency key (IDMP, Redis 8.6), or by the ids that the rows have.

The server keeps the newest 10,000 keys of each stream and producer, for a time; so each task uses BUCKETS producers,
and the row's key chooses one of them.
"""

import warnings
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import numpy
import pyarrow as pa

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, mapping, text_of
from penstock.pipeline.connector.sink.resp_columns import BINARY, Texts, as_bytes, shown
from penstock.pipeline.connector.sink.row_encoder import Encoded, Encoder
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids

MAXSIZE: Final = 10_000  # keys a producer, the most that XCFGSET takes (Redis 8.6.3)
DURATION_S: Final = 3_600
BUCKETS: Final = 64  # producers a task; 64 * 10,000 keys, less what chance makes uneven
SAFE_ROWS: Final = 580_000
DIGEST_BYTES: Final = 12  # three numbers of four bytes


class ContentKeys:
    """Makes a key of each row from its content: the same in every try of a batch, in any order of rows.

    Equal rows are numbered. The batch number is part of the key, so an equal row of another batch is written too.
    """

    def __init__(self, query: str, partition: int, batch: int) -> None:
        self._producers = _Producers([f"{query[:8]}:{partition}:{bucket}" for bucket in range(BUCKETS)])
        self._batch = b"%d:" % batch
        self._seen: dict[bytes, int] = {}
        self.sum = 0  # of the rows: the same in any order

    def of(self, rows: Encoded) -> tuple[Any, Any]:
        """The producers and the keys of a batch's rows, as arrays."""
        texts, ends = rows.fields.between(0, rows.count), rows.fields.ends()
        begin = ends[0]
        places = pairwise([end - begin for end in ends])
        if rows.keys is None:
            words = [blake2b(texts[first:end], digest_size=DIGEST_BYTES).digest() for first, end in places]
        else:
            keys = rows.keys.array.to_pylist()
            words = [_digest(texts[first:end], key) for (first, end), key in zip(places, keys, strict=True)]
        self.sum += int(numpy.frombuffer(b"".join(words), "<u4").sum(dtype=numpy.uint64))
        batch, seen = self._batch, self._seen
        found = []
        for word in words:
            seen[word] = times = seen.get(word, 0) + 1
            found.append(b"%b%b:%d" % (batch, word, times))
        return self._producers.of([word[0] for word in words]), pa.array(found, BINARY)


def _digest(text: memoryview, key: bytes) -> bytes:
    """A digest that identifies a row: of its fields, and of its stream."""
    digest = blake2b(text, digest_size=DIGEST_BYTES, key=key[:64])
    if len(key) > 64:
        digest.update(key)
    return digest.digest()


class _Producers:
    """A task's producers; a byte of a row's key chooses one of them."""

    def __init__(self, names: list[str]) -> None:
        self._names = pa.array([names[byte % len(names)].encode() for byte in range(256)], BINARY)

    def of(self, chosen: list[int]) -> Any:
        return self._names.take(pa.array(chosen, pa.int16()))


class ColumnKeys:
    """Takes each row's key from a column. The producer depends on the key alone, so it is the same in every job."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._producers = _Producers([f"spark:{bucket}" for bucket in range(BUCKETS)])

    def of(self, batch: Any) -> tuple[Any, Any]:
        keys = as_bytes(batch.column(self._column))
        if keys.null_count:
            raise PipelineError(f"the column {self._column!r}, which tells rows apart, must not be null")
        return self._producers.of([blake2b(key, digest_size=1).digest()[0] for key in keys.to_pylist()]), keys


class IdmpSettings:
    """Sets how many keys a stream keeps and for how long, once for each stream.

    Changing the settings clears the stream's keys, so they are changed only if they are too small.
    """

    def __init__(self, client: Client, creates: bool) -> None:
        """creates: a missing stream is created; else it is left missing (NOMKSTREAM)."""
        self._client = client
        self._creates = creates
        self._rows: Counter[bytes] = Counter()

    def prepare(self, keys: Iterable[bytes]) -> None:
        new = [key for key in keys if key not in self._rows]
        found = self._client.pipeline([["XINFO", "STREAM", key] for key in new])
        requests: list[tuple[bytes, Request]] = []
        for key, reply in zip(new, found, strict=True):
            self._rows[key] = 0
            requests += ((key, request) for request in self._settings(key, reply))
        replies = self._client.pipeline([request for _, request in requests])
        for (key, _), reply in zip(requests, replies, strict=True):
            if isinstance(reply, ReplyError) and not reply.text.startswith(b"BUSYGROUP"):  # two tasks at once
                raise PipelineError(f"the stream {key!r} cannot be made to tell rows apart: {text_of(reply)}")

    def _settings(self, key: bytes, reply: Reply) -> list[Request]:
        requests: list[Request] = []
        if isinstance(reply, ReplyError):
            if not reply.text.startswith(b"ERR no such key"):
                raise PipelineError(f"the stream {key!r} cannot be written: {text_of(reply)}")
            if not self._creates:
                return []
            # XGROUP CREATE is the only way to create an empty stream; it needs its settings before the first entry.
            requests += [["XGROUP", "CREATE", key, "__spark", "$", "MKSTREAM"], ["XGROUP", "DESTROY", key, "__spark"]]
            duration_s = maxsize = 0
        else:
            said = mapping(reply)
            if b"idmp-maxsize" not in said:
                raise PipelineError("delivery=idmp needs a server with XADD ... IDMP: Penstock, or Redis 8.6 and later")
            duration_s, maxsize = said[b"idmp-duration"], said[b"idmp-maxsize"]
        if maxsize < MAXSIZE or duration_s < DURATION_S:
            wanted = ("IDMP-MAXSIZE", max(maxsize, MAXSIZE), "IDMP-DURATION", max(duration_s, DURATION_S))
            requests.append(["XCFGSET", key, *wanted])
        return requests

    def count(self, key: bytes, rows: int) -> None:
        """Warn, once, when a task writes more rows to one stream than the server keeps keys for."""
        before = self._rows[key]
        self._rows[key] += rows
        if before <= SAFE_ROWS < self._rows[key]:
            warnings.warn(
                f"one task writes more than {SAFE_ROWS} rows to {key!r}: the server forgets the first ones, so a retry "
                "would write them again. Make more partitions",
                stacklevel=2,
            )


# -- rows that bring their ids ----------------------------------------------------------------------------------------


class OwnIds:
    """Writes rows with given ids, as of a mirrored stream; a row that is in the stream already is skipped."""

    def __init__(self, client: Client, trims: bool) -> None:
        """trims: entries written earlier may have been trimmed since."""
        self._client = client
        self._trims = trims
        self._last: dict[bytes, int] = {}
        self.skipped = self.dropped = 0

    def write(self, encoder: Encoder, rows: Encoded, chunk: int) -> None:
        """Add the rows. PipelineError if their ids do not ascend, or the stream has other content under an id."""
        keys = encoder.keys_of(rows) * rows.count if rows.keys is None else rows.keys.array.to_pylist()
        own_ids = rows.ids.to_pylist()
        for key, own_id in zip(keys, own_ids, strict=True):
            self._ascend(key, own_id)
        requests = encoder.requests(rows)
        first = 0
        while first < rows.count:
            behind = requests.step(first, chunk)
            # Sent again after a broken connection it finds its own rows, which is what `_compare` is for.
            replies = self._client.exchange(bytes(requests.between(first, behind)), behind - first, retry=True)
            self.dropped += replies.count(None)
            late = [at for at, reply in enumerate(replies, first) if isinstance(reply, ReplyError)]
            for at in late:
                reply = replies[at - first]
                if b"equal or smaller" not in reply.text:
                    raise PipelineError(f"the entry {own_ids[at].decode()} of {keys[at]!r}: {text_of(reply)}")
            self._compare([(keys[at], own_ids[at], bytes(rows.fields.between(at, at + 1))) for at in late])
            first = behind

    def _ascend(self, key: bytes, own_id: bytes) -> None:
        try:
            place = ids.parse(own_id)
        except ValueError:
            place = ids.ZERO
        if place == ids.ZERO or b"-" not in own_id:
            raise PipelineError(f"{own_id!r} is no whole id (1700000000000-0), and 'ids' column needs one in each row")
        if place <= self._last.get(key, ids.ZERO):
            raise PipelineError(
                f"the ids of {key!r} do not ascend: {ids.text(self._last[key]).decode()}, then {own_id.decode()}. "
                "Bring each stream's rows into one task, in order: repartition('_stream') and "
                "sortWithinPartitions('_ms', '_seq')"
            )
        self._last[key] = place

    def _compare(self, late: list[tuple[bytes, bytes, bytes]]) -> None:
        """Rows with ids refused as too small: skipped if an earlier try wrote the same; else PipelineError."""
        if not late:
            return
        there = self._client.pipeline([["XRANGE", key, own_id, own_id] for key, own_id, _ in late])
        first_ids: dict[bytes, int] = {}
        for (key, own_id, fields), found in zip(late, there, strict=True):
            self.skipped += 1
            if isinstance(found, list) and found:
                if b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in found[0][1]) == fields:
                    continue
                raise PipelineError(f"the stream {key!r} holds another entry {own_id.decode()}")
            if self._trims:
                if key not in first_ids:
                    entries = self._client.call("XRANGE", key, "-", "+", "COUNT", 1)
                    first_ids[key] = ids.parse(entries[0][0]) if entries else ids.MAX
                if ids.parse(own_id) < first_ids[key]:
                    continue  # written, and trimmed since
            raise PipelineError(
                f"the stream {key!r} is beyond the id {own_id.decode()} and does not hold it: something else writes "
                "there, or two tasks do. Bring each stream's rows into one task: repartition('_stream')"
            )


def check_written(replies: list[Reply], texts: Texts, first: int) -> None:
    """PipelineError for the first refusal among the replies to XADDs."""
    for at, reply in enumerate(replies, first):
        if isinstance(reply, ReplyError):
            raise PipelineError(f"the server refuses a row: {text_of(reply)} ({shown(texts.between(at, at + 1))})")
