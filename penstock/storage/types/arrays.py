"""Arrays: byte strings at indexes from 0 to 2**64 - 2, most of which may be empty, and a cursor for appending."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from sortedcontainers import SortedList

from penstock.native.class_marks import mypyc_attr
from penstock.storage.types.collection import PART_OVERHEAD, Collection

MOST_INDEX: Final = 2**64 - 2
NONE: Final = -1  # nothing was inserted yet, or there is no item
SLICE: Final = 4096  # indexes that Redis keeps together, as ARINFO shows
SPARSE: Final = 10  # items up to which Redis keeps them as pairs
SAMPLED: Final = 64  # items that are measured for an estimate


@mypyc_attr(acyclic=True)
class Array(Collection):
    """Items by index.

    Invariants: `order` holds exactly the indexes of `items`. cursor: the index that was inserted last, or NONE; it
    stays when items are deleted.
    """

    __slots__ = ("cursor", "items", "order")

    def __init__(self) -> None:
        self.counts = None
        self.items: dict[int, bytes] = {}
        self.order: SortedList[int] = SortedList()
        self.cursor = NONE

    def __len__(self) -> int:
        """How many items there are; `extent` tells up to which index."""
        return len(self.items)

    def extent(self) -> int:
        """One more than the highest index that has an item."""
        return self.order[-1] + 1 if self.order else 0

    def copy(self) -> "Array":
        copied = Array()
        copied.items = dict(self.items)
        copied.order = self.order.copy()
        copied.cursor = self.cursor
        return copied

    def memory_usage(self) -> int:
        count = len(self.items)
        sampled = [len(item) for item in islice(self.items.values(), SAMPLED)]
        return 400 + count * (PART_OVERHEAD + 150) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield b"%d" % self.cursor
        for index in self.order:
            yield b"%d" % index
            yield self.items[index]

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, index: int, item: bytes) -> bool:
        """Set an item; whether there was none.  O(log n)."""
        is_new = index not in self.items
        if is_new:
            self.order.add(index)
        self.items[index] = item
        return is_new

    def remove(self, index: int) -> bool:
        """Take an item out; whether there was one.  O(log n)."""
        if self.items.pop(index, None) is None:
            return False
        self.order.remove(index)
        return True

    def remove_range(self, first: int, last: int) -> int:
        """Take out all items from an index to another; how many.  O(log n + their number)."""
        indexes = self.indexes(first, last)
        if len(indexes) == len(self.items):
            self.items.clear()
            self.order.clear()
            return len(indexes)
        for index in indexes:
            del self.items[index]
            self.order.remove(index)
        return len(indexes)

    def insert(self, items: Iterable[bytes]) -> None:
        """Set items behind the cursor, which follows. There must be room."""
        for item in items:
            self.cursor += 1
            self.put(self.cursor, item)

    def push_round(self, size: int, items: Iterable[bytes]) -> None:
        """Set items behind the cursor, round a ring of `size` places. Where that was another, it is laid out anew."""
        length = self.extent()
        if length and (size < length or (size > length and self.cursor != NONE and self.cursor + 1 < length)):
            self._lay_out(self._latest(min(size, length)))
        for item in items:
            self.cursor = (self.cursor + 1) % size
            self.put(self.cursor, item)

    def _latest(self, most: int) -> list[bytes]:
        """The items back from the cursor, round the end, to the first gap; the oldest first."""
        length = self.extent()
        place = length - 1 if self.cursor == NONE else self.cursor % length
        kept: list[bytes] = []
        while len(kept) < most and place in self.items:
            kept.append(self.items[place])
            place = place - 1 if place else length - 1
        kept.reverse()
        return kept

    def _lay_out(self, items: list[bytes]) -> None:
        self.items = dict(enumerate(items))
        self.order = SortedList(range(len(items)))
        self.cursor = len(items) - 1 if items else NONE

    # -- reading ----------------------------------------------------------------------------------------------------

    def indexes(self, first: int, last: int) -> list[int]:
        """The indexes that have items, from one to another, ascending.  O(log n + their number)."""
        return list(self.order.irange(first, last))

    def last_indexes(self, count: int) -> list[int]:
        """So many indexes back from the cursor, or from the end, round the beginning; the newest first."""
        length = self.extent()
        newest = self.cursor if self.cursor != NONE and self.cursor < length else length - 1
        return [(newest - back) % length for back in range(min(count, length))]

    def slice_sizes(self) -> dict[int, list[int]]:
        """The offsets in each slice of 4096 indexes that has items."""
        slices: dict[int, list[int]] = {}
        for index in self.order:
            slices.setdefault(index // SLICE, []).append(index % SLICE)
        return slices

    def check(self) -> None:
        """Assert the invariants."""
        assert list(self.order) == sorted(self.items)
        assert all(0 <= index <= MOST_INDEX for index in self.items)
        assert NONE <= self.cursor <= MOST_INDEX
