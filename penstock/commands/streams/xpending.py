"""XPENDING: what a group has delivered and nobody acknowledged."""

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

FAR: Final = 2**62  # more entries than there can be
ROW: Final = b"*4\r\n$%d\r\n%b\r\n%b:%d\r\n:%d\r\n"  # the id's length and the id, the owner, idle ms, deliveries


class PendingWords:
    """The extended form: XPENDING key group [IDLE min-idle] start end count [consumer]."""

    __slots__ = ("consumer", "end", "min_idle_ms", "most", "start")

    def __init__(self) -> None:
        self.min_idle_ms = 0
        self.start: StreamId = ids.ZERO
        self.end: StreamId = ids.MAX
        self.most = 0
        self.consumer: bytes | None = None


def _read(args: list[bytes]) -> PendingWords:
    asked = PendingWords()
    at = 3
    if args[3].upper() == b"IDLE":
        asked.min_idle_ms = arguments.integer(args[4])
        if len(args) < 8:
            raise refusals.syntax()
        at = 5
    asked.most = max(arguments.integer(args[at + 2]), 0)
    asked.start = stream_arguments.range_start(args[at])
    asked.end = stream_arguments.range_end(args[at + 1])
    if len(args) > at + 3:
        asked.consumer = args[at + 3]
    return asked


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
    asked = _read(args) if len(args) > 3 else None
    stream = ctx.read_stream(args[1])
    group = None if stream is None else stream.groups.get(args[2])
    if group is None:
        raise refusals.no_group(args[1], args[2])
    return _summary(ctx, group) if asked is None else _extended(ctx, group, asked)


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


def _extended(ctx: Context, group: Group, asked: PendingWords) -> bytes:
    """[[id, owner, idle ms, deliveries], ...]; a released entry has owner "" and idle -1."""
    if asked.consumer is not None:
        consumer = group.consumers.get(asked.consumer)
        if consumer is None:
            return reply.EMPTY_ARRAY
        return _of_consumer(ctx, group, consumer, asked)
    return _rows(ctx, group, group.walk_runs(asked.start), asked)


def _of_consumer(ctx: Context, group: Group, consumer: Consumer, asked: PendingWords) -> bytes:
    most = FAR if asked.min_idle_ms > 0 else asked.most
    return _rows(ctx, group, group.owned(consumer, asked.start, most), asked)


def _rows(ctx: Context, group: Group, runs: Iterable[PendingRun], asked: PendingWords) -> bytes:
    rows: list[bytes] = []
    for block, start, stop in runs:
        left = asked.most - len(rows)
        if left <= 0 or block.id_at(start) > asked.end:
            break
        if block.id_at(stop - 1) > asked.end:
            stop = start + bisect_right(range(start, stop), asked.end, key=block.id_at)
        if not asked.min_idle_ms or ctx.now_ms - max(block.times[start:stop]) >= asked.min_idle_ms:
            rows += _rows_of_run(ctx, group, (block, start, min(stop, start + left)))
            continue
        for run in in_runs(_idle(ctx, (block, start, stop), asked.min_idle_ms)[:left]):
            rows += _rows_of_run(ctx, group, run)
    return reply.array(rows)


def _idle(ctx: Context, run: PendingRun, min_idle_ms: int) -> list[PendingSlot]:
    """What has idled so long; a released entry has, however long that is."""
    block, start, stop = run
    owners, times = block.owners, block.times
    latest_ms = ctx.now_ms - min_idle_ms
    return [(block, slot) for slot in range(start, stop) if times[slot] <= latest_ms or owners[slot] == RELEASED]


def _rows_of_run(ctx: Context, group: Group, run: PendingRun) -> Iterable[bytes]:
    """A row for each slot of a run; mostly of one owner, time and count."""
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
    """For how many ms each of the slots [start, stop) has idled; -1 for a released one."""
    owners, times = block.owners[start:stop], block.times[start:stop]
    if RELEASED not in owners and max(times) <= ctx.now_ms:
        return list(map(ctx.now_ms.__sub__, times))
    pairs = zip(owners, times, strict=True)
    return [-1 if owner == RELEASED else max(ctx.now_ms - time_ms, 0) for owner, time_ms in pairs]
