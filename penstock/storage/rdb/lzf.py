"""LZF, the compression of strings in RDB files and payloads.

A control byte below 32 is followed by that many literal bytes and one. Any other has a length in its upper three bits
(7: the next byte is added) and, with the byte that follows, a distance: length + 2 bytes are repeated from there.

Our own, because the libraries for it take no care of hostile input, or have no wheels for every system.
"""

from typing import Final

from penstock.storage.rdb.errors import BadRdb

MOST_EXPANDED: Final = 88  # times its size: three bytes stand for 264 at the most

LONGEST_LITERAL: Final = 32
LONGEST_MATCH: Final = 264
FARTHEST: Final = 8192
SHORTEST_MATCH: Final = 3
SAVES_AT_LEAST: Final = 4  # bytes, or a string stays as it is
SMALL_TABLE: Final = 256  # hashes of short texts
LARGE_TABLE: Final = 4096
MISSES_A_STEP: Final = 5  # after 2^5 misses every second place is tried only, and so on


def expanded(packed: bytes, size: int) -> bytes:
    """What was compressed, which must have `size` bytes. Nothing is allocated for a size that cannot be true."""
    if size > MOST_EXPANDED * len(packed):
        raise BadRdb("a compressed string says that it is longer than it can be")
    out = bytearray()
    at = 0
    end = len(packed)
    while at < end:
        control = packed[at]
        at += 1
        if control < LONGEST_LITERAL:
            stop = at + control + 1
            out += packed[at:stop]
            at = stop
        else:
            length = control >> 5
            if length == 7 and at < end:
                length += packed[at]
                at += 1
            if at >= end:
                raise _damaged()
            distance = ((control & 31) << 8 | packed[at]) + 1
            at += 1
            length += 2
            start = len(out) - distance
            if start < 0:
                raise _damaged()
            if distance >= length:
                out += out[start : start + length]
            else:
                out += (out[start:] * (length // distance + 1))[:length]
        if len(out) > size:
            raise _damaged()
    if at != end or len(out) != size:
        raise _damaged()
    return bytes(out)


def _damaged() -> BadRdb:
    return BadRdb("a compressed string is damaged")


def compressed(text: bytes) -> bytes | None:
    """The text compressed; None where that saves too little.  O(n); what does not compress is skipped through."""
    parts: list[bytes] = []
    size = 0  # of the parts
    mask = SMALL_TABLE - 1 if len(text) < SMALL_TABLE else LARGE_TABLE - 1
    table = [-FARTHEST] * (mask + 1)  # where three bytes of a hash were seen last
    at = literal = misses = 0
    end = len(text)
    last = end - SHORTEST_MATCH
    while at <= last:
        first, second, third = text[at], text[at + 1], text[at + 2]
        place = (first * 2477 + second * 181 + third) & mask
        before = table[place]
        table[place] = at
        if (
            at - before > FARTHEST
            or before < 0
            or text[before] != first
            or text[before + 1] != second
            or text[before + 2] != third
        ):
            misses += 1
            at += 1 + (misses >> MISSES_A_STEP)
            continue
        misses = 0
        most = end - at if end - at < LONGEST_MATCH else LONGEST_MATCH
        length = SHORTEST_MATCH
        while length < most and text[before + length] == text[at + length]:
            length += 1
        if literal < at:
            size += _add_literals(parts, text, literal, at)
        distance = at - before - 1
        if length < 9:
            parts.append(BYTES[(length - 2) << 5 | distance >> 8])
            size += 2
        else:
            parts.append(BYTES[7 << 5 | distance >> 8])
            parts.append(BYTES[length - 9])
            size += 3
        parts.append(BYTES[distance & 255])
        at += length
        literal = at
    size += _add_literals(parts, text, literal, end)
    return b"".join(parts) if size + SAVES_AT_LEAST <= end else None


def _add_literals(parts: list[bytes], text: bytes, start: int, stop: int) -> int:
    """Add bytes as they are; how many bytes that takes."""
    size = 0
    while start < stop:
        end = start + LONGEST_LITERAL if stop - start > LONGEST_LITERAL else stop
        parts.append(BYTES[end - start - 1])
        parts.append(text[start:end])
        size += end - start + 1
        start = end
    return size


BYTES: Final = [bytes((byte,)) for byte in range(256)]
