"""A batch of equal XREADGROUPs in a pipeline: the entries of all become pending together.

A worker with room for more asks for further entries before it has read the last reply. The tests compare this with
xreadgroup.py, which runs the requests one by one; the log has one unit for the whole batch.

Tests: law commands/test_batches, policies/test_policy_batches.
"""

from typing import Final

from penstock.commands.policies import keyed_read, leased_read
from penstock.commands.streams.reading import read_arguments
from penstock.commands.streams.reading.group_delivery import ReadTarget, hand_out
from penstock.commands.streams.reading.read_arguments import ReadArguments
from penstock.commands.streams.reading.xrange import entries_of
from penstock.commands.streams.reading.xread import Budget, streams_reply
from penstock.commands.streams.reading.xreadgroup import known_target
from penstock.engine.context import Context
from penstock.engine.policies import giving_back, keys, leases, settling
from penstock.engine.table.command_table import batched
from penstock.errors import ReplyError
from penstock.protocol.request_batch import COLUMNS, RequestBatch
from penstock.storage.policies.group_policy import GroupPolicy
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.segment import SegmentRun

MOST_ENTRIES: Final = 1000  # per batch, so that its replies do not take too large a part of a turn


@batched("XREADGROUP", COLUMNS)
def read_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Run the requests of a batch, if all are equal and read one stream with `>`; returns how many.

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
    if target is None or consumer is None or (target.stream.policies is not None and options.no_ack):
        return 0
    most = min(batch.count, MOST_ENTRIES // options.count) * options.count
    policy = target.group.policy
    if policy is None:
        entries = _read_new(ctx, target, consumer, options, most)
    elif leases.is_leased(ctx, target.group) and _may_be_read_together(policy):
        entries = _read_leased(ctx, target, policy, consumer, options, most)
        if entries and policy.settings.gives_back:
            giving_back.note_reader(ctx, target.key, target.group.name, policy, consumer.name)
    else:
        return 0
    if entries:
        ctx.statistics.hits += 2 * len(entries)
        consumer.seen_ms = ctx.now_ms
        settling.used(ctx, target.key, target.stream, target.group)
        replies.extend([streams_reply([(target.key, share)], ctx.resp3) for share in entries])
    return len(entries)


def _may_be_read_together(policy: GroupPolicy) -> bool:
    """Whether several reads get what they get one by one: nothing is counted, set aside or chosen."""
    settings = policy.settings
    return not settings.has_limits and not settings.expires and not settings.chooses


def _read_new(ctx: Context, target: ReadTarget, consumer: Consumer, options: ReadArguments, most: int) -> list[bytes]:
    """The entries of each reply, as an array; none if there are fewer than two full replies."""
    shares = _shares(target.stream.unread(target.group, most), options.count)
    if len(shares) < 2:
        return []
    hand_out(ctx, target, consumer, _joined(shares), options.no_ack)
    ctx.count_group_changes(target.key, len(shares) - 1)
    return [entries_of(share) for share in shares]


def _read_leased(
    ctx: Context, target: ReadTarget, policy: GroupPolicy, consumer: Consumer, options: ReadArguments, most: int
) -> list[bytes]:
    """As `_read_new` in a leased group: all of it is delivered again, or all is new.

    Within a batch no time passes: what is not ready at its beginning is not at its end. With KEY, a read that delivers
    again may free a value for the next one: only new entries are read together.
    """
    ready = leases.ready_slots(target.stream, target.group, policy, leases.least_idle_ms(ctx, policy), ctx.now_ms)
    is_ready = next(ready, None) is not None
    order = keys.order_of(target.stream, target.group, policy)
    if is_ready:
        again = [] if order is not None else leased_read.read_again_together(ctx, target, consumer, options, most)
        return [_array(again[at : at + options.count]) for at in range(0, len(again), options.count)]
    if order is None:
        return _read_new(ctx, target, consumer, options, most)
    budget = Budget(options, ctx.resp3)
    budget.entries = most
    shares = keyed_read.read_together(ctx, target, policy, order, consumer, options.count, budget)
    return [_array(share) for share in shares]


def _array(entries: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(entries) + b"".join(entries)


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
