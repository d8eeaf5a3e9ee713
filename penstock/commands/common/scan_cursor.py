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


class Page:
    """One step of a scan: how many names to visit, and a pattern to select from them; None selects all.

    only_names: ZSCAN's NOSCORES (Valkey).
    """

    __slots__ = ("count", "glob", "only_names")

    def __init__(self) -> None:
        self.count = PAGE
        self.glob: Glob | None = None
        self.only_names = False


def read_page(ctx: Context, args: list[bytes], at: int) -> Page:
    """Read COUNT, MATCH and NOSCORES, the options of ZSCAN."""
    page = Page()
    while at < len(args):
        option = args[at].upper()
        if option == b"COUNT" and at + 1 < len(args):
            page.count = read_count(args[at + 1])
        elif option == b"MATCH" and at + 1 < len(args):
            page.glob = read_glob(args[at + 1])
        elif option == b"NOSCORES" and not ctx.hides(option):
            page.only_names = True
            at -= 1
        else:
            raise not_an_option(ctx, option)
        at += 2
    return page


def not_an_option(ctx: Context, option: bytes) -> ReplyError:
    """The refusal of a word that a scan does not take; of one that another scan does, it says so."""
    if option == b"NOVALUES":
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
