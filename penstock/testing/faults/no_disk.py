"""The disk of a server that keeps everything in memory: it has no files and takes none."""

import errno

from penstock.storage.aof.disk import File


class NoDisk:
    """Nothing is there, and nothing can be written: SAVE and `CONFIG SET appendonly yes` are refused.

    See storage/aof/disk.Disk for the calls.
    """

    def reach(self, point: str) -> None:
        """Does nothing."""

    def exists(self, path: str) -> bool:
        return False

    def names(self, path: str) -> list[str]:
        return []

    def create(self, path: str) -> File:
        raise _refusal()

    def append_to(self, path: str) -> File:
        raise _refusal()

    def read(self, path: str, offset: int, size: int) -> bytes:
        raise _refusal()

    def size(self, path: str) -> int:
        raise _refusal()

    def make_directory(self, path: str) -> None:
        raise _refusal()

    def rename(self, path: str, to: str) -> None:
        raise _refusal()

    def remove(self, path: str) -> None:
        raise _refusal()

    def sync_directory(self, path: str) -> None:
        raise _refusal()

    def lock(self, path: str) -> File | None:
        raise _refusal()


def _refusal() -> OSError:
    return OSError(errno.EROFS, "the server is in memory: give it a directory")
