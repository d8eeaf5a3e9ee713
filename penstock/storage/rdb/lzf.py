"""LZF, the compression of strings in RDB files and payloads.

A control byte below 32 is followed by one literal byte more than it says. Any other has a length in its upper three
bits (7: the next byte is added) and, with the byte that follows, a distance: length + 2 bytes are repeated from there.

Our own, because payloads come from strangers: the loops stay within their bytes. The compressed form is that of Marc
Lehmann's liblzf, which Redis uses: python-neo-lzf, which has its C, was the oracle of 100,000 texts, and none differed
(2026-11). A string of 100 bytes is expanded in 4.5 us and compressed in 28; compiled, in 0.2 and 8 (the library: 1).
"""

from collections.abc import Iterable
from typing import Final

from penstock.native.build import IS_COMPILED
from penstock.storage.rdb import native_lzf
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.native_lzf import LONG, LONGEST_LITERAL

MOST_EXPANDED: Final = 88  # times its size: three bytes stand for 264 at the most
SAVES_AT_LEAST: Final = 5  # bytes, or a string stays as it is (Redis 8.6.3, DUMP)
LONGEST_COMPRESSED: Final = 1 << 20 if IS_COMPILED else 1 << 16  # bytes: longer ones would hold other clients up
UNLIMITED: Final = 1 << 62
MOST_OF_PAYLOAD: Final = UNLIMITED if IS_COMPILED else 1 << 20  # bytes of a payload's strings: more would, too

LONGEST_MATCH: Final = 264
FARTHEST: Final = 8192
SHORTEST_MATCH: Final = 3
UNCHECKED: Final = 16  # of a match, liblzf compares so many bytes without looking for the text's end
SLOTS: Final = 0xFFFF
THREE_BYTES: Final = 0xFF_FFFF


def expanded(packed: bytes, size: int) -> bytes:
    """Decompress to `size` bytes. Nothing is allocated for a size that cannot be true."""
    if not 0 < size <= MOST_EXPANDED * len(packed):
        raise BadRdb("a compressed string has another size than it can have")
    text = native_lzf.expanded(packed, size) if IS_COMPILED else expanded_by_pieces(packed, size)
    if text is None:
        raise BadRdb("a compressed string is damaged")
    return text


def expanded_by_pieces(packed: bytes, size: int) -> bytes | None:
    """As `native_lzf.expanded`, in plain Python: a slice for each piece."""
    text = bytearray()
    at = 0
    end = len(packed)
    while at < end:
        control = packed[at]
        at += 1
        if control < LONGEST_LITERAL:
            stop = at + control + 1
            if stop > end:
                return None
            text += packed[at:stop]
            at = stop
        else:
            length = (control >> 5) + 2
            if length == LONG and at < end:
                length += packed[at]
                at += 1
            if at >= end:
                return None
            distance = ((control & 31) << 8 | packed[at]) + 1
            at += 1
            start = len(text) - distance
            if start < 0:
                return None
            if distance >= length:
                text += text[start : start + length]
            else:
                text += (text[start:] * (length // distance + 1))[:length]
        if len(text) > size:
            return None
    return bytes(text) if len(text) == size else None


def compressed(text: bytes) -> bytes | None:
    """The text compressed; None where that saves too little, or the text is too long.  O(n)."""
    end = len(text)
    if not SAVES_AT_LEAST < end <= LONGEST_COMPRESSED:
        return None
    most = end - SAVES_AT_LEAST
    packed = bytearray()
    seen: dict[int, int] = {}  # where three bytes of a hash were seen last; 0 is never looked at, as in liblzf
    at = literal = 0  # what comes from `literal` on is not written yet
    last = end - 2
    three = text[0] << 8 | text[1]  # bytes from `at` on, as a number; the first two of them, before it is looked at
    while at < last:
        three = (three << 8 | text[at + 2]) & THREE_BYTES
        place = (
            three >> 8
        ) - three * 5 & SLOTS  # liblzf's hash (VERY_FAST, HLOG 16); of two equal ones the later counts
        before = seen.get(place, 0)
        seen[place] = at
        if before == 0 or at - before > FARTHEST or text[before : before + 3] != text[at : at + 3]:
            at += 1
            continue
        if literal < at:
            _add_literals(packed, text, literal, at)
        if len(packed) + 4 >= most:
            return None
        distance = at - before - 1
        length = _match(text, before, at)
        if length < LONG:
            packed.append((length - 2) << 5 | distance >> 8)
        else:
            packed.append(7 << 5 | distance >> 8)
            packed.append(length - LONG)
        packed.append(distance & 255)
        at += length
        literal = at
        if at < last:  # of the places within a match only the last two are remembered
            three = text[at - 2] << 16 | text[at - 1] << 8 | text[at]
            seen[(three >> 8) - three * 5 & SLOTS] = at - 2
            three = (three << 8 | text[at + 1]) & THREE_BYTES
            seen[(three >> 8) - three * 5 & SLOTS] = at - 1
    whole = (
        at - literal
    ) // LONGEST_LITERAL  # literals that liblzf has written here; it wants room for three bytes more
    if len(packed) + whole + at - literal + 3 > most:
        return None
    if literal < end:
        _add_literals(packed, text, literal, end)
    return bytes(packed) if len(packed) <= most else None


def _match(text: bytes, before: int, at: int) -> int:
    """How many bytes are the same from two places on; SHORTEST_MATCH are known to be."""
    most = len(text) - at - 2
    if most > UNCHECKED:
        most = min(max(most, UNCHECKED + 3), LONGEST_MATCH)
    length = SHORTEST_MATCH
    while length < most and text[before + length] == text[at + length]:
        length += 1
    return length


def _add_literals(packed: bytearray, text: bytes, start: int, stop: int) -> None:
    """Add bytes as they are."""
    while start < stop:
        end = start + LONGEST_LITERAL
        if end > stop:
            end = stop
        packed.append(end - start - 1)
        packed += text[start:end]
        start = end


def of_pieces(size: int, pieces: Iterable[tuple[int, bytes]]) -> bytes:
    """A text of `size` zeros with pieces at their places, compressed: the zeros are repeated, the pieces literal. O(n).

    >>> expanded(of_pieces(1000, [(0, b"ab"), (700, b"c")]), 1000).strip(b"\\0").split(b"\\0" * 698)
    [b'ab', b'c']
    """
    packed: list[bytes] = []
    done = 0
    for start, piece in pieces:
        packed.append(_zeros(start - done))
        for at in range(0, len(piece), LONGEST_LITERAL):
            literal = piece[at : at + LONGEST_LITERAL]
            packed.append(bytes((len(literal) - 1,)) + literal)
        done = start + len(piece)
    packed.append(_zeros(size - done))
    return b"".join(packed)


def _zeros(count: int) -> bytes:
    """So many zeros: one, which is repeated."""
    if count <= SHORTEST_MATCH:
        return bytes((count - 1,)) + bytes(count) if count else b""
    longest, left = divmod(count - 1, LONGEST_MATCH)
    repeats = b"\xe0\xff\0" * longest
    if left < SHORTEST_MATCH:
        return b"\0\0" + repeats + _zeros(left)
    if left < LONG:
        return b"\0\0" + repeats + bytes(((left - 2) << 5, 0))
    return b"\0\0" + repeats + bytes((0xE0, left - LONG, 0))
