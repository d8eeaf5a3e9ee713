"""Shared by SCAN, HSCAN, SSCAN and ZSCAN: cursors, patterns, and the size of a page."""

import re
from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.matching.globs import Glob
from penstock.errors import ReplyError

MAX_UINT64: Final = 2**64 - 1
PAGE: Final = 10  # the default COUNT
INVALID_CURSOR: Final = b"ERR invalid cursor"

_CURSOR: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)")


def not_an_option(ctx: Context, option: bytes) -> ReplyError:
    """The refusal of a word that a scan does not take; of one that another scan does, it says so."""
    if option == b"NOVALUES" and not ctx.hides(option):
        return ReplyError(b"ERR NOVALUES option can only be used in HSCAN")
    if option == b"NOSCORES" and ctx.compatibility.is_valkey:
        return ReplyError(b"ERR NOSCORES option can only be used in ZSCAN")
    return refusals.syntax()


def read_count(word: bytes) -> int:
    count = arguments.integer(word)
    if count < 1:
        raise refusals.syntax()
    return count


def read_glob(pattern: bytes) -> Glob | None:
    """A pattern; None for `*`, which matches everything."""
    return None if pattern == b"*" else Glob(pattern)


def read_cursor(word: bytes) -> int:
    """An unsigned 64-bit number as C's strtoull reads it: leading blanks and a sign are allowed (Redis 8.6.3)."""
    if word == b"0":
        return 0
    text = refusals.c_string(word)
    if arguments.is_integer(text):
        cursor = int(text)
        if cursor >= 0:
            return cursor
        raise ReplyError(INVALID_CURSOR)
    parts = _CURSOR.fullmatch(text)
    if parts is None or len(parts[2].lstrip(b"0")) > 20:
        raise ReplyError(INVALID_CURSOR)
    cursor = int(parts[2])
    if cursor > MAX_UINT64:
        raise ReplyError(INVALID_CURSOR)
    return -cursor & MAX_UINT64 if parts[1] == b"-" else cursor
