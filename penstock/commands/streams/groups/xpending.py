"""XPENDING: lists or counts a group's pending entries.

Tests: transcripts xpending; cases commands/test_pending_rows; law against_redis/test_random_requests.
"""

from typing import Final

from librt.strings import BytesWriter

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.groups.pending_rows import PendingRows
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.pending.group import Group

SUMMARY: Final = reply.array_header(4)  # how the summary begins,
OWNER_ROW: Final = reply.array_header(2)  # and each of its rows
IDLE: Final = b"IDLE"
BEFORE_ALL: Final = -2  # a time before all delivery times


@command(
    "XPENDING key group filters:[[IDLE min-idle-time:integer@6.2.0] start end count [consumer]]",
    "5.0.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Lists or counts a group's pending entries.",
    "O(N) with N being the number of elements returned, so asking for a small fixed number "
    "of entries per call is O(1). O(M), where M is the total number of entries scanned when "
    "used with the IDLE filter. When the command returns just the summary and the list of "
    "consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for "
    "iterating every consumer.",
    history=(("6.2.0", "Added the `IDLE` option and exclusive range intervals."),),
)
def xpending(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == 3:
        return _summary(ctx, _group(ctx, args))
    if not 6 <= len(args) <= 9:
        raise refusals.syntax()
    at, min_idle_ms = 3, 0
    if len(args[3]) == len(IDLE) and args[3].upper() == IDLE:
        min_idle_ms = arguments.integer(args[4])
        if len(args) < 8:
            raise refusals.syntax()
        at = 5
    max_count = max(arguments.integer(args[at + 2]), 0)
    start = stream_arguments.range_start(args[at])
    end = stream_arguments.range_end(args[at + 1])
    group = _group(ctx, args)
    consumer = None
    if len(args) > at + 3:
        consumer = group.consumers.get(args[at + 3])
        if consumer is None:
            return reply.EMPTY_ARRAY
    rows = PendingRows(group, max_count, ctx.now_ms, True)
    rows.end_id = end
    if min_idle_ms > 0:
        latest_ms = ctx.now_ms - min_idle_ms
        rows.latest_ms = latest_ms if latest_ms >= 0 else BEFORE_ALL
    rows.add_from(start, consumer)
    return rows.as_array()


def _group(ctx: Context, args: list[bytes]) -> Group:
    stream = ctx.read_stream(args[1])
    group = None if stream is None else stream.groups.get(args[2])
    if group is None:
        raise refusals.no_group(args[1], args[2])
    return group


def _summary(ctx: Context, group: Group) -> bytes:
    """[total, smallest id, largest id, [[consumer, count as text], ...]]."""
    null = reply.null(ctx.resp3)
    if not group.pel.count:
        return reply.array([reply.ZERO, null, null, reply.null_array(ctx.resp3)])
    owners = 0
    rows = BytesWriter()
    for consumer in group.consumers_by_name():
        if consumer.pending:
            owners += 1
            rows.write(OWNER_ROW)
            reply.write_word(rows, consumer.name)
            reply.write_word(rows, ids.decimal(consumer.pending))
    first, first_slot = group.pel.by_id.first()
    last, last_slot = group.pel.by_id.last()
    answer = BytesWriter()
    answer.write(SUMMARY)
    answer.write(reply.integer(group.pel.count))
    reply.write_word(answer, first.id_text(first_slot))
    reply.write_word(answer, last.id_text(last_slot))
    answer.write(reply.array_header(owners))
    answer.write(rows.getvalue())
    return answer.getvalue()
