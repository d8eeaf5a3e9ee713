"""Sorted sets: members in the order of their scores, ties in the order of their bytes."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from sortedcontainers import SortedList

from penstock.storage.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # members that are measured for an estimate


class SortedSet(Collection):
    """Members and scores.

    Invariant: `order` holds exactly the pairs (scores[member], member).
    """

    __slots__ = ("order", "scores")

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.order: SortedList[tuple[float, bytes]] = SortedList()

    def __len__(self) -> int:
        return len(self.scores)

    def copy(self) -> "SortedSet":
        copied = SortedSet()
        copied.scores = dict(self.scores)
        copied.order = self.order.copy()
        return copied

    def memory_usage(self) -> int:
        count = len(self.scores)
        sampled = [len(member) for member in islice(self.scores, SAMPLED)]
        return 500 + count * (PART_OVERHEAD + 190) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        for score, member in self.order:
            yield member
            yield b"%.17g" % score
