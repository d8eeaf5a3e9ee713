"""A node of a list: some of its items in a row, packed into one bytes object where they are short.

The values of a small hash are packed in the same form, by the functions here (hashes.py).

A packed node is the number of items, the length of each, and their texts in a row: a byte for the number and for each
length. An item costs its length and one byte then, where an object of its own takes 41 bytes more. Items of which one
is longer than 255 bytes stay objects, in a list: there is little to save.

>>> node = with_item(node_of([b"a", b"bb"]), True, b"first")
>>> items_of(node), items_of(joined(node, node_of([b"c"])))
([b'first', b'a', b'bb'], [b'first', b'a', b'bb', b'c'])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from librt.strings import BytesWriter

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

NODE_ITEMS: Final = 64  # of a node that was filled from an end
MOST_ITEMS: Final = 2 * NODE_ITEMS  # of any node
LONGEST_PACKED: Final = 255  # bytes
EMPTY: Final = b"\0"  # a node without items
BYTES: Final = tuple(bytes((number,)) for number in range(LONGEST_PACKED + 1))

ListNode: TypeAlias = bytes | list[bytes]
"""At most MOST_ITEMS items. A bytes object or a list that is between the ends is never changed, so it may be shared.

What is said to take a packed node and returns one takes short items only.
"""


def node_of(items: list[bytes]) -> ListNode:
    """A node of items; it may take over their list. O(bytes)."""
    packed = BytesWriter()
    packed.append(len(items))
    for item in items:
        length = len(item)
        if length > LONGEST_PACKED:
            return items
        packed.append(length)
    for item in items:
        packed.write(item)
    return packed.getvalue()


def count_of(node: ListNode) -> int:
    """How many items it has. O(1)."""
    return node[0] if isinstance(node, bytes) else len(node)


def items_of(node: ListNode) -> list[bytes]:
    """Its items, in a list of the caller's own. O(bytes)."""
    return part_of(node, 0, count_of(node))


def part_of(node: ListNode, first: int, stop: int) -> list[bytes]:
    """Its items from one place up to another, which it has, in a list of the caller's own. O(bytes)."""
    if isinstance(node, list):
        return node[first:stop]
    start: i64 = place_of(node, first)
    items: list[bytes] = []
    for at in range(first + 1, stop + 1):
        end: i64 = start + node[at]
        items.append(node[start:end])
        start = end
    return items


def place_of(node: bytes, at: int) -> i64:
    """Where the text of an item begins in a packed node; of the number of items: where the last one ends. O(items)."""
    if at > node[0] >> 1:
        place: i64 = len(node)
        for index in range(at + 1, node[0] + 1):
            place -= node[index]
        return place
    start: i64 = node[0] + 1
    for index in range(1, at + 1):
        start += node[index]
    return start


def item_at(node: ListNode, at: int) -> bytes:
    """One item. O(items)."""
    if isinstance(node, list):
        return node[at]
    start: i64 = place_of(node, at)
    return node[start : start + node[at + 1]]


def may_have(node: ListNode, item: bytes) -> bool:
    """False only if no item equals it: a quick look at the bytes. O(bytes)."""
    if isinstance(node, bytes):
        return node.find(item) >= 0  # not `in`, which first takes the item for a number, and that is an error inside
    return item in node


def place_from_left(node: bytes, item: bytes) -> i64:
    """The place of the first item of a packed node that equals it, -1 if none does. O(bytes)."""
    count: i64 = node[0]
    size: i64 = len(item)
    at: i64 = 0
    start: i64 = count + 1
    while True:
        found: i64 = node.find(item, start)
        if found < 0:
            return -1
        while at < count and (start < found or (start == found and node[at + 1] != size)):
            at += 1
            start += node[at]
        if at == count:
            return -1
        if start == found:
            return at


def place_from_right(node: bytes, item: bytes) -> i64:
    """The place of the last item of a packed node that equals it, -1 if none does. O(bytes)."""
    at: i64 = node[0]
    first: i64 = at + 1
    size: i64 = len(item)
    stop: i64 = len(node)
    while True:
        found: i64 = node.rfind(item, first, stop)
        if found < 0:
            return -1
        found += size
        while at > 0 and (stop > found or (stop == found and node[at] != size)):
            stop -= node[at]
            at -= 1
        if at == 0:
            return -1
        if stop == found:
            return at - 1


# -- changed copies ---------------------------------------------------------------------------------------------------


def with_item(node: bytes, left: bool, item: bytes) -> bytes:
    """A packed node with one more item at one end. O(bytes)."""
    texts = node[0] + 1
    count, length = BYTES[texts], BYTES[len(item)]
    if left:
        return b"".join([count, length, node[1:texts], item, node[texts:]])
    return b"".join([count, node[1:texts], length, node[texts:], item])


def without_item(node: bytes, left: bool) -> tuple[bytes, bytes]:
    """The item at one end of a packed node, which has one, and the node without it. O(bytes)."""
    count = node[0]
    if left:
        start = count + 1
        stop = start + node[1]
        return node[start:stop], b"".join([BYTES[count - 1], node[2:start], node[stop:]])
    stop = len(node) - node[count]
    return node[stop:], b"".join([BYTES[count - 1], node[1:count], node[count + 1 : stop]])


def with_other(node: ListNode, at: int, item: bytes) -> ListNode:
    """A node with another item at a place. O(bytes)."""
    if isinstance(node, list) or len(item) > LONGEST_PACKED:
        items = items_of(node)
        items[at] = item
        return node_of(items)
    start: i64 = place_of(node, at)
    stop: i64 = start + node[at + 1]
    changed = BytesWriter()
    changed.write(node[:start])
    changed[at + 1] = len(item)
    changed.write(item)
    changed.write(node[stop:])
    return changed.getvalue()


def joined(node: bytes, behind: bytes) -> bytes:
    """The items of two packed nodes, which are few enough, in one. O(bytes)."""
    texts, others = node[0] + 1, behind[0] + 1
    return b"".join([BYTES[node[0] + behind[0]], node[1:texts], behind[1:others], node[texts:], behind[others:]])


def without_place(node: bytes, at: int) -> bytes:
    """A packed node without the item at a place. O(bytes)."""
    start: i64 = place_of(node, at)
    stop: i64 = start + node[at + 1]
    return b"".join([BYTES[node[0] - 1], node[1 : at + 1], node[at + 2 : start], node[stop:]])
