"""Glob patterns in Redis's dialect, for KEYS, SCAN, CONFIG GET, PSUBSCRIBE and ACL.

`*` any bytes, `?` one byte, `[abc]`, `[a-z]`, `[^a]` one of a class, `\\x` the byte x itself. A class that is never
closed ends with the pattern, a range may be written backwards, a backslash at the very end stands for itself. The
empty text fits the empty pattern alone, not even `*`: KEYS and SCAN take a lone `*` for "all" before they ask
here, PSUBSCRIBE does not (Redis 8.6.3; the corners are the table in tests/commands/test_globs.py).
"""

import re
from typing import Final

STAR: Final = 0x2A
QUESTION: Final = 0x3F
BRACKET: Final = 0x5B
CLOSING: Final = 0x5D
CARET: Final = 0x5E
BACKSLASH: Final = 0x5C
DASH: Final = 0x2D

_SPECIAL: Final = re.compile(rb"[*?\[\\]")
_NEVER: Final = b"(?!)"


class Glob:
    """A pattern made ready for many texts. Matching takes time in proportion to text times pattern at worst."""

    __slots__ = ("_exact", "_ignore_case", "_prefix", "_regex", "pattern")

    def __init__(self, pattern: bytes, ignore_case: bool = False) -> None:
        self.pattern = pattern
        self._ignore_case = ignore_case
        self._exact: bytes | None = None
        self._prefix: bytes | None = None
        self._regex: re.Pattern[bytes] | None = None
        plain = pattern.lower() if ignore_case else pattern
        if _SPECIAL.search(plain) is None:
            self._exact = plain
        elif plain.endswith(b"*") and _SPECIAL.search(plain, 0, len(plain) - 1) is None:
            self._prefix = plain[:-1]
        else:
            self._regex = re.compile(_regex(pattern, ignore_case), re.DOTALL)

    def matches(self, text: bytes) -> bool:
        if not text:
            return not self.pattern
        if self._ignore_case:
            text = text.lower()
        if self._exact is not None:
            return text == self._exact
        if self._prefix is not None:
            return text.startswith(self._prefix)
        assert self._regex is not None, "a glob is one of the three"
        return self._regex.fullmatch(text) is not None


def matches(pattern: bytes, text: bytes, ignore_case: bool = False) -> bool:
    """Whether the whole text fits the pattern; `Glob` for many texts.

    >>> matches(b"news.[a-c]*", b"news.art"), matches(b"news.?", b"news.")
    (True, False)
    """
    return Glob(pattern, ignore_case).matches(text)


def is_plain(pattern: bytes) -> bool:
    """Whether a pattern can match only the text that looks like itself."""
    return _SPECIAL.search(pattern) is None


def _regex(pattern: bytes, ignore_case: bool) -> bytes:
    """The pattern as a regular expression.

    What follows a `*` is taken at its leftmost place and never tried again (an atomic group): if any place
    works, the leftmost does, because only the piece after the last `*` is held by the text's end. So no
    pattern makes the matcher go back and forth.
    """
    pieces: list[bytes] = [b""]  # between the stars
    at, end = 0, len(pattern)
    while at < end:
        byte = pattern[at]
        at += 1
        if byte == STAR:
            pieces.append(b"")
        elif byte == QUESTION:
            pieces[-1] += b"."
        elif byte == BRACKET:
            members, at = _class(pattern, at, ignore_case)
            pieces[-1] += _one_of(members)
        else:
            if byte == BACKSLASH and at < end:
                byte = pattern[at]
                at += 1
            pieces[-1] += re.escape(bytes([_folded(byte, ignore_case)]))
    if len(pieces) == 1:
        return pieces[0]
    middle = b"".join([b"(?>.*?%b)" % piece for piece in pieces[1:-1] if piece])
    return b"%b%b.*%b" % (pieces[0], middle, pieces[-1])


def _class(pattern: bytes, at: int, ignore_case: bool) -> tuple[set[int], int]:
    """The bytes that the class whose `[` is just before `at` stands for, and the place behind it."""
    members: set[int] = set()
    end = len(pattern)
    negated = at < end and pattern[at] == CARET
    if negated:
        at += 1
    while at < end and pattern[at] != CLOSING:
        if pattern[at] == BACKSLASH and at + 1 < end:
            members.add(_folded(pattern[at + 1], ignore_case))
            at += 2
        elif at + 2 < end and pattern[at + 1] == DASH:
            low, high = sorted((pattern[at], pattern[at + 2]))  # before case is folded: [Z-a] is empty then
            members.update(range(_folded(low, ignore_case), _folded(high, ignore_case) + 1))
            at += 3
        else:
            members.add(_folded(pattern[at], ignore_case))
            at += 1
    return (set(range(256)) - members if negated else members), at + 1


def _folded(byte: int, ignore_case: bool) -> int:
    return byte + 32 if ignore_case and 65 <= byte <= 90 else byte


def _one_of(members: set[int]) -> bytes:
    if not members:
        return _NEVER
    return b"[%b]" % b"".join([b"\\x%02x" % member for member in sorted(members)])
