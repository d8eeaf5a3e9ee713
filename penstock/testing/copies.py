"""Where an embedded server without a directory keeps the copy of a master's data until it is loaded."""

import errno
import os

from penstock.testing.faults.no_disk import NoDisk


class CopyInMemory:
    """A file in memory. See storage/aof/disk.File for the calls."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, chunk: bytes) -> int:
        self.content += chunk
        return len(chunk)

    def sync(self) -> None:
        """Nothing is to be kept."""

    def truncate(self, size: int) -> None:
        del self.content[size:]

    def reserve(self, offset: int, size: int) -> bool:
        """Memory is not reserved."""
        return False

    def close(self) -> None:
        """It stays until it is removed."""


class CopiesInMemory(NoDisk):
    """A disk that has only the files that were created since the start, in memory."""

    def __init__(self) -> None:
        self._copies: dict[str, CopyInMemory] = {}

    def exists(self, path: str) -> bool:
        return path in self._copies

    def create(self, path: str) -> CopyInMemory:
        copy = self._copies[path] = CopyInMemory()
        return copy

    def lock(self, path: str) -> CopyInMemory:
        return self.create(path)

    def read(self, path: str, offset: int, size: int) -> bytes:
        return bytes(self._of(path).content[offset : offset + size])

    def size(self, path: str) -> int:
        return len(self._of(path).content)

    def remove(self, path: str) -> None:
        self._of(path)
        del self._copies[path]

    def _of(self, path: str) -> CopyInMemory:
        copy = self._copies.get(path)
        if copy is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return copy
