"""How a stream is to be trimmed: XTRIM, and XADD with MAXLEN or MINID."""

from typing import Final

from penstock.storage.streams.ids import ZERO, StreamId
from penstock.storage.streams.listpack_nodes import Node

KEEP_REFERENCES: Final = 0  # KEEPREF: pending entries of a trimmed entry stay, as deleted pending entries
DELETE_REFERENCES: Final = 1  # DELREF: they are removed with the entry, and those of entries that were deleted before
ACKNOWLEDGED: Final = 2  # ACKED: an entry that some group still needs is not trimmed


class Trim:
    """How to trim: `by_length` for MAXLEN, else MINID; `limit` is the maximum number of entries, 0 for no limit."""

    __slots__ = ("approximate", "by_length", "limit", "references", "threshold")

    def __init__(self, by_length: bool, threshold: int, approximate: bool, limit: int, references: int) -> None:
        self.by_length = by_length
        self.threshold = threshold  # a length (MAXLEN) or an id (MINID)
        self.approximate = approximate
        self.limit = limit
        self.references = references

    def continues(self, length: int, removed: int, node: Node) -> bool:
        """Whether a trim that removed `removed` entries, with `length` left, may look at the next node."""
        if self.by_length and length <= self.threshold:
            return False
        return not self.limit or removed + node.live <= self.limit

    def cut(self, length: int, first_id: StreamId) -> StreamId:
        """The id below which the trim wants nothing. After it the stream has `length` entries, from `first_id` on.

        first_id is MAX + 1 where no entry is left. ZERO if the stream is shorter than MAXLEN: then it wants everything.
        """
        if not self.by_length:
            return min(self.threshold, first_id)
        return first_id if length >= self.threshold else ZERO

    def removes_whole(self, length: int, node: Node) -> bool:
        """Whether a trim of a stream with `length` entries removes all of the oldest node."""
        return length - node.live >= self.threshold if self.by_length else node.last < self.threshold

    def lengths(self, nodes: list[Node], length: int, count: int) -> list[int]:
        """The length after each of `count` appends to a stream, if each is followed by this trim of whole nodes.

        nodes, length: the stream's. The trim must be a MAXLEN above `count`: then none reaches the appended entries or
        the node that is open now. O(count + nodes removed).
        """
        index, last = 0, len(nodes) - 1
        lengths: list[int] = []
        for _ in range(count):
            length += 1
            removed = 0
            while index < last:
                node = nodes[index]
                if not self.continues(length, removed, node) or not self.removes_whole(length, node):
                    break
                length -= node.live
                removed += node.live
                index += 1
            lengths.append(length)
        return lengths
