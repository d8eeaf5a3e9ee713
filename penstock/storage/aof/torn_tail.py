"""What a power failure leaves at the end of a file."""

from typing import Final

from penstock.storage.aof.disk import Disk

ZEROS_BYTES: Final = 1024 * 1024


def only_zeros(disk: Disk, path: str, offset: int) -> bool:
    """Whether nothing but zeros stands in a file from an offset on: what a loss of power may leave of a write."""
    while True:
        block = disk.read(path, offset, ZEROS_BYTES)
        if not block:
            return True
        if block.strip(b"\0"):
            return False
        offset += len(block)
