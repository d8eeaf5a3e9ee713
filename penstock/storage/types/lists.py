"""Lists: items in order, pushed and popped at both ends.

A list is a deque. An operation in the middle rotates the deque, or copies it as a whole; both are loops in C.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.streams.listpack_nodes import text_size, texts_size
from penstock.storage.types.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # items measured for the estimate of memory_usage
NODE_BYTES: Final = [0, 4096, 8192, 16384, 32768, 65536]  # by the negative of list-max-listpack-size
LARGEST_NODE: Final = 8192  # bytes, where list-max-listpack-size counts items
LISTPACK_BYTES: Final = 7  # of an empty one
UNLIMITED: Final = 1 << 61


class List(Collection):
    """Items, the leftmost first. Positions count from 0 and are within the list.

    is_quicklist: Redis would keep it as a quicklist, which it is once it outgrew one listpack, until it has shrunk to
    half of that. (Redis looks whether the rest is in one node; here it is taken for such.)
    packed_bytes: what the items take in one listpack. In the costs, n is the number of items.
    """

    __slots__ = ("is_quicklist", "items", "packed_bytes")

    def __init__(self, items: Iterable[bytes] = ()) -> None:
        self.items: deque[bytes] = deque(items)
        self.packed_bytes = LISTPACK_BYTES + texts_size(self.items)
        self.is_quicklist = False

    def __len__(self) -> int:
        return len(self.items)

    def copy(self) -> "List":
        copied = List()
        copied.items = self.items.copy()
        copied.packed_bytes = self.packed_bytes
        copied.is_quicklist = self.is_quicklist
        return copied

    def memory_usage(self) -> int:
        count = len(self.items)
        sampled = [len(item) for item in islice(self.items, SAMPLED)]
        return 700 + count * PART_OVERHEAD + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        yield from self.items

    # -- the encoding of Redis --------------------------------------------------------------------------------------

    def grow(self, items: list[bytes], limit: int) -> None:
        """Take note that items are about to be added, or one of them set. limit: list-max-listpack-size."""
        if not self.is_quicklist:
            most_items, most_bytes = _node_limits(limit)
            size = self.packed_bytes
            for item in items:
                size += len(item)
            self.is_quicklist = size > most_bytes or len(self.items) + len(items) > most_items

    def shrink(self, limit: int) -> None:
        """Take note that items were removed, or one of them was set."""
        if self.is_quicklist:
            most_items, most_bytes = _node_limits(limit)
            if limit < 0:
                most_bytes //= 2
            self.is_quicklist = self.packed_bytes > most_bytes or len(self.items) > most_items // 2

    def settle(self, limit: int) -> None:
        """Choose the encoding by the items, where their history is not known: read from a file."""
        most_items, most_bytes = _node_limits(limit)
        self.is_quicklist = self.packed_bytes > most_bytes or len(self.items) > most_items

    # -- the ends ---------------------------------------------------------------------------------------------------

    def push(self, left: bool, items: list[bytes]) -> None:
        """Add items one by one at one end. O(items)."""
        if len(items) == 1:
            item = items[0]
            if left:
                self.items.appendleft(item)
            else:
                self.items.append(item)
            self.packed_bytes += text_size(item)
            return
        if left:
            self.items.extendleft(items)
        else:
            self.items.extend(items)
        self.packed_bytes += texts_size(items)

    def pop_one(self, left: bool) -> bytes:
        """Remove and return the item at one end; there must be one. O(1)."""
        item = self.items.popleft() if left else self.items.pop()
        self.packed_bytes -= text_size(item)
        return item

    def pop(self, left: bool, count: int) -> list[bytes]:
        """Remove and return `count` items, or all if there are fewer, from one end; the outermost first. O(count)."""
        items = self.items
        if count >= len(items):
            popped = list(items)
            items.clear()
            self.packed_bytes = LISTPACK_BYTES
            if not left:
                popped.reverse()
            return popped
        take = items.popleft if left else items.pop
        popped = [take() for _ in range(count)]
        self.packed_bytes -= texts_size(popped)
        return popped

    def trim(self, start: int, stop: int) -> None:
        """Keep the items from `start` up to `stop` (not included).

        O(items removed) if at most half of them are removed, else as `slice`.
        """
        items = self.items
        length = len(items)
        if stop - start < length // 2:
            self.items = deque(self.slice(start, stop))
            self.packed_bytes = LISTPACK_BYTES + texts_size(self.items)
            return
        self.pop(True, start)
        self.pop(False, length - stop)

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

    def replace(self, at: int, item: bytes) -> None:
        """Set the item at an index, which may be negative. O(n)."""
        self.packed_bytes += text_size(item) - text_size(self.items[at])
        self.items[at] = item

    def insert(self, at: int, item: bytes) -> None:
        """Insert an item before the one at an index. O(n)."""
        self.items.insert(at, item)
        self.packed_bytes += text_size(item)

    def remove(self, item: bytes, max_count: int, from_left: bool) -> int:
        """Remove at most `max_count` items that equal `item`, from one end; returns how many. O(n)."""
        found = min(self.items.count(item), max_count)
        self.packed_bytes -= found * text_size(item)
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

    def check(self) -> None:
        """Assert the invariants."""
        assert self.items, "an empty list is no value"
        assert self.packed_bytes == LISTPACK_BYTES + texts_size(self.items), "the size is not that of the items"


def _node_limits(limit: int) -> tuple[int, int]:
    """How many items, and how many bytes, a listpack may have by list-max-listpack-size."""
    if limit < 0:
        return UNLIMITED, NODE_BYTES[-limit if limit > -5 else 5]
    return limit if limit else 1, LARGEST_NODE
