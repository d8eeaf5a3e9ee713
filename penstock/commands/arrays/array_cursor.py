"""Appending to arrays, straight on or round a ring, and what was appended last.

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
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.arrays import MOST_INDEX, NONE

MOST_ANSWERED: Final = 1_000_000  # positions, where there are fewer items
EXHAUSTED: Final = MOST_INDEX + 1  # the index that ARSEEK takes for: no more


@command(
    "ARINSERT key value [value ...]",
    "8.8.0 write denyoom fast | keys 1 RW update",
    "Sets items behind the one that was inserted last; answers the last index.",
    "O(N) where N is the number of items.",
)
def arinsert(ctx: Context, args: list[bytes]) -> bytes:
    items = args[2:]
    found = array_at(ctx, args[1])
    if found is not None and found.cursor + len(items) > MOST_INDEX:
        raise ReplyError(b"ERR insert index overflow")
    found = array_made(ctx, args[1])
    found.insert(items)
    notify_changed(ctx, args, b"arinsert", len(items))
    return reply.integer(found.cursor)


@command(
    "ARRING key size:integer value [value ...]",
    "8.8.0 write denyoom | keys 1 RW update",
    "Sets items behind the one that was inserted last, in a ring of a size; answers the last index.",
    "O(N) where N is the number of items; O(N+M) where the ring of M items gets another size.",
)
def arring(ctx: Context, args: list[bytes]) -> bytes:
    size = arguments.integer_or(args[2], b"ERR invalid size")
    if size <= 0:
        raise ReplyError(b"ERR size must be positive")
    found = array_made(ctx, args[1])
    found.push_round(size, args[3:])
    notify_changed(ctx, args, b"arring", len(args) - 3)
    return reply.integer(found.cursor)


@command(
    "ARNEXT key",
    "8.8.0 readonly fast | keys 1 RO access",
    "Tells the index at which the next item will be inserted; null where there is no more room.",
)
def arnext(ctx: Context, args: list[bytes]) -> bytes:
    found = read_array(ctx, args[1])
    if found is None:
        return reply.ZERO
    return reply.null(ctx.resp3) if found.cursor == MOST_INDEX else reply.integer(found.cursor + 1)


@command(
    "ARSEEK key index", "8.8.0 write fast | keys 1 RW update", "Sets the index at which the next item will be inserted."
)
def arseek(ctx: Context, args: list[bytes]) -> bytes:
    index = index_word(args[2], EXHAUSTED)
    found = array_at(ctx, args[1])
    if found is None:
        return reply.ZERO
    found.cursor = index - 1 if index else NONE
    notify_changed(ctx, args, b"arseek", 1)
    return reply.ONE


@command(
    "ARLASTITEMS key count [REV]",
    "8.8.0 readonly | keys 1 RO access",
    "Answers the items that were inserted last, the oldest first.",
    "O(N) where N is the number of items answered.",
)
def arlastitems(ctx: Context, args: list[bytes]) -> bytes:
    count = arguments.integer_or(args[2], b"ERR invalid COUNT")
    if count <= 0:
        return reply.EMPTY_ARRAY
    if len(args) > 4 or (len(args) == 4 and args[3].upper() != b"REV"):
        raise refusals.syntax()
    found = read_array(ctx, args[1])
    if found is None:
        return reply.EMPTY_ARRAY
    if min(count, found.extent()) > max(MOST_ANSWERED, len(found)):
        raise ReplyError(b"ERR count exceeds maximum of %d items" % MOST_ANSWERED)
    indexes = found.last_indexes(count)
    if len(args) == 3:
        indexes.reverse()
    return reply.array([item_reply(found, index, ctx.resp3) for index in indexes])
