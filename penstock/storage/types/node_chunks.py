"""The nodes between the ends of a list, in chunks: one in the middle is found, split or removed without a look at all.

>>> nodes = NodeChunks()
>>> nodes.add(False, node_of([b"%d" % number for number in range(NODE_ITEMS)]))
>>> nodes.insert(3, b"between"), nodes.item(3), nodes.part(2, 5)
(None, b'between', [b'2', b'between', b'3'])
"""

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.storage.types.list_nodes import (
    MOST_ITEMS,
    NODE_ITEMS,
    ListNode,
    count_of,
    item_at,
    items_of,
    may_have,
    node_of,
    part_of,
    with_other,
)  # fmt: skip

MOST_NODES: Final = 256  # of a chunk; with more it is cut in two
CHUNK_ITEMS: Final = MOST_NODES * NODE_ITEMS
FEWEST_ITEMS: Final = NODE_ITEMS // 4  # of a node on average: with fewer, the nodes of a chunk are filled anew


class Chunk:
    """Some nodes in a row, which have so many items together."""

    __slots__ = ("items", "nodes")

    def __init__(self, nodes: list[ListNode], items: int) -> None:
        self.nodes = nodes
        self.items = items

    def remove(self, item: bytes, most: int, from_left: bool) -> int:
        """Remove at most so many items that equal one, from one side; how many. O(items)."""
        nodes, removed = self.nodes, 0
        for at in range(len(nodes)) if from_left else range(len(nodes) - 1, -1, -1):
            if may_have(nodes[at], item):
                items = items_of(nodes[at])
                found = without(items, item, most - removed, from_left)
                if found:
                    nodes[at] = node_of(items) if items else b""
                    removed += found
                    if removed == most:
                        break
        if removed:
            self.items -= removed
            self.nodes = [node for node in nodes if node]
            if self.items < len(self.nodes) * FEWEST_ITEMS:
                self._refill()
        return removed

    def _refill(self) -> None:
        """Put the items into as few nodes as there can be."""
        items = [item for node in self.nodes for item in items_of(node)]
        self.nodes = [node_of(items[at : at + NODE_ITEMS]) for at in range(0, len(items), NODE_ITEMS)]


class NodeChunks:
    """Nodes in order; an index is that of an item, counted from the first one of all.

    Invariants: no node and no chunk is empty, no chunk has more than MOST_NODES; the `items` of a chunk are those of
    its nodes. `_is_even`: each node has NODE_ITEMS items, and each chunk but the first and the last MOST_NODES nodes,
    so that the place of an item can be computed. In the costs, n is the number of chunks, one for 8,000 to 16,000 items
    that were inserted one by one.
    """

    __slots__ = ("_chunks", "_is_even")

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []
        self._is_even = True

    def copy(self) -> "NodeChunks":
        copied = NodeChunks()
        copied._chunks = [Chunk(chunk.nodes.copy(), chunk.items) for chunk in self._chunks]
        copied._is_even = self._is_even
        return copied

    def is_empty(self) -> bool:
        return not self._chunks

    def __iter__(self) -> Iterator[ListNode]:
        for chunk in self._chunks:
            yield from chunk.nodes

    def backwards(self) -> Iterator[ListNode]:
        for chunk in reversed(self._chunks):
            yield from reversed(chunk.nodes)

    # -- the ends ---------------------------------------------------------------------------------------------------

    def add(self, left: bool, node: ListNode) -> None:
        """Add a node of NODE_ITEMS items at one end. O(1)."""
        chunks = self._chunks
        chunk = chunks[0 if left else -1] if chunks else None
        if chunk is None or len(chunk.nodes) == MOST_NODES:
            chunk = Chunk([], 0)
            chunks.insert(0 if left else len(chunks), chunk)
        chunk.items += NODE_ITEMS
        if left:
            chunk.nodes.insert(0, node)
        else:
            chunk.nodes.append(node)

    def take(self, left: bool) -> ListNode:
        """Remove and return the node at one end, which there must be. O(1)."""
        chunk = self._chunks[0 if left else -1]
        node = chunk.nodes.pop(0 if left else -1)
        chunk.items -= count_of(node)
        if not chunk.nodes:
            self._chunks.pop(0 if left else -1)
        return node

    # -- the middle -------------------------------------------------------------------------------------------------

    def _place(self, at: int) -> tuple[int, int, int]:
        """The chunk, the node in it and the place in that of the item at an index. O(1) if even, else O(n)."""
        chunks = self._chunks
        if self._is_even:
            first = chunks[0].items
            if at < first:
                return 0, at // NODE_ITEMS, at % NODE_ITEMS
            at -= first
            return 1 + at // CHUNK_ITEMS, at % CHUNK_ITEMS // NODE_ITEMS, at % NODE_ITEMS
        index = 0
        while at >= chunks[index].items:
            at -= chunks[index].items
            index += 1
        for place, node in enumerate(chunks[index].nodes):
            count = count_of(node)
            if at < count:
                return index, place, at
            at -= count
        raise AssertionError("the chunk does not have as many items as it says")

    def item(self, at: int) -> bytes:
        """The item at an index. As `_place`."""
        index, place, inside = self._place(at)
        return item_at(self._chunks[index].nodes[place], inside)

    def part(self, start: int, stop: int) -> list[bytes]:
        """The items from one index up to another (not included). O(items), and as `_place`."""
        found: list[bytes] = []
        wanted = stop - start
        index, place, inside = self._place(start)
        while wanted > 0:
            nodes = self._chunks[index].nodes
            while wanted > 0 and place < len(nodes):
                node = nodes[place]
                some = part_of(node, inside, min(count_of(node), inside + wanted))
                wanted -= len(some)
                if found:
                    found += some
                else:
                    found = some
                place += 1
                inside = 0
            index += 1
            place = 0
        return found

    def replace(self, at: int, item: bytes) -> None:
        """Set the item at an index. As `_place`."""
        index, place, inside = self._place(at)
        nodes = self._chunks[index].nodes
        nodes[place] = with_other(nodes[place], inside, item)

    def insert(self, at: int, item: bytes) -> None:
        """Insert an item before the one at an index. As `_place`."""
        index, place, inside = self._place(at)
        chunk = self._chunks[index]
        items = items_of(chunk.nodes[place])
        items.insert(inside, item)
        chunk.items += 1
        self._is_even = False
        if len(items) <= MOST_ITEMS:
            chunk.nodes[place] = node_of(items)
            return
        chunk.nodes[place : place + 1] = [node_of(items[:NODE_ITEMS]), node_of(items[NODE_ITEMS:])]
        if len(chunk.nodes) > MOST_NODES:
            behind = chunk.nodes[MOST_NODES // 2 :]
            del chunk.nodes[MOST_NODES // 2 :]
            moved = Chunk(behind, sum([count_of(node) for node in behind]))
            chunk.items -= moved.items
            self._chunks.insert(index + 1, moved)

    def remove(self, item: bytes, most: int, from_left: bool) -> int:
        """Remove at most so many items that equal one, from one end; how many. O(items up to the last of them)."""
        chunks, removed = self._chunks, 0
        indexes: Iterable[int] = range(len(chunks)) if from_left else range(len(chunks) - 1, -1, -1)
        changed: list[int] = []
        for index in indexes:
            found = chunks[index].remove(item, most - removed, from_left)
            if found:
                changed.append(index)
                removed += found
                if removed == most:
                    break
        if changed:
            self._is_even = False
            for index in sorted(changed, reverse=True):
                self._after_removal(index)
        return removed

    def _after_removal(self, index: int) -> None:
        """Nodes of a chunk were removed: it joins a neighbour where both have few, or is removed itself."""
        chunks = self._chunks
        if not chunks[index].nodes:
            del chunks[index]
            return
        for at in (index, index - 1):
            if 0 <= at < len(chunks) - 1 and len(chunks[at].nodes) + len(chunks[at + 1].nodes) <= MOST_NODES // 2:
                behind = chunks.pop(at + 1)
                chunks[at].nodes += behind.nodes
                chunks[at].items += behind.items

    def check(self) -> None:
        """Assert the invariants."""
        chunks = self._chunks
        assert all(0 < len(chunk.nodes) <= MOST_NODES for chunk in chunks), "a chunk is empty or too long"
        assert all(0 < count_of(node) <= MOST_ITEMS for node in self), "a node is empty or too long"
        assert all(chunk.items == sum([count_of(node) for node in chunk.nodes]) for chunk in chunks)
        if self._is_even:
            assert all(count_of(node) == NODE_ITEMS for node in self), "nodes of other sizes"
            assert all(len(chunk.nodes) == MOST_NODES for chunk in chunks[1:-1]), "chunks of other sizes"


def without(items: list[bytes], item: bytes, max_count: int, forward: bool) -> int:
    """Remove at most `max_count` items that equal `item`, in place; returns how many. O(items)."""
    found = min(items.count(item), max_count)
    if found and not forward:
        items.reverse()
    for _ in range(found):
        items.remove(item)
    if found and not forward:
        items.reverse()
    return found
