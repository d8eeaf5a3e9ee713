"""BITRANGEINTARRAY: the offsets of the set or the clear bits in a range. (Redis 8.12, documentation.)

Tests: transcripts bit_offsets; cases commands/test_bit_offsets.
"""

import re
from typing import Final

from penstock.commands.common.repeated_values import require_fitting
from penstock.commands.strings.bit_search import PART_BYTES, bits_from, count_bits, is_unit_bit, range_of
from penstock.commands.strings.bit_values import Bits, read_bits
from penstock.engine import arguments
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

NO_LIMIT: Final = 0
OFFSETS: Final = tuple(tuple(bit for bit in range(8) if byte & 0x80 >> bit) for byte in range(256))
INVERTED: Final = bytes(range(255, -1, -1))
NOTHING: Final = bytes(PART_BYTES)
SOMETHING: Final = re.compile(rb"[^\0]")  # a byte with a bit
AROUND: Final = 3  # bytes of an integer's reply beside its digits


class Options:
    """The options after the range. Their order, and which values are refused, is not documented."""

    __slots__ = ("in_bits", "limit", "zeros")

    def __init__(self, args: list[bytes], at: int) -> None:
        self.in_bits = False
        self.limit = NO_LIMIT
        self.zeros = False
        while at < len(args):
            option = args[at].upper()
            if option == b"ZEROS":
                self.zeros = True
            elif option == b"LIMIT" and at + 1 < len(args):
                at += 1
                self.limit = arguments.integer(args[at])
                if self.limit < 1:
                    raise ReplyError(b"ERR LIMIT must be positive")
            else:
                self.in_bits = is_unit_bit(args[at])
            at += 1


@command(
    "BITRANGEINTARRAY key start:integer end:integer unit:[BYTE|BIT] [LIMIT count] [ZEROS]",
    "8.12.0 readonly | keys 1 RO access | group bitmap",
    "Lists the offsets of the set bits in a range of a string, or those of the clear ones.",
    "O(N)",
)
def bitrangeintarray(ctx: Context, args: list[bytes]) -> bytes:
    start, end = arguments.integer(args[2]), arguments.integer(args[3])
    options = Options(args, 4)
    value = read_bits(ctx, args[1])
    if value is None:
        return reply.EMPTY_ARRAY
    first, last = range_of(value, start, end, options.in_bits)
    if last < first:
        return reply.EMPTY_ARRAY
    count = count_bits(value, first, last)
    if options.zeros:
        count = last - first + 1 - count
    if options.limit:
        count = min(count, options.limit)
    require_fitting(count * (len(str(last)) + AROUND))
    return reply.array_header(count) + b"".join(_integers(value, first, last, options.zeros, count))


def _integers(value: Bits, first: int, last: int, zeros: bool, count: int) -> list[bytes]:
    """The first offsets of such bits as replies. O(bytes of the range), O(offsets)."""
    found: list[bytes] = []
    base = first & ~7
    for part in bits_from(value, first, last, 0xFF if zeros else 0):
        searched = part.translate(INVERTED) if zeros else part
        if searched != NOTHING:
            for one in SOMETHING.finditer(searched):
                at = one.start()
                for bit in OFFSETS[searched[at]]:
                    found.append(reply.integer(base + 8 * at + bit))
                if len(found) >= count:
                    return found[:count]
        base += 8 * len(part)
    return found
