"""Replies to XPENDING as columns: seven lines for each pending entry, split all at once (see entry_pages.py)."""

from typing import Any, Final

import numpy
import pyarrow

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import parsed
from penstock.pipeline.connector.source.entry_pages import CR, STAR, are_headers, numbers

COLON, MINUS = b":-"
STRIDE: Final = 7  # *4, length, id, length, consumer, idle, deliveries
TIME_LINES: Final = 5
NO_OWNER: Final = -1  # the idle time of an entry that XNACK has released (Redis 8.8)


class PendingPage:
    """Pending entries as columns: idle times and delivery counts as int64, and the server's time.

    Ids and names of consumers are `tokens` at the places `id_at` and `consumer_at`, made when they are asked for.
    """

    __slots__ = ("consumer_at", "deliveries", "id_at", "idle_ms", "now_ms", "tokens")

    def __init__(self, tokens: Any, id_at: Any, consumer_at: Any, idle_ms: Any, deliveries: Any, now_ms: int) -> None:
        self.tokens = tokens
        self.id_at = id_at
        self.consumer_at = consumer_at
        self.idle_ms = idle_ms
        self.deliveries = deliveries
        self.now_ms = now_ms

    def __len__(self) -> int:
        return len(self.id_at)

    def id_texts(self) -> Any:
        """A binary array. O(entries), each time."""
        return self.tokens.take(pyarrow.array(self.id_at))

    def consumers(self) -> Any:
        """A binary array; empty names for entries without an owner. O(entries), each time."""
        return self.tokens.take(pyarrow.array(self.consumer_at))

    def last_id(self) -> bytes:
        found: bytes = self.tokens[int(self.id_at[-1])].as_py()
        return found

    def where(self, mask: Any) -> "PendingPage":
        """The entries where a mask is true."""
        return PendingPage(
            self.tokens,
            self.id_at[mask],
            self.consumer_at[mask],
            self.idle_ms[mask],
            self.deliveries[mask],
            self.now_ms,
        )


def decode_pending(replies: bytes | bytearray) -> PendingPage:
    """The replies to an extended XPENDING and to TIME; ReplyError for a refusal."""
    page = _by_columns(replies)
    return _by_parser(replies) if page is None else page


def _by_parser(replies: bytes | bytearray) -> PendingPage:
    rows, time = parsed(replies)
    for reply in (rows, time):
        if isinstance(reply, ReplyError):
            raise reply
    places: Any = 2 * numpy.arange(len(rows))
    return PendingPage(
        pyarrow.array([text for row in rows for text in row[:2]], pyarrow.binary()),
        places,
        places + 1,
        numpy.array([row[2] for row in rows], numpy.int64),
        numpy.array([row[3] for row in rows], numpy.int64),
        _milliseconds(time[0], time[1]),
    )


def _by_columns(replies: bytes | bytearray) -> PendingPage | None:
    """The page, or None if a consumer's name holds a line end (entry_pages.py says why the split is right)."""
    text = numpy.frombuffer(replies, numpy.uint8)
    ends = numpy.flatnonzero(text == CR)
    count, rest = divmod(len(ends) - 1 - TIME_LINES, STRIDE)
    if rest or count < 1 or replies[: ends[0]] != b"*%d" % count:
        return None
    starts = numpy.empty_like(ends)
    starts[0] = 0
    numpy.add(ends[:-1], 2, out=starts[1:])
    begin = starts[1 : 1 + count * STRIDE].reshape(-1, STRIDE)
    end = ends[1 : 1 + count * STRIDE].reshape(-1, STRIDE)
    if not (text.take(begin[:, 0]) == STAR).all() or not (text.take(begin[:, 0] + 1) == ord("4")).all():
        return None
    if not (text.take(begin[:, 5:7]) == COLON).all():
        return None
    if not are_headers(text, begin[:, 1:4:2], end[:, 2:5:2] - begin[:, 2:5:2]):
        return None
    negative = text.take(begin[:, 5] + 1) == MINUS
    idle_ms = numbers(text, begin[:, 5] + 1 + negative, end[:, 5])
    deliveries = numbers(text, begin[:, 6] + 1, end[:, 6])
    if idle_ms is None or deliveries is None:
        return None
    bounds: Any = numpy.empty(2 * len(starts), numpy.int32)
    bounds[0::2] = starts
    bounds[1::2] = ends
    buffers = [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(replies)]
    tokens = pyarrow.Array.from_buffers(pyarrow.binary(), len(bounds) - 1, buffers)
    rows: Any = 1 + STRIDE * numpy.arange(count)
    seconds, micros = (replies[starts[at] : ends[at]] for at in (-3, -1))
    return PendingPage(
        tokens,
        2 * (rows + 2),
        2 * (rows + 4),
        numpy.where(negative, -idle_ms, idle_ms),
        deliveries,
        _milliseconds(seconds, micros),
    )


def _milliseconds(seconds: bytes | bytearray, micros: bytes | bytearray) -> int:
    return int(seconds) * 1000 + int(micros) // 1000
