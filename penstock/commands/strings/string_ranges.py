"""GETRANGE and SETRANGE: read and overwrite parts of strings.

Tests: transcripts strings; cases commands/test_strings; law against_redis/test_types_beside_redis; model
storage/test_large_strings.
"""

from penstock.commands.strings.string_changes import Change
from penstock.commands.strings.strings import check_length, read_part
from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply


def clamped(first: int, last: int, length: int) -> tuple[int, int]:
    """The positions of a range, both included; negative ones count from the end.

    If it is empty, the last is below the first. A position before the start becomes the start, at both ends of the
    range (Redis 8.6.3).
    """
    first = max(first + length, 0) if first < 0 else first
    last = max(last + length, 0) if last < 0 else last
    return first, min(last, length - 1)


@command(
    "SUBSTR key start:integer end:integer",
    "1.0.0 readonly | keys 1 RO access",
    "Returns a part of the string at a key.",
    "O(N) where N is the length of the reply.",
    deprecated=("2.0.0", "`GETRANGE`"),
)
@command(
    "GETRANGE key start:integer end:integer",
    "2.4.0 readonly | keys 1 RO access",
    "Returns a part of the string at a key.",
    "O(N) where N is the length of the reply.",
)
def getrange(ctx: Context, args: list[bytes]) -> bytes:
    first, last = arguments.integer(args[2]), arguments.integer(args[3])
    value = read_part(ctx, args[1])
    if value is None or (last < first and last < 0 and first < 0):
        return reply.EMPTY_BULK
    first, last = clamped(first, last, len(value))
    if last < first:  # compiled by mypyc 2.4, a slice of bytes with stop < start raises SystemError
        return reply.EMPTY_BULK
    return reply.bulk(bytes(value[first : last + 1]))


@command(
    "SETRANGE key offset value",
    "2.2.0 write denyoom | keys 1 RW update",
    "Overwrites a part of the string at a key, which is extended by zero bytes if it is too short.",
    "O(N) where N is the length of the part and of the bytes added. A string shorter than 32 KB is copied.",
)
def setrange(ctx: Context, args: list[bytes]) -> bytes:
    key, part = args[1], args[3]
    offset = arguments.integer(args[2])
    if offset < 0:
        raise ReplyError(b"ERR offset is out of range")
    change = Change(ctx, key)
    if not part:
        return reply.integer(change.length)
    end = offset + len(part)
    check_length(ctx, end)
    text = change.extend(end)
    text[offset:end] = part
    change.keep(ctx)
    ctx.event("$", b"setrange", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(len(text))
