"""Bytes that are read from front to back: lengths, strings and numbers as RDB writes them.

Every length is checked against what is left before anything is allocated for it.
"""

import struct
from typing import Final

from penstock.storage.aof.disk import Disk
from penstock.storage.rdb import crc64, lzf
from penstock.storage.rdb.errors import BadRdb

BLOCK_BYTES: Final = 256 * 1024

_DOUBLE: Final = struct.Struct("<d")

NOT_A_LENGTH: Final = 0xC0  # from here on a first byte says how a string is encoded
MOST_CORRECTIONS: Final = 10  # of one value that are kept; further ones are not reported
INT8: Final = 0xC0
INT16: Final = 0xC1
INT32: Final = 0xC2
LZF: Final = 0xC3


class Source:
    """Bytes in memory. `at` is the place of the next one in `block`.

    corrections: what the readers of values found wrong and put right, since the list was taken.
    """

    __slots__ = ("at", "block", "corrections")

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.at = 0
        self.corrections: list[str] = []

    def correct(self, found: str) -> None:
        """Note what is wrong in the value, and is put right; a part of a sentence, for a person."""
        if len(self.corrections) < MOST_CORRECTIONS:
            self.corrections.append(found)

    def take_corrections(self) -> list[str]:
        """The corrections since the last call."""
        found = self.corrections
        if found:
            self.corrections = []
        return found

    def left(self) -> int:
        """How many bytes are to come."""
        return len(self.block) - self.at

    def position(self) -> int:
        """How many bytes came."""
        return self.at

    def need(self, count: int) -> None:
        """Have so many bytes in the block from `at` on. BadRdb where there are fewer."""
        if count > len(self.block) - self.at:
            raise BadRdb("it ends too early")

    def byte(self) -> int:
        if self.at >= len(self.block):
            self.need(1)
        byte = self.block[self.at]
        self.at += 1
        return byte

    def take(self, count: int) -> bytes:
        """The next bytes as they are."""
        if count > len(self.block) - self.at:
            self.need(count)
        start = self.at
        self.at = start + count
        return self.block[start : start + count]

    def length(self) -> int:
        first = self.byte()
        if first < 0x40:
            return first
        if first < 0x80:
            return (first & 0x3F) << 8 | self.byte()
        if first == 0x80:
            return int.from_bytes(self.take(4), "big")
        if first == 0x81:
            return int.from_bytes(self.take(8), "big")
        raise BadRdb(f"the byte {first} stands where a length should")

    def count(self, least_bytes: int) -> int:
        """How many things follow, each of so many bytes at least."""
        count = self.length()
        if count * least_bytes > self.left():
            raise BadRdb(f"{count} items are announced, and there are not so many bytes left")
        return count

    def string(self) -> bytes:
        if self.at >= len(self.block):
            self.need(1)
        first = self.block[self.at]
        if first < NOT_A_LENGTH:
            return self.take(self.length())
        self.at += 1
        if first == INT8:
            return b"%d" % self.signed(1)
        if first == INT16:
            return b"%d" % self.signed(2)
        if first == INT32:
            return b"%d" % self.signed(4)
        if first != LZF:
            raise BadRdb(f"the byte {first} stands where a string should")
        packed_size, size = self.length(), self.length()
        return lzf.expanded(self.take(packed_size), size)

    def signed(self, width: int) -> int:
        """A signed number of so many bytes."""
        return int.from_bytes(self.take(width), "little", signed=True)

    def double(self) -> float:
        number: float = _DOUBLE.unpack(self.take(8))[0]
        return number


class FileSource(Source):
    """A file, read block by block; `checksum` is that of everything that came."""

    __slots__ = ("_base", "_disk", "_path", "_summed", "_unsummed_at", "size")

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__(b"")
        self._disk = disk
        self._path = path
        self.size = disk.size(path)
        self._base = 0  # the block's offset in the file
        self._summed = 0
        self._unsummed_at = 0  # in the block

    def left(self) -> int:
        return self.size - self._base - self.at

    def position(self) -> int:
        return self._base + self.at

    def need(self, count: int) -> None:
        held = len(self.block) - self.at
        if count <= held:
            return
        if count > self.left():
            raise BadRdb("it ends too early")
        self._sum_up()
        kept = self.block[self.at :]
        self._base += self.at
        self.at = self._unsummed_at = 0
        wanted = max(count - held, BLOCK_BYTES)
        self.block = kept + self._disk.read(self._path, self._base + held, wanted)
        if count > len(self.block):
            raise BadRdb("it ends too early")

    def checksum(self) -> int:
        self._sum_up()
        return self._summed

    def _sum_up(self) -> None:
        self._summed = crc64.checksum(self.block[self._unsummed_at : self.at], self._summed)
        self._unsummed_at = self.at
