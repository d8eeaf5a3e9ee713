"""ZADD, ZINCRBY and ZREM: add members, change their scores, remove them.

Tests: transcripts sorted_sets; cases commands/test_sorted_sets; law against_redis/test_sortedsets_beside_redis; model
storage/test_sortedsets.
"""

from typing import Final

from penstock.commands.common.overwriting import create
from penstock.commands.sorted_sets.zset_values import Limits, notify_removed, score_reply, sorted_set
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.numbers import float_word
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import SortedSet

OPTIONS: Final = frozenset([b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"])


@command(
    "ZADD key condition:[NX|XX]@3.0.2 comparison:[GT|LT]@6.2.0 [change:CH@3.0.2] [increment:INCR@3.0.2] "
    "data:(score:double member) [score member ...]",
    "1.2.0 write denyoom fast | keys 1 RW update",
    "Adds members with scores to a sorted set, or changes the scores of existing members.",
    "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
    history=(
        ("2.4.0", "Accepts multiple elements."),
        ("3.0.2", "Added the `XX`, `NX`, `CH` and `INCR` options."),
        ("6.2.0", "Added the `GT` and `LT` options."),
    ),
)
def zadd(ctx: Context, args: list[bytes]) -> bytes:
    at = 2
    options: set[bytes] = set()
    while at < len(args) and (option := args[at].upper()) in OPTIONS:
        options.add(option)
        at += 1
    count = len(args) - at
    if count % 2 or not count:
        raise refusals.syntax()
    if b"NX" in options and b"XX" in options:
        raise ReplyError(b"ERR XX and NX options at the same time are not compatible")
    if len(options & {b"GT", b"LT", b"NX"}) > 1:
        raise ReplyError(b"ERR GT, LT, and/or NX options at the same time are not compatible")
    if b"INCR" in options and count > 2:
        raise ReplyError(b"ERR INCR option supports a single increment-element pair")
    scores = [float_word(word) for word in args[at::2]]
    if b"INCR" in options:
        return _increment(ctx, args, scores[0], args[at + 1], options)
    return _add(ctx, args, scores, args[at + 1 :: 2], options)


def _add(ctx: Context, args: list[bytes], scores: list[float], members: list[bytes], options: set[bytes]) -> bytes:
    key = args[1]
    limits = Limits(ctx)
    zset = _zset_or_new(ctx, key, members, limits, options)
    if zset is None:
        return reply.ZERO
    added = changed = 0
    for score, member in zip(scores, members, strict=True):
        old = zset.score(member)
        if not _allowed(old, score, options):
            continue
        if old is None:
            added += 1
        elif old != score:
            changed += 1
        else:
            continue
        limits.put(zset, member, score, old)
    if added == len(zset):
        zset.pack()
    _notify_added(ctx, args, b"zadd", added + changed)
    return reply.integer(added + changed if b"CH" in options else added)


def _zset_or_new(
    ctx: Context, key: bytes, members: list[bytes], limits: Limits, options: set[bytes]
) -> SortedSet | None:
    """The sorted set at a key, created if it does not exist; None if it does not exist and XX is given."""
    zset = sorted_set(ctx, key)
    if zset is not None:
        limits.expect(zset, len(members))
    elif b"XX" not in options:
        zset = limits.new_set(members)
        create(ctx, key, zset)
    return zset


def _allowed(old: float | None, score: float, options: set[bytes]) -> bool:
    """Whether the options allow the new score; `old` is the present one, or None."""
    if not options:
        return True
    if old is None:
        return b"XX" not in options
    if b"GT" in options:
        return score > old
    if b"LT" in options:
        return score < old
    return b"NX" not in options


def _notify_added(ctx: Context, args: list[bytes], event: bytes, count: int) -> None:
    if count:
        ctx.touch(args[1])
        ctx.event("z", event, args[1])
        ctx.dirty += count
        ctx.log_request(args)


# -- incrementing ----------------------------------------------------------------------------------------------------


@command(
    "ZINCRBY key increment:integer member",
    "1.2.0 write denyoom fast | keys 1 RW access update",
    "Adds to the score of a member of a sorted set; a missing member counts as 0.",
    "O(log(N)) where N is the number of elements in the sorted set.",
)
def zincrby(ctx: Context, args: list[bytes]) -> bytes:
    return _increment(ctx, args, float_word(args[2]), args[3], set())


def _increment(ctx: Context, args: list[bytes], increment: float, member: bytes, options: set[bytes]) -> bytes:
    """Add to a score. The request is logged as it was sent: doubles have the same sum in a replay."""
    limits = Limits(ctx)
    zset = _zset_or_new(ctx, args[1], [member], limits, options)
    if zset is None:
        return reply.null(ctx.resp3)
    old = zset.score(member)
    if old is not None and b"NX" in options:
        return reply.null(ctx.resp3)
    score = increment if old is None else old + increment
    if score != score:
        raise ReplyError(b"ERR resulting score is not a number (NaN)")
    if not _allowed(old, score, options):
        return reply.null(ctx.resp3)
    if score != old:
        limits.put(zset, member, score, old)
        _notify_added(ctx, args, b"zincr", 1)
    return score_reply(score, ctx.resp3)


# -- removing --------------------------------------------------------------------------------------------------------


@command(
    "ZREM key member [member ...]",
    "1.2.0 write fast | keys 1 RW delete",
    "Removes members from a sorted set.",
    "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
    history=(("2.4.0", "Accepts multiple elements."),),
)
def zrem(ctx: Context, args: list[bytes]) -> bytes:
    zset = sorted_set(ctx, args[1])
    if zset is None:
        return reply.ZERO
    removed = 0
    for member in args[2:]:
        removed += zset.remove(member)
    if removed:
        notify_removed(ctx, args[1], zset, b"zrem", removed)
        ctx.log_request(args)
    return reply.integer(removed)
