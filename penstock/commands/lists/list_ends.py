"""List commands at the ends: push, pop, count.

Tests: transcripts lists; cases commands/test_lists; law against_redis/test_lists_beside_redis; model
storage/test_lists.
"""

from typing import Final

from penstock.commands.common.overwriting import create
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types.lists import List

EACH_ADDED: Final = (
    "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments."
)


def list_at(ctx: Context, key: bytes) -> List | None:
    """The list at a key, for a command that changes it; None if there is no key.

    ReplyError WRONGTYPE for another type.
    """
    value = ctx.value(key)
    if value is None or isinstance(value, List):
        return value
    raise refusals.wrong_type()


def read_list(ctx: Context, key: bytes) -> List | None:
    """As `list_at`, for a command that only reads: counts a hit or a miss."""
    value = ctx.read(key)
    if value is None or isinstance(value, List):
        return value
    raise refusals.wrong_type()


def listpack_size(ctx: Context) -> int:
    """The directive that decides in which form Redis keeps a list."""
    return ctx.settings.number("list-max-listpack-size")


def notify_popped(ctx: Context, key: bytes, found: List, left: bool, count: int) -> None:
    """Send the events for `count` items popped from an end; the key is removed with the last item.

    The caller logs it.
    """
    ctx.dirty += count
    ctx.event("l", b"lpop" if left else b"rpop", key)
    notify_removed(ctx, key, found)


def notify_removed(ctx: Context, key: bytes, found: List) -> None:
    """After items were removed: mark the key as changed, or remove it if the list is empty."""
    if found.length:
        if found.is_quicklist:
            found.shrink(listpack_size(ctx))
        ctx.touch(key)
    else:
        ctx.remove(key)
        ctx.event("g", b"del", key)


def push(ctx: Context, key: bytes, found: List | None, left: bool, items: list[bytes], limit: int) -> int:
    """Add items one by one at an end of a list, which is created if it is None; returns its length.

    limit: `listpack_size`.
    """
    pushed = List() if found is None else found
    pushed.grow(items, limit)
    pushed.push(left, items)
    if found is None:
        create(ctx, key, pushed)
    else:
        ctx.touch(key)
        ctx.signal(key)  # a reader may wait for several items
    ctx.event("l", b"lpush" if left else b"rpush", key)
    return pushed.length


# -- pushing ---------------------------------------------------------------------------------------------------------


@command(
    "LPUSH key element [element ...]",
    "1.0.0 write denyoom fast | keys 1 RW insert",
    "Adds items one by one at the left end of a list, which is created if it does not exist.",
    EACH_ADDED,
    history=(("2.4.0", "Accepts multiple `element` arguments."),),
)
def lpush(ctx: Context, args: list[bytes]) -> bytes:
    return _push(ctx, args, list_at(ctx, args[1]), left=True)


@command(
    "RPUSH key element [element ...]",
    "1.0.0 write denyoom fast | keys 1 RW insert",
    "Adds items one by one at the right end of a list, which is created if it does not exist.",
    EACH_ADDED,
    history=(("2.4.0", "Accepts multiple `element` arguments."),),
)
def rpush(ctx: Context, args: list[bytes]) -> bytes:
    return _push(ctx, args, list_at(ctx, args[1]), left=False)


@command(
    "LPUSHX key element [element ...]",
    "2.2.0 write denyoom fast | keys 1 RW insert",
    "Adds items at the left end of a list, if it exists.",
    EACH_ADDED,
    history=(("4.0.0", "Accepts multiple `element` arguments."),),
)
def lpushx(ctx: Context, args: list[bytes]) -> bytes:
    found = list_at(ctx, args[1])
    return reply.ZERO if found is None else _push(ctx, args, found, left=True)


@command(
    "RPUSHX key element [element ...]",
    "2.2.0 write denyoom fast | keys 1 RW insert",
    "Adds items at the right end of a list, if it exists.",
    EACH_ADDED,
    history=(("4.0.0", "Accepts multiple `element` arguments."),),
)
def rpushx(ctx: Context, args: list[bytes]) -> bytes:
    found = list_at(ctx, args[1])
    return reply.ZERO if found is None else _push(ctx, args, found, left=False)


def _push(ctx: Context, args: list[bytes], found: List | None, left: bool) -> bytes:
    length = push(ctx, args[1], found, left, args[2:], listpack_size(ctx))
    ctx.dirty += len(args) - 2
    ctx.log_request(args)
    return reply.integer(length)


# -- popping ---------------------------------------------------------------------------------------------------------


@command(
    "LPOP key [count@6.2.0]",
    "1.0.0 write fast | keys 1 RW access delete",
    "Removes and returns items from the left end of a list.",
    "O(N) where N is the number of elements returned",
    history=(("6.2.0", "Added the `count` argument."),),
)
def lpop(ctx: Context, args: list[bytes]) -> bytes:
    return _pop(ctx, args, left=True)


@command(
    "RPOP key [count@6.2.0]",
    "1.0.0 write fast | keys 1 RW access delete",
    "Removes and returns items from the right end of a list.",
    "O(N) where N is the number of elements returned",
    history=(("6.2.0", "Added the `count` argument."),),
)
def rpop(ctx: Context, args: list[bytes]) -> bytes:
    return _pop(ctx, args, left=False)


def _pop(ctx: Context, args: list[bytes], left: bool) -> bytes:
    key = args[1]
    if len(args) == 2:
        found = list_at(ctx, key)
        if found is None:
            return reply.null(ctx.resp3)
        item = found.pop_one(left)
        notify_popped(ctx, key, found, left, 1)
        ctx.log_request(args)
        return reply.bulk(item)
    if len(args) > 3:
        raise refusals.arity(b"lpop" if left else b"rpop")
    count = arguments.not_negative(args[2])
    found = list_at(ctx, key)
    if found is None:
        return reply.null_array(ctx.resp3)
    popped = found.pop(left, count)
    if popped:
        notify_popped(ctx, key, found, left, len(popped))
        ctx.log_request(args)
    return reply.bulks(popped)


# -- counting --------------------------------------------------------------------------------------------------------


@command("LLEN key", "1.0.0 readonly fast | keys 1 RO", "Returns the number of items in a list.")
def llen(ctx: Context, args: list[bytes]) -> bytes:
    found = read_list(ctx, args[1])
    return reply.ZERO if found is None else reply.integer(found.length)
