"""A node of a list: items that lie between its two ends, packed into one bytes object where they are short.

The values of a small hash are packed in the same form, by the functions here (hashes.py).

A packed node is the number of items, the length of each, and their texts in a row: a byte for the number and for each
length. An item costs its length and one byte then, where an object of its own takes 41 bytes more. Items of which one
is longer than 255 bytes stay objects, in a list: there is little to save.
"""

from typing import Final, TypeAlias

from librt.strings import BytesWriter

NODE_ITEMS: Final = 16  # of a node that was filled from an end
MOST_ITEMS: Final = 2 * NODE_ITEMS  # any node has less
LONGEST_PACKED: Final = 255  # bytes

ListNode: TypeAlias = bytes | list[bytes]
"""Never changed, so it may be shared. At least one item, less than MOST_ITEMS."""


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
    start = node[0] + 1
    for at in range(1, first + 1):
        start += node[at]
    items = []
    for at in range(first + 1, stop + 1):
        end = start + node[at]
        items.append(node[start:end])
        start = end
    return items


def item_at(node: ListNode, at: int) -> bytes:
    """One item. O(items)."""
    if isinstance(node, list):
        return node[at]
    start = node[0] + 1
    for place in range(1, at + 1):
        start += node[place]
    return node[start : start + node[at + 1]]


def may_have(node: ListNode, item: bytes) -> bool:
    """False only if no item equals it: a quick look at the bytes. O(bytes)."""
    if isinstance(node, bytes):
        return node.find(item) >= 0  # not `in`, which first takes the item for a number, and that is an error inside
    return item in node
