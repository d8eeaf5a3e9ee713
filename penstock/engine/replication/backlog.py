"""The end of the replication stream, kept for replicas with a cut link."""

from collections import deque


class Backlog:
    """The last bytes of the stream: `limit` of them at least, once there were so many.

    Example, with a limit of 4: after b"ab", b"cde", b"f" it has b"cde" and b"f", from offset 2 on.

    Invariant: `end` - `start` is the size of all pieces.
    """

    __slots__ = ("_pieces", "end", "limit", "start")

    def __init__(self, start: int, limit: int) -> None:
        """start: the offset of the first byte that will come."""
        self._pieces: deque[bytes] = deque()
        self.limit = limit
        self.start = self.end = start

    def append(self, piece: bytes) -> None:
        """More of the stream. O(1)."""
        self._pieces.append(piece)
        self.end += len(piece)
        while self._pieces and self.end - self.start - len(self._pieces[0]) >= self.limit:
            self.start += len(self._pieces.popleft())

    def has(self, offset: int) -> bool:
        """Whether everything from an offset on is here."""
        return self.start <= offset <= self.end

    def since(self, offset: int) -> bytes:
        """Everything from an offset on, which `has` has allowed. O(bytes kept)."""
        return b"".join(self._pieces)[offset - self.start :]
