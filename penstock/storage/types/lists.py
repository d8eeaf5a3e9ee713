"""Lists: items in order, pushed and popped at both ends.

Both ends of a list are plain lists of a few items, where pushing and popping is cheap. What lies between is in nodes
(list_nodes.py, node_chunks.py), which take a quarter of the memory. An end that has grown to twice a node's items gives
half of them to a node; an end that is empty takes the next node's items.
"""

from collections.abc import Iterator
from typing import Final

from penstock.native.listpack_sizes import text_size, texts_size
from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.list_nodes import MOST_ITEMS, NODE_ITEMS, ListNode, count_of, items_of, may_have, node_of
from penstock.storage.types.node_chunks import NodeChunks, without

NODE_BYTES: Final = [0, 4096, 8192, 16384, 32768, 65536]  # by the negative of list-max-listpack-size
LARGEST_NODE: Final = 8192  # bytes, where list-max-listpack-size counts items
LISTPACK_BYTES: Final = 7  # of an empty one
UNLIMITED: Final = 1 << 61
OWN_BYTES: Final = 350  # of the object and its containers, about
NODES_BYTES: Final = 350  # of the containers of the nodes
NODE_OVERHEAD: Final = 41  # bytes of a node beside its items


class List(Collection):
    """Items, the leftmost first. Positions count from 0 and are within the list.

    is_quicklist: Redis would keep it as a quicklist, which it is once it outgrew one listpack, until it has shrunk to
    half of that. (Redis looks whether the rest is in one node; here it is taken for such.)
    packed_bytes: what the items take in one listpack. In the costs, n is the number of items.

    Invariants: the items are `_left` backwards, those of `_nodes`, then `_right`, `length` in all; `_nodes` is None
    where there is none; each end has less than MOST_ITEMS items.
    """

    __slots__ = ("_left", "_nodes", "_right", "is_quicklist", "length", "packed_bytes")

    def __init__(self, items: list[bytes] | None = None) -> None:
        self.counts = None
        self._left: list[bytes] = []
        self._right: list[bytes] = []
        self._nodes: NodeChunks | None = None
        self.length = 0
        self.packed_bytes = LISTPACK_BYTES
        self.is_quicklist = False
        if items is not None:
            self.push(False, items)

    def __len__(self) -> int:
        return self.length

    def copy(self) -> "List":
        copied = List()
        copied._left = self._left.copy()
        copied._right = self._right.copy()
        copied._nodes = None if self._nodes is None else self._nodes.copy()
        copied.length = self.length
        copied.packed_bytes = self.packed_bytes
        copied.is_quicklist = self.is_quicklist
        return copied

    def memory_usage(self) -> int:
        size = OWN_BYTES + self.packed_bytes + (len(self._left) + len(self._right)) * PART_OVERHEAD
        if self._nodes is not None:
            size += NODES_BYTES + self._between() // NODE_ITEMS * NODE_OVERHEAD
        return size

    def parts(self) -> Iterator[bytes]:
        return iter(self)

    def __iter__(self) -> Iterator[bytes]:
        """All items. The list must not change meanwhile."""
        yield from reversed(self._left)
        if self._nodes is not None:
            for node in self._nodes:
                yield from items_of(node)
        yield from self._right

    # -- the encoding of Redis --------------------------------------------------------------------------------------

    def grow(self, items: list[bytes], limit: int) -> None:
        """Take note that items are about to be added, or one of them set. limit: list-max-listpack-size."""
        if not self.is_quicklist:
            most_items, most_bytes = _node_limits(limit)
            size = self.packed_bytes
            for item in items:
                size += len(item)
            self.is_quicklist = size > most_bytes or self.length + len(items) > most_items

    def shrink(self, limit: int) -> None:
        """Take note that items were removed, or one of them was set."""
        if self.is_quicklist:
            most_items, most_bytes = _node_limits(limit)
            if limit < 0:
                most_bytes //= 2
            self.is_quicklist = self.packed_bytes > most_bytes or self.length > most_items // 2

    def settle(self, limit: int) -> None:
        """Choose the encoding by the items, where their history is not known: read from a file."""
        most_items, most_bytes = _node_limits(limit)
        self.is_quicklist = self.packed_bytes > most_bytes or self.length > most_items

    # -- the ends ---------------------------------------------------------------------------------------------------

    def push(self, left: bool, items: list[bytes]) -> None:
        """Add items one by one at one end. O(items)."""
        end = self._left if left else self._right
        before = self.length
        length = before + len(items)
        if len(items) == 1:
            end.append(items[0])
            self.packed_bytes += text_size(items[0])
        else:
            end += items
            self.packed_bytes += texts_size(items)
        self.length = length
        if before ^ length > before & length:
            self.recount(before, length)
        if len(end) >= MOST_ITEMS:
            self._give(end, left)

    def _give(self, end: list[bytes], left: bool) -> None:
        """Give the inner items of an end to nodes, all but NODE_ITEMS to twice as many."""
        if self._nodes is None:
            self._nodes = NodeChunks()
        given = len(end) // NODE_ITEMS * NODE_ITEMS - NODE_ITEMS
        for start in range(0, given, NODE_ITEMS):
            inner = end[start : start + NODE_ITEMS]
            if left:
                inner.reverse()
            self._nodes.add(left, node_of(inner))
        del end[:given]

    def _take(self, left: bool) -> list[bytes]:
        """An end that has items, unless the list is empty; the outermost is the last one of it.

        An end that had none takes the next node's items, or half of the other end's.
        """
        end = self._left if left else self._right
        if end:
            return end
        nodes = self._nodes
        if nodes is not None:
            end += nodes.take(left)
            if nodes.is_empty():
                self._nodes = None
            if left:
                end.reverse()
            return end
        other = self._right if left else self._left
        half = (len(other) + 1) // 2
        end += other[:half]
        end.reverse()
        del other[:half]
        return end

    def pop_one(self, left: bool) -> bytes:
        """Remove and return the item at one end; there must be one. O(1)."""
        item = ((self._left if left else self._right) or self._take(left)).pop()
        self.packed_bytes -= text_size(item)
        before = self.length
        self.length = before - 1
        if not before & before - 1:
            self.recount(before, before - 1)
        return item

    def pop(self, left: bool, count: int) -> list[bytes]:
        """Remove and return `count` items, or all if there are fewer, from one end; the outermost first. O(count)."""
        popped: list[bytes] = []
        while len(popped) < count:
            end = self._take(left)
            if not end:
                break
            rest = max(len(end) - (count - len(popped)), 0)
            outer = end[rest:]
            outer.reverse()
            popped += outer
            del end[rest:]
        self.packed_bytes -= texts_size(popped)
        self.length -= len(popped)
        self.recount(self.length + len(popped), self.length)
        return popped

    def trim(self, start: int, stop: int) -> None:
        """Keep the items from `start` up to `stop` (not included).

        O(items removed) if at most half of them are removed, else as `slice`.
        """
        length = self.length
        if stop - start < length // 2:
            self._set(self.slice(start, stop))
            return
        if start > 0:
            self.pop(True, start)
        if stop < length:
            self.pop(False, length - stop)

    def _set(self, items: list[bytes]) -> None:
        """Have these items and no other. O(items)."""
        self._left = []
        self._right = []
        self._nodes = None
        self.recount(self.length, 0)
        self.length = 0
        self.packed_bytes = LISTPACK_BYTES
        self.push(False, items)

    # -- the middle -------------------------------------------------------------------------------------------------

    def _between(self) -> int:
        """How many items are in nodes. O(1)."""
        return self.length - len(self._left) - len(self._right)

    def item(self, at: int) -> bytes:
        """The item at an index. O(1); after items were inserted or removed between, a step for thousands of items."""
        left = self._left
        if at < len(left):
            return left[-1 - at]
        behind = at - (self.length - len(self._right))
        if behind >= 0:
            return self._right[behind]
        assert self._nodes is not None, "there are nodes"
        return self._nodes.item(at - len(left))

    def slice(self, start: int, stop: int) -> list[bytes]:
        """The items from `start` up to `stop` (not included). O(stop - start), and to find the first as `item`."""
        left = self._left
        found: list[bytes] = []
        if left:
            found = left[::-1][start:stop]
            start, stop = max(start - len(left), 0), stop - len(left)
        between = self._between()
        if start < min(stop, between):
            assert self._nodes is not None, "there are nodes"
            part = self._nodes.part(start, min(stop, between))
            found = found + part if found else part
        if stop > between:
            found += self._right[max(start - between, 0) : stop - between]
        return found

    def replace(self, at: int, item: bytes) -> None:
        """Set the item at an index. As `item`."""
        self.packed_bytes += text_size(item) - text_size(self.item(at))
        left = self._left
        if at < len(left):
            left[-1 - at] = item
            return
        behind = at - (self.length - len(self._right))
        if behind >= 0:
            self._right[behind] = item
            return
        assert self._nodes is not None, "there are nodes"
        self._nodes.replace(at - len(left), item)

    def insert(self, at: int, item: bytes) -> None:
        """Insert an item before the one at an index, or behind all. As `item`."""
        left, right = self._left, self._right
        behind = at - (self.length - len(right))
        self.packed_bytes += text_size(item)
        self.length += 1
        self.recount(self.length - 1, self.length)
        if at <= len(left):
            left.insert(len(left) - at, item)
            if len(left) >= MOST_ITEMS:
                self._give(left, True)
            return
        if behind >= 0:
            right.insert(behind, item)
            if len(right) >= MOST_ITEMS:
                self._give(right, False)
            return
        assert self._nodes is not None, "there are nodes"
        self._nodes.insert(at - len(left), item)

    def remove(self, item: bytes, max_count: int, from_left: bool) -> int:
        """Remove at most `max_count` items that equal `item`, from one end; returns how many. O(n)."""
        removed = without(self._left if from_left else self._right, item, max_count, False)
        nodes = self._nodes
        if nodes is not None and removed < max_count:
            removed += nodes.remove(item, max_count - removed, from_left)
            if nodes.is_empty():
                self._nodes = None
        if removed < max_count:
            removed += without(self._right if from_left else self._left, item, max_count - removed, True)
        self.packed_bytes -= removed * text_size(item)
        self.length -= removed
        self.recount(self.length + removed, self.length)
        return removed

    def positions(self, item: bytes, skipped: int, max_count: int, max_scanned: int, from_left: bool) -> list[int]:
        """Positions of an item, searched from one end: at most `max_count` after the first `skipped`.

        O(items searched). Only the first `max_scanned` items are searched. Positions always count from the left.
        """
        found: list[int] = []
        passed = 0
        for node in self._all_nodes(from_left):
            if may_have(node, item):
                items = items_of(node)
                if not from_left:
                    items.reverse()
                at = -1
                for _ in range(items.count(item)):
                    at = items.index(item, at + 1)
                    if passed + at < max_scanned:
                        found.append(passed + at)
            passed += count_of(node)
            if passed >= max_scanned or len(found) - skipped >= max_count:
                break
        places = found[skipped:][:max_count]
        return places if from_left else [self.length - 1 - place for place in places]

    def _all_nodes(self, from_left: bool) -> Iterator[ListNode]:
        """All items, each end as a node, from one end."""
        yield self._left[::-1] if from_left else self._right
        if self._nodes is not None:
            yield from self._nodes if from_left else self._nodes.backwards()
        yield self._right if from_left else self._left[::-1]

    def check(self) -> None:
        """Assert the invariants."""
        assert self.length, "an empty list is no value"
        assert self.packed_bytes == LISTPACK_BYTES + texts_size(list(self)), "the size is not that of the items"
        assert len(self._left) < MOST_ITEMS and len(self._right) < MOST_ITEMS, "an end is too long"
        counts = [count_of(node) for node in self._nodes or ()]
        assert self._between() == sum(counts), "the count of the items in nodes is wrong"
        if self._nodes is not None:
            assert not self._nodes.is_empty(), "no nodes, but room for them"
            self._nodes.check()


def _node_limits(limit: int) -> tuple[int, int]:
    """How many items, and how many bytes, a listpack may have by list-max-listpack-size."""
    if limit < 0:
        return UNLIMITED, NODE_BYTES[-limit if limit > -5 else 5]
    return limit if limit else 1, LARGEST_NODE
