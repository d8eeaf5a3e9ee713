"""A snapshot on a replication link: `$<length>` and the bytes, or `$EOF:<mark>`, the bytes, and the mark again."""

from typing import Final

MARK_BYTES: Final = 40
PIECE_BYTES: Final = 256 * 1024
UNKNOWN: Final = -1  # in place of a size
LONGEST_LENGTH: Final = 18  # digits


class SnapshotFrame:
    """Takes the snapshot's bytes out of what comes after its head, which is the first line that is not empty.

    size: of the snapshot in bytes; -1 where only its end will tell.
    """

    __slots__ = ("_held", "_left", "_mark", "is_whole", "size")

    def __init__(self, head: bytes) -> None:
        """ValueError where the line is no head of a snapshot."""
        self.size = UNKNOWN
        self._left = 0
        self._mark = self._held = b""
        if head.startswith(b"$EOF:") and len(head) == len(b"$EOF:") + MARK_BYTES:
            self._mark = head[-MARK_BYTES:]
        elif head.startswith(b"$") and head[1:].isdigit() and len(head) <= LONGEST_LENGTH:
            self.size = self._left = int(head[1:])
        else:
            raise ValueError(head.decode("utf-8", "backslashreplace"))
        self.is_whole = self.size == 0

    @property
    def wanted(self) -> int:
        """How many bytes may be read next: no more, for what follows is not the snapshot's."""
        return PIECE_BYTES if self._mark else min(self._left, PIECE_BYTES)

    def take(self, piece: bytes) -> bytes:
        """The bytes of the snapshot that are known by now. Behind the mark nothing comes before we acknowledge."""
        if not self._mark:
            ready = piece[: self._left]
            self._left -= len(ready)
            self.is_whole = not self._left
            return ready
        held = self._held + piece
        self.is_whole = held.endswith(self._mark)
        ready, self._held = held[:-MARK_BYTES], held[-MARK_BYTES:]
        return ready
