"""Sorted set commands that look up members: number, score, rank.

Tests: transcripts sorted_sets; cases commands/test_sorted_sets; law against_redis/test_sortedsets_beside_redis; model
storage/test_sortedsets.
"""

from penstock.commands.sorted_sets.zset_bounds import lex_range, score_range
from penstock.commands.sorted_sets.zset_values import read_sorted_set, score_reply
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply


@command("ZCARD key", "1.2.0 readonly fast | keys 1 RO", "Returns the number of members in a sorted set.")
def zcard(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    return reply.ZERO if zset is None else reply.integer(len(zset))


@command(
    "ZCOUNT key min:double max:double",
    "2.0.0 readonly fast | keys 1 RO access",
    "Counts the members of a sorted set with scores in a range.",
    "O(log(N)) with N being the number of elements in the sorted set.",
)
def zcount(ctx: Context, args: list[bytes]) -> bytes:
    low, high = score_range(ctx, args[2], args[3])
    zset = read_sorted_set(ctx, args[1])
    if zset is None:
        return reply.ZERO
    start, stop = zset.score_range(low, high)
    return reply.integer(stop - start)


@command(
    "ZLEXCOUNT key min max",
    "2.8.9 readonly fast | keys 1 RO access",
    "Counts the members in a lexicographical range of a sorted set with equal scores.",
    "O(log(N)) with N being the number of elements in the sorted set.",
)
def zlexcount(ctx: Context, args: list[bytes]) -> bytes:
    low, high = lex_range(args[2], args[3])
    zset = read_sorted_set(ctx, args[1])
    if zset is None:
        return reply.ZERO
    start, stop = zset.lex_range(low, high)
    return reply.integer(stop - start)


# -- members ---------------------------------------------------------------------------------------------------------


@command(
    "ZSCORE key member", "1.2.0 readonly fast | keys 1 RO access", "Returns the score of a member of a sorted set."
)
def zscore(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    score = None if zset is None else zset.score(args[2])
    return reply.null(ctx.resp3) if score is None else score_reply(score, ctx.resp3)


@command(
    "ZMSCORE key member [member ...]",
    "6.2.0 readonly fast | keys 1 RO access",
    "Returns the scores of several members of a sorted set; null for a missing member.",
    "O(N) where N is the number of members being requested.",
)
def zmscore(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    replies = []
    for member in args[2:]:
        score = None if zset is None else zset.score(member)
        replies.append(reply.null(ctx.resp3) if score is None else score_reply(score, ctx.resp3))
    return reply.array(replies)


@command(
    "ZRANK key member [WITHSCORE]",
    "2.0.0 readonly fast | keys 1 RO access",
    "Returns the rank of a member of a sorted set; the lowest score has rank 0.",
    "O(log(N))",
    history=(("7.2.0", "Added the optional `WITHSCORE` argument."),),
)
def zrank(ctx: Context, args: list[bytes]) -> bytes:
    return _rank(ctx, args, b"zrank", backwards=False)


@command(
    "ZREVRANK key member [WITHSCORE]",
    "2.0.0 readonly fast | keys 1 RO access",
    "Returns the rank of a member of a sorted set; the highest score has rank 0.",
    "O(log(N))",
    history=(("7.2.0", "Added the optional `WITHSCORE` argument."),),
)
def zrevrank(ctx: Context, args: list[bytes]) -> bytes:
    return _rank(ctx, args, b"zrevrank", backwards=True)


def _rank(ctx: Context, args: list[bytes], name: bytes, backwards: bool) -> bytes:
    if len(args) > 4:
        raise refusals.arity(name)
    with_score = len(args) == 4
    if with_score and args[3].upper() != b"WITHSCORE":
        raise refusals.syntax()
    zset = read_sorted_set(ctx, args[1])
    score = None if zset is None else zset.score(args[2])
    if zset is None or score is None:
        return reply.null_array(ctx.resp3) if with_score else reply.null(ctx.resp3)
    rank = zset.rank(args[2])
    if backwards:
        rank = len(zset) - 1 - rank
    if with_score:
        return reply.array([reply.integer(rank), score_reply(score, ctx.resp3)])
    return reply.integer(rank)
