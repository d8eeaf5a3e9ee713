"""BITFIELD: integers of any width at any bit of a string, which are read, set and incremented.

Tests: transcripts bit_operations; cases commands/test_bits; law against_redis/test_types_beside_redis; model
storage/test_large_strings, storage/test_bitmaps.
"""

from typing import Final

from penstock.commands.strings.bit_single import bit_offset
from penstock.commands.strings.bit_values import BitChange, part_of, read_bits
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.protocol import reply

WIDEST: Final = 64  # bits of a signed field; an unsigned one may have one less
OPTIONS: Final = OptionTable({b"GET": 2, b"SET": 3, b"INCRBY": 3, b"OVERFLOW": 1})
READERS: Final = (b"GET", b"OVERFLOW")
_READS: Final = [KeyPlace(1, ["RO", "access"])]
_CHANGES: Final = [KeyPlace(1, ["RW", "access", "update"])]
EVERY_BIT: Final = (1 << WIDEST) - 1
INVALID_TYPE: Final = (
    b"ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
)


class Operation:
    """One GET, SET or INCRBY of a field."""

    __slots__ = ("name", "number", "offset", "overflow", "signed", "width")

    def __init__(self, name: bytes, signed: bool, width: int, offset: int, number: int, overflow: bytes) -> None:
        self.name = name
        self.signed = signed
        self.width = width
        self.offset = offset
        self.number = number  # the value to set or to add
        self.overflow = overflow  # WRAP, SAT or FAIL

    def start(self) -> int:
        """The first byte of the field."""
        return self.offset >> 3

    def end(self) -> int:
        """The number of bytes that a string must have to contain the field."""
        return (self.offset + self.width + 7) >> 3

    def _whole(self, part: bytes | bytearray) -> int:
        """The bytes from start to end as a number. Bytes after the end of the string count as zeros."""
        return int.from_bytes(part.ljust(self.end() - self.start(), b"\0"))

    def value(self, part: bytes | bytearray) -> int:
        """The field's number, of the bytes from `start` to `end`.  O(width)."""
        number = self._whole(part) >> (-(self.offset + self.width) & 7) & (1 << self.width) - 1
        return number - (1 << self.width) if self.signed and number >> self.width - 1 else number

    def changed(self, part: bytes | bytearray, number: int) -> bytes:
        """The same bytes with another number, of which the lowest bits are taken.  O(width)."""
        shift = -(self.offset + self.width) & 7
        mask = ((1 << self.width) - 1) << shift
        return (self._whole(part) & ~mask | number << shift & mask).to_bytes(self.end() - self.start())

    def fitted(self, number: int) -> int | None:
        """The number that the field gets, by OVERFLOW; None for FAIL if it does not fit."""
        least, most = (-(1 << self.width - 1), (1 << self.width - 1) - 1) if self.signed else (0, (1 << self.width) - 1)
        if least <= number <= most:
            return number
        if self.overflow == b"FAIL":
            return None
        if self.overflow == b"SAT":
            # (Redis 8.6.3 computes the distance in 64 bits.)
            wraps = self.name == b"SET" and self.signed and most - number > arguments.MAX_INT64
            return most if number > most or wraps else least
        number &= (1 << self.width) - 1
        return number - (1 << self.width) if number > most else number


def _field_type(word: bytes) -> tuple[bool, int]:
    """Read a field type, such as i8 or u63: whether it is signed, and its width."""
    signed = word.startswith(b"i")
    if len(word) < 4 and (signed or word.startswith(b"u")):
        width = arguments.integer_or(word[1:], INVALID_TYPE)
        if 1 <= width <= (WIDEST if signed else WIDEST - 1):
            return signed, width
    raise ReplyError(INVALID_TYPE)


def _read(ctx: Context, args: list[bytes]) -> list[Operation]:
    operations: list[Operation] = []
    overflow = b"WRAP"
    at = 2
    while at < len(args):
        name = args[at].upper()
        words = OPTIONS.words(name, args, at)
        if not words:
            raise refusals.syntax()
        if name == b"OVERFLOW":
            overflow = args[at + 1].upper()
            if overflow not in (b"WRAP", b"SAT", b"FAIL"):
                raise ReplyError(b"ERR Invalid OVERFLOW type specified")
            at += words
            continue
        signed, width = _field_type(args[at + 1])
        offset = bit_offset(ctx, args[at + 2], width)
        number = 0 if name == b"GET" else arguments.integer(args[at + 3])
        if name == b"SET" and not signed:
            number &= EVERY_BIT  # a negative number is taken as unsigned (Redis 8.6.3)
        operations.append(Operation(name, signed, width, offset, number, overflow))
        at += words
    return operations


def _find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The key of BITFIELD, which is only read where every operation is a GET."""
    at = 2
    while at < len(args):
        name = args[at].upper()
        words = OPTIONS.words(name, args, at)
        if not words or name not in READERS:
            return _CHANGES
        at += words
    return _READS


@command(
    "BITFIELD key "
    "[operation:<get-block:GET (encoding offset)|write:([overflow-block:OVERFLOW <WRAP|SAT|FAIL>] "
    "write-operation:<set-block:SET (encoding offset value:integer)|incrby-block:INCRBY (encoding offset "
    "increment:integer)>)>] ...",
    "3.2.0 write denyoom | "
    "keys 1 RW access update variable_flags # This command allows both access and modification of the key | "
    "group bitmap",
    "Reads, sets and increments integers at any bit of the string at a key.",
    "O(1) for each subcommand specified",
    find_keys=_find_keys,
)
def bitfield(ctx: Context, args: list[bytes]) -> bytes:
    operations = _read(ctx, args)
    if all(operation.name == b"GET" for operation in operations):
        return _values(ctx, args[1], operations)
    return _changed(ctx, args, operations)


@command(
    "BITFIELD_RO key [get-block:GET (encoding offset) [GET encoding offset ...]]",
    "6.0.0 readonly fast | keys 1 RO access | group bitmap",
    "Reads integers at any bit of the string at a key.",
    "O(1) for each subcommand specified",
)
def bitfield_ro(ctx: Context, args: list[bytes]) -> bytes:
    operations = _read(ctx, args)
    if any(operation.name != b"GET" for operation in operations):
        raise ReplyError(b"ERR BITFIELD_RO only supports the GET subcommand")
    return _values(ctx, args[1], operations)


def _values(ctx: Context, key: bytes, operations: list[Operation]) -> bytes:
    found = read_bits(ctx, key)
    bits = b"" if found is None else found
    parts = [part_of(bits, operation.start(), operation.end()) for operation in operations]
    return reply.array([reply.integer(one.value(part)) for one, part in zip(operations, parts, strict=True)])


def _changed(ctx: Context, args: list[bytes], operations: list[Operation]) -> bytes:
    key = args[1]
    change = BitChange(ctx, key)
    longest = 0
    for operation in operations:
        if operation.name != b"GET":
            longest = max(longest, operation.end())
    grows = change.extend(longest)
    replies: list[bytes] = []
    changes = 0
    for operation in operations:
        part = change.part(operation.start(), operation.end())
        old = operation.value(part)
        if operation.name == b"GET":
            replies.append(reply.integer(old))
            continue
        adds = operation.name == b"INCRBY"
        number = operation.fitted(old + operation.number if adds else operation.number)
        if number is None:
            replies.append(reply.null(ctx.resp3))
            continue
        change.write(operation.start(), operation.changed(part, number))
        replies.append(reply.integer(number if adds else old))
        changes += grows or number != old
    if changes or grows:
        change.keep(ctx)
    else:
        change.keep_unchanged(ctx)
    if changes:
        ctx.event("$", b"setbit", key)
        ctx.dirty += changes
    if changes or grows:  # Redis 8.6.3 does not log it if the string only grew, and loses that at a restart
        ctx.log_request(args)
    return reply.array(replies)
