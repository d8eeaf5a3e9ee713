"""LZF strings expanded byte by byte: for the compiled build.

Without compilation, lzf.py does it piece by piece; it owns the error texts, and the tests compare both. A payload of
512 MB may have a piece for each two bytes: in C a byte costs a few nanoseconds, and a slice for each piece 50 to 150.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

LONGEST_LITERAL: Final = 32
LONG: Final = 9  # a match from which on a byte more has the length


def expanded(packed: bytes, size: i64) -> bytes | None:
    """What was compressed, which must have `size` bytes; None if it is damaged. O(size), which the caller limits."""
    out = BytesWriter()
    end: i64 = len(packed)
    at: i64 = 0
    made: i64 = 0
    while at < end:
        control: i64 = packed[at]
        at += 1
        if control < LONGEST_LITERAL:
            stop: i64 = at + control + 1
            made += control + 1
            if stop > end or made > size:
                return None
            while at < stop:
                out.append(packed[at])
                at += 1
            continue
        length: i64 = (control >> 5) + 2
        if length == LONG and at < end:
            length += packed[at]
            at += 1
        if at >= end:
            return None
        start: i64 = made - ((control & 31) << 8 | packed[at]) - 1
        at += 1
        made += length
        if start < 0 or made > size:
            return None
        stop = start + length
        while start < stop:
            out.append(out[start])
            start += 1
    return out.getvalue() if made == size else None
