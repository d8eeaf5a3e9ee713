"""XPENDING: lists or counts a group's pending entries."""

from typing import Final

from librt.strings import BytesWriter

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.pending_rows import PendingRows, row_heads
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.group import Group
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending_block import RELEASED

SUMMARY: Final = reply.array_header(4)  # how the summary begins,
OWNER_ROW: Final = reply.array_header(2)  # and each of its rows
HEADS: Final = row_heads(4)
BEFORE_ALL: Final = -2  # a time before all delivery times


class PendingArguments:
    """The extended form: XPENDING key group [IDLE min-idle] start end count [consumer]."""

    __slots__ = ("consumer", "end", "max_count", "min_idle_ms", "start")

    def __init__(self) -> None:
        self.min_idle_ms = 0
        self.start: StreamId = ids.ZERO
        self.end: StreamId = ids.MAX
        self.max_count = 0
        self.consumer: bytes | None = None


def _read(args: list[bytes]) -> PendingArguments:
    options = PendingArguments()
    at = 3
    if args[3].upper() == b"IDLE":
        options.min_idle_ms = arguments.integer(args[4])
        if len(args) < 8:
            raise refusals.syntax()
        at = 5
    options.max_count = max(arguments.integer(args[at + 2]), 0)
    options.start = stream_arguments.range_start(args[at])
    options.end = stream_arguments.range_end(args[at + 1])
    if len(args) > at + 3:
        options.consumer = args[at + 3]
    return options


@command(
    "XPENDING",
    "key group filters:[[IDLE min-idle-time:integer@6.2.0] start end count [consumer]]",
    group="stream",
    since="5.0.0",
    flags="readonly",
    keys="1 RO access",
    tips="nondeterministic_output",
    complexity=(
        "O(N) with N being the number of elements returned, so asking for a small fixed number "
        "of entries per call is O(1). O(M), where M is the total number of entries scanned when "
        "used with the IDLE filter. When the command returns just the summary and the list of "
        "consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for "
        "iterating every consumer."
    ),
    history=(("6.2.0", "Added the `IDLE` option and exclusive range intervals."),),
    summary="Lists or counts a group's pending entries.",
)
def xpending(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) != 3 and not 6 <= len(args) <= 9:
        raise refusals.syntax()
    options = _read(args) if len(args) > 3 else None
    stream = ctx.read_stream(args[1])
    group = None if stream is None else stream.groups.get(args[2])
    if group is None:
        raise refusals.no_group(args[1], args[2])
    return _summary(ctx, group) if options is None else _extended(ctx, group, options)


def _summary(ctx: Context, group: Group) -> bytes:
    """[total, smallest id, largest id, [[consumer, count as text], ...]]."""
    null = reply.null(ctx.resp3)
    if not group.pending:
        return reply.array([reply.ZERO, null, null, reply.null_array(ctx.resp3)])
    owners = 0
    rows = BytesWriter()
    for consumer in group.consumers_by_name():
        if consumer.pending:
            owners += 1
            rows.write(OWNER_ROW)
            reply.write_word(rows, consumer.name)
            reply.write_word(rows, ids.decimal(consumer.pending))
    first, first_slot = group.first()
    last, last_slot = group.last()
    told = BytesWriter()
    told.write(SUMMARY)
    told.write(reply.integer(group.pending))
    reply.write_word(told, first.id_text(first_slot))
    reply.write_word(told, last.id_text(last_slot))
    told.write(reply.array_header(owners))
    told.write(rows.getvalue())
    return told.getvalue()


class IdleRows(PendingRows):
    """Rows of [id, owner, idle ms, deliveries]; for a released entry the owner is "" and idle is -1."""

    __slots__ = ("_now_ms",)

    def __init__(self, group: Group, max_count: int, now_ms: int) -> None:
        super().__init__(group, HEADS, max_count)
        self._now_ms = now_ms

    def tail(self, owner: int, time_ms: int, count: int) -> bytes:
        idle_ms = -1 if owner == RELEASED else max(self._now_ms - time_ms, 0)
        return b"%b%b%b" % (reply.bulk(self.group.name_of(owner)), reply.integer(idle_ms), reply.integer(count))


def _extended(ctx: Context, group: Group, options: PendingArguments) -> bytes:
    consumer = None if options.consumer is None else group.consumers.get(options.consumer)
    if consumer is None and options.consumer is not None:
        return reply.EMPTY_ARRAY
    rows = IdleRows(group, options.max_count, ctx.now_ms)
    rows.end_id = options.end
    if options.min_idle_ms > 0:
        latest_ms = ctx.now_ms - options.min_idle_ms
        rows.latest_ms = latest_ms if latest_ms >= 0 else BEFORE_ALL
    rows.add_from(options.start, consumer)
    return rows.as_array()
