"""Sorted sets at keys: found, stored, told of, answered."""

from collections.abc import Iterable, Sequence
from typing import Final

from penstock.commands.common.overwriting import delete, overwrite
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.numbers import score_text
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import Pair, SortedSet

ZERO: Final = 0.0


def sorted_set(ctx: Context, key: bytes) -> SortedSet | None:
    """The sorted set at a key that may change, None where there is no key; WRONGTYPE for anything else."""
    value = ctx.value(key)
    if value is None or isinstance(value, SortedSet):
        return value
    raise refusals.wrong_type()


def read_sorted_set(ctx: Context, key: bytes) -> SortedSet | None:
    """As `sorted_set`, for a command that only reads: hits and misses are counted."""
    value = ctx.read(key)
    if value is None or isinstance(value, SortedSet):
        return value
    raise refusals.wrong_type()


# -- small and large -------------------------------------------------------------------------------------------------


class Limits:
    """How many members, and how long ones, Redis keeps in its form for small sets; it forgets the sign of -0 there."""

    __slots__ = ("entries", "length")

    def __init__(self, ctx: Context) -> None:
        self.entries = ctx.engine.settings.number("zset-max-listpack-entries")
        self.length = ctx.engine.settings.number("zset-max-listpack-value")

    def exceeded_by(self, members: Sequence[bytes]) -> bool:
        return len(members) > self.entries or any(len(member) > self.length for member in members)

    def put(self, zset: SortedSet, member: bytes, score: float) -> None:
        """Give a member a score, which may make the set a large one."""
        if not zset.is_large:
            scores = zset.scores
            if (len(scores) >= self.entries or len(member) > self.length) and member not in scores:
                zset.is_large = True
            else:
                score = score or ZERO
        zset.put(member, score)

    def set_of(self, pairs: Sequence[Pair], is_large: bool) -> SortedSet:
        """A set of pairs of different members that come one after the other, large from the first on or not."""
        kept: list[Pair] = []
        for score, member in pairs:
            is_large = is_large or len(member) > self.length
            kept.append((score if is_large else score or ZERO, member))
        zset = SortedSet(kept)
        zset.is_large = is_large
        return zset


# -- changing --------------------------------------------------------------------------------------------------------


def notify_removed(ctx: Context, key: bytes, zset: SortedSet, event: bytes, count: int) -> None:
    """So many members were taken out; the key goes with the last one. The log's line is the caller's."""
    ctx.dirty += count
    ctx.event("z", event, key)
    if zset.scores:
        ctx.touch(key)
    else:
        ctx.remove(key)
        ctx.event("g", b"del", key)


def store(ctx: Context, key: bytes, zset: SortedSet, event: bytes, args: list[bytes]) -> bytes:
    """Put a set at a key, whatever is there, or remove the key where the set is empty; answer its size.

    The request as typed is the effect: it reads the same keys when it is replayed.
    """
    if not zset:
        if delete(ctx, key):
            ctx.log_request(args)
        return reply.ZERO
    overwrite(ctx, key, zset)
    ctx.event("z", event, key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(len(zset))


# -- answers ---------------------------------------------------------------------------------------------------------


def score_reply(score: float, resp3: bool) -> bytes:
    """A score: a double in RESP3, a bulk string in RESP2."""
    return reply.double(score_text(score), resp3)


def members_reply(pairs: Iterable[Pair], with_scores: bool, resp3: bool) -> bytes:
    """Members, with their scores if asked for: flat in RESP2, pairs in RESP3."""
    if not with_scores:
        return reply.bulks([member for _, member in pairs])
    if resp3:
        return nested_reply(pairs, resp3)
    words: list[bytes] = []
    for score, member in pairs:
        words += (member, score_text(score))
    return reply.bulks(words)


def nested_reply(pairs: Iterable[Pair], resp3: bool) -> bytes:
    """Members and scores as pairs, in RESP2 too (ZMPOP)."""
    return reply.array(
        [b"*2\r\n" + reply.bulk(member) + reply.double(score_text(score), resp3) for score, member in pairs]
    )
