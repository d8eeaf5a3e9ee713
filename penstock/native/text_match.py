"""Compares bytes by machine words, for the compiled build: what the protocol's and the storage's loops share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i64_le

from penstock.native.build import IS_COMPILED

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

_WORD: Final = 8  # bytes that are compared at once


def is_at(piece: bytes, text: bytes, at: i64) -> bool:
    """Whether a piece stands at an offset of a text, which must not end before it would. O(bytes).

    Compiled, a call of `startswith` costs more than the loop.
    """
    if not IS_COMPILED:
        return text.startswith(piece, at)
    size: i64 = len(piece)
    place: i64 = 0
    if size < _WORD:
        while place < size:
            if text[at + place] != piece[place]:
                return False
            place += 1
        return True
    last: i64 = size - _WORD
    while place < last:
        if read_i64_le(text, at + place) != read_i64_le(piece, place):
            return False
        place += _WORD
    return read_i64_le(text, at + last) == read_i64_le(piece, last)
