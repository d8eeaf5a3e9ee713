"""Removes the members of a sorted set in a range.

Tests: transcripts sorted_sets; cases commands/test_sorted_sets; law against_redis/test_sortedsets_beside_redis; model
storage/test_sortedsets.
"""

from typing import Final

from penstock.commands.sorted_sets.zset_bounds import lex_range, score_range
from penstock.commands.sorted_sets.zset_range import indexes_of_ranks
from penstock.commands.sorted_sets.zset_values import notify_removed, sorted_set
from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import SortedSet

REMOVAL_COMPLEXITY: Final = (
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the "
    "operation."
)


@command(
    "ZREMRANGEBYRANK key start:integer stop:integer",
    "2.0.0 write | keys 1 RW delete",
    "Removes the members of a sorted set in a range of ranks.",
    REMOVAL_COMPLEXITY,
)
def zremrangebyrank(ctx: Context, args: list[bytes]) -> bytes:
    ranks = arguments.integer(args[2]), arguments.integer(args[3])
    zset = sorted_set(ctx, args[1])
    if zset is None:
        return reply.ZERO
    return _remove(ctx, args, zset, indexes_of_ranks(len(zset), ranks), b"zremrangebyrank")


@command(
    "ZREMRANGEBYSCORE key min:double max:double",
    "1.2.0 write | keys 1 RW delete",
    "Removes the members of a sorted set in a range of scores.",
    REMOVAL_COMPLEXITY,
)
def zremrangebyscore(ctx: Context, args: list[bytes]) -> bytes:
    low, high = score_range(ctx, args[2], args[3])
    zset = sorted_set(ctx, args[1])
    if zset is None:
        return reply.ZERO
    return _remove(ctx, args, zset, zset.score_range(low, high), b"zremrangebyscore")


@command(
    "ZREMRANGEBYLEX key min max",
    "2.8.9 write | keys 1 RW delete",
    "Removes the members in a lexicographical range of a sorted set with equal scores.",
    REMOVAL_COMPLEXITY,
)
def zremrangebylex(ctx: Context, args: list[bytes]) -> bytes:
    low, high = lex_range(args[2], args[3])
    zset = sorted_set(ctx, args[1])
    if zset is None:
        return reply.ZERO
    return _remove(ctx, args, zset, zset.lex_range(low, high), b"zremrangebylex")


def _remove(ctx: Context, args: list[bytes], zset: SortedSet, indexes: tuple[int, int], event: bytes) -> bytes:
    removed = zset.pop_range(*indexes)
    if removed:
        notify_removed(ctx, args[1], zset, event, len(removed))
        ctx.log_request(args)
    return reply.integer(len(removed))
