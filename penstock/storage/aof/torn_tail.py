"""What a power failure may leave at the end of a file."""

from typing import Final

from penstock.storage.aof.disk import Disk

ZEROS_BYTES: Final = 1024 * 1024


def only_zeros(disk: Disk, path: str, offset: int) -> bool:
    """Whether a file has only zeros from an offset on, as a power failure may leave after a write. O(bytes)."""
    while True:
        block = disk.read(path, offset, ZEROS_BYTES)
        if not block:
            return True
        if block.strip(b"\0"):
            return False
        offset += len(block)
