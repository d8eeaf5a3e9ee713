"""Entries of a group and a moment of each, found by entry and in order of time."""

from sortedcontainers import SortedList

from penstock.storage.deadlines import NEVER
from penstock.storage.streams.ids import StreamId


class EntryMoments:
    """Invariant: `_order` has exactly the cells (unix ms, id) of `times`. A change costs O(log n)."""

    __slots__ = ("_order", "times")

    def __init__(self) -> None:
        self.times: dict[StreamId, int] = {}
        self._order: SortedList[tuple[int, StreamId]] = SortedList()

    def set(self, entry_id: StreamId, when_ms: int) -> None:
        """Set or replace the moment of an entry; NEVER: it has none."""
        self.drop(entry_id)
        if when_ms != NEVER:
            self.times[entry_id] = when_ms
            self._order.add((when_ms, entry_id))

    def drop(self, entry_id: StreamId) -> None:
        when_ms = self.times.pop(entry_id, None)
        if when_ms is not None:
            self._order.remove((when_ms, entry_id))

    def first_ms(self) -> int:
        """The earliest moment; NEVER if there is none. O(1)."""
        return self._order[0][0] if self.times else NEVER

    def first(self) -> StreamId:
        """The entry with the earliest moment; there must be one. O(1)."""
        return self._order[0][1]

    def check(self) -> None:
        """Assert the invariant."""
        assert list(self._order) == sorted((when_ms, entry_id) for entry_id, when_ms in self.times.items())
