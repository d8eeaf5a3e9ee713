"""Items of arrays by index: set, read, deleted, counted.

Tests: cases commands/test_arrays; model storage/test_arrays.
"""

from typing import Final

from penstock.commands.arrays.array_values import (
    array_at,
    array_made,
    index_word,
    item_reply,
    notify_changed,
    read_array,
)
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.arrays import MOST_INDEX, Array

MOST_ANSWERED: Final = 1_000_000  # positions of a range
PER_ITEM: Final = "O(N) where N is the number of items."


@command(
    "ARSET key index value [value ...]",
    "8.8.0 write denyoom fast | keys 1 RW update",
    "Sets neighbouring items of an array, and counts those that were empty.",
    PER_ITEM,
)
def arset(ctx: Context, args: list[bytes]) -> bytes:
    first = index_word(args[2])
    items = args[3:]
    if first + len(items) - 1 > MOST_INDEX:
        raise ReplyError(b"ERR array index overflow")
    found = array_made(ctx, args[1])
    new = 0
    for place, item in enumerate(items):
        new += found.put(first + place, item)
    notify_changed(ctx, args, b"arset", len(items))
    return reply.integer(new)


@command(
    "ARMSET key data:(index value) [index value ...]",
    "8.8.0 write denyoom fast | keys 1 RW update",
    "Sets items of an array, and counts those that were empty.",
    PER_ITEM,
)
def armset(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) % 2:
        raise refusals.arity(b"armset")
    indexes = [index_word(word) for word in args[2::2]]
    found = array_made(ctx, args[1])
    new = 0
    for index, item in zip(indexes, args[3::2], strict=True):
        new += found.put(index, item)
    notify_changed(ctx, args, b"armset", len(indexes))
    return reply.integer(new)


@command("ARGET key index", "8.8.0 readonly fast | keys 1 RO access", "Answers an item of an array.")
def arget(ctx: Context, args: list[bytes]) -> bytes:
    found = read_array(ctx, args[1])
    return item_reply(found, index_word(args[2]), ctx.resp3)


@command(
    "ARMGET key index [index ...]",
    "8.8.0 readonly fast | keys 1 RO access",
    "Answers items of an array; null for what is empty.",
    PER_ITEM,
)
def armget(ctx: Context, args: list[bytes]) -> bytes:
    found = read_array(ctx, args[1])
    return reply.array([item_reply(found, index_word(word), ctx.resp3) for word in args[2:]])


@command(
    "ARGETRANGE key start:integer end:integer",
    "8.8.0 readonly | keys 1 RO access",
    "Answers all items of a range, null for what is empty; backwards if it ends before it starts.",
    "O(N) where N is the length of the range.",
)
def argetrange(ctx: Context, args: list[bytes]) -> bytes:
    first, last = index_word(args[2]), index_word(args[3])
    found = read_array(ctx, args[1])
    if abs(last - first) + 1 > MOST_ANSWERED:
        raise ReplyError(b"ERR range exceeds maximum of %d items" % MOST_ANSWERED)
    indexes = range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return reply.array([item_reply(found, index, ctx.resp3) for index in indexes])


# -- deleting --------------------------------------------------------------------------------------------------------


def _notify_deleted(ctx: Context, args: list[bytes], event: bytes, found: Array, count: int) -> bytes:
    """`count` items were deleted; the key goes with the last one."""
    if count:
        notify_changed(ctx, args, event, count)
        if not found.items:
            ctx.remove(args[1])
            ctx.event("g", b"del", args[1])
    return reply.integer(count)


@command("ARDEL key index [index ...]", "8.8.0 write fast | keys 1 RW delete", "Deletes items of an array.", PER_ITEM)
def ardel(ctx: Context, args: list[bytes]) -> bytes:
    indexes = [index_word(word) for word in args[2:]]
    found = array_at(ctx, args[1])
    if found is None:
        return reply.ZERO
    return _notify_deleted(ctx, args, b"ardel", found, sum([found.remove(index) for index in indexes]))


@command(
    "ARDELRANGE key range:(start:integer end:integer) [start end ...]",
    "8.8.0 write | keys 1 RW delete",
    "Deletes the items of ranges of an array.",
    PER_ITEM,
)
def ardelrange(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) % 2:
        raise refusals.arity(b"ardelrange")
    ends = [index_word(word) for word in args[2:]]
    found = array_at(ctx, args[1])
    if found is None:
        return reply.ZERO
    ranges = zip(ends[::2], ends[1::2], strict=True)
    count = sum([found.remove_range(min(one, other), max(one, other)) for one, other in ranges])
    return _notify_deleted(ctx, args, b"ardelrange", found, count)


# -- counting --------------------------------------------------------------------------------------------------------


@command("ARCOUNT key", "8.8.0 readonly fast | keys 1 RO", "Counts the items of an array.")
def arcount(ctx: Context, args: list[bytes]) -> bytes:
    found = read_array(ctx, args[1])
    return reply.ZERO if found is None else reply.integer(len(found))


@command("ARLEN key", "8.8.0 readonly fast | keys 1 RO", "Tells the length of an array: its highest index, plus one.")
def arlen(ctx: Context, args: list[bytes]) -> bytes:
    found = read_array(ctx, args[1])
    return reply.ZERO if found is None else reply.integer(found.extent())
