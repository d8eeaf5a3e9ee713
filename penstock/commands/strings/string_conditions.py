"""DELEX, DELIFEQ and DIGEST, and the comparisons of a string that DELEX and SET have.

Tests: transcripts strings; cases commands/test_strings.
"""

from typing import Final

from xxhash import xxh3_64_hexdigest

from penstock.commands.common.overwriting import delete
from penstock.commands.strings.strings import read_string
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.table.key_place import KeyPlace
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import text_of

COMPARISONS: Final = (b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE")
_REMOVES: Final = [KeyPlace(1, ["RM", "delete"])]
_REMOVES_IF: Final = [KeyPlace(1, ["RW", "delete"])]
DIGEST_LENGTH: Final = 16  # hexadecimal characters


def digest_of(value: bytes) -> bytes:
    """XXH3 with 64 bits, as 16 hexadecimal characters."""
    return xxh3_64_hexdigest(value).encode()


def holds(comparison: bytes, operand: bytes, value: bytes) -> bool:
    """Whether a comparison holds: IFEQ and IFNE compare the string, IFDEQ and IFDNE its digest."""
    if comparison in (b"IFEQ", b"IFNE"):
        equal = value == operand
    else:
        if len(operand) != DIGEST_LENGTH:
            raise ReplyError(b"ERR must be exactly 16 hexadecimal characters")
        equal = digest_of(value) == operand.lower()
    return equal == (comparison in (b"IFEQ", b"IFDEQ"))


@command(
    "DIGEST key",
    "8.4.0 readonly fast | keys 1 RO access",
    "Returns the digest of the string at a key, for IFDEQ and IFDNE.",
    "O(N) where N is the length of the string value.",
)
def digest(ctx: Context, args: list[bytes]) -> bytes:
    value = read_string(ctx, args[1])
    return reply.null(ctx.resp3) if value is None else reply.bulk(digest_of(value))


def _find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The key of DELEX. A condition anywhere changes its flags (Redis 8.6.3), but not which rights it needs."""
    has_condition = any(word.upper() in COMPARISONS for word in args[2:])
    return _REMOVES_IF if has_condition else _REMOVES


@command(
    "DELEX key condition:[IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest:integer@~8.4.0|IFDNE "
    "ifdne-digest:integer@~8.4.0]",
    "8.4.0 write fast | keys 1 RW delete variable_flags",
    "Removes a key, if its string meets a condition.",
    "O(1) for IFEQ/IFNE, O(N) for IFDEQ/IFDNE where N is the length of the string value.",
    find_keys=_find_keys,
)
def delex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    is_valkey = ctx.speaks_valkey()
    if len(args) not in ((4,) if is_valkey else (2, 4)):
        raise refusals.arity(b"delex")
    if is_valkey and args[2].upper() not in (b"IFEQ", b"IFNE"):
        raise refusals.syntax()
    value = ctx.read(key) if len(args) == 4 else ctx.value(key)
    if value is None:
        return reply.ZERO
    if len(args) == 4:
        text = text_of(value)
        if text is None:
            if is_valkey:
                raise refusals.wrong_type()
            raise ReplyError(b"ERR Key should be of string type if conditions are specified")
        comparison = args[2].upper()
        if comparison not in COMPARISONS:
            raise ReplyError(b"ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
        if not holds(comparison, args[3], text):
            return reply.ZERO
    delete(ctx, key)
    if len(args) == 4:
        ctx.log(b"DEL", key)
    else:
        ctx.log_request(args)
    return reply.ONE


@command(
    "DELIFEQ key value",
    "9.0.0 write fast | keys 1 RM delete | only_in valkey",
    "Removes a key, if its string is a given one.",
)
def delifeq(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    if read_string(ctx, key) != args[2]:
        return reply.ZERO
    delete(ctx, key)
    ctx.log(b"DEL", key)
    return reply.ONE
