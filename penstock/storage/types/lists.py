"""Lists: items in order, pushed and popped at both ends.

All items of a small list are in one node (list_nodes.py), a bytes object if none is long. A larger one has a node at
each end, and between them nodes that are not changed by pushing and popping (node_chunks.py). An end that has grown to
twice a node's items gives the inner ones to a node between; an end that is empty takes the next node.
"""

from collections.abc import Iterator
from typing import Final

from penstock.native.class_marks import mypyc_attr
from penstock.native.listpack_sizes import text_size, texts_size
from penstock.storage.types.collection import LIST_MARK, PART_OVERHEAD, Collection
from penstock.storage.types.list_nodes import (
    EMPTY,
    LONGEST_PACKED,
    MOST_ITEMS,
    NODE_ITEMS,
    ListNode,
    count_of,
    item_at,
    items_of,
    joined,
    may_have,
    node_of,
    part_of,
    place_from_left,
    place_from_right,
    with_item,
    with_other,
    without_item,
    without_place,
)  # fmt: skip
from penstock.storage.types.node_chunks import NodeChunks, without

NODE_BYTES: Final = [0, 4096, 8192, 16384, 32768, 65536]  # by the negative of list-max-listpack-size
LARGEST_NODE: Final = 8192  # bytes, where list-max-listpack-size counts items
LISTPACK_BYTES: Final = 7  # of an empty one
UNLIMITED: Final = 1 << 61
LARGEST_END: Final = 8192  # bytes of a packed end: each push and pop copies it
SIZE_BYTES: Final = 2  # of `packed_bytes` in a text at rest
OWN_BYTES: Final = 150  # of the object, about
NODES_BYTES: Final = 350  # of the containers of the nodes
NODE_OVERHEAD: Final = 41  # bytes of a node beside its items


@mypyc_attr(acyclic=True)
class List(Collection):
    """Items, the leftmost first. Positions count from 0 and are within the list.

    is_quicklist: Redis would keep it as a quicklist, which it is once it outgrew one listpack, until it has shrunk to
    half of that. (Redis looks whether the rest is in one node; here it is taken for such.)
    packed_bytes: what the items take in one listpack. In the costs, n is the number of items.

    Invariants: the items are those of `_left`, of `_nodes`, then of `_right`, `length` in all; `_nodes` is None where
    there is none; where it is, and one end has all items, that is `_right`.
    """

    __slots__ = ("_left", "_nodes", "_right", "is_quicklist", "length", "packed_bytes")

    def __init__(self, items: list[bytes] | None = None) -> None:
        self.counts = None
        self._left: ListNode = EMPTY
        self._right: ListNode = EMPTY
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
        left, right = self._left, self._right
        copied._left = left if isinstance(left, bytes) else left.copy()
        copied._right = right if isinstance(right, bytes) else right.copy()
        copied._nodes = None if self._nodes is None else self._nodes.copy()
        copied.length = self.length
        copied.packed_bytes = self.packed_bytes
        copied.is_quicklist = self.is_quicklist
        return copied

    def at_rest(self, most: int) -> bytes:
        """Its text at rest, of at most so many bytes; empty if it is too large or has outgrown its first form."""
        node = self._right
        if not isinstance(node, bytes) or len(node) + 1 + SIZE_BYTES > most:
            return b""
        if self._nodes is not None or self.is_quicklist or count_of(self._left):
            return b""
        return b"%c%b%b" % (LIST_MARK, self.packed_bytes.to_bytes(SIZE_BYTES, "little"), node)

    @staticmethod
    def woken(text: bytes) -> "List":
        """The list that has this text at rest."""
        made = List()
        node = text[1 + SIZE_BYTES :]
        made._right = node
        made.length = node[0]
        made.packed_bytes = int.from_bytes(text[1 : 1 + SIZE_BYTES], "little")
        return made

    def memory_usage(self) -> int:
        size = OWN_BYTES + self.packed_bytes
        for end in (self._left, self._right):
            size += NODE_OVERHEAD if isinstance(end, bytes) else len(end) * PART_OVERHEAD
        if self._nodes is not None:
            size += NODES_BYTES + self._between() // NODE_ITEMS * NODE_OVERHEAD
        return size

    def parts(self) -> Iterator[bytes]:
        return iter(self)

    def __iter__(self) -> Iterator[bytes]:
        """All items. The list must not change meanwhile."""
        for node in self._all_nodes(True):
            yield from items_of(node)

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

    def choose_form(self, limit: int) -> None:
        """Choose the encoding by the items, where their history is not known: read from a file."""
        most_items, most_bytes = _node_limits(limit)
        self.is_quicklist = self.packed_bytes > most_bytes or self.length > most_items

    # -- the ends ---------------------------------------------------------------------------------------------------

    def push(self, left: bool, items: list[bytes]) -> None:
        """Add items one by one at one end. O(items)."""
        before = self.length
        length = before + len(items)
        self.length = length
        if len(items) == 1:
            self.packed_bytes += text_size(items[0])
            self._push_one(left, items[0])
        else:
            self.packed_bytes += texts_size(items)
            self._push_many(left, items)
        if before ^ length > before & length:
            self.recount(before, length)

    def _push_one(self, left: bool, item: bytes) -> None:
        in_left = left and self._has_left()
        end = self._left if in_left else self._right
        if isinstance(end, bytes):
            if end[0] < MOST_ITEMS and len(item) <= LONGEST_PACKED and len(end) < LARGEST_END:
                grown = with_item(end, left, item)
                if in_left:
                    self._left = grown
                else:
                    self._right = grown
                return
            end = items_of(end)
        if left:
            end.insert(0, item)
        else:
            end.append(item)
        self._set_end(left, end)

    def _push_many(self, left: bool, items: list[bytes]) -> None:
        end = self._left if left and self._has_left() else self._right
        if left:
            items = items[::-1]
        if isinstance(end, bytes) and end[0] + len(items) <= MOST_ITEMS and len(end) < LARGEST_END:
            added = node_of(items)
            if isinstance(added, bytes):
                grown = joined(added, end) if left else joined(end, added)
                if left and self._has_left():
                    self._left = grown
                else:
                    self._right = grown
                return
        held = items_of(end)
        self._set_end(left, items + held if left else held + items)

    def _has_left(self) -> bool:
        """Whether items at the left are in `_left`; else one end has all, or there are none there yet."""
        return self._nodes is not None or count_of(self._left) > 0

    def _set_end(self, left: bool, items: list[bytes]) -> None:
        """Set the items of an end that has grown; the inner ones go to nodes where they are too many. O(items).

        left: the left end; `_right`, where that has all items.
        """
        is_only = left and not self._has_left()
        count = len(items)
        if count <= MOST_ITEMS:
            if left and not is_only:
                self._left = _end_of(items)
            else:
                self._right = _end_of(items)
            return
        nodes = self._nodes
        if nodes is None:
            nodes = self._nodes = NodeChunks()
        given = count // NODE_ITEMS * NODE_ITEMS - NODE_ITEMS
        if left:
            for stop in range(count, count - given, -NODE_ITEMS):
                nodes.add(True, node_of(items[stop - NODE_ITEMS : stop]))
            self._left = _end_of(items[: count - given])
            if is_only:
                self._right = EMPTY
        else:
            for start in range(0, given, NODE_ITEMS):
                nodes.add(False, node_of(items[start : start + NODE_ITEMS]))
            self._right = _end_of(items[given:])

    def _take(self, left: bool) -> bool:
        """Fill an end that has no items; whether `_left` is the end to take from."""
        nodes = self._nodes
        if count_of(self._left if left else self._right) or nodes is None:
            return left and count_of(self._left) > 0
        node = nodes.take(left)
        if isinstance(node, list):
            node = node.copy()  # it may be shared
        if nodes.is_empty():
            self._nodes = None
        if left:
            self._left = node
        else:
            self._right = node
        return left

    def _tidy(self) -> None:
        """After items were removed: one end that has all items is `_right`."""
        if self._nodes is None and not count_of(self._right):
            self._right = self._left
            self._left = EMPTY

    def pop_one(self, left: bool) -> bytes:
        """Remove and return the item at one end; there must be one. O(1)."""
        from_left = self._take(left)
        end = self._left if from_left else self._right
        if isinstance(end, bytes):
            item, rest = without_item(end, left)
            if from_left:
                self._left = rest
            else:
                self._right = rest
        else:
            item = end.pop(0 if left else -1)
        self._tidy()
        self.packed_bytes -= text_size(item)
        before = self.length
        self.length = before - 1
        if not before & before - 1:
            self.recount(before, before - 1)
        return item

    def pop(self, left: bool, count: int) -> list[bytes]:
        """Remove and return `count` items, or all if there are fewer, from one end; the outermost first. O(count)."""
        popped: list[bytes] = []
        most = min(count, self.length)
        while len(popped) < most:
            from_left = self._take(left)
            items = items_of(self._left if from_left else self._right)
            some = min(len(items), most - len(popped))
            outer = items[:some] if left else items[len(items) - some :]
            if not left:
                outer.reverse()
            popped += outer
            rest = _end_of(items[some:] if left else items[: len(items) - some])
            if from_left:
                self._left = rest
            else:
                self._right = rest
            self._tidy()
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
        self._left = self._right = EMPTY
        self._nodes = None
        self.recount(self.length, 0)
        self.length = 0
        self.packed_bytes = LISTPACK_BYTES
        self.push(False, items)

    # -- the middle -------------------------------------------------------------------------------------------------

    def _between(self) -> int:
        """How many items are in nodes. O(1)."""
        return self.length - count_of(self._left) - count_of(self._right)

    def item(self, at: int) -> bytes:
        """The item at an index. O(1); after items were inserted or removed between, a step for thousands of items."""
        before = count_of(self._left)
        if at < before:
            return item_at(self._left, at)
        behind = at - (self.length - count_of(self._right))
        if behind >= 0:
            return item_at(self._right, behind)
        assert self._nodes is not None, "there are nodes"
        return self._nodes.item(at - before)

    def slice(self, start: int, stop: int) -> list[bytes]:
        """The items from `start` up to `stop` (not included). O(stop - start), and to find the first as `item`."""
        before, between = count_of(self._left), self._between()
        found: list[bytes] = []
        if start < min(stop, before):
            found = part_of(self._left, start, min(stop, before))
        start, stop = max(start - before, 0), stop - before
        if start < min(stop, between):
            assert self._nodes is not None, "there are nodes"
            part = self._nodes.part(start, min(stop, between))
            found = found + part if found else part
        if stop > between and start < stop:
            part = part_of(self._right, max(start - between, 0), stop - between)
            found = found + part if found else part
        return found

    def replace(self, at: int, item: bytes) -> None:
        """Set the item at an index. As `item`."""
        self.packed_bytes += text_size(item) - text_size(self.item(at))
        before = count_of(self._left)
        behind = at - (self.length - count_of(self._right))
        if at < before:
            self._left = with_other(self._left, at, item)
        elif behind >= 0:
            self._right = with_other(self._right, behind, item)
        else:
            assert self._nodes is not None, "there are nodes"
            self._nodes.replace(at - before, item)

    def insert(self, at: int, item: bytes) -> None:
        """Insert an item before the one at an index, or behind all. As `item`."""
        before = count_of(self._left)
        behind = at - (self.length - count_of(self._right))
        self.packed_bytes += text_size(item)
        self.length += 1
        self.recount(self.length - 1, self.length)
        if self._has_left() and at <= before:
            items = items_of(self._left)
            items.insert(at, item)
            self._set_end(True, items)
        elif behind >= 0:
            items = items_of(self._right)
            items.insert(behind, item)
            self._set_end(False, items)
        else:
            assert self._nodes is not None, "there are nodes"
            self._nodes.insert(at - before, item)

    def remove(self, item: bytes, max_count: int, from_left: bool) -> int:
        """Remove at most `max_count` items that equal `item`, from one end; returns how many. O(n)."""
        removed = self._remove_at(from_left, item, max_count, from_left)
        nodes = self._nodes
        if nodes is not None and removed < max_count:
            removed += nodes.remove(item, max_count - removed, from_left)
            if nodes.is_empty():
                self._nodes = None
        if removed < max_count:
            removed += self._remove_at(not from_left, item, max_count - removed, from_left)
        self._tidy()
        self.packed_bytes -= removed * text_size(item)
        self.length -= removed
        self.recount(self.length + removed, self.length)
        return removed

    def _remove_at(self, left: bool, item: bytes, max_count: int, from_left: bool) -> int:
        """As `remove`, of one end."""
        end = self._left if left else self._right
        if not may_have(end, item):
            return 0
        if isinstance(end, bytes) and max_count == 1:
            at = place_from_left(end, item) if from_left else place_from_right(end, item)
            if at < 0:
                return 0
            removed = 1
            rest: ListNode = without_place(end, at)
        else:
            items = items_of(end)
            removed = without(items, item, max_count, from_left)
            rest = _end_of(items) if removed else end
        if left:
            self._left = rest
        else:
            self._right = rest
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
        yield self._left if from_left else self._right
        if self._nodes is not None:
            yield from self._nodes if from_left else self._nodes.backwards()
        yield self._right if from_left else self._left

    def check(self) -> None:
        """Assert the invariants."""
        assert self.length, "an empty list is no value"
        assert self.packed_bytes == LISTPACK_BYTES + texts_size(list(self)), "the size is not that of the items"
        assert max(count_of(self._left), count_of(self._right)) <= MOST_ITEMS, "an end is too long"
        assert self._nodes is not None or count_of(self._right), "the only end is the left one"
        counts = [count_of(node) for node in self._nodes or ()]
        assert self._between() == sum(counts), "the count of the items in nodes is wrong"
        if self._nodes is not None:
            assert not self._nodes.is_empty(), "no nodes, but room for them"
            self._nodes.check()


def _end_of(items: list[bytes]) -> ListNode:
    """An end of items; it may take over their list. O(bytes)."""
    end = node_of(items)
    return end if len(end) <= LARGEST_END else items


def _node_limits(limit: int) -> tuple[int, int]:
    """How many items, and how many bytes, a listpack may have by list-max-listpack-size."""
    if limit < 0:
        return UNLIMITED, NODE_BYTES[-limit if limit > -5 else 5]
    return limit if limit else 1, LARGEST_NODE
