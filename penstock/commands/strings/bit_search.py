"""Bits of a string counted and found, in a range of bytes or of bits."""

from penstock.commands.strings.string_ranges import clamped
from penstock.commands.strings.strings import read_part
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply


def _in_bits(word: bytes) -> bool:
    """BIT or BYTE."""
    unit = word.upper()
    if unit not in (b"BIT", b"BYTE"):
        raise refusals.syntax()
    return unit == b"BIT"


def _bits_of(value: bytes | bytearray, first: int, last: int, fill: int) -> bytes:
    """The bytes in which the bits from first to last lie; the bits around them are those of `fill`."""
    part = bytearray(value[first >> 3 : (last >> 3) + 1])
    before, behind = 0xFF >> (first & 7), 0xFF << (7 - (last & 7)) & 0xFF
    part[0] = part[0] & before | fill & ~before
    part[-1] = part[-1] & behind | fill & ~behind
    return bytes(part)


@command(
    "BITCOUNT",
    "key range:[start:integer end:integer unit:[BYTE|BIT]@7.0.0]",
    group="bitmap",
    since="2.6.0",
    flags="readonly",
    keys="1 RO access",
    complexity="O(N)",
    history=(("7.0.0", "Added the `BYTE|BIT` option."),),
    summary="Counts the bits that are set in the string at a key, or in a range of it.",
)
def bitcount(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == 2:
        return reply.integer(int.from_bytes(read_part(ctx, args[1]) or b"").bit_count())
    if len(args) not in (4, 5):
        raise refusals.syntax()
    start, end = arguments.integer(args[2]), arguments.integer(args[3])
    in_bits = len(args) == 5 and _in_bits(args[4])
    value = read_part(ctx, args[1])
    if value is None or (end < start and start < 0 and end < 0):
        return reply.ZERO
    first, last = clamped(start, end, len(value) * 8 if in_bits else len(value))
    if last < first:
        return reply.ZERO
    part = _bits_of(value, first, last, 0) if in_bits else value[first : last + 1]
    return reply.integer(int.from_bytes(part).bit_count())


@command(
    "BITPOS",
    "key bit:integer range:[start:integer end-unit-block:[end:integer unit:[BYTE|BIT]@7.0.0]]",
    group="bitmap",
    since="2.8.7",
    flags="readonly",
    keys="1 RO access",
    complexity="O(N)",
    history=(("7.0.0", "Added the `BYTE|BIT` option."),),
    summary="Finds the first bit that is set, or not, in the string at a key, or in a range of it.",
)
def bitpos(ctx: Context, args: list[bytes]) -> bytes:
    """Without an end, a string of ones is followed by zeros, of which the first is found (Redis 8.6.3)."""
    bit = arguments.integer(args[2])
    if bit not in (0, 1):
        raise ReplyError(b"ERR The bit argument must be 1 or 0.")
    if len(args) > 6:
        raise refusals.syntax()
    start = arguments.integer(args[3]) if len(args) > 3 else 0
    in_bits = len(args) > 5 and _in_bits(args[5])
    end = arguments.integer(args[4]) if len(args) > 4 else None
    value = read_part(ctx, args[1])
    if value is None:
        return reply.integer(-bit)
    length = len(value) * 8 if in_bits else len(value)
    first, last = clamped(start, length - 1 if end is None else end, length) if length else (0, -1)
    if last < first:
        return reply.integer(-1)
    if not in_bits:
        first, last = first * 8, last * 8 + 7
    place = _first(value, bit, first, last)
    if place < 0 and not bit and end is None:
        return reply.integer(len(value) * 8)
    return reply.integer(place)


def _first(value: bytes | bytearray, bit: int, first: int, last: int) -> int:
    """The first place of such a bit from one place to another, -1 where there is none."""
    other = b"\0" if bit else b"\xff"
    part = _bits_of(value, first, last, other[0])
    rest = part.lstrip(other)
    if not rest:
        return -1
    found = rest[0] if bit else rest[0] ^ 0xFF
    return (first >> 3) * 8 + (len(part) - len(rest)) * 8 + 8 - found.bit_length()
