"""Pops members from the ends of sorted sets; some commands can block.

Tests: transcripts sorted_sets; cases commands/test_zset_waiting; law against_redis/test_waiting_for_lists; model
storage/test_sortedsets.
"""

from typing import Final

from penstock.commands.common import timeouts
from penstock.commands.sorted_sets.zset_values import (
    members_reply,
    nested_reply,
    notify_removed,
    score_reply,
    sorted_set,
)
from penstock.engine import arguments, refusals
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.protocol import reply
from penstock.storage.types.sorted_sets import Pair, SortedSet

POP_COMPLEXITY: Final = (
    "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped."
)
WAIT_COMPLEXITY: Final = "O(log(N)) with N being the number of elements in the sorted set."
WAIT_HISTORY: Final = (("6.0.0", "`timeout` is interpreted as a double instead of an integer."),)
MANY_COMPLEXITY: Final = (
    "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and "
    "M being the number of elements popped."
)


def popped_pairs(zset: SortedSet, lowest: bool, count: int) -> list[Pair]:
    """Remove members from an end, the outermost first."""
    size = len(zset)
    if lowest:
        return zset.pop_range(0, min(count, size))
    pairs = zset.pop_range(max(size - count, 0), size)
    pairs.reverse()
    return pairs


def _popped(ctx: Context, key: bytes, zset: SortedSet, lowest: bool, count: int) -> list[Pair]:
    """The same, and send the events. The caller logs it."""
    pairs = popped_pairs(zset, lowest, count)
    notify_removed(ctx, key, zset, b"zpopmin" if lowest else b"zpopmax", len(pairs))
    return pairs


# -- from one set ----------------------------------------------------------------------------------------------------


@command(
    "ZPOPMIN key [count]",
    "5.0.0 write fast | keys 1 RW access delete",
    "Removes and returns the members with the lowest scores of a sorted set.",
    POP_COMPLEXITY,
)
def zpopmin(ctx: Context, args: list[bytes]) -> bytes:
    return _pop(ctx, args, lowest=True)


@command(
    "ZPOPMAX key [count]",
    "5.0.0 write fast | keys 1 RW access delete",
    "Removes and returns the members with the highest scores of a sorted set.",
    POP_COMPLEXITY,
)
def zpopmax(ctx: Context, args: list[bytes]) -> bytes:
    return _pop(ctx, args, lowest=False)


def _pop(ctx: Context, args: list[bytes], lowest: bool) -> bytes:
    """Without a count, the reply is flat in RESP3, too."""
    if len(args) > 3:
        raise refusals.syntax()
    key = args[1]
    count = 1
    if len(args) == 3:
        count = arguments.not_negative(args[2])
    zset = sorted_set(ctx, key)
    if zset is None or not count:
        return reply.EMPTY_ARRAY
    pairs = _popped(ctx, key, zset, lowest, count)
    ctx.log_request(args)
    if len(args) == 2:
        return reply.array([reply.bulk(pairs[0][1]), score_reply(pairs[0][0], ctx.resp3)])
    return members_reply(pairs, True, ctx.resp3)


@command(
    "BZPOPMIN key [key ...] timeout:double",
    "5.0.0 write blocking fast | keys 1..-2 RW access delete",
    "Pops the member with the lowest score from the first sorted set that exists; blocks until there is one.",
    WAIT_COMPLEXITY,
    history=WAIT_HISTORY,
)
def bzpopmin(ctx: Context, args: list[bytes]) -> bytes:
    return _wait_and_pop(ctx, args, lowest=True)


@command(
    "BZPOPMAX key [key ...] timeout:double",
    "5.0.0 write blocking fast | keys 1..-2 RW access delete",
    "Pops the member with the highest score from the first sorted set that exists; blocks until there is one.",
    WAIT_COMPLEXITY,
    history=WAIT_HISTORY,
)
def bzpopmax(ctx: Context, args: list[bytes]) -> bytes:
    return _wait_and_pop(ctx, args, lowest=False)


def _wait_and_pop(ctx: Context, args: list[bytes], lowest: bool) -> bytes:
    deadline_ms = timeouts.deadline_in_seconds(args[-1], ctx.now_ms)
    keys = args[1:-1]
    for key in keys:
        zset = sorted_set(ctx, key)
        if zset is not None:
            score, member = _popped(ctx, key, zset, lowest, 1)[0]
            ctx.log(b"ZPOPMIN" if lowest else b"ZPOPMAX", key)
            return reply.array([reply.bulk(key), reply.bulk(member), score_reply(score, ctx.resp3)])
    return wait(ctx, args, keys, deadline_ms)


def wait(ctx: Context, args: list[bytes], keys: list[bytes], deadline_ms: int) -> bytes:
    """Block until one of the keys is a sorted set; null at once if this client cannot be blocked."""
    if not ctx.waits:
        return reply.null_array(ctx.resp3)
    if ctx.attempt is None:
        assert ctx.row is not None, "a handler runs for a row"
        blocked = BlockedRequest(
            ctx.session, ctx.row, args, ctx.db_index, keys, deadline_ms, reply.null_array(ctx.resp3)
        )
        blocked.kind = SortedSet
        ctx.blocking.block(blocked)
    return BLOCKED


# -- from the first of several sets ----------------------------------------------------------------------------------


@command(
    "ZMPOP numkeys key [key ...] where:<MIN|MAX> [COUNT count]",
    "7.0.0 write movablekeys | keys numkeys@1 RW access delete",
    "Pops members from an end of the first sorted set that exists.",
    MANY_COMPLEXITY,
)
def zmpop(ctx: Context, args: list[bytes]) -> bytes:
    keys, lowest, count = _read_many(args, 1)
    answer = _pop_first(ctx, keys, lowest, count)
    return reply.null_array(ctx.resp3) if answer is None else answer


@command(
    "BZMPOP timeout:double numkeys key [key ...] where:<MIN|MAX> [COUNT count]",
    "7.0.0 write blocking movablekeys | keys numkeys@2 RW access delete",
    "Pops members from an end of the first sorted set that exists; blocks until there is one.",
    MANY_COMPLEXITY,
)
def bzmpop(ctx: Context, args: list[bytes]) -> bytes:
    keys, lowest, count = _read_many(args, 2)
    deadline_ms = timeouts.deadline_in_seconds(args[1], ctx.now_ms)
    answer = _pop_first(ctx, keys, lowest, count)
    return wait(ctx, args, keys, deadline_ms) if answer is None else answer


def _read_many(args: list[bytes], at: int) -> tuple[list[bytes], bool, int]:
    """Read from the number of keys on: the keys, whether the lowest scores are wanted, how many members."""
    number = arguments.at_least(1, args[at], b"ERR numkeys should be greater than 0")
    where_at = at + 1 + number
    where = args[where_at].upper() if where_at < len(args) else b""
    if where not in (b"MIN", b"MAX"):
        raise refusals.syntax()
    count = 0
    for option_at in range(where_at + 1, len(args), 2):
        if count or args[option_at].upper() != b"COUNT" or option_at + 1 == len(args):
            raise refusals.syntax()
        count = arguments.count(args[option_at + 1])
    return args[at + 1 : where_at], where == b"MIN", count or 1


def _pop_first(ctx: Context, keys: list[bytes], lowest: bool, count: int) -> bytes | None:
    for key in keys:
        zset = sorted_set(ctx, key)
        if zset is not None:
            pairs = _popped(ctx, key, zset, lowest, count)
            ctx.log(b"ZPOPMIN" if lowest else b"ZPOPMAX", key, b"%d" % len(pairs))
            return reply.array([reply.bulk(key), nested_reply(pairs, ctx.resp3)])
    return None
