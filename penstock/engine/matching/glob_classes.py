"""The classes of glob patterns: `[abc]`, `[a-z]`, `[^a]`, with escapes (Redis 8.6.3).

A class that is never closed ends with the pattern, and a backslash or a dash that is its last byte stands for itself.
A range may be written backwards. Its bytes are signed numbers, as C has them: [\\x00-\\xe0] goes from -32 to 0, which
leaves ASCII out.
"""

import re
from typing import Final

BACKSLASH: Final = 0x5C
CLOSING: Final = 0x5D
DASH: Final = 0x2D

EVERY_BYTE: Final = frozenset(range(256))

# An escape comes before a range, a range before a byte. Possessive, so that nothing is kept for going back.
_CLASS: Final = re.compile(rb"\[\^?+(?:\\.|[^\]\\\-]++(?:-.)?+|[\\\-](?:-.)?+)*+\]?+", re.DOTALL)


def class_end(pattern: bytes, at: int) -> int:
    """The place behind the class that begins at a place."""
    met = _CLASS.match(pattern, at)
    assert met is not None, "a class begins with a bracket"
    return met.end()


def class_members(word: bytes, ignore_case: bool) -> frozenset[int]:
    """The bytes that a class stands for, given whole.

    Where case is ignored, a range is folded after its ends were put in order, so that [Z-a] is empty, and an escaped
    byte is not folded at all (Redis 8.6.3). O(length).
    """
    negated = word[1:2] == b"^"
    at, end = 2 if negated else 1, len(word)
    singles: set[int] = set()
    escaped: set[int] = set()
    ranges: set[bytes] = set()
    if b"\\" not in word and b"-" not in word:
        singles, at = set(word[at:].removesuffix(b"]")), end
    while at < end:
        if word[at] == BACKSLASH and at + 1 < end:
            escaped.add(word[at + 1])
            at += 2
        elif at + 2 < end and word[at + 1] == DASH:
            ranges.add(word[at : at + 3])
            at += 3
        elif word[at] == CLOSING:
            break
        else:
            singles.add(word[at])
            at += 1
    folded = {_folded(byte) for byte in singles} if ignore_case else singles
    for span in ranges:
        first, last = sorted((_signed(span[0]), _signed(span[2])))
        if ignore_case:
            first, last = _folded(first), _folded(last)
        folded.update([number & 0xFF for number in range(first, last + 1)])
    if ignore_case:
        folded = {byte for byte in EVERY_BYTE if _folded(byte) in folded}
    return EVERY_BYTE - folded - escaped if negated else frozenset(folded | escaped)


def either_case(byte: int) -> frozenset[int]:
    """A byte that is no class, where case is ignored."""
    letter = bytes((byte,))
    return frozenset(letter.lower() + letter.upper())


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _folded(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte
