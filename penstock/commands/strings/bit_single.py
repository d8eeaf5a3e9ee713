"""GETBIT and SETBIT: single bits of a string. Bit 0 is the highest bit of the first byte.

Tests: transcripts bit_operations; cases commands/test_bits; law against_redis/test_types_beside_redis; model
storage/test_large_strings.
"""

from penstock.commands.strings.string_changes import Change
from penstock.commands.strings.strings import longest_string, read_part
from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply


def bit_offset(ctx: Context, word: bytes, width: int = 0) -> int:
    """Read an offset in bits. If `width` is given, `#n` is the offset of the nth field of that width."""
    text = b"ERR bit offset is not an integer or out of range"
    if width and word.startswith(b"#"):
        offset = arguments.integer_or(word[1:], text) * width
    else:
        offset = arguments.integer_or(word, text)
    if offset < 0 or offset >> 3 >= longest_string(ctx):
        raise ReplyError(text)
    return offset


@command(
    "GETBIT",
    "key offset",
    group="bitmap",
    since="2.2.0",
    flags="readonly fast",
    keys="1 RO access",
    summary="Returns one bit of the string at a key.",
)
def getbit(ctx: Context, args: list[bytes]) -> bytes:
    offset = bit_offset(ctx, args[2])
    value = read_part(ctx, args[1])
    if value is None or offset >> 3 >= len(value):
        return reply.ZERO
    return reply.ONE if value[offset >> 3] & 0x80 >> (offset & 7) else reply.ZERO


@command(
    "SETBIT",
    "key offset value:integer",
    group="bitmap",
    since="2.2.0",
    flags="write denyoom",
    keys="1 RW access update",
    complexity="O(1), and O(N) where N is the number of bytes added. A string shorter than 32 KB is copied.",
    summary="Sets or clears one bit of the string at a key, extended by zero bytes if need be; returns the old bit.",
)
def setbit(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    offset = bit_offset(ctx, args[2])
    if args[3] not in (b"0", b"1"):
        raise ReplyError(b"ERR bit is not an integer or out of range")
    wanted = args[3] == b"1"
    change = Change(ctx, key)
    at, mask = offset >> 3, 0x80 >> (offset & 7)
    was = at < change.length and bool(change.buffer[at] & mask)
    if was == wanted and at < change.length:
        change.keep_unchanged(ctx)
        return reply.ONE if was else reply.ZERO  # nothing changes, so there is no event and no line in the log
    text = change.extend(at + 1)
    text[at] = text[at] | mask if wanted else text[at] & ~mask
    change.keep(ctx)
    ctx.event("$", b"setbit", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.ONE if was else reply.ZERO
