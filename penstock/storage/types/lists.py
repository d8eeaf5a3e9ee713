"""Lists: items in order, pushed and popped at both ends.

What happens in the middle happens in C: a deque is turned until the place is at its end, or copied as a whole.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # items that are measured for an estimate


class List(Collection):
    """Items, the leftmost first. Positions count from 0 and lie within the list."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[bytes] = ()) -> None:
        self.items: deque[bytes] = deque(items)

    def __len__(self) -> int:
        return len(self.items)

    def copy(self) -> "List":
        return List(self.items)

    def memory_usage(self) -> int:
        count = len(self.items)
        sampled = [len(item) for item in islice(self.items, SAMPLED)]
        return 700 + count * PART_OVERHEAD + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from self.items

    # -- the ends ---------------------------------------------------------------------------------------------------

    def pop(self, left: bool, count: int) -> list[bytes]:
        """Take out so many items, or all there are, from one end; the outermost first."""
        items = self.items
        if count >= len(items):
            popped = list(items)
            items.clear()
            if not left:
                popped.reverse()
            return popped
        take = items.popleft if left else items.pop
        return [take() for _ in range(count)]

    def trim(self, start: int, stop: int) -> None:
        """Keep the items from start up to stop, exclusively."""
        items = self.items
        length = len(items)
        if stop - start < length // 2:
            self.items = deque(self.slice(start, stop))
            return
        for _ in range(start):
            items.popleft()
        for _ in range(length - stop):
            items.pop()

    # -- the middle -------------------------------------------------------------------------------------------------

    def slice(self, start: int, stop: int) -> list[bytes]:
        """The items from start up to stop, exclusively. O(its size), and a turn of the deque to get there."""
        items = self.items
        if stop - start == len(items):
            return list(items)
        items.rotate(-start)
        found = list(islice(items, stop - start))
        items.rotate(start)
        return found

    def remove(self, item: bytes, most: int, from_left: bool) -> int:
        """Take out so many items that equal one, seen from one end; how many were found."""
        found = min(self.items.count(item), most)
        if found <= 1 and from_left:
            if found:
                self.items.remove(item)
            return found
        kept = list(self.items)
        if not from_left:
            kept.reverse()
        parts: list[bytes] = []
        after = 0
        for _ in range(found):
            at = kept.index(item, after)
            parts += kept[after:at]
            after = at + 1
        if found:
            parts += kept[after:]
            if not from_left:
                parts.reverse()
            self.items = deque(parts)
        return found

    def positions(self, item: bytes, skipped: int, most: int, longest: int, from_left: bool) -> list[int]:
        """Where an item is, seen from one end: at most so many places after the first `skipped`.

        Only the first `longest` items are looked at. The places are counted from the left.
        """
        looked_at = min(longest, len(self.items))
        if from_left and not skipped and most == 1:
            try:
                return [self.items.index(item, 0, looked_at)]
            except ValueError:
                return []
        searched = list(islice(self.items if from_left else reversed(self.items), looked_at))
        found: list[int] = []
        after = 0
        try:
            while len(found) < skipped + most:
                after = searched.index(item, after) + 1
                found.append(after - 1)
        except ValueError:
            pass
        places = found[skipped:]
        return places if from_left else [len(self.items) - 1 - place for place in places]
