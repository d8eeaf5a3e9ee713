"""The matcher of long glob patterns, in time and memory that no pattern can blow up.

A regular expression costs microseconds and hundreds of bytes for each byte of the pattern. Here the pattern is read
piece by piece, no further than the texts are long, and a piece behind a `*` is searched for with one long number: its
bits say how much of it fits (Baeza-Yates and Gonnet, "A New Approach to Text Searching", 1992). The regular expression
of globs.py and a naive matcher are its oracles in tests/commands/test_globs.py.
"""

import re
from typing import Final, TypeAlias

from penstock.engine.matching.glob_classes import BACKSLASH, class_end, class_members, either_case

STAR: Final = 0x2A
QUESTION: Final = 0x3F
BRACKET: Final = 0x5B

MOST_STARS: Final = 1000  # with something behind them; a pattern that has more matches nothing (Redis 8.6.3)

Atom: TypeAlias = bytes | int | frozenset[int]
"""A part of a pattern: these bytes, so many of any kind, or one byte of a class."""

MOST_READ: Final = 2**20  # bytes of one run that are read at a time: the pattern may be far longer than the texts

# Possessive, so that nothing is kept for going back.
_STARS: Final = re.compile(rb"\*++")
_QUESTIONS: Final = re.compile(rb"\?++")
_LITERAL: Final = re.compile(rb"[^*?\[\\]++")


class Piece:
    """A piece between two stars, as atoms. `length`: how many bytes of a text it takes."""

    __slots__ = ("_accepting", "atoms", "length")

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.length = 0
        self._accepting: dict[int, int] = {}  # by byte: bit i is set where the piece's ith byte may be that

    def fits(self, text: bytes, at: int) -> bool:
        """Whether the piece stands at a place of a text that has so many bytes there; O(length)."""
        for atom in self.atoms:
            if isinstance(atom, bytes):
                if not text.startswith(atom, at):
                    return False
                at += len(atom)
            elif isinstance(atom, int):
                at += atom
            elif text[at] in atom:
                at += 1
            else:
                return False
        return True

    def end_in(self, text: bytes, start: int, end: int) -> int:
        """Where the leftmost place of the piece in text[start:end] ends; -1: it has none.

        O(end - start) steps on numbers of at most `length` bits, mostly far fewer: of as much as fits somewhere.
        """
        if end - start < self.length:
            return -1
        if self.fits(text, start):
            return start + self.length
        first = self.atoms[0]
        if isinstance(first, bytes) and len(first) == self.length:
            found = text.find(first, start, end)
            return found + self.length if found >= 0 else -1
        whole = 1 << self.length - 1
        accepting, fitting = self._accepting, 0
        for at in range(start, end):
            byte = text[at]
            accepted = accepting.get(byte)
            if accepted is None:
                accepted = accepting[byte] = self._accepted(byte)
            fitting = (fitting << 1 | 1) & accepted
            if fitting >= whole:
                return at + 1
        return -1

    def _accepted(self, byte: int) -> int:
        """The bits of a byte, the piece's first place being the lowest."""
        table = b"0" * byte + b"1" + b"0" * (255 - byte)
        bits: list[bytes] = []
        for atom in self.atoms:
            if isinstance(atom, bytes):
                bits.append(atom.translate(table))
            elif isinstance(atom, int):
                bits.append(b"1" * atom)
            else:
                bits.append(b"1" if byte in atom else b"0")
        return int(b"".join(bits)[::-1], 2)


class LongGlob:
    """A pattern that is read as far as it must be.

    Invariants: `_pieces` are those read so far, the last one perhaps not to its end; a text shorter than `_least`,
    the sum of their lengths, does not match. Once all is read, `_at` is the pattern's length.
    """

    __slots__ = ("_at", "_classes", "_ignore_case", "_least", "_pattern", "_pieces")

    def __init__(self, pattern: bytes, ignore_case: bool) -> None:
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._at = 0
        self._least = 0
        self._pieces = [Piece()]
        self._classes: dict[bytes, frozenset[int]] = {}  # those that were met: a pattern may repeat one very often

    def matches(self, text: bytes) -> bool:
        """Whether the whole text fits, which is not empty."""
        pieces, length = self._pieces, len(text)
        while self._at < len(self._pattern) and self._least <= length and len(pieces) <= MOST_STARS + 1:
            self._read_piece(length)
        if self._least > length or not pieces[0].fits(text, 0):
            return False
        last = pieces[-1]
        if len(pieces) == 1:
            return length == last.length
        if len(pieces) - 1 > MOST_STARS + (self._at == len(self._pattern) and not last.atoms):
            return False
        end = length - last.length
        at = pieces[0].length
        for number in range(1, len(pieces) - 1):
            at = pieces[number].end_in(text, at, end)
            if at < 0:
                return False
        return last.fits(text, end)

    def _read_piece(self, enough: int) -> None:
        """Read up to and with the next stars, or until the pieces are longer than `enough`."""
        pattern, at, length, size = self._pattern, self._at, self._least, len(self._pattern)
        piece = self._pieces[-1]
        before = length
        while at < size and length <= enough:
            start, byte = at, pattern[at]
            if byte == QUESTION:
                at = _end(_QUESTIONS, pattern, start, start + MOST_READ)
                piece.atoms.append(at - start)
                length += at - start
            elif byte == BRACKET:
                at = class_end(pattern, start)
                piece.atoms.append(self._class(pattern[start:at]))
                length += 1
            elif byte == STAR:
                at = _end(_STARS, pattern, start, size)
                self._pieces.append(Piece())
                break
            else:
                if byte == BACKSLASH:
                    at = min(start + 2, size)
                    start = at - 1
                else:
                    at = _end(_LITERAL, pattern, start, start + MOST_READ)
                if self._ignore_case:
                    piece.atoms += [either_case(letter) for letter in pattern[start:at]]
                else:
                    piece.atoms.append(pattern[start:at])
                length += at - start
        piece.length += length - before
        self._at, self._least = at, length

    def _class(self, word: bytes) -> frozenset[int]:
        members = self._classes.get(word)
        if members is None:
            members = self._classes[word] = class_members(word, self._ignore_case)
        return members


def _end(run: re.Pattern[bytes], pattern: bytes, start: int, limit: int) -> int:
    """Where the run that begins at `start` ends, at `limit` at the latest."""
    met = run.match(pattern, start, limit)
    assert met is not None, "the first byte says which run this is"
    return met.end()
