"""The disk as the log sees it: a few calls, so that a test can put a disk of its own in their place.

`reach` names a moment of writing, syncing or swapping files. It does nothing here; a disk that is armed
(a subclass, a test's disk in memory) may fail, stall or stop the process there.
"""

import errno
import fcntl
import os
import stat
import sys
from typing import Protocol


class File(Protocol):
    """A file that is open for appending."""

    def write(self, chunk: bytes) -> int:
        """Append; how many bytes were taken, maybe fewer than given. OSError where none were."""

    def sync(self) -> None:
        """Return when everything written is safe from a loss of power."""

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Paths are text; every call may raise OSError."""

    def reach(self, point: str) -> None:
        """A named moment: see the constants of storage/aof/append_log.py and storage/aof/log_directory.py."""

    def create(self, path: str) -> File:
        """An empty file, whatever was there."""

    def append_to(self, path: str) -> File:
        """A file that exists."""

    def read(self, path: str, offset: int, most: int) -> bytes:
        """At most `most` bytes; fewer only at the end of the file."""

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def names(self, path: str) -> list[str]:
        """What a directory holds; nothing where there is no directory."""

    def make_directory(self, path: str) -> None:
        """A directory, if it is not there; its parents must be."""

    def rename(self, path: str, to: str) -> None:
        """Replaces what was there."""

    def remove(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in it safe from a loss of power."""

    def lock(self, path: str) -> File | None:
        """Make the file and hold it until it is closed; None where another process holds it."""


class SystemFile:
    """A file of the operating system."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def write(self, chunk: bytes) -> int:
        return os.write(self.fd, chunk)

    def sync(self) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(self.fd, fcntl.F_FULLFSYNC)  # fsync there stops at the drive's own cache
        else:
            os.fdatasync(self.fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def close(self) -> None:
        os.close(self.fd)


def regular(path: str, flags: int) -> int:
    """A descriptor of a regular file. OSError for a pipe, a device or a directory: opening one might wait."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)  # a regular file never blocks anyway
    except OSError as failure:
        if failure.errno == errno.ENXIO:  # a pipe that nobody reads
            raise _no_file(path) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _no_file(path)
    return fd


def _no_file(path: str) -> OSError:
    return OSError(errno.EINVAL, "is no regular file", path)


class SystemDisk:
    """The operating system's files."""

    def reach(self, point: str) -> None:
        """Nothing happens."""

    def create(self, path: str) -> File:
        return SystemFile(regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))

    def append_to(self, path: str) -> File:
        return SystemFile(regular(path, os.O_WRONLY | os.O_APPEND))

    def read(self, path: str, offset: int, most: int) -> bytes:
        fd = regular(path, os.O_RDONLY)
        try:
            chunks = []
            while most > 0:
                chunk = os.pread(fd, most, offset)
                if not chunk:
                    break
                chunks.append(chunk)
                offset += len(chunk)
                most -= len(chunk)
        finally:
            os.close(fd)
        return b"".join(chunks)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110 - paths are plain text here

    def size(self, path: str) -> int:
        return os.stat(path).st_size  # noqa: PTH116 - paths are plain text here

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))  # noqa: PTH208 - paths are plain text here
        except FileNotFoundError:
            return []

    def make_directory(self, path: str) -> None:
        if not self.exists(path):
            os.mkdir(path, 0o755)  # noqa: PTH102 - paths are plain text here

    def rename(self, path: str, to: str) -> None:
        os.replace(path, to)  # noqa: PTH105 - paths are plain text here

    def remove(self, path: str) -> None:
        os.unlink(path)  # noqa: PTH108 - paths are plain text here

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> File | None:
        fd = regular(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return SystemFile(fd)
