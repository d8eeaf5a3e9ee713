"""BITOP and BITROAROP: combine bits. A string is treated as one long number, its first byte as the lowest.

Tests: transcripts bit_operations; cases commands/test_bits; law against_redis/test_types_beside_redis.
"""

from functools import reduce
from io import BytesIO
from operator import and_, or_, xor
from typing import Final

from penstock.commands.common.overwriting import delete, overwrite
from penstock.commands.strings.bit_values import Bits, convert, log_conversion, makes_native, part_of, read_bits
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.string_forms import raw_string

PART_BYTES: Final = 65536  # that are combined at a time: more would take memory as large as all the strings
INVERTED: Final = bytes(range(255, -1, -1))  # for each byte, the one with the other bits
OPERATIONS: Final = (b"AND", b"OR", b"XOR", b"NOT", b"DIFF", b"DIFF1", b"ANDOR", b"ONE")


def combined(operation: bytes, numbers: list[int]) -> int:
    """The result of one operation, any but NOT.

    DIFF: bits in the first and in no other; DIFF1: in another and not in the first; ANDOR: in the first and in another;
    ONE: in exactly one of them.
    """
    if operation == b"AND":
        return reduce(and_, numbers)
    if operation == b"OR":
        return reduce(or_, numbers)
    if operation == b"XOR":
        return reduce(xor, numbers)
    if operation == b"ONE":
        once = several = 0
        for number in numbers:
            several |= once & number
            once |= number
        return once & ~several
    first, others = numbers[0], reduce(or_, numbers[1:])
    if operation == b"ANDOR":
        return first & others
    return first & ~others if operation == b"DIFF" else others & ~first


def _counting(operation: bytes, keys: list[bytes]) -> list[bytes]:
    """The keys without those that are named again and change nothing by it: a request may name a million.

    XOR: an odd number of the same key is as good as one, an even number as two. ONE: any number above two is as good as
    two. The first key of DIFF, DIFF1 and ANDOR stands for itself.
    """
    first = keys[:1] if operation in (b"DIFF", b"DIFF1", b"ANDOR") else []
    times: dict[bytes, int] = {}
    for key in keys[len(first) :]:
        times[key] = times.get(key, 0) + 1
    if operation == b"XOR":
        return [key for key, count in times.items() for _ in range(2 - count % 2)]
    most = 2 if operation == b"ONE" else 1
    return first + [key for key, count in times.items() for _ in range(min(count, most))]


def _part(operation: bytes, values: list[Bits], start: int, length: int) -> bytes | bytearray:
    """PART_BYTES of the result, from `start` on; it has `length` in all."""
    size = min(PART_BYTES, length - start)
    if operation == b"NOT":  # half the time of the way by numbers
        return part_of(values[0], start, start + size).translate(INVERTED)
    numbers = [int.from_bytes(part_of(value, start, start + size), "little") for value in values]
    return combined(operation, numbers).to_bytes(size, "little")


def _native_result(operation: bytes, values: list[Bits], length: int) -> Bitmap:
    result = Bitmap()
    result.extend(length)
    starts: set[int] = set()
    for value in values:  # where all sources are 0, only NOT has something else
        if isinstance(value, Bitmap) and operation != b"NOT":
            starts |= value.starts(PART_BYTES)
        else:
            starts.update(range(0, length if operation == b"NOT" else len(value), PART_BYTES))
    for start in sorted(starts):
        result.write(start, _part(operation, values, start, length))
    return result


def _result(operation: bytes, values: list[Bits], length: int) -> bytes:
    """The result of one operation, of `length` bytes.

    A BytesIO grows without being copied and gives what it has away. Parts in a list that are joined are two copies of
    the result, and the system takes three times as long to find memory for them as it takes to combine 512 MB.
    """
    result = BytesIO()
    for start in range(0, length, PART_BYTES):
        result.write(_part(operation, values, start, length))
    return result.getvalue()


@command(
    "BITOP operation:<AND|OR|XOR|NOT|DIFF@~8.2.0|DIFF1@~8.2.0|ANDOR@~8.2.0|ONE@~8.2.0> destkey:key key [key ...]",
    "2.6.0 write denyoom | keys 2 OW update; 3..-1 RO access | group bitmap",
    "Combines strings bit by bit and stores the result, which is as long as the longest of them.",
    "O(N)",
)
def bitop(ctx: Context, args: list[bytes]) -> bytes:
    return _stored(ctx, args, makes_native(ctx))


@command(
    "BITROAROP operation destkey:key key [key ...]",
    "8.12.0 write denyoom noscript | keys 2 OW update; 3..-1 RO access | group bitmap | only_in log",
    "BITOP with a native bitmap as its result, as Redis 8.12 logs it.",
    "O(N)",
)
def bitroarop(ctx: Context, args: list[bytes]) -> bytes:
    return _stored(ctx, args, True)


@command(
    "BITCONVERT key",
    "8.12.0 write denyoom noscript | keys 1 RW access update | group bitmap | only_in log",
    "Makes a string a native bitmap, as Redis 8.12 logs it.",
    "O(N)",
)
def bitconvert(ctx: Context, args: list[bytes]) -> bytes:
    convert(ctx, args[1])
    return reply.OK


def _stored(ctx: Context, args: list[bytes], is_native: bool) -> bytes:
    """Combine the sources, and store the result; it is native, too, where a source is."""
    operation, target, sources = args[1].upper(), args[2], args[3:]
    if operation not in OPERATIONS or ctx.hides(operation):
        raise refusals.syntax()
    if operation == b"NOT" and len(sources) != 1:
        raise ReplyError(b"ERR BITOP NOT must be called with a single source key.")
    if operation in (b"DIFF", b"DIFF1", b"ANDOR") and len(sources) < 2:
        raise ReplyError(b"ERR BITOP %b must be called with at least two source keys." % operation)
    found = {key: read_bits(ctx, key) for key in sources}
    texts: dict[bytes, Bits] = {key: b"" if bits is None else bits for key, bits in found.items()}
    length = max(map(len, texts.values()))
    if not length:
        if delete(ctx, target):
            _log(ctx, args)
        return reply.ZERO
    values = [texts[key] for key in _counting(operation, sources)]
    is_native = is_native or any(isinstance(bits, Bitmap) for bits in texts.values())
    if is_native:
        overwrite(ctx, target, _native_result(operation, values, length))
    else:
        overwrite(ctx, target, raw_string(_result(operation, values, length)))
    ctx.event("$", b"set", target)
    ctx.dirty += 1
    _log(ctx, args)
    if is_native:  # what loads the log may have another bitmap-default-roaring
        log_conversion(ctx, target)
    return reply.integer(length)


def _log(ctx: Context, args: list[bytes]) -> None:
    """BITROAROP as BITOP, which every Redis knows."""
    ctx.log(b"BITOP", *args[1:])
