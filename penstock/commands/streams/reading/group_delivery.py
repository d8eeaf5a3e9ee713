"""Handing out new entries to a consumer of a group, for XREADGROUP in all its forms."""

from penstock.commands.streams.reading.xrange import entries_of
from penstock.commands.streams.reading.xread import Budget
from penstock.engine import refusals
from penstock.engine.aof import group_effects
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.errors import ReplyError
from penstock.protocol import entries
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.segment import SegmentRun
from penstock.storage.streams.stream import Stream


class ReadTarget:
    """One stream of a call, with the group that reads it. `after` is ids.MAX for `>`."""

    __slots__ = ("after", "group", "key", "stream")

    def __init__(self, key: bytes, stream: Stream, group: Group, after: StreamId) -> None:
        self.key = key
        self.stream = stream
        self.group = group
        self.after = after


def target_of(ctx: Context, key: bytes, group_name: bytes | None) -> ReadTarget:
    """The stream at a key and its group, for `>`; WRONGTYPE or NOGROUP where there is none."""
    stream = ctx.read_stream(key)
    group = None if stream is None or group_name is None else stream.groups.get(group_name)
    if stream is None or group is None:
        raise ReplyError(
            b"NOGROUP No such key '%b' or consumer group '%b' in XREADGROUP with GROUP option"
            % (refusals.c_string(key), refusals.c_string(group_name or b""))
        )
    return ReadTarget(key, stream, group, ids.MAX)


def new_runs(target: ReadTarget, max_count: int, budget: Budget) -> list[SegmentRun]:
    return budget.cut(target.stream.unread(target.group, max_count)) if max_count > 0 else []


def deliver_new(ctx: Context, target: ReadTarget, consumer: Consumer, runs: list[SegmentRun], no_ack: bool) -> bytes:
    """Hand out new entries; returns them as a reply."""
    answer = entries_of(runs)  # before the stream's policies may trim them
    hand_out(ctx, target, consumer, runs, no_ack)
    return answer


def with_new(
    ctx: Context,
    target: ReadTarget,
    consumer: Consumer,
    parts: list[bytes],
    no_ack: bool,
    max_count: int,
    budget: Budget,
    claims: bool,
) -> bytes:
    """Hand out new entries behind those in `parts`, which are delivered again: an array of all; b"" if it is empty.

    claims: each entry is shown with its idle time and delivery count.
    """
    again = len(parts)
    runs = new_runs(target, budget.max_count(max_count - again), budget)
    for segment, start, stop in runs:
        shown = segment.entry_list(start, stop)
        parts += [entries.with_delivery(entry, 0, 0) for entry in shown] if claims else shown
    if runs:
        hand_out(ctx, target, consumer, runs, no_ack)
    return b"*%d\r\n" % len(parts) + b"".join(parts) if parts or budget.is_cut else b""


def hand_out(ctx: Context, target: ReadTarget, consumer: Consumer, runs: list[SegmentRun], no_ack: bool) -> None:
    """Advance the group over new entries, which become pending unless NOACK; those may be trimmed at once."""
    group = target.group
    if not no_ack:
        group_effects.log_new(ctx, target.key, group, consumer.name, runs)
    target.stream.advance_group(group, runs)
    if not no_ack:
        group.pel.deliver(runs, consumer, ctx.now_ms)
        consumer.active_ms = ctx.now_ms
        if group.policy is not None:
            settling.delivered(ctx, target.key, target.stream, group, ctx.now_ms)
    group_effects.log_position(ctx, target.key, target.stream, group)
    ctx.count_group_changes(target.key, 1)
    if no_ack and target.stream.policies is not None:
        settling.read_without_ack(ctx, target.key, target.stream, runs)
