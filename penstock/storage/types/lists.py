"""Lists: items in order, pushed and popped at both ends.

A list is a deque. An operation in the middle rotates the deque, or copies it as a whole; both are loops in C.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.types.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # items measured for the estimate of memory_usage


class List(Collection):
    """Items, the leftmost first. Positions count from 0 and are within the list.

    In the costs, n is the number of items.
    """

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
        """Remove and return `count` items, or all if there are fewer, from one end; the outermost first. O(count)."""
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
        """Keep the items from `start` up to `stop` (not included).

        O(items removed) if at most half of them are removed, else as `slice`.
        """
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
        """The items from `start` up to `stop` (not included). O(stop - start), and a rotation of O(start) and back."""
        items = self.items
        if stop - start == len(items):
            return list(items)
        items.rotate(-start)
        found = list(islice(items, stop - start))
        items.rotate(start)
        return found

    def remove(self, item: bytes, max_count: int, from_left: bool) -> int:
        """Remove at most `max_count` items that equal `item`, from one end; returns how many. O(n)."""
        found = min(self.items.count(item), max_count)
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

    def positions(self, item: bytes, skipped: int, max_count: int, max_scanned: int, from_left: bool) -> list[int]:
        """Positions of an item, searched from one end: at most `max_count` after the first `skipped`.

        O(items searched). Only the first `max_scanned` items are searched. Positions always count from the left.
        """
        looked_at = min(max_scanned, len(self.items))
        if from_left and not skipped and max_count == 1:
            try:
                return [self.items.index(item, 0, looked_at)]
            except ValueError:
                return []
        searched = list(islice(self.items if from_left else reversed(self.items), looked_at))
        found: list[int] = []
        after = 0
        try:
            while len(found) < skipped + max_count:
                after = searched.index(item, after) + 1
                found.append(after - 1)
        except ValueError:
            pass
        places = found[skipped:]
        return places if from_left else [len(self.items) - 1 - index for index in places]
