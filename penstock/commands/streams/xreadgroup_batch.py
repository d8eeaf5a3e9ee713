"""XREADGROUPs that follow one another in a pipeline, all the same: what they hand out becomes pending at once.

A worker that has room for more asks for the next entries before it has seen the last ones. The plain way, one by one
(xreadgroup.py), is the oracle beside which the tests run this one; the log has one unit for all of them.
"""

from typing import Final

from penstock.commands.streams import read_arguments
from penstock.commands.streams.xrange import entries_of
from penstock.commands.streams.xread import streams_reply
from penstock.commands.streams.xreadgroup import hand_out, known_place
from penstock.engine.context import Context
from penstock.engine.table.command_table import batched
from penstock.errors import ReplyError
from penstock.protocol.request_batch import RequestBatch
from penstock.storage.streams.stream import SegmentRun

MOST_ENTRIES: Final = 1000  # handed out at once; so the replies stay within a turn's share


@batched("XREADGROUP")
def read_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Answer the requests of a batch, if all are equal and ask for new entries of one stream, while it has enough."""
    for column in batch.columns:
        if column.count(column[0]) != batch.count:
            return 0
    request = batch.request(0)
    try:
        asked = read_arguments.read_again(ctx, request)
    except ReplyError:
        return 0
    if not asked.is_plain or asked.count > MOST_ENTRIES // 2:
        return 0
    place = known_place(ctx, asked)
    consumer = None if place is None else place.group.consumers.get(asked.consumer)
    if place is None or consumer is None:
        return 0
    runs = place.stream.unread(place.group, min(batch.count * asked.count, MOST_ENTRIES))
    shares = _shares(runs, asked.count)
    if len(shares) < 2:
        return 0
    ctx.engine.statistics.hits += 2 * len(shares)
    consumer.seen_ms = ctx.now_ms
    hand_out(ctx, place, consumer, _joined(shares), asked.no_ack)
    ctx.dirty += len(shares) - 1
    replies.extend([streams_reply([(place.key, entries_of(share))], ctx.resp3) for share in shares])
    return len(shares)


def _shares(runs: list[SegmentRun], count: int) -> list[list[SegmentRun]]:
    """The entries in shares of so many each; those that are left over are in none."""
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
    """The shares' entries in as few runs as they are."""
    joined: list[SegmentRun] = []
    for share in shares:
        for segment, start, stop in share:
            if joined and joined[-1][0] is segment and joined[-1][2] == start:
                joined[-1] = (segment, joined[-1][1], stop)
            else:
                joined.append((segment, start, stop))
    return joined
