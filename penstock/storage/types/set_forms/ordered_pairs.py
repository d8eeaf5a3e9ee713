"""The pairs of a large sorted set: a dict of the scores, and the pairs in order.

A small sorted set has its pairs packed (packed_pairs.py); sorted_sets.py chooses. This form is the oracle of that one.
"""

from collections.abc import Iterable
from itertools import islice
from math import inf, nextafter
from typing import Final

from penstock.storage.pair_order import Pair, PairOrder
from penstock.storage.types.collection import PART_OVERHEAD
from penstock.storage.types.scan_order import HashOrder
from penstock.storage.types.set_forms.pair_ranges import ScoreBound

SAMPLED: Final = 64  # members measured for the estimate of memory_usage


class OrderedPairs:
    """Members and scores.

    Invariants: `order` has exactly the pairs (scores[member], member); `scan_order` (created by the first ZSCAN of a
    large set, dropped at the end of the scan), if it is there, has every member. No score is NaN. In the costs, n is
    the number of members.
    """

    __slots__ = ("order", "scan_order", "scores")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        """Takes pairs with different members, in any order. O(n log n)."""
        listed = sorted(pairs)  # in order already, if they were packed: then it costs a comparison each
        self.order = PairOrder(listed)
        self.scores: dict[bytes, float] = {member: score for score, member in listed}
        self.scan_order: HashOrder | None = None

    def copy(self) -> "OrderedPairs":
        copied = OrderedPairs()
        copied.scores = dict(self.scores)
        copied.order = self.order.copy()
        return copied

    def memory_usage(self) -> int:
        """An estimate in bytes, from the sizes of the first members. O(1)."""
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

    def put_over(self, member: bytes, score: float, old: float | None) -> None:
        """Add a member, or change its score; `old` is the present one, None for a new member. O(log n)."""
        if old is not None:
            self.order.remove(old, member)
        elif self.scan_order is not None:
            self.scan_order.add(member)
        self.scores[member] = score
        self.order.add((score, member))

    def remove(self, member: bytes) -> bool:
        """Remove a member; returns whether it was there. O(log n)."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self.order.remove(score, member)
        if self.scan_order is not None:
            self.scan_order.remove(member)
        return True

    def pop_range(self, start: int, stop: int) -> list[Pair]:
        """Remove and return the pairs at the indexes [start, stop), in order. O(log n) for each."""
        taken = self.order.take(start, stop)
        for _, member in taken:
            del self.scores[member]
            if self.scan_order is not None:
                self.scan_order.remove(member)
        return taken

    # -- indexes in the order ---------------------------------------------------------------------------------------

    def rank(self, member: bytes) -> int:
        """The index of a member, which must be there. O(log n)."""
        return self.order.below(self.scores[member], member)

    def score_range(self, low: ScoreBound, high: ScoreBound) -> tuple[int, int]:
        """The indexes [start, stop) of the members with scores between two bounds. O(log n)."""
        start = self._index_after(low.score) if low.excludes else self._index_from(low.score)
        stop = self._index_from(high.score) if high.excludes else self._index_after(high.score)
        return start, max(start, stop)

    def _index_from(self, score: float) -> int:
        return self.order.below(score, b"")

    def _index_after(self, score: float) -> int:
        return len(self.order) if score == inf else self.order.below(nextafter(score, inf), b"")

    # -- scanning ---------------------------------------------------------------------------------------------------

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """`count` members from a cursor on, and the next cursor, as HashOrder.walk. The first call costs O(n)."""
        if self.scan_order is None:
            self.scan_order = HashOrder(self.scores, 0)
        members, following = self.scan_order.walk(cursor, count)
        if not following:
            self.scan_order = None
        return members, following

    def check(self) -> None:
        """Assert the invariants."""
        self.order.check()
        assert list(self.order) == sorted((score, member) for member, score in self.scores.items())
        assert all(score == score for score in self.scores.values()), "a score that is no number"
        if self.scan_order is not None:
            self.scan_order.check(self.scores)
