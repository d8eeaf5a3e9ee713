"""Reads FIELDS, its number and its fields. Redis has two forms of it, with different errors (Redis 8.6.3)."""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.errors import ReplyError

MOST_FIELDS: Final = 2**31 - 1
LATEST_MS: Final = 2**46 - 1  # Redis stores a field's time of expiry in 46 bits


def fields_at_three(args: list[bytes]) -> list[bytes]:
    """The fields after FIELDS, which must be the third word; nothing may follow them: HTTL, HPERSIST, HGETDEL."""
    if args[2].upper() != b"FIELDS":
        raise ReplyError(b"ERR Mandatory argument FIELDS is missing or not at the right position")
    count = int(args[3]) if arguments.is_integer(args[3]) else 0
    if count < 1:
        raise ReplyError(b"ERR Number of fields must be a positive integer")
    if count != len(args) - 4:
        raise ReplyError(b"ERR The `numfields` parameter must match the number of arguments")
    return args[4:]


def counted(args: list[bytes], at: int, words_each: int, text: bytes) -> list[bytes]:
    """The words that the number at args[at] counts; others may follow. `text` is the error for a wrong number."""
    count = int(args[at]) if arguments.is_integer(args[at]) else 0
    if not 1 <= count <= MOST_FIELDS:
        raise ReplyError(text)
    stop = at + 1 + count * words_each
    if stop > len(args):
        raise ReplyError(b"ERR wrong number of arguments")
    return args[at + 1 : stop]


def moment(word: bytes, base_ms: int, in_seconds: bool, name: bytes) -> int:
    """The time of expiry in unix ms that a word gives, relative to `base_ms`, for the command `name`."""
    number = arguments.integer(word)
    if number < 0:
        raise ReplyError(b"ERR invalid expire time, must be >= 0")
    when_ms = base_ms + (number * 1000 if in_seconds else number)
    if when_ms > LATEST_MS:
        raise ReplyError(b"ERR invalid expire time in '%b' command" % name)
    return when_ms


def unknown(word: bytes) -> ReplyError:
    return ReplyError(b"ERR unknown argument: %b" % refusals.c_string(word))


def repeated() -> ReplyError:
    return ReplyError(b"ERR FIELDS keyword specified multiple times")
