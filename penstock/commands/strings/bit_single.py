"""GETBIT and SETBIT: single bits. Bit 0 is the highest bit of the first byte.

Tests: transcripts bit_operations; cases commands/test_bits; law against_redis/test_types_beside_redis; model
storage/test_large_strings, storage/test_bitmaps.
"""

from penstock.commands.strings.bit_values import BitChange, part_of, read_bits
from penstock.commands.strings.strings import longest_string
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
    "GETBIT key offset",
    "2.2.0 readonly fast | keys 1 RO access | group bitmap",
    "Returns one bit of the string at a key.",
)
def getbit(ctx: Context, args: list[bytes]) -> bytes:
    offset = bit_offset(ctx, args[2])
    bits = read_bits(ctx, args[1])
    if bits is None:
        return reply.ZERO
    return reply.integer(_bit_of(part_of(bits, offset >> 3, (offset >> 3) + 1), offset))


def _bit_of(byte: bytes | bytearray, offset: int) -> int:
    """The bit at an offset, in the byte that has it; 0 beyond the end, where there is no byte."""
    return byte[0] >> (~offset & 7) & 1 if byte else 0


@command(
    "SETBIT key offset value:integer",
    "2.2.0 write denyoom | keys 1 RW access update | group bitmap",
    "Sets or clears one bit of the string at a key, extended by zero bytes if need be; returns the old bit.",
    "O(1), and O(N) where N is the number of bytes added. A string shorter than 32 KB is copied.",
)
def setbit(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    offset = bit_offset(ctx, args[2])
    if args[3] not in (b"0", b"1"):
        raise ReplyError(b"ERR bit is not an integer or out of range")
    wanted = int(args[3])
    change = BitChange(ctx, key)
    at = offset >> 3
    byte = change.part(at, at + 1)
    was = _bit_of(byte, offset)
    if was == wanted and byte:
        change.keep_unchanged(ctx)
        return reply.integer(was)  # nothing changes, so there is no event and no line in the log
    change.extend(at + 1)
    if was != wanted:
        mask = 0x80 >> (offset & 7)
        change.write(at, bytes(((byte[0] if byte else 0) ^ mask,)))
    change.keep(ctx)
    ctx.event("$", b"setbit", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(was)
