"""Redis's glob patterns, for KEYS, SCAN, CONFIG GET, PSUBSCRIBE and ACL.

`*` any bytes, `?` one byte, `[abc]`, `[a-z]`, `[^a]` one of a class (glob_classes.py), `\\x` the byte x itself; a
backslash at the very end stands for itself. A pattern that has more than a thousand stars before something else fits
nothing: those, and all that are long, are for long_globs.py. The empty text fits
the empty pattern alone, not even `*`: KEYS and SCAN take a lone `*` for "all" before they ask here, PSUBSCRIBE does
not (Redis 8.6.3; the corners are the table in tests/commands/test_globs.py).
"""

import re
from typing import Final

from penstock.engine.matching.glob_classes import BACKSLASH, class_end, class_members, either_case
from penstock.engine.matching.long_globs import BRACKET, QUESTION, STAR, LongGlob

SPECIAL: Final = (STAR, QUESTION, BRACKET, BACKSLASH)
LONGEST_EXPRESSION: Final = (
    256  # bytes of a pattern that becomes a regular expression: to compile it takes 20 us a byte
)
NEVER: Final = 1 << 60  # texts
_NEVER: Final = b"(?!)"


class Glob:
    """A pattern made ready for many texts. Matching takes time in proportion to text times pattern at worst.

    compile_after: so many texts are matched without a regular expression, which takes 20 us a byte to make. A caller
    with many patterns at once chooses it, so that they are not all compiled at the same moment.
    """

    __slots__ = ("_exact", "_ignore_case", "_left", "_long", "_prefix", "_regex", "pattern")

    def __init__(self, pattern: bytes, ignore_case: bool = False, compile_after: int = 0) -> None:
        self.pattern = pattern
        self._ignore_case = ignore_case
        self._left = compile_after
        self._exact: bytes | None = None
        self._prefix: bytes | None = None
        self._regex: re.Pattern[bytes] | None = None
        self._long: LongGlob | None = None
        if is_plain(pattern):
            self._exact = pattern.lower() if ignore_case else pattern
        elif pattern.endswith(b"*") and is_plain(pattern[:-1]):
            self._prefix = pattern[:-1].lower() if ignore_case else pattern[:-1]
        elif compile_after or len(pattern) > LONGEST_EXPRESSION:
            self._long = LongGlob(pattern, ignore_case)
        else:
            self._compile()

    @property
    def is_compiled(self) -> bool:
        """Whether there is a regular expression."""
        return self._regex is not None

    def _compile(self) -> None:
        self._regex = re.compile(_regex(self.pattern, self._ignore_case), re.DOTALL)
        self._long = None

    def start(self) -> bytes:
        """The start of all texts that fit; not for a pattern that ignores case."""
        assert not self._ignore_case, "its texts start in several ways"
        at = 0
        while at < len(self.pattern) and self.pattern[at] not in SPECIAL:
            at += 1
        return self.pattern[:at]

    def matches(self, text: bytes) -> bool:
        if not text:
            return not self.pattern
        if self._exact is not None:
            return (text.lower() if self._ignore_case else text) == self._exact
        if self._prefix is not None:
            return (text.lower() if self._ignore_case else text).startswith(self._prefix)
        if self._left > 0:
            self._left -= 1
            if self._left == 0 and len(self.pattern) <= LONGEST_EXPRESSION:
                self._compile()
        if self._long is not None:
            return self._long.matches(text)
        assert self._regex is not None, "a glob is one of the four"
        return self._regex.fullmatch(text) is not None


def matches(pattern: bytes, text: bytes, ignore_case: bool = False) -> bool:
    """Whether the whole text fits the pattern; `Glob` for many texts.

    >>> matches(b"news.[a-c]*", b"news.art"), matches(b"news.?", b"news.")
    (True, False)
    """
    return Glob(pattern, ignore_case, compile_after=NEVER).matches(text)


def is_plain(pattern: bytes) -> bool:
    """Whether a pattern can match only the text that looks like itself."""
    return all(byte not in SPECIAL for byte in pattern)


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
            start, at = at - 1, class_end(pattern, at - 1)
            pieces[-1] += _one_of(class_members(pattern[start:at], ignore_case))
        else:
            if byte == BACKSLASH and at < end:
                byte = pattern[at]
                at += 1
            pieces[-1] += _one_of(either_case(byte) if ignore_case else frozenset((byte,)))
    if len(pieces) == 1:
        return pieces[0]
    middle = b"".join([b"(?>.*?%b)" % piece for piece in pieces[1:-1] if piece])
    return b"%b%b.*%b" % (pieces[0], middle, pieces[-1])


def _one_of(members: frozenset[int]) -> bytes:
    if not members:
        return _NEVER
    return b"[%b]" % b"".join([b"\\x%02x" % member for member in sorted(members)])
