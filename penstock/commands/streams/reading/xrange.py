"""XLEN, XRANGE and XREVRANGE: read a stream by id.

Tests: transcripts streams; cases storage/test_compression; law against_redis/test_random_requests; model
storage/test_against_naive.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.streams.segment import SegmentRun, count_of

EVERYTHING: Final = 2**63


def entries_of(runs: list[SegmentRun]) -> bytes:
    """The reply for live entries: the stored bytes, joined. O(bytes)."""
    if len(runs) == 1:
        segment, start, stop = runs[0]
        return reply.array_header(stop - start) + segment.entries(start, stop)
    parts = [segment.entries(start, stop) for segment, start, stop in runs]
    return reply.array_header(count_of(runs)) + b"".join(parts)


@command("XLEN key", "5.0.0 readonly fast | keys 1 RO", "Returns the number of entries in a stream.")
def xlen(ctx: Context, args: list[bytes]) -> bytes:
    stream = ctx.read_stream(args[1])
    return reply.ZERO if stream is None else reply.integer(stream.length)


@command(
    "XRANGE key start end [COUNT count]",
    "5.0.0 readonly | keys 1 RO access",
    "Returns the entries of a range of ids, oldest first.",
    "O(N) with N being the number of elements being returned. If N is constant (e.g. always "
    "asking for the first 10 elements with COUNT), you can consider it O(1).",
    history=(("6.2.0", "Added exclusive ranges."),),
)
def xrange(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, args[2], args[3], False)


@command(
    "XREVRANGE key end start [COUNT count]",
    "5.0.0 readonly | keys 1 RO access",
    "Returns the entries of a range of ids, newest first.",
    "O(N) with N being the number of elements returned. If N is constant (e.g. always asking "
    "for the first 10 elements with COUNT), you can consider it O(1).",
    history=(("6.2.0", "Added exclusive ranges."),),
)
def xrevrange(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, args[3], args[2], True)


def _range(ctx: Context, args: list[bytes], start_word: bytes, end_word: bytes, newest_first: bool) -> bytes:
    start = stream_arguments.range_start(start_word)
    end = stream_arguments.range_end(end_word)
    max_count = _read_count(args)
    stream = ctx.read_stream(args[1])
    if stream is None:
        return reply.EMPTY_ARRAY
    if max_count == 0:
        return reply.null_array(ctx.resp3)
    if newest_first:
        return reply.array([segment.entry(slot) for segment, slot in stream.runs_back(start, end, max_count)])
    return entries_of(stream.runs(start, end, max_count))


def _read_count(args: list[bytes]) -> int:
    max_count = EVERYTHING
    at = 4
    while at < len(args):
        if args[at].upper() != b"COUNT" or at + 1 == len(args):
            raise refusals.syntax()
        max_count = max(arguments.integer(args[at + 1]), 0)
        at += 2
    return max_count
