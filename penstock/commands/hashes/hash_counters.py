"""HINCRBY and HINCRBYFLOAT: add to the number in a field, whose time of expiry stays.

Tests: transcripts hashes; cases commands/test_hashes; law against_redis/test_hashes_beside_redis.
"""

from penstock.commands.hashes import field_effects
from penstock.commands.hashes.hash_access import hash_or_new, hash_with, note_size
from penstock.engine import arguments
from penstock.engine.arguments import MAX_INT64, MIN_INT64
from penstock.engine.context import Context
from penstock.engine.numbers import is_plain, long_double, sum_text
from penstock.engine.part_expiry import notify_changed
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.hashes import Hash


@command(
    "HINCRBY key field increment:integer",
    "2.0.0 write denyoom fast | keys 1 RW access update",
    "Adds a number to the integer in a field; a missing field counts as 0.",
)
def hincrby(ctx: Context, args: list[bytes]) -> bytes:
    _, key, field, _ = args
    increment = arguments.integer(args[3])
    total = increment + arguments.integer_or(_text_in(ctx, key, field), b"ERR hash value is not an integer")
    if not MIN_INT64 <= total <= MAX_INT64:
        raise ReplyError(b"ERR increment or decrement would overflow")
    _put(ctx, key, field, b"%d" % total, b"hincrby")
    ctx.log_request(args)
    return reply.integer(total)


@command(
    "HINCRBYFLOAT key field increment:double",
    "2.6.0 write denyoom fast | keys 1 RW access update",
    "Adds a number to the number in a field; a missing field counts as 0.",
)
def hincrbyfloat(ctx: Context, args: list[bytes]) -> bytes:
    """Logs the result, so that a replay does no float arithmetic."""
    _, key, field, _ = args
    if not is_plain(args[3]) and long_double(args[3]) is None:  # refused before the key is looked at
        raise ReplyError(b"ERR value is NaN or Infinity")
    text = sum_text(_text_in(ctx, key, field), args[3], b"ERR hash value is not a float")
    found = _put(ctx, key, field, text, b"hincrbyfloat")
    request = [b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, text]
    field_effects.log_setting(ctx, key, found, request, [field, text])
    return reply.bulk(text)


def _text_in(ctx: Context, key: bytes, field: bytes) -> bytes:
    found = hash_with(ctx, key, [field])
    text = None if found is None else found.get(field)
    return b"0" if text is None else text


def _put(ctx: Context, key: bytes, field: bytes, text: bytes, event: bytes) -> Hash:
    found = hash_or_new(ctx, key)
    found.put(field, text)
    note_size(ctx, found, [field, text])
    notify_changed(ctx, key, found, event, (field,), 1)
    return found
