"""BITCOUNT and BITPOS: count bits and find a bit, in a range of bytes or of bits.

Tests: transcripts bit_operations; cases commands/test_bits; law against_redis/test_types_beside_redis.
"""

from collections.abc import Iterator
from typing import Final

from penstock.commands.strings.bit_values import Bits, part_of, read_bits
from penstock.commands.strings.string_ranges import clamped
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

NOT_FOUND: Final = -1
PART_BYTES: Final = 65536  # of a string, looked at as one number: more would take memory as large as the string


def is_unit_bit(word: bytes) -> bool:
    """Whether a word is BIT, not BYTE."""
    unit = word.upper()
    if unit not in (b"BIT", b"BYTE"):
        raise refusals.syntax()
    return unit == b"BIT"


def _bits_of(value: Bits, first: int, last: int, fill: int) -> bytes:
    """The bytes with the bits from `first` to `last`. The other bits of these bytes are those of `fill`."""
    part = bytearray(part_of(value, first >> 3, (last >> 3) + 1))
    from_first, to_last = 0xFF >> (first & 7), 0xFF << (7 - (last & 7)) & 0xFF
    part[0] = part[0] & from_first | fill & ~from_first
    part[-1] = part[-1] & to_last | fill & ~to_last
    return bytes(part)


def bits_from(value: Bits, first: int, last: int, fill: int) -> Iterator[bytes]:
    """The same in parts of at most PART_BYTES."""
    for start in range(first >> 3, (last >> 3) + 1, PART_BYTES):
        yield _bits_of(value, max(first, start * 8), min(last, (start + PART_BYTES) * 8 - 1), fill)


def count_bits(value: Bits, first: int, last: int) -> int:
    """How many bits from `first` to `last` are set."""
    return sum([int.from_bytes(part).bit_count() for part in bits_from(value, first, last, 0)])


def range_of(value: Bits, start: int, end: int, in_bits: bool) -> tuple[int, int]:
    """The first and the last bit of a range, whose ends may count from the end; empty where the last comes first."""
    if end < start and start < 0 and end < 0:
        return 0, -1
    first, last = clamped(start, end, len(value) * 8 if in_bits else len(value))
    return (first, last) if in_bits or last < first else (first * 8, last * 8 + 7)


@command(
    "BITCOUNT key range:[start:integer end:integer unit:[BYTE|BIT]@7.0.0]",
    "2.6.0 readonly | keys 1 RO access | group bitmap",
    "Counts the set bits of the string at a key, or of a range of it.",
    "O(N)",
    history=(("7.0.0", "Added the `BYTE|BIT` option."),),
)
def bitcount(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) == 2:
        whole = read_bits(ctx, args[1]) or b""
        return reply.integer(count_bits(whole, 0, len(whole) * 8 - 1))
    if len(args) not in (4, 5):
        raise refusals.syntax()
    start, end = arguments.integer(args[2]), arguments.integer(args[3])
    in_bits = len(args) == 5 and is_unit_bit(args[4])
    value = read_bits(ctx, args[1])
    if value is None:
        return reply.ZERO
    first, last = range_of(value, start, end, in_bits)
    return reply.integer(count_bits(value, first, last) if first <= last else 0)


@command(
    "BITPOS key bit:integer range:[start:integer end-unit-block:[end:integer unit:[BYTE|BIT]@7.0.0]]",
    "2.8.7 readonly | keys 1 RO access | group bitmap",
    "Finds the first set or clear bit of the string at a key, or of a range of it.",
    "O(N)",
    history=(("7.0.0", "Added the `BYTE|BIT` option."),),
)
def bitpos(ctx: Context, args: list[bytes]) -> bytes:
    """If no end is given and all bits are 1, the first 0 is the bit after the string (Redis 8.6.3)."""
    bit = arguments.integer(args[2])
    if bit not in (0, 1):
        raise ReplyError(b"ERR The bit argument must be 1 or 0.")
    if len(args) > 6:
        raise refusals.syntax()
    start = arguments.integer(args[3]) if len(args) > 3 else 0
    in_bits = len(args) > 5 and is_unit_bit(args[5])
    end = arguments.integer(args[4]) if len(args) > 4 else None
    value = read_bits(ctx, args[1])
    if value is None:
        return reply.integer(-bit)
    length = len(value) * 8 if in_bits else len(value)
    first, last = clamped(start, length - 1 if end is None else end, length) if length else (0, -1)
    if last < first:
        return reply.integer(NOT_FOUND)
    if not in_bits:
        first, last = first * 8, last * 8 + 7
    position = _first(value, bit, first, last)
    if position == NOT_FOUND and not bit and end is None:
        return reply.integer(len(value) * 8)
    return reply.integer(position)


def _first(value: Bits, bit: int, first: int, last: int) -> int:
    """The position of the first such bit from `first` to `last`; NOT_FOUND if there is none."""
    other = b"\0" if bit else b"\xff"
    blank = other * min(PART_BYTES, (last >> 3) - (first >> 3) + 1)
    start = first >> 3
    for part in bits_from(value, first, last, other[0]):
        rest = b"" if part == blank else part.lstrip(other)
        if rest:
            found = rest[0] if bit else rest[0] ^ 0xFF
            return (start + len(part) - len(rest)) * 8 + 8 - found.bit_length()
        start += len(part)
    return NOT_FOUND
