"""A batch of equal XREADGROUPs in a pipeline: the entries of all become pending together.

A worker with room for more asks for further entries before it has read the last reply. The tests compare this with
xreadgroup.py, which runs the requests one by one; the log has one unit for the whole batch.
"""

from typing import Final

from penstock.commands.streams import read_arguments
from penstock.commands.streams.group_delivery import ReadTarget, hand_out
from penstock.commands.streams.read_arguments import ReadArguments
from penstock.commands.streams.xrange import entries_of
from penstock.commands.streams.xread import streams_reply
from penstock.commands.streams.xreadgroup import known_target
from penstock.engine.context import Context
from penstock.engine.policies import leases
from penstock.engine.table.command_table import batched
from penstock.errors import ReplyError
from penstock.protocol.request_batch import COLUMNS, RequestBatch
from penstock.storage.streams.stream import SegmentRun

MOST_ENTRIES: Final = 1000  # per batch, so that its replies do not take too large a part of a turn


@batched("XREADGROUP", COLUMNS)
def read_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run the requests of a batch, if all are equal and read new entries of one stream; returns how many.

    Stops when there are too few entries for a full reply.
    """
    for column in batch.columns:
        if column.count(column[0]) != batch.count:
            return 0
    request = batch.request(0)
    try:
        options = read_arguments.read_again(ctx, request)
    except ReplyError:
        return 0
    if not options.is_plain or options.count > MOST_ENTRIES // 2:
        return 0
    target = known_target(ctx, options)
    consumer = None if target is None else target.group.consumers.get(options.consumer)
    if target is None or consumer is None or not _reads_new_only(ctx, target, options):
        return 0
    runs = target.stream.unread(target.group, min(batch.count * options.count, MOST_ENTRIES))
    shares = _shares(runs, options.count)
    if len(shares) < 2:
        return 0
    ctx.engine.statistics.hits += 2 * len(shares)
    consumer.seen_ms = ctx.now_ms
    hand_out(ctx, target, consumer, _joined(shares), options.no_ack)
    ctx.dirty += len(shares) - 1
    replies.extend([streams_reply([(target.key, entries_of(share))], ctx.resp3) for share in shares])
    return len(shares)


def _reads_new_only(ctx: Context, target: ReadTarget, options: ReadArguments) -> bool:
    """Whether policies leave a batch alone: nothing is to be delivered again, and no entry waits for its value.

    Within a batch no time passes: what is not ready at its beginning is not at its end.
    """
    policy = target.group.policy
    if target.stream.policies is not None and options.no_ack:
        return False
    if policy is None:
        return True
    if policy.settings.key_field is not None or not leases.is_leased(ctx, target.group):
        return False
    ready = leases.ready_slots(target.stream, target.group, policy, leases.least_idle_ms(ctx, policy), ctx.now_ms)
    return next(ready, None) is None


def _shares(runs: list[SegmentRun], count: int) -> list[list[SegmentRun]]:
    """The entries in shares of `count` each; a rest of fewer is left out."""
    shares: list[list[SegmentRun]] = []
    share: list[SegmentRun] = []
    missing = count
    for segment, start, stop in runs:
        while stop - start >= missing:
            share.append((segment, start, start + missing))
            shares.append(share)
            start += missing
            share, missing = [], count
        if start < stop:
            share.append((segment, start, stop))
            missing -= stop - start
    return shares


def _joined(shares: list[list[SegmentRun]]) -> list[SegmentRun]:
    """The entries of all shares in as few runs as possible."""
    joined: list[SegmentRun] = []
    for share in shares:
        for segment, start, stop in share:
            if joined and joined[-1][0] is segment and joined[-1][2] == start:
                joined[-1] = (segment, joined[-1][1], stop)
            else:
                joined.append((segment, start, stop))
    return joined
