"""Replaces a small file as a whole, so that a crash leaves the old one or the new one."""

import os
from contextlib import suppress
from pathlib import Path


def replace(path: Path, content: bytes, permissions: int) -> None:
    """Write the file anew: beside the old one, synced, then renamed, and the directory synced.

    OSError if that fails: the old one stays then. Where it is the last sync that fails, the old one is put back; after
    a power failure it may be either.
    """
    before = (path.read_bytes(), permissions_of(path, permissions)) if path.exists() else None
    _put(path, content, permissions)
    try:
        with suppress(PermissionError):  # a directory may be written to, and not read
            sync_directory(str(path.parent))
    except OSError:
        with suppress(OSError):
            if before is None:
                path.unlink()
            else:
                _put(path, *before)
        raise


def _put(path: Path, content: bytes, permissions: int) -> None:
    """Write the file anew, but for the directory's sync. OSError if that fails: the old one stays."""
    import tempfile  # imported late: it brings much that a server's start can do without

    with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=path.name + ".", delete=False) as temporary:
        try:
            temporary.write(content)
            temporary.flush()
            os.fsync(temporary.fileno())
            Path(temporary.name).chmod(permissions)
            Path(temporary.name).replace(path)
        except OSError:
            Path(temporary.name).unlink()
            raise


def sync_directory(path: str) -> None:
    """Make file creations, renames and removals in a directory safe from a power failure."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def permissions_of(path: Path, new: int) -> int:
    """The file's permissions, or `new` if there is none."""
    return path.stat().st_mode & 0o777 if path.exists() else new
