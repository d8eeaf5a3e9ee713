"""The disk as the log uses it: a few calls, so that a test can replace it.

`reach` marks a moment of writing, syncing or swapping files. It does nothing here; a test's disk may fail, stall or
end the process there.
"""

import errno
import fcntl
import os
import stat
import struct
import sys
from typing import Final, Protocol

from penstock.config import whole_file

# Linux: FS_IOC_RESVSP64 (linux/falloc.h) is fallocate with FALLOC_FL_KEEP_SIZE. Python's fcntl module can call it, but
# not fallocate: os.posix_fallocate changes the file's size.
LINUX_SPACE: Final = struct.Struct("hhqqiI4i")  # struct space_resv: type, whence, start, length, sysid, pid, unused
LINUX_RESERVE: Final = 1 << 30 | LINUX_SPACE.size << 16 | ord("X") << 8 | 42  # _IOW('X', 42, struct space_resv)
# macOS: sys/fcntl.h
DARWIN_SPACE: Final = struct.Struct("Iiqqq")  # fstore_t: flags, mode of position, offset, length, bytes allocated
DARWIN_RESERVE: Final = 42  # F_PREALLOCATE
DARWIN_ALL: Final = 4  # F_ALLOCATEALL: all of it, or nothing
DARWIN_FROM_END: Final = 3  # F_PEOFPOSMODE: behind what is allocated
CANNOT_RESERVE: Final = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL)


class File(Protocol):
    """A file opened for appending."""

    def write(self, chunk: bytes) -> int:
        """Append; returns how many bytes were written, perhaps fewer than given. OSError if none were."""

    def sync(self) -> None:
        """Returns when all written bytes are safe from a power failure."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; room that was reserved behind them is given back. OSError if that fails."""

    def reserve(self, offset: int, size: int) -> bool:
        """Have room kept for `size` bytes from `offset` on, where the file or what was reserved ends.

        The file's size does not change. False if the file system cannot do that. OSError if there is no room; part of
        it may be reserved then (ext4).
        """

    def close(self) -> None:
        """Close the file; a lock on it is released."""


class Disk(Protocol):
    """Paths are text. Every call may raise OSError."""

    def reach(self, point: str) -> None:
        """Marks a named moment: a constant of append_log.py, log_directory.py or server/files/rewrite_child.py."""

    def create(self, path: str) -> File:
        """Create an empty file; replaces an existing one."""

    def append_to(self, path: str) -> File:
        """Open an existing file."""

    def read(self, path: str, offset: int, size: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def size(self, path: str) -> int:
        """The size of a file in bytes."""

    def names(self, path: str) -> list[str]:
        """The names in a directory; an empty list if there is no such directory."""

    def make_directory(self, path: str) -> None:
        """Create a directory, if there is none; its parent must exist."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file; replaces an existing one."""

    def remove(self, path: str) -> None:
        """Delete a file."""

    def sync_directory(self, path: str) -> None:
        """Make file creations, renames and removals in a directory safe from a power failure."""

    def lock(self, path: str) -> File | None:
        """Create a file and lock it until it is closed; None if another process has the lock."""


class SystemFile:
    """A file of the operating system. See File for the calls."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def write(self, chunk: bytes) -> int:
        return os.write(self.fd, chunk)

    def sync(self) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(self.fd, fcntl.F_FULLFSYNC)  # on macOS, fsync does not flush the drive's own cache
        else:
            os.fdatasync(self.fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def reserve(self, offset: int, size: int) -> bool:
        try:
            if sys.platform == "darwin":
                wanted = DARWIN_SPACE.pack(DARWIN_ALL, DARWIN_FROM_END, 0, size, 0)
                fcntl.fcntl(self.fd, DARWIN_RESERVE, wanted)
            else:
                fcntl.ioctl(self.fd, LINUX_RESERVE, LINUX_SPACE.pack(0, 0, offset, size, 0, 0, 0, 0, 0, 0))
        except InterruptedError:  # by a signal, in a tmpfs
            return self.reserve(offset, size)
        except OSError as failure:
            if failure.errno in CANNOT_RESERVE:
                return False
            raise
        return True

    def close(self) -> None:
        os.close(self.fd)


def open_regular(path: str, flags: int) -> int:
    """Open a regular file: its descriptor.

    OSError for a pipe, a device or a directory, because opening one might block, and where a symbolic link would be
    written through: a user that may make files in the directory must not choose which file elsewhere is changed.
    """
    if flags & os.O_ACCMODE != os.O_RDONLY:
        flags |= os.O_NOFOLLOW
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)  # O_NONBLOCK has no effect on a regular file
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link, which is not written through", path) from None
        if failure.errno == errno.ENXIO:  # a pipe without a reader
            raise _no_file(path) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _no_file(path)
    return fd


def _no_file(path: str) -> OSError:
    return OSError(errno.EINVAL, "is no regular file", path)


class SystemDisk:
    """The operating system's files. See Disk for the calls."""

    def reach(self, point: str) -> None:
        """Does nothing."""

    def create(self, path: str) -> File:
        return SystemFile(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND))

    def append_to(self, path: str) -> File:
        return SystemFile(open_regular(path, os.O_WRONLY | os.O_APPEND))

    def read(self, path: str, offset: int, size: int) -> bytes:
        fd = open_regular(path, os.O_RDONLY)
        try:
            chunks = []
            while size > 0:
                chunk = os.pread(fd, size, offset)
                if not chunk:
                    break
                chunks.append(chunk)
                offset += len(chunk)
                size -= len(chunk)
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
        whole_file.sync_directory(path)

    def lock(self, path: str) -> File | None:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return SystemFile(fd)
