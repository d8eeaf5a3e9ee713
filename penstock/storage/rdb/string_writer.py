"""Lengths and strings as RDB writes them."""

from typing import Final

from penstock.storage.rdb import listpack, lzf
from penstock.storage.types.bitmaps import Bitmap

LONGEST_INTEGER: Final = 11  # bytes of a text that is kept as a number of 32 bits
SHORTEST_COMPRESSED: Final = 21  # bytes


def length(number: int) -> bytes:
    """A length in its shortest form."""
    if number < 1 << 6:
        return bytes((number,))
    if number < 1 << 14:
        return (number | 1 << 14).to_bytes(2, "big")
    if number < 1 << 32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")


class StringWriter:
    """Writes strings; compresses long ones if that saves bytes, up to `most` bytes of strings in all."""

    __slots__ = ("_left",)

    def __init__(self, most: int) -> None:
        self._left = most

    def string(self, text: bytes) -> bytes:
        """A string; written as a number if it is the text of a 32-bit integer."""
        if len(text) <= LONGEST_INTEGER:
            number = listpack.integer_of(text)
            if number is not None and -(1 << 31) <= number < 1 << 31:
                if -128 <= number < 128:
                    return b"\xc0" + number.to_bytes(1, "little", signed=True)
                if -(1 << 15) <= number < 1 << 15:
                    return b"\xc1" + number.to_bytes(2, "little", signed=True)
                return b"\xc2" + number.to_bytes(4, "little", signed=True)
        return self.blob(text)

    def bitmap(self, bitmap: Bitmap) -> bytes:
        """A native bitmap as a string, which is compressed if it is mostly zeros. O(bytes)."""
        packed = lzf.of_pieces(len(bitmap), bitmap.pieces())
        if len(packed) + lzf.SAVES_AT_LEAST > len(bitmap):
            return self.string(bitmap.text())
        return b"\xc3" + length(len(packed)) + length(len(bitmap)) + packed

    def blob(self, text: bytes) -> bytes:
        """A string that is not the text of a number."""
        if self._left > 0 and len(text) >= SHORTEST_COMPRESSED:
            self._left -= len(text)
            packed = lzf.compressed(text)
            if packed is not None:
                return b"\xc3" + length(len(packed)) + length(len(text)) + packed
        return length(len(text)) + text
