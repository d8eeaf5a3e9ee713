"""The pairs of a large sorted set: a dict of the scores, and the pairs in order.

A smaller sorted set has its pairs packed (packed_pairs.py, score_table.py); sorted_sets.py chooses. This form is the
oracle of those.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from penstock.storage.pair_order import Pair, PairOrder
from penstock.storage.types.collection import PART_OVERHEAD
from penstock.storage.types.set_forms.many_pairs import ManyPairs

SAMPLED: Final = 64  # members measured for the estimate of memory_usage


class OrderedPairs(ManyPairs):
    """Any number of members, and their scores. Invariant: `order` has exactly the pairs (scores[member], member)."""

    __slots__ = ("order", "scores")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        """Takes pairs with different members, in any order. O(n log n)."""
        listed = sorted(pairs)  # in order already, if they were packed: then it costs a comparison each
        self.order = PairOrder(listed)
        self.scores: dict[bytes, float] = {member: score for score, member in listed}
        self.scan_order = None

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.order)

    def copy(self) -> "OrderedPairs":
        copied = OrderedPairs()
        copied.scores = dict(self.scores)
        copied.order = self.order.copy()
        return copied

    def memory_usage(self) -> int:
        """An estimate, from the sizes of the first members. O(1)."""
        count = len(self.scores)
        sampled = [len(member) for member in islice(self.scores, SAMPLED)]
        return 500 + count * (PART_OVERHEAD + 190) + sum(sampled) * count // max(len(sampled), 1)

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, member: bytes, score: float) -> float | None:
        """As `put_over`, unless the member has an equal score; returns the score before, None for a new member."""
        scores = self.scores
        count = len(scores)
        old = scores.setdefault(member, score)  # one search for a new member
        if len(scores) > count:
            if self.scan_order is not None:
                self.scan_order.add(member)
            self.order.add((score, member))
            return None
        if old != score:
            self.put_over(member, score, old)
        return old

    def has_room_for(self, member: bytes) -> bool:
        return True

    def put_over(self, member: bytes, score: float, old: float | None) -> None:
        if old is not None:
            self.order.remove(old, member)
        elif self.scan_order is not None:
            self.scan_order.add(member)
        self.scores[member] = score
        self.order.add((score, member))

    def remove(self, member: bytes) -> bool:
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self.order.remove(score, member)
        if self.scan_order is not None:
            self.scan_order.remove(member)
        return True

    def pop_range(self, start: int, stop: int) -> list[Pair]:
        taken = self.order.take(start, stop)
        for _, member in taken:
            del self.scores[member]
            if self.scan_order is not None:
                self.scan_order.remove(member)
        return taken

    # -- reading ----------------------------------------------------------------------------------------------------

    def score(self, member: bytes) -> float | None:
        return self.scores.get(member)

    def by_member(self) -> dict[bytes, float]:
        return self.scores

    def backwards(self) -> Iterable[Pair]:
        return self.order.backwards()

    def part(self, start: int, stop: int) -> list[Pair]:
        return self.order.part(start, stop)

    def at(self, indexes: Iterable[int]) -> list[Pair]:
        return self.order.at(indexes)

    def below(self, score: float, member: bytes) -> int:
        return self.order.below(score, member)

    def check(self) -> None:
        self.order.check()
        super().check()
