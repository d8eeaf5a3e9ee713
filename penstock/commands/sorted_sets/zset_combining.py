"""Union, intersection and difference of sorted sets and sets: returned, counted or stored.

Tests: transcripts sorted_sets; cases commands/test_sorted_sets; law against_redis/test_sortedsets_beside_redis.
"""

from typing import Final

from penstock.commands.common.live_parts import read_live
from penstock.commands.common.overwriting import delete, overwrite
from penstock.commands.sorted_sets.zset_values import Limits, members_reply, store
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.numbers import float_word, score_text
from penstock.engine.table.command_table import Handler, command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import Pair, SortedSet

UNION: Final = "union"
INTERSECTION: Final = "intersection"
DIFFERENCE: Final = "difference"
SUM: Final = b"SUM"
MIN: Final = b"MIN"
MAX: Final = b"MAX"
COUNT: Final = b"COUNT"  # how many sources have a member, or the sum of their weights
SET_SCORE: Final = 1.0  # the score of the members of a set

UNION_COMPLEXITY: Final = (
    "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements "
    "in the resulting sorted set."
)
INTERSECTION_COMPLEXITY: Final = (
    "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets "
    "and M being the number of elements in the resulting sorted set."
)
DIFFERENCE_COMPLEXITY: Final = (
    "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first "
    "set, and K is the size of the result set."
)
OPTIONS: Final = " [WEIGHTS weight:integer [weight ...]] [aggregate:AGGREGATE <SUM|MIN|MAX|COUNT@8.8.0>]"
COMMANDS: Final = (  # that return a combination; those that store it have names that go on with STORE
    ("ZUNION", UNION, UNION_COMPLEXITY, "that are in any of several sorted sets"),
    ("ZINTER", INTERSECTION, INTERSECTION_COMPLEXITY, "that are in all of several sorted sets"),
    ("ZDIFF", DIFFERENCE, DIFFERENCE_COMPLEXITY, "of the first sorted set that are in none of the others"),
)


class Combination:
    """The inputs of a combination, and its options."""

    __slots__ = ("aggregate", "sources", "weights", "with_scores")

    def __init__(self, sources: list[dict[bytes, float]]) -> None:
        self.sources = sources
        self.weights = [1.0] * len(sources)
        self.aggregate = SUM
        self.with_scores = False

    def by_size(self) -> list[tuple[dict[bytes, float], float]]:
        """The inputs with their weights, the smallest first: the order in which scores are added."""
        return sorted(zip(self.sources, self.weights, strict=True), key=_size)


def _size(weighted: tuple[dict[bytes, float], float]) -> int:
    return len(weighted[0])


# -- reading ---------------------------------------------------------------------------------------------------------


def _sources(ctx: Context, args: list[bytes], at: int, name: bytes) -> list[dict[bytes, float]]:
    """The members and scores at each of the keys after their number; a missing key is empty."""
    number = arguments.integer(args[at])
    if number < 1:
        raise ReplyError(b"ERR at least 1 input key is needed for '%b' command" % name)
    if number > len(args) - at - 1:
        raise refusals.syntax()
    return [_source(ctx, key) for key in args[at + 1 : at + 1 + number]]


def _source(ctx: Context, key: bytes) -> dict[bytes, float]:
    value = ctx.read(key)
    if value is None:
        return {}
    if isinstance(value, SortedSet):
        return value.scores()
    if isinstance(value, Set):
        members = read_live(ctx, key, value, value.expires)
        return {} if members is None else dict.fromkeys(members.members(), SET_SCORE)
    raise refusals.wrong_type()


def _read(ctx: Context, args: list[bytes], at: int, name: bytes, kind: str) -> Combination:
    """Read a request from the number of keys on. As in Redis, keys are looked up before options are checked."""
    stores = at == 2
    combination = Combination(_sources(ctx, args, at, name))
    number = len(combination.sources)
    at += 1 + number
    while at < len(args):
        option = args[at].upper()
        if option == b"WEIGHTS" and kind != DIFFERENCE and at + number < len(args):
            refusal = b"ERR weight value is not a float"
            combination.weights = [float_word(word, refusal) for word in args[at + 1 : at + 1 + number]]
            at += 1 + number
        elif option == b"AGGREGATE" and kind != DIFFERENCE and at + 1 < len(args):
            combination.aggregate = args[at + 1].upper()
            if combination.aggregate not in (SUM, MIN, MAX, COUNT) or ctx.hides(combination.aggregate):
                raise refusals.syntax()
            at += 2
        elif option == b"WITHSCORES" and not stores:
            combination.with_scores = True
            at += 1
        else:
            raise refusals.syntax()
    if combination.aggregate == COUNT:
        combination.sources = [dict.fromkeys(source, SET_SCORE) for source in combination.sources]
    return combination


# -- combining -------------------------------------------------------------------------------------------------------


def _combined(combination: Combination, kind: str) -> dict[bytes, float]:
    if kind == UNION:
        return _union(combination)
    return _intersection(combination) if kind == INTERSECTION else _difference(combination)


def _union(combination: Combination) -> dict[bytes, float]:
    total: dict[bytes, float] = {}
    for source, weight in combination.by_size():
        for member, score in source.items():
            weighted = _weighted(score, weight)
            total[member] = _aggregated(total[member], weighted, combination.aggregate) if member in total else weighted
    return total


def _intersection(combination: Combination) -> dict[bytes, float]:
    """Infinity times 0 is 0 only for the smallest input; for others it is NaN, and then the sum is 0. (Redis 8.6.3.)"""
    (first, first_weight), *others = combination.by_size()
    total: dict[bytes, float] = {}
    for member in _common([first, *[source for source, _ in others]]):
        score = _weighted(first[member], first_weight)
        for source, weight in others:
            score = _aggregated(score, source[member] * weight, combination.aggregate)
        total[member] = score
    return total


def _difference(combination: Combination) -> dict[bytes, float]:
    first, *others = combination.sources
    left = first.keys() - set().union(*others) if others else first.keys()
    return {member: first[member] for member in left}


def _common(sources: list[dict[bytes, float]]) -> set[bytes]:
    """The members of all inputs. The caller puts the smallest first."""
    common = set(sources[0])
    for source in sources[1:]:
        common &= source.keys()
    return common


def _weighted(score: float, weight: float) -> float:
    """A score times a weight; infinity times 0 is 0."""
    weighted = score * weight
    return weighted if weighted == weighted else 0.0


def _aggregated(one: float, other: float, aggregate: bytes) -> float:
    """Two scores combined; infinity minus infinity is 0."""
    if aggregate == MIN:
        return min(one, other)
    if aggregate == MAX:
        return max(one, other)
    total = one + other
    return total if total == total else 0.0


def _pairs(total: dict[bytes, float]) -> list[Pair]:
    return sorted([(score, member) for member, score in total.items()])


def _store_counts(ctx: Context, key: bytes, zset: SortedSet, name: bytes) -> bytes:
    """As `store`; logged as what came out, because a Redis before 8.8 cannot count."""
    if not zset:
        if delete(ctx, key):
            ctx.log(b"DEL", key)
        return reply.ZERO
    if ctx.value(key) is not None:
        ctx.log(b"DEL", key)
    overwrite(ctx, key, zset)
    ctx.event("z", name, key)
    ctx.dirty += 1
    effect = [b"ZADD", key]
    for score, member in zset.pairs():
        effect += (score_text(score), member)
    ctx.log(*effect)
    return reply.integer(len(zset))


# -- returned --------------------------------------------------------------------------------------------------------


def _returning(name: bytes, kind: str) -> Handler:
    def handler(ctx: Context, args: list[bytes]) -> bytes:
        combination = _read(ctx, args, 1, name, kind)
        return members_reply(_pairs(_combined(combination, kind)), combination.with_scores, ctx.resp3)

    return handler


for name, kind, complexity, what in COMMANDS:
    command(
        f"{name} numkeys key [key ...]{'' if kind == DIFFERENCE else OPTIONS} [WITHSCORES]",
        "6.2.0 readonly movablekeys | keys numkeys@1 RO access",
        f"Returns the members {what}.",
        complexity,
    )(_returning(name.lower().encode(), kind))


@command(
    "ZINTERCARD numkeys key [key ...] [LIMIT limit]",
    "7.0.0 readonly movablekeys | keys numkeys@1 RO access",
    "Counts the members that are in all of several sorted sets, up to a limit.",
    "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
)
def zintercard(ctx: Context, args: list[bytes]) -> bytes:
    sources = _sources(ctx, args, 1, b"zintercard")
    limit = 0
    at = 2 + len(sources)
    while at < len(args):
        if args[at].upper() != b"LIMIT" or at + 1 == len(args):
            raise refusals.syntax()
        limit = arguments.at_least(0, args[at + 1], b"ERR LIMIT can't be negative")
        at += 2
    count = len(_common(sorted(sources, key=len)))
    return reply.integer(min(count, limit) if limit else count)


# -- stored ----------------------------------------------------------------------------------------------------------


def _storing(name: bytes, kind: str) -> Handler:
    def handler(ctx: Context, args: list[bytes]) -> bytes:
        combination = _read(ctx, args, 2, name, kind)
        total = _combined(combination, kind)
        limits = Limits(ctx)
        zset = limits.set_of(_pairs(total), limits.exceeded_by(list(total)))
        if combination.aggregate == COUNT:
            return _store_counts(ctx, args[1], zset, name)
        return store(ctx, args[1], zset, name, args)

    return handler


for name, kind, complexity, what in COMMANDS:
    command(
        f"{name}STORE destination:key numkeys key [key ...]{'' if kind == DIFFERENCE else OPTIONS}",
        f"{'6.2.0' if kind == DIFFERENCE else '2.0.0'} write denyoom movablekeys "
        "| keys 1 OW update; numkeys@2 RO access",
        f"Stores the members {what}.",
        complexity.replace("M*log(M)", "M log(M)") if kind == UNION else complexity,  # the spelling in Redis
    )(_storing(name.lower().encode() + b"store", kind))
