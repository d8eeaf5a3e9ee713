"""How many bytes a stream's entries have, for MAXBYTES: the lengths of all names and values."""

from collections.abc import Callable
from typing import TypeAlias

from penstock.storage.streams.ids import ZERO, StreamId
from penstock.storage.streams.segment import Segment, SegmentRun

SizeOf: TypeAlias = Callable[[bytes], int]
"""The bytes of the names and values of an entry, given as it is sent."""


class ByteCount:
    """The sum over the live entries up to `counted_to`; those behind it were not looked at yet."""

    __slots__ = ("_size_of", "counted_to", "total")

    def __init__(self, size_of: SizeOf) -> None:
        self._size_of = size_of
        self.counted_to: StreamId = ZERO
        self.total = 0

    def count(self, segment: Segment, start: int, stop: int) -> None:
        """The live slots [start, stop) are the next entries behind `counted_to`. O(fields)."""
        for slot in range(start, stop):
            self.total += self._size_of(segment.entry(slot))
        self.counted_to = segment.id_at(stop - 1)

    def size_at(self, segment: Segment, slot: int) -> int:
        """The bytes of an entry that were counted; 0 if it was not counted yet. O(fields)."""
        return self._size_of(segment.entry(slot)) if segment.id_at(slot) <= self.counted_to else 0

    def forget(self, segment: Segment, start: int, stop: int) -> None:
        """The live slots [start, stop) are about to be removed. O(fields)."""
        for slot in range(start, stop):
            self.total -= self.size_at(segment, slot)

    def check(self, runs: list[SegmentRun]) -> None:
        """Assert that the sum is right. runs: the stream's live entries."""
        slots = [(segment, slot) for segment, start, stop in runs for slot in range(start, stop)]
        assert self.total == sum(self.size_at(segment, slot) for segment, slot in slots), "the bytes are miscounted"

    def copy(self) -> "ByteCount":
        copied = ByteCount(self._size_of)
        copied.counted_to, copied.total = self.counted_to, self.total
        return copied
