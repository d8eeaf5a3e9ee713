"""Bits that are kept compressed: the native bitmaps of Redis 8.12.

The bytes are in pages. A page with few set bits is the sorted list of their numbers, another one has its bytes; a page
without any is left out. (The two forms are those of a Roaring bitmap's containers.)
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from penstock.native.class_marks import mypyc_attr
from penstock.storage.types.collection import Counted

PAGE_BYTES: Final = 8192
PAGE_BITS: Final = PAGE_BYTES * 8
MOST_NUMBERS: Final = 4096  # two bytes each: with more, the bytes themselves are as small
PAGE_OVERHEAD: Final = 150  # bytes: the object, and its place in the dict
BITS_OF: Final = tuple(tuple(bit for bit in range(8) if byte & 0x80 >> bit) for byte in range(256))
NOT_BLANK: Final = re.compile(rb"[^\0]")

Page: TypeAlias = "array[int] | bytearray"


@mypyc_attr(acyclic=True)
class Bitmap(Counted):
    """Bits with a logical length in bytes. Bit 0 is the highest bit of byte 0, as in a string.

    Invariants: no page is beyond the length; a page of numbers has at least one, at most MOST_NUMBERS, ascending; a
    page of bytes has PAGE_BYTES, and zeros beyond the length.
    """

    __slots__ = ("_length", "_pages")

    def __init__(self) -> None:
        self.counts = None
        self._length = 0
        self._pages: dict[int, Page] = {}

    def __len__(self) -> int:
        return self._length

    def extend(self, length: int) -> None:
        """Add zero bytes up to a length. O(1)."""
        self._length = max(self._length, length)

    def bit(self, offset: int) -> bool:
        """O(1)."""
        number, at = divmod(offset, PAGE_BITS)
        page = self._pages.get(number)
        if page is None:
            return False
        if isinstance(page, bytearray):
            return bool(page[at >> 3] & 0x80 >> (at & 7))
        place = bisect_left(page, at)
        return place < len(page) and page[place] == at

    def part(self, first: int, end: int) -> bytes:
        """The bytes from `first` to `end`, fewer where the bitmap ends before. O(bytes)."""
        end = min(end, self._length)
        if end <= first:
            return b""
        parts: list[bytes] = []
        while first < end:
            number, start = divmod(first, PAGE_BYTES)
            stop = min(start + end - first, PAGE_BYTES)
            page = self._pages.get(number)
            parts.append(bytes(stop - start) if page is None else _bytes_of(page, start, stop))
            first += stop - start
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, first: int, part: bytes | bytearray) -> None:
        """Replace the bytes from `first` on; the bitmap must be long enough. O(bytes), O(page) for each page."""
        at = 0
        while at < len(part):
            number, start = divmod(first + at, PAGE_BYTES)
            piece = bytes(part[at : at + PAGE_BYTES - start])
            self._write_page(number, start, piece)
            at += len(piece)

    def _write_page(self, number: int, start: int, piece: bytes) -> None:
        page = self._pages.get(number)
        if isinstance(page, bytearray) and len(piece) < PAGE_BYTES:
            page[start : start + len(piece)] = piece
            return
        if page is None or isinstance(page, bytearray):
            page = array("H")
        low = bisect_left(page, start * 8)
        high = bisect_left(page, (start + len(piece)) * 8)
        if len(page) - (high - low) + int.from_bytes(piece).bit_count() > MOST_NUMBERS:
            whole = bytearray(_bytes_of(page, 0, PAGE_BYTES))
            whole[start : start + len(piece)] = piece
            self._pages[number] = whole
            return
        page[low:high] = _numbers_of(piece, start)
        if page:
            self._pages[number] = page
        else:
            self._pages.pop(number, None)

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Where pages with set bits begin, and their bytes up to the last one that is not zero, in order. O(bytes)."""
        for number in sorted(self._pages):
            piece = _bytes_of(self._pages[number], 0, PAGE_BYTES).rstrip(b"\0")
            if piece:
                yield number * PAGE_BYTES, piece

    def starts(self, size: int) -> set[int]:
        """Where parts of `size` bytes, a multiple of a page, begin that have set bits. O(pages)."""
        return {number * PAGE_BYTES // size * size for number in self._pages}

    def text(self) -> bytes:
        """The same bits as a string. O(length)."""
        return self.part(0, self._length)

    def copy(self) -> "Bitmap":
        """A copy that shares nothing. O(pages)."""
        copied = Bitmap()
        copied._length = self._length
        copied._pages = {number: page[:] for number, page in self._pages.items()}
        return copied

    def parts(self) -> list[bytes]:
        """The contents for DEBUG DIGEST. O(bytes)."""
        return [b"%d" % self._length, *[b"%d %b" % piece for piece in self.pieces()]]

    def memory_usage(self) -> int:
        """Bytes of memory. O(pages)."""
        used = [PAGE_BYTES if isinstance(page, bytearray) else 2 * len(page) for page in self._pages.values()]
        return sum(used) + PAGE_OVERHEAD * (len(used) + 1)

    def check(self) -> None:
        """Assert the invariants."""
        for number, page in self._pages.items():
            assert number * PAGE_BYTES < self._length, "a page beyond the length"
            room = self._length - number * PAGE_BYTES
            if isinstance(page, bytearray):
                assert len(page) == PAGE_BYTES, "a page of another size"
                assert not any(page[room:]), "set bits beyond the length"
            else:
                assert 0 < len(page) <= MOST_NUMBERS, "a page of too many numbers, or of none"
                assert all(one < other for one, other in pairwise(page)), "numbers out of order"
                assert page[-1] < room * 8, "set bits beyond the length"


def of_text(text: bytes | bytearray) -> Bitmap:
    """The bits of a string. O(length)."""
    bitmap = Bitmap()
    bitmap.extend(len(text))
    for first in range(0, len(text), PAGE_BYTES):
        bitmap.write(first, text[first : first + PAGE_BYTES])
    return bitmap


def _bytes_of(page: Page, start: int, stop: int) -> bytes:
    """A part of a page as bytes."""
    if isinstance(page, bytearray):
        return bytes(page[start:stop])
    found = bytearray(stop - start)
    for place in range(bisect_left(page, start * 8), bisect_left(page, stop * 8)):
        number = page[place] - start * 8
        found[number >> 3] |= 0x80 >> (number & 7)
    return bytes(found)


def _numbers_of(piece: bytes, start: int) -> "array[int]":
    """The numbers of the set bits of bytes that begin at a byte of a page."""
    numbers: array[int] = array("H")
    for one in NOT_BLANK.finditer(piece):
        at = one.start()
        for bit in BITS_OF[piece[at]]:
            numbers.append((start + at) * 8 + bit)
    return numbers
