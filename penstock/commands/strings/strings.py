"""String commands: read, set several, append, count.

Tests: transcripts strings; cases commands/test_strings; law against_redis/test_types_beside_redis.
"""

from typing import Final

from penstock.commands.common.overwriting import create, delete, overwrite
from penstock.commands.common.repeated_values import require_fitting
from penstock.commands.strings.string_changes import Change
from penstock.engine import arguments, numbers, refusals
from penstock.engine.arguments import MAX_INT64, MIN_INT64
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.keyspace import text_of
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.string_forms import unconverted_string

LONGEST_LOADED: Final = 1 << 32  # bytes


def read_string(ctx: Context, key: bytes) -> bytes | None:
    """The string at a key; counts a hit or a miss. ReplyError WRONGTYPE for another type."""
    value = ctx.read(key)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, LargeString):
        return value.text()
    raise refusals.wrong_type()


def read_part(ctx: Context, key: bytes) -> bytes | bytearray | None:
    """As `read_string`, for code that reads a part or the length.

    A LargeString is not copied: do not keep the result.
    """
    value = ctx.read(key)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, LargeString):
        return value.buffer
    raise refusals.wrong_type()


@command("GET key", "1.0.0 readonly fast | keys 1 RO access", "Returns the string at a key.")
def get(ctx: Context, args: list[bytes]) -> bytes:
    value = read_string(ctx, args[1])
    return reply.null(ctx.resp3) if value is None else reply.bulk(value)


@command(
    "MGET key [key ...]",
    "1.0.0 readonly fast | keys 1..-1 RO access | tips request_policy:multi_shard",
    "Returns the strings at several keys; null for a missing key or another type.",
    "O(N) where N is the number of keys to retrieve.",
)
def mget(ctx: Context, args: list[bytes]) -> bytes:
    texts: list[bytes | None] = []
    size = 0
    for key in args[1:]:
        text = text_of(ctx.read(key))
        texts.append(text)
        if text is not None:
            size += len(text)
            require_fitting(size)
    return reply.bulks_or_nulls(texts, ctx.resp3)


@command("STRLEN key", "2.2.0 readonly fast | keys 1 RO", "Returns the length of the string at a key in bytes.")
def strlen(ctx: Context, args: list[bytes]) -> bytes:
    return reply.integer(len(read_part(ctx, args[1]) or b""))


@command("GETDEL key", "6.2.0 write fast | keys 1 RW access delete", "Returns the string at a key and removes it.")
def getdel(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    value = read_string(ctx, key)
    if value is None:
        return reply.null(ctx.resp3)
    delete(ctx, key)
    ctx.log(b"DEL", key)
    return reply.bulk(value)


@command(
    "MSET data:(key value) [key value ...]",
    "1.0.1 write denyoom | keys 1..-1/2 OW update | tips request_policy:multi_shard response_policy:all_succeeded",
    "Sets several keys to strings, all at once.",
    "O(N) where N is the number of keys to set.",
)
def mset(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) % 2 == 0:
        raise refusals.arity(b"mset")
    for at in range(1, len(args), 2):
        overwrite(ctx, args[at], args[at + 1])
        ctx.event("$", b"set", args[at])
        ctx.dirty += 1
    ctx.log_request(args)
    return reply.OK


@command(
    "MSETNX data:(key value) [key value ...]",
    "1.0.1 write denyoom | keys 1..-1/2 OW insert",
    "Sets several keys to strings, unless one of them exists.",
    "O(N) where N is the number of keys to set.",
)
def msetnx(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) % 2 == 0:
        raise refusals.arity(b"msetnx")
    for key in args[1::2]:
        if ctx.value(key) is not None:
            return reply.ZERO
    mset(ctx, args)
    return reply.ONE


@command(
    "APPEND key value",
    "2.0.0 write denyoom fast | keys 1 RW insert",
    "Appends to the string at a key, which is created if it does not exist; returns its length.",
    "Amortized O(N) where N is the number of bytes appended. A string shorter than 32 KB is copied.",
)
def append(ctx: Context, args: list[bytes]) -> bytes:
    key, tail = args[1], args[2]
    change = Change(ctx, key)
    length = change.length + len(tail)
    if change.is_new:
        create(ctx, key, tail)
    else:
        check_length(ctx, length)
        change.append(tail)
        change.keep(ctx)
    ctx.event("$", b"append", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(length)


def longest_string(ctx: Context) -> int:
    """Bytes of the longest string that a request may make: proto-max-bulk-len.

    A log or a master may make longer ones, because their directive may be another, but none without sense.
    """
    limit = ctx.settings.number("proto-max-bulk-len")
    return max(limit, LONGEST_LOADED) if ctx.session.privileged else limit


def check_length(ctx: Context, length: int) -> None:
    """Refuse a string that is too long."""
    if length > longest_string(ctx):
        raise ReplyError(b"ERR string exceeds maximum allowed size (proto-max-bulk-len)")


# -- counters --------------------------------------------------------------------------------------------------------


@command(
    "INCR key",
    "1.0.0 write denyoom fast | keys 1 RW access update",
    "Adds one to the integer at a key; a missing key counts as 0.",
)
def incr(ctx: Context, args: list[bytes]) -> bytes:
    return _add(ctx, args, 1)


@command(
    "DECR key",
    "1.0.0 write denyoom fast | keys 1 RW access update",
    "Subtracts one from the integer at a key; a missing key counts as 0.",
)
def decr(ctx: Context, args: list[bytes]) -> bytes:
    return _add(ctx, args, -1)


@command(
    "INCRBY key increment:integer",
    "1.0.0 write denyoom fast | keys 1 RW access update",
    "Adds a number to the integer at a key; a missing key counts as 0.",
)
def incrby(ctx: Context, args: list[bytes]) -> bytes:
    return _add(ctx, args, arguments.integer(args[2]))


@command(
    "DECRBY key decrement:integer",
    "1.0.0 write denyoom fast | keys 1 RW access update",
    "Subtracts a number from the integer at a key; a missing key counts as 0.",
)
def decrby(ctx: Context, args: list[bytes]) -> bytes:
    decrement = arguments.integer(args[2])
    if decrement == MIN_INT64:
        raise ReplyError(b"ERR decrement would overflow")
    return _add(ctx, args, -decrement)


def _add(ctx: Context, args: list[bytes], increment: int) -> bytes:
    """Add to an integer; its time of expiry stays.

    The request is logged as it was sent: a replay has the same result.
    """
    key = args[1]
    text = ctx.string(key)
    total = increment if text is None else arguments.integer(text) + increment
    if not MIN_INT64 <= total <= MAX_INT64:
        raise ReplyError(b"ERR increment or decrement would overflow")
    if text is None:
        create(ctx, key, b"%d" % total)
    else:
        ctx.put(key, b"%d" % total)
    ctx.event("$", b"incrby", key)
    ctx.dirty += 1
    ctx.log_request(args)
    return reply.integer(total)


@command(
    "INCRBYFLOAT key increment:double",
    "2.6.0 write denyoom fast | keys 1 RW access update",
    "Adds a number with decimals to the number at a key; a missing key counts as 0.",
)
def incrbyfloat(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    text = ctx.string(key)
    new = numbers.sum_text(b"0" if text is None else text, args[2])
    kept = unconverted_string(new) if arguments.is_integer(new) else new
    if text is None:
        create(ctx, key, kept)
    else:
        ctx.put(key, kept)
    ctx.event("$", b"incrbyfloat", key)
    ctx.dirty += 1
    ctx.log(b"SET", key, new, b"KEEPTTL")
    return reply.bulk(new)
