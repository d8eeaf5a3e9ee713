"""XREAD: reads several streams from given ids on, and can block until there are entries.

Tests: transcripts xread_block, maxcount; cases commands/test_waiting; law against_redis/test_blocked_readers.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.reading import read_arguments
from penstock.commands.streams.reading.read_arguments import UNLIMITED, ReadArguments
from penstock.commands.streams.reading.xrange import entries_of
from penstock.engine import arguments
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.segment import SegmentRun, count_of
from penstock.storage.streams.stream import Stream

_MOST_ENTRIES: Final = 2**61  # more than there can be; larger numbers are objects in the compiled build


class Budget:
    """The rest of a call's limits: entries (MAXCOUNT) and bytes (MAXSIZE).

    MAXSIZE counts the keys and the entries as they are sent. An entry follows as long as what is before it is smaller,
    so the last one may pass the limit, and a key may stand without entries; the first entry of the reply is always
    returned. (Redis 8.10, XREAD; the numbers are those of clients' tests that were run against it.)

    is_cut: the stream that was opened last has entries for which there was no room.
    """

    __slots__ = ("_pair", "_started", "entries", "is_cut", "is_sized", "size")

    def __init__(self, options: ReadArguments, resp3: bool) -> None:
        self.entries = min(options.max_count, _MOST_ENTRIES)
        self.size = options.max_size
        self.is_sized = options.max_size < UNLIMITED
        self._started = False
        self.is_cut = False
        self._pair = 0 if resp3 else len(reply.array_header(2))

    def open_stream(self, key: bytes) -> None:
        """Count the key of a stream, and in RESP2 the header of its pair."""
        self.is_cut = False
        if self.is_sized:
            self.size -= self._pair + len(reply.bulk(key))

    def close_stream(self, entries: bytes) -> None:
        """Count the header of a stream's entries: not before they are complete, as in Redis."""
        if self.is_sized:
            self.size -= entries.index(b"\n") + 1

    def take(self, entry: bytes) -> bool:
        """Whether one more entry may be returned; if so, it is counted."""
        self.is_cut = self._started and self.is_sized and self.size <= 0
        if self.entries <= 0 or self.is_cut:
            return False
        self._started = True
        self.entries -= 1
        if self.is_sized:
            self.size -= len(entry)
        return True

    def cut(self, runs: list[SegmentRun]) -> list[SegmentRun]:
        """The entries, from the first on, that may be returned; they are counted."""
        if not self.is_sized:
            self.spend(count_of(runs))
            return runs
        kept: list[SegmentRun] = []
        for segment, start, stop in runs:
            for slot in range(start, stop):
                if not self.take(segment.entry(slot)):
                    if slot > start:
                        kept.append((segment, start, slot))
                    return kept
            kept.append((segment, start, stop))
        return kept

    def spend(self, count: int) -> None:
        """Count entries that were not checked one by one (there is no MAXSIZE)."""
        self.entries -= count

    def max_count(self, count: int) -> int:
        """How many entries the next stream may return; 0 if the size is used up."""
        if self._started and self.is_sized and self.size <= 0:
            return 0
        return min(count, self.entries)


def streams_reply(served: list[tuple[bytes, bytes]], resp3: bool) -> bytes:
    """Keys and their entries: pairs in RESP2, a map in RESP3 (with a repeated key repeated)."""
    if len(served) == 1:
        key, entries = served[0]
        return b"%b%b%b" % (b"%1\r\n" if resp3 else b"*1\r\n*2\r\n", reply.bulk(key), entries)
    parts = [b"%%%d\r\n" % len(served) if resp3 else reply.array_header(len(served))]
    pair = b"" if resp3 else reply.array_header(2)
    for key, entries in served:
        parts.append(pair)
        parts.append(reply.bulk(key))
        parts.append(entries)
    return b"".join(parts)


@command(
    "XREAD [COUNT count] [MAXCOUNT maxcount:integer@8.10.0] [MAXSIZE maxsize:integer@8.10.0] "
    "[BLOCK milliseconds] streams:STREAMS (key [key ...] id [id ...])",
    f"5.0.0 readonly blocking movablekeys | keys STREAMS@{read_arguments.STREAMS_AT}..half {read_arguments.KEY_FLAGS}",
    "Reads entries after given ids from several streams; can block until there are some.",
    "",
    find_keys=read_arguments.find_keys,
)
def xread(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == 6 and args[1] == b"COUNT" and args[3] == b"STREAMS" and args[5][:1].isdigit():
        return _read_one(ctx, arguments.integer(args[2]), args[4], args[5])
    options = read_arguments.read(ctx, args, False)
    found: list[Stream | None] = []
    starts: list[StreamId] = []
    for key, word in zip(options.keys, options.ids, strict=True):
        stream = ctx.read_stream(key)
        found.append(stream)
        starts.append(_start(ctx, word, stream))
    served: list[tuple[bytes, bytes]] = []
    budget = Budget(options, ctx.resp3)
    for key, word, stream, after in zip(options.keys, options.ids, found, starts, strict=True):
        ctx.read(key)  # Redis looks the key up twice and counts both as hits or misses
        max_count = budget.max_count(1 if word == b"+" else options.count)
        if stream is None or max_count <= 0 or not stream.length or after >= stream.last_id:
            continue
        budget.open_stream(key)
        runs = budget.cut(stream.runs(after + 1, ids.MAX, max_count))
        if runs or budget.is_cut:
            served.append((key, entries_of(runs)))
            budget.close_stream(served[-1][1])
    if served:
        return streams_reply(served, ctx.resp3)
    if options.block_ms == read_arguments.NOT_GIVEN or not ctx.waits:
        return reply.null_array(ctx.resp3)
    if ctx.attempt is None:
        _block(ctx, args, options, starts)
    return BLOCKED


def _read_one(ctx: Context, count: int, key: bytes, word: bytes) -> bytes:
    """Fast path for the most common call: `XREAD COUNT n STREAMS key id`, without blocking."""
    stream = ctx.read_stream(key)
    after = stream_arguments.stream_id(word)
    ctx.read(key)  # Redis looks the key up twice and counts both as hits or misses
    if stream is not None and stream.length and after < stream.last_id:
        runs = stream.runs(after + 1, ids.MAX, count if count > 0 else UNLIMITED)
        if runs:
            return streams_reply([(key, entries_of(runs))], ctx.resp3)
    return reply.null_array(ctx.resp3)


def _start(ctx: Context, word: bytes, stream: Stream | None) -> StreamId:
    """The id after which a stream is read: for an id, `$` or `+`."""
    if word == b"$":
        return ids.ZERO if stream is None else stream.last_id
    if word == b"+" and not ctx.hides(word):
        if stream is None or not stream.length:
            return ids.MAX
        uses_last_id = ctx.compatibility.is_valkey  # Valkey: the last id, even of a deleted entry (9.1.2)
        return max((stream.last_id if uses_last_id else stream.last_live_id) - 1, 0)
    if word == b">":
        raise ReplyError(
            b"ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
        )
    return stream_arguments.stream_id(word)


def _block(ctx: Context, args: list[bytes], options: ReadArguments, starts: list[StreamId]) -> None:
    """Block the request. Each `$` is replaced by its id at this time; `+` stays."""
    remembered = args[: options.ids_at] + [
        ids.text(start) if word == b"$" else word for word, start in zip(options.ids, starts, strict=True)
    ]
    deadline_ms = ctx.now_ms + options.block_ms if options.block_ms else 0
    assert ctx.row is not None, "a handler runs for a row"
    blocked = BlockedRequest(
        ctx.session, ctx.row, remembered, ctx.db_index, options.keys, deadline_ms, reply.null_array(ctx.resp3)
    )
    ctx.blocking.block(blocked)
