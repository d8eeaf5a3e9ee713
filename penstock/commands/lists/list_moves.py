"""Moves items from one list to another, and pops from the first of several lists; some commands can block.

A request that finds nothing is blocked until a list is created at one of its keys, and is then run again. The log has
what was done, as a command that does not block (Redis 8.6.3).

Tests: transcripts blocking_lists, lists; cases commands/test_list_waiting; law against_redis/test_waiting_for_lists.
"""

from typing import Final

from penstock.commands.common.timeouts import deadline_in_seconds
from penstock.commands.lists.list_ends import list_at, listpack_size, notify_popped, push
from penstock.engine import arguments, refusals
from penstock.engine.context import BLOCKED, Context
from penstock.engine.table.command_table import command
from penstock.engine.waiting.blocked_request import BlockedRequest
from penstock.protocol import reply
from penstock.storage.types.lists import List

ENDS: Final = {b"LEFT": True, b"RIGHT": False}
TIMEOUT_HISTORY: Final = (("6.0.0", "`timeout` is interpreted as a double instead of an integer."),)


def read_end(word: bytes) -> bool:
    """Whether a word means the left end."""
    left = ENDS.get(word.upper())
    if left is None:
        raise refusals.syntax()
    return left


def deadline_of(ctx: Context, timeout: bytes) -> int:
    """When the request stops waiting, in unix ms. A request that is tried again keeps its deadline."""
    return deadline_in_seconds(timeout, ctx.now_ms) if ctx.attempt is None else ctx.attempt.deadline_ms


def wait(ctx: Context, keys: list[bytes], deadline_ms: int, immediate_reply: bytes) -> bytes:
    """Block until there is a list at one of the keys; returns `immediate_reply` if this client cannot be blocked."""
    if ctx.attempt is not None:
        return BLOCKED
    if not ctx.waits:
        return immediate_reply
    assert ctx.row is not None, "a handler runs for a row"
    blocked = BlockedRequest(
        ctx.session, ctx.row, ctx.args, ctx.db_index, keys, deadline_ms, reply.null_array(ctx.resp3)
    )
    blocked.kind = List
    ctx.blocking.block(blocked)
    return BLOCKED


# -- from one list to another ----------------------------------------------------------------------------------------


def _move(ctx: Context, source: bytes, destination: bytes, from_left: bool, to_left: bool) -> bytes | None:
    """Move an item from one end to another; None if there is no source list. The caller logs it."""
    found = list_at(ctx, source)
    if found is None:
        return None
    target = list_at(ctx, destination)
    item = found.pop_one(from_left)
    push(ctx, destination, target, to_left, [item], listpack_size(ctx))
    notify_popped(ctx, source, found, from_left, 1)
    return reply.bulk(item)


@command(
    "LMOVE source:key destination:key wherefrom:<LEFT|RIGHT> whereto:<LEFT|RIGHT>",
    "6.2.0 write denyoom | keys 1 RW access delete; 2 RW insert",
    "Moves an item from an end of one list to an end of another, or of the same one.",
)
def lmove(ctx: Context, args: list[bytes]) -> bytes:
    return _move_now(ctx, args, read_end(args[3]), read_end(args[4]))


@command(
    "RPOPLPUSH source:key destination:key",
    "1.2.0 write denyoom | keys 1 RW access delete; 2 RW insert",
    "Moves an item from the right end of one list to the left end of another, or of the same one.",
    deprecated=("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"),
)
def rpoplpush(ctx: Context, args: list[bytes]) -> bytes:
    return _move_now(ctx, args, from_left=False, to_left=True)


def _move_now(ctx: Context, args: list[bytes], from_left: bool, to_left: bool) -> bytes:
    answer = _move(ctx, args[1], args[2], from_left, to_left)
    if answer is None:
        return reply.null(ctx.resp3)
    ctx.log_request(args)
    return answer


@command(
    "BLMOVE source:key destination:key wherefrom:<LEFT|RIGHT> whereto:<LEFT|RIGHT> timeout:double",
    "6.2.0 write denyoom blocking | keys 1 RW access delete; 2 RW insert",
    "Moves an item from an end of one list to an end of another; blocks until there is one.",
)
def blmove(ctx: Context, args: list[bytes]) -> bytes:
    return _move_or_wait(ctx, args, b"LMOVE", read_end(args[3]), read_end(args[4]))


@command(
    "BRPOPLPUSH source:key destination:key timeout:double",
    "2.2.0 write denyoom blocking | keys 1 RW access delete; 2 RW insert",
    "Moves an item from the right end of one list to the left end of another; blocks until there is one.",
    history=TIMEOUT_HISTORY,
    deprecated=("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"),
)
def brpoplpush(ctx: Context, args: list[bytes]) -> bytes:
    return _move_or_wait(ctx, args, b"RPOPLPUSH", from_left=False, to_left=True)


def _move_or_wait(ctx: Context, args: list[bytes], effect: bytes, from_left: bool, to_left: bool) -> bytes:
    """effect: the command that the log has instead, with the words between the name and the timeout."""
    deadline_ms = deadline_of(ctx, args[-1])
    answer = _move(ctx, args[1], args[2], from_left, to_left)
    if answer is None:
        return wait(ctx, [args[1]], deadline_ms, reply.null(ctx.resp3))
    ctx.log(effect, *args[1:-1])
    return answer


# -- from the first of several lists ---------------------------------------------------------------------------------


@command(
    "BLPOP key [key ...] timeout:double",
    "2.0.0 write blocking | keys 1..-2 RW access delete",
    "Takes an item from the left end of the first of several lists; blocks until there is one.",
    "O(N) where N is the number of provided keys.",
    history=TIMEOUT_HISTORY,
)
def blpop(ctx: Context, args: list[bytes]) -> bytes:
    return _pop_one(ctx, args, left=True)


@command(
    "BRPOP key [key ...] timeout:double",
    "2.0.0 write blocking | keys 1..-2 RW access delete",
    "Takes an item from the right end of the first of several lists; blocks until there is one.",
    "O(N) where N is the number of provided keys.",
    history=TIMEOUT_HISTORY,
)
def brpop(ctx: Context, args: list[bytes]) -> bytes:
    return _pop_one(ctx, args, left=False)


def _pop_one(ctx: Context, args: list[bytes], left: bool) -> bytes:
    keys, timeout = args[1:-1], args[-1]
    deadline_ms = deadline_of(ctx, timeout)
    for key in keys:
        found = list_at(ctx, key)
        if found is not None:
            item = found.pop_one(left)
            notify_popped(ctx, key, found, left, 1)
            ctx.log(b"LPOP" if left else b"RPOP", key)
            return b"*2\r\n" + reply.bulk(key) + reply.bulk(item)
    return wait(ctx, keys, deadline_ms, reply.null_array(ctx.resp3))


class PopArguments:
    """The arguments of LMPOP and BLMPOP."""

    __slots__ = ("count", "keys", "left")

    def __init__(self, keys: list[bytes], left: bool) -> None:
        self.keys = keys
        self.left = left
        self.count = 1


def _read_several(args: list[bytes], at: int) -> PopArguments:
    """Read `numkeys key ... LEFT|RIGHT [COUNT n]` from args[at] on, checked in Redis's order."""
    numkeys = arguments.at_least(1, args[at], b"ERR numkeys should be greater than 0")
    where = at + 1 + numkeys
    if where >= len(args):
        raise refusals.syntax()
    options = PopArguments(args[at + 1 : where], read_end(args[where]))
    rest = args[where + 1 :]
    if rest:
        if len(rest) < 2 or rest[0].upper() != b"COUNT":
            raise refusals.syntax()
        options.count = arguments.count(rest[1])
        if len(rest) > 2:
            raise refusals.syntax()
    return options


def _pop_several(ctx: Context, options: PopArguments) -> bytes | None:
    """Pop from the first list that exists; None if there is none."""
    for key in options.keys:
        found = list_at(ctx, key)
        if found is not None:
            popped = found.pop(options.left, options.count)
            notify_popped(ctx, key, found, options.left, len(popped))
            ctx.log(b"LPOP" if options.left else b"RPOP", key, b"%d" % len(popped))
            return b"*2\r\n" + reply.bulk(key) + reply.bulks(popped)
    return None


@command(
    "LMPOP numkeys key [key ...] where:<LEFT|RIGHT> [COUNT count]",
    "7.0.0 write movablekeys | keys numkeys@1 RW access delete",
    "Takes items from an end of the first of several lists that is not empty.",
    "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
)
def lmpop(ctx: Context, args: list[bytes]) -> bytes:
    answer = _pop_several(ctx, _read_several(args, 1))
    return reply.null_array(ctx.resp3) if answer is None else answer


@command(
    "BLMPOP timeout:double numkeys key [key ...] where:<LEFT|RIGHT> [COUNT count]",
    "7.0.0 write blocking movablekeys | keys numkeys@2 RW access delete",
    "Takes items from an end of the first of several lists; blocks until there are some.",
    "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
)
def blmpop(ctx: Context, args: list[bytes]) -> bytes:
    options = _read_several(args, 2)
    deadline_ms = deadline_of(ctx, args[1])
    answer = _pop_several(ctx, options)
    return wait(ctx, options.keys, deadline_ms, reply.null_array(ctx.resp3)) if answer is None else answer
