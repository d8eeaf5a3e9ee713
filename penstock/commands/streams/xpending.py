"""XPENDING: lists or counts a group's pending entries."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.group import Consumer, Group
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending_block import RELEASED, PendingBlock
from penstock.storage.streams.pending_list import PendingRun, PendingSlot, in_runs

NO_LIMIT: Final = 2**62  # more entries than a group can have
ROW: Final = b"*4\r\n$%d\r\n%b\r\n%b:%d\r\n:%d\r\n"  # the id's length and the id, the owner, idle ms, deliveries


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
    owners = [
        reply.bulks([consumer.name, b"%d" % consumer.pending])
        for consumer in group.consumers_by_name()
        if consumer.pending
    ]
    return reply.array(
        [
            reply.integer(group.pending),
            reply.bulk(ids.text(group.smallest_id())),
            reply.bulk(ids.text(group.largest_id())),
            reply.array(owners),
        ]
    )


def _extended(ctx: Context, group: Group, options: PendingArguments) -> bytes:
    """[[id, owner, idle ms, deliveries], ...]; for a released entry the owner is "" and idle is -1."""
    if options.consumer is not None:
        consumer = group.consumers.get(options.consumer)
        if consumer is None:
            return reply.EMPTY_ARRAY
        return _of_consumer(ctx, group, consumer, options)
    return _rows(ctx, group, group.walk_runs(options.start), options)


def _of_consumer(ctx: Context, group: Group, consumer: Consumer, options: PendingArguments) -> bytes:
    max_count = NO_LIMIT if options.min_idle_ms > 0 else options.max_count
    return _rows(ctx, group, group.owned(consumer, options.start, max_count), options)


def _rows(ctx: Context, group: Group, runs: Iterable[PendingRun], options: PendingArguments) -> bytes:
    rows: list[bytes] = []
    for block, start, stop in runs:
        left = options.max_count - len(rows)
        if left <= 0 or block.id_at(start) > options.end:
            break
        if block.id_at(stop - 1) > options.end:
            stop = start + bisect_right(range(start, stop), options.end, key=block.id_at)
        if not options.min_idle_ms or ctx.now_ms - max(block.times[start:stop]) >= options.min_idle_ms:
            rows += _rows_of_run(ctx, group, (block, start, min(stop, start + left)))
            continue
        for run in in_runs(_idle(ctx, (block, start, stop), options.min_idle_ms)[:left]):
            rows += _rows_of_run(ctx, group, run)
    return reply.array(rows)


def _idle(ctx: Context, run: PendingRun, min_idle_ms: int) -> list[PendingSlot]:
    """The entries of a run that are idle for min_idle_ms; released entries always are."""
    block, start, stop = run
    owners, times = block.owners, block.times
    latest_ms = ctx.now_ms - min_idle_ms
    return [(block, slot) for slot in range(start, stop) if times[slot] <= latest_ms or owners[slot] == RELEASED]


def _rows_of_run(ctx: Context, group: Group, run: PendingRun) -> Iterable[bytes]:
    """One row for each slot of a run.

    Usually all have one owner, time and count, and the rows differ only in the id.
    """
    block, start, stop = run
    texts = block.segment.id_texts(start, stop)
    if block.is_uniform(start, stop):
        idle_ms = _idle_times(ctx, block, start, start + 1)[0]
        owner = reply.bulk(group.name_of(block.owners[start]))
        tail = b"%b:%d\r\n:%d\r\n" % (owner, idle_ms, block.counts[start])
        return [b"*4\r\n$%d\r\n%b\r\n%b" % (len(text), text, tail) for text in texts]
    owners = block.owners[start:stop]
    names = {number: reply.bulk(group.name_of(number)) for number in set(owners)}
    columns = (map(len, texts), texts, map(names.__getitem__, owners), _idle_times(ctx, block, start, stop))
    return map(ROW.__mod__, zip(*columns, block.counts[start:stop], strict=True))


def _idle_times(ctx: Context, block: PendingBlock, start: int, stop: int) -> list[int]:
    """The idle time in ms of each of the slots [start, stop); -1 for a released one."""
    owners, times = block.owners[start:stop], block.times[start:stop]
    if RELEASED not in owners and max(times) <= ctx.now_ms:
        return list(map(ctx.now_ms.__sub__, times))
    pairs = zip(owners, times, strict=True)
    return [-1 if owner == RELEASED else max(ctx.now_ms - time_ms, 0) for owner, time_ms in pairs]
