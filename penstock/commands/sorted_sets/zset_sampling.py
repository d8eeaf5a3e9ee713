"""ZRANDMEMBER and ZSCAN: random members of a sorted set, and all members in steps.

Tests: transcripts sorted_sets; cases commands/test_sorted_sets; law against_redis/test_sortedsets_beside_redis.
"""

from typing import Final

from penstock.commands.common import collection_scan
from penstock.commands.common.random_count import MAX_DRAWS, read_count
from penstock.commands.common.repeated_values import repeated_bulks, repeated_pairs
from penstock.commands.common.scan_cursor import read_cursor
from penstock.commands.sorted_sets.zset_values import members_reply, read_sorted_set
from penstock.engine import refusals
from penstock.engine.arguments import MAX_INT64
from penstock.engine.context import Context
from penstock.engine.numbers import score_text
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import Pair, SortedSet

DRAWS_A_MEMBER: Final = 8


@command(
    "ZRANDMEMBER key options:[count [WITHSCORES]]",
    "6.2.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Returns random members of a sorted set; with a negative count they may repeat.",
    "O(N) where N is the number of members returned",
)
def zrandmember(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == 2:
        zset = read_sorted_set(ctx, args[1])
        if zset is None:
            return reply.null(ctx.resp3)
        return reply.bulk(_random_pairs(ctx, zset, 1)[0][1])
    count = read_count(args[2])
    if len(args) > 4 or (len(args) == 4 and args[3].upper() != b"WITHSCORES"):
        raise refusals.syntax()
    if len(args) == 4 and not -MAX_INT64 // 2 < count <= MAX_INT64 // 2:
        raise ReplyError(b"ERR value is out of range")
    zset = read_sorted_set(ctx, args[1])
    if zset is None or not count:
        return reply.EMPTY_ARRAY
    if count < -MAX_DRAWS:
        raise ReplyError(b"ERR value is out of range")
    if count < 0:
        return _drawn(_random_pairs(ctx, zset, count), len(args) == 4, ctx.resp3)
    return members_reply(_random_pairs(ctx, zset, count), len(args) == 4, ctx.resp3)


def _drawn(pairs: list[Pair], with_scores: bool, resp3: bool) -> bytes:
    """The reply for members that may repeat; each is encoded once."""
    members = [member for _, member in pairs]
    if not with_scores:
        return repeated_bulks(members)
    drawn = list(set(pairs))
    scores = [reply.double(score_text(score), resp3) for score, _ in drawn]
    return repeated_pairs(members, [member for _, member in drawn], scores, resp3)


def _random_pairs(ctx: Context, zset: SortedSet, count: int) -> list[Pair]:
    """`count` different members; if `count` is negative, -count members that may repeat."""
    chance, size = ctx.chance, len(zset)
    if count < 0 and -count * DRAWS_A_MEMBER > size:  # to go through all is quicker than to look each up
        return chance.choices(list(zset.pairs()), k=-count)
    if count < 0:
        indexes = chance.choices(range(size), k=-count)
    elif count >= size:
        return list(zset.pairs())
    else:
        indexes = chance.sample(range(size), count)
    return zset.pairs_of(indexes)


@command(
    "ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES@valkey-9.1.0]",
    "2.8.0 readonly | keys 1 RO access | tips nondeterministic_output",
    "Iterates over the members and scores of a sorted set, some in each call.",
    "O(COUNT) for every call. O(N) for a complete iteration, N being the number of elements in the collection. The "
    "first call to a large one is O(N log N).",
)
def zscan(ctx: Context, args: list[bytes]) -> bytes:
    """A small set is returned as a whole, whatever COUNT is. A large one's scores have all digits (Redis 8.6.3)."""
    cursor = read_cursor(args[2])
    zset = read_sorted_set(ctx, args[1])
    if zset is None:
        return collection_scan.answer(0, [])
    scan = collection_scan.read_options(ctx, args, cursor, b"NOSCORES")
    if not zset.is_large:
        glob, pairs = scan.glob, zset.pairs_at(0, len(zset))
        if glob is not None:
            pairs = [(score, member) for score, member in pairs if glob.matches(member)]
        return reply.array([reply.bulk(b"0"), members_reply(pairs, not scan.only_names, resp3=False)])
    names_found, following = zset.walk(cursor, scan.count)
    members = scan.matching(names_found)
    if scan.only_names:
        return collection_scan.answer(following, members)
    words: list[bytes] = []
    for member in members:
        score = zset.score(member)
        assert score is not None, "a member that is met is there"
        words += (member, b"%.17g" % score)
    return collection_scan.answer(following, words)
