"""Sorted set commands for ranges of ranks, scores or members: returned, or stored at another key.

Tests: transcripts sorted_sets; cases commands/test_sorted_sets; law against_redis/test_sortedsets_beside_redis; model
storage/test_sortedsets.
"""

from typing import Final

from penstock.commands.sorted_sets.zset_bounds import lex_range, score_range
from penstock.commands.sorted_sets.zset_values import Limits, members_reply, read_sorted_set, store
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import LexBound, Pair, ScoreBound, SortedSet

RANK: Final = b"RANK"
SCORE: Final = b"BYSCORE"
LEX: Final = b"BYLEX"
UNLIMITED: Final = -1
RANGE_COMPLEXITY: Final = (
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. "
    "If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N))."
)


class RangeArguments:
    """A range and its options. by: RANK, SCORE or LEX; the ends of the range are in `ranks`, `scores` or `lex`."""

    __slots__ = (
        "backwards", "by", "count", "lex", "offset", "ranks", "scores", "with_scores",
    )  # fmt: skip

    def __init__(self, by: bytes | None, backwards: bool | None) -> None:
        self.by = by or RANK
        self.backwards = bool(backwards)
        self.with_scores = False
        self.offset = 0
        self.count = UNLIMITED
        self.ranks = (0, 0)
        self.scores: tuple[ScoreBound, ScoreBound] | None = None
        self.lex: tuple[LexBound, LexBound] | None = None


def _read(
    ctx: Context, args: list[bytes], ends_at: int, stores: bool, by: bytes | None, backwards: bool | None
) -> RangeArguments:
    """Read from the ends of the range on. If `by` or `backwards` is None, options may set it."""
    options = RangeArguments(by, backwards)
    at = ends_at + 2
    while at < len(args):
        option = args[at].upper()
        if not stores and option == b"WITHSCORES":
            options.with_scores = True
        elif option == b"LIMIT" and at + 2 < len(args):
            options.offset = arguments.integer(args[at + 1])
            options.count = arguments.integer(args[at + 2])
            at += 2
        elif backwards is None and option == b"REV":
            options.backwards = backwards = True
        elif by is None and option in (SCORE, LEX):
            options.by = by = option
        else:
            raise refusals.syntax()
        at += 1
    if options.by == RANK and options.count != UNLIMITED:
        raise ReplyError(b"ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
    if options.by == LEX and options.with_scores:
        raise ReplyError(b"ERR syntax error, WITHSCORES not supported in combination with BYLEX")
    first, last = args[ends_at], args[ends_at + 1]
    if options.by == RANK:
        options.ranks = arguments.integer(first), arguments.integer(last)
        return options
    if options.backwards:
        first, last = last, first
    if options.by == SCORE:
        options.scores = score_range(ctx, first, last)
    else:
        options.lex = lex_range(first, last)
    return options


def indexes_of_ranks(length: int, ranks: tuple[int, int]) -> tuple[int, int]:
    """The indexes [start, stop) of two ranks, both included; negative ranks count from the end."""
    start, stop = [rank + length if rank < 0 else rank for rank in ranks]
    start = max(start, 0)
    return start, max(start, min(stop + 1, length))


def found_pairs(zset: SortedSet, options: RangeArguments) -> list[Pair]:
    """The pairs in a range, in its direction. O(log n + pairs); for unequal scores BYLEX is O(n)."""
    start, stop = _indexes(zset, options)
    found = zset.pairs_at(start, stop)
    if options.backwards:
        found.reverse()
    return found


def _found_members(zset: SortedSet, options: RangeArguments) -> list[bytes]:
    """The members alone, as `found_pairs`."""
    start, stop = _indexes(zset, options)
    found = zset.members_at(start, stop)
    if options.backwards:
        found.reverse()
    return found


def _indexes(zset: SortedSet, options: RangeArguments) -> tuple[int, int]:
    """The indexes [start, stop) of a range."""
    length = len(zset)
    if options.by == RANK:
        start, stop = indexes_of_ranks(length, options.ranks)
        if options.backwards:
            start, stop = length - stop, length - start
    elif options.scores is not None:
        lowest, highest = options.scores
        start, stop = zset.score_range(lowest, highest)
    else:
        assert options.lex is not None, "a range is of ranks, scores or bytes"
        first, last = options.lex
        start, stop = zset.lex_range(first, last, options.backwards)
    if options.offset < 0 and options.by != RANK:
        return 0, 0
    if options.by != RANK:
        if options.backwards:
            stop -= min(options.offset, stop - start)
            start = start if options.count < 0 else max(start, stop - options.count)
        else:
            start = min(start + options.offset, stop)
            stop = stop if options.count < 0 else min(stop, start + options.count)
    return start, stop


def _range(ctx: Context, args: list[bytes], by: bytes | None, backwards: bool | None) -> bytes:
    options = _read(ctx, args, 2, False, by, backwards)
    zset = read_sorted_set(ctx, args[1])
    if zset is None:
        return reply.EMPTY_ARRAY
    if not options.with_scores:
        return reply.bulks(_found_members(zset, options))
    return members_reply(found_pairs(zset, options), True, ctx.resp3)


@command(
    "ZRANGE key start stop sortby:[BYSCORE|BYLEX]@6.2.0 [REV@6.2.0] [limit:LIMIT (offset count)@6.2.0] [WITHSCORES]",
    "1.2.0 readonly | keys 1 RO access",
    "Returns the members of a sorted set in a range of ranks or scores, or in a lexicographical range.",
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
    history=(("6.2.0", "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options."),),
)
def zrange(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, None, None)


@command(
    "ZRANGESTORE dst:key src:key min max sortby:[BYSCORE|BYLEX] [REV] [limit:LIMIT (offset count)]",
    "6.2.0 write denyoom | keys 1 OW update; 2 RO access",
    "Stores the members of a sorted set in a range of ranks, scores or members at another key.",
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored into "
    "the destination key.",
)
def zrangestore(ctx: Context, args: list[bytes]) -> bytes:
    options = _read(ctx, args, 3, True, None, None)
    zset = read_sorted_set(ctx, args[2])
    pairs = [] if zset is None else found_pairs(zset, options)
    limits = Limits(ctx)
    return store(ctx, args[1], limits.set_of(pairs, len(pairs) > limits.entries), b"zrangestore", args)


# -- older commands --------------------------------------------------------------------------------------------------


@command(
    "ZREVRANGE key start:integer stop:integer [WITHSCORES]",
    "1.2.0 readonly | keys 1 RO access",
    "Returns the members of a sorted set in a range of ranks, the highest score first.",
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.",
    deprecated=("6.2.0", "`ZRANGE` with the `REV` argument"),
)
def zrevrange(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, RANK, True)


@command(
    "ZRANGEBYSCORE key min:double max:double [WITHSCORES@2.0.0] [limit:LIMIT (offset count)]",
    "1.0.5 readonly | keys 1 RO access",
    "Returns the members of a sorted set in a range of scores.",
    RANGE_COMPLEXITY,
    history=(("2.0.0", "Added the `WITHSCORES` modifier."),),
    deprecated=("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
)
def zrangebyscore(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, SCORE, False)


@command(
    "ZREVRANGEBYSCORE key max:double min:double [WITHSCORES] [limit:LIMIT (offset count)]",
    "2.2.0 readonly | keys 1 RO access",
    "Returns the members of a sorted set in a range of scores, the highest score first.",
    RANGE_COMPLEXITY,
    history=(("2.1.6", "`min` and `max` can be exclusive."),),
    deprecated=("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
)
def zrevrangebyscore(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, SCORE, True)


@command(
    "ZRANGEBYLEX key min max [limit:LIMIT (offset count)]",
    "2.8.9 readonly | keys 1 RO access",
    "Returns the members in a lexicographical range of a sorted set with equal scores.",
    RANGE_COMPLEXITY,
    deprecated=("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
)
def zrangebylex(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, LEX, False)


@command(
    "ZREVRANGEBYLEX key max min [limit:LIMIT (offset count)]",
    "2.8.9 readonly | keys 1 RO access",
    "Returns the members in a lexicographical range of a sorted set with equal scores, the last one first.",
    RANGE_COMPLEXITY,
    deprecated=("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
)
def zrevrangebylex(ctx: Context, args: list[bytes]) -> bytes:
    return _range(ctx, args, LEX, True)
