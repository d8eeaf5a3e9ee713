"""Sorted sets: members ordered by score, and by their bytes where scores are equal."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf, nextafter
from typing import Final, TypeAlias

from sortedcontainers import SortedList

from penstock.storage.streams.columns import IS_COMPILED
from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members measured for the estimate of memory_usage
MOST_LISTED: Final = 1000  # pairs that are one list: as many as SortedList has in one of its own

Pair: TypeAlias = tuple[float, bytes]  # a score and its member: the sort key


class ScoreBound:
    """One end of a range of scores; `excludes` tells whether the score itself is outside."""

    __slots__ = ("excludes", "score")

    def __init__(self, score: float, excludes: bool) -> None:
        self.score = score
        self.excludes = excludes


class LexBound:
    """One end of a range of members: before all members (side -1), after all (1), or at `member` (0).

    `excludes` tells whether `member` itself is outside the range.
    """

    __slots__ = ("excludes", "member", "side")

    def __init__(self, member: bytes, excludes: bool, side: int = 0) -> None:
        self.member = member
        self.excludes = excludes
        self.side = side

    def allows_from(self, member: bytes) -> bool:
        """Whether a member is in a range that starts at this bound."""
        if self.side:
            return self.side < 0
        return member > self.member if self.excludes else member >= self.member

    def allows_to(self, member: bytes) -> bool:
        """Whether a member is in a range that ends at this bound."""
        if self.side:
            return self.side > 0
        return member < self.member if self.excludes else member <= self.member


class SortedSet(Collection):
    """Members and scores.

    `order` is a list, and a SortedList from the time on when there are more than MOST_LISTED pairs.

    Invariants: `order` has exactly the pairs (scores[member], member); `scan_order` (created by the first ZSCAN of a
    large set, dropped at the end of the scan), if it is there, has every member. No score is NaN. In the costs, n is
    the number of members.

    is_large: Redis would use its encoding for large sets, which it keeps for good once a set was large. There is one
    encoding here; what a client can observe follows this flag (OBJECT ENCODING, ZSCAN, the sign of -0).
    """

    __slots__ = ("is_large", "order", "scan_order", "scores")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        """Takes pairs with different members, in any order. O(n log n)."""
        listed = sorted(pairs)
        self.order: list[Pair] | SortedList[Pair] = listed if len(listed) <= MOST_LISTED else SortedList(listed)
        self.scores: dict[bytes, float] = {member: score for score, member in listed}
        self.scan_order: HashOrder | None = None
        self.is_large = False

    def __len__(self) -> int:
        return len(self.scores)

    def copy(self) -> "SortedSet":
        copied = SortedSet()
        copied.scores = dict(self.scores)
        copied.order = self.order.copy()
        copied.is_large = self.is_large
        return copied

    def memory_usage(self) -> int:
        count = len(self.scores)
        sampled = [len(member) for member in islice(self.scores, SAMPLED)]
        return 500 + count * (PART_OVERHEAD + 190) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        for score, member in self.order:
            yield member
            yield b"%.17g" % score

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, member: bytes, score: float) -> None:
        """Add a member, or change its score. O(log n)."""
        self.put_over(member, score, self.scores.get(member))

    def put_over(self, member: bytes, score: float, old: float | None) -> None:
        """As `put`, for a caller that has looked up the member's score; `old` is None for a new member. O(log n)."""
        if old is not None:
            self._drop(old, member)
        elif self.scan_order is not None:
            self.scan_order.add(member)
        self.scores[member] = score
        order = self.order
        if isinstance(order, list):
            order.insert(_place(order, score, member), (score, member))
            if len(order) > MOST_LISTED:
                self.order = SortedList(order)
        else:
            order.add((score, member))

    def _drop(self, score: float, member: bytes) -> None:
        """Take a pair out of `order`."""
        order = self.order
        if isinstance(order, list):
            del order[_place(order, score, member)]
        else:
            order.remove((score, member))

    def remove(self, member: bytes) -> bool:
        """Remove a member; returns whether it was there. O(log n)."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self._drop(score, member)
        if self.scan_order is not None:
            self.scan_order.remove(member)
        return True

    def pop_range(self, start: int, stop: int) -> list[Pair]:
        """Remove and return the pairs at the indexes [start, stop), in order. O(log n) for each."""
        taken = self.order[start:stop]
        if len(taken) == len(self.scores):
            self.order.clear()
        else:
            del self.order[start:stop]
        for _, member in taken:
            del self.scores[member]
            if self.scan_order is not None:
                self.scan_order.remove(member)
        return taken

    # -- indexes in the order ---------------------------------------------------------------------------------------

    def rank(self, member: bytes) -> int:
        """The index of a member, which must be there. O(log n)."""
        return self._before((self.scores[member], member))

    def _before(self, pair: Pair) -> int:
        """How many pairs are below one. O(log n)."""
        order = self.order
        return bisect_left(order, pair) if isinstance(order, list) else order.bisect_left(pair)

    def score_range(self, low: ScoreBound, high: ScoreBound) -> tuple[int, int]:
        """The indexes [start, stop) of the members whose scores are between two bounds. O(log n)."""
        start = self._index_after(low.score) if low.excludes else self._index_from(low.score)
        stop = self._index_from(high.score) if high.excludes else self._index_after(high.score)
        return start, max(start, stop)

    def _index_from(self, score: float) -> int:
        return self._before((score, b""))

    def _index_after(self, score: float) -> int:
        return len(self.order) if score == inf else self._before((nextafter(score, inf), b""))

    def lex_range(self, low: LexBound, high: LexBound, backwards: bool = False) -> tuple[int, int]:
        """The indexes [start, stop) of the members between two bounds, if all scores are equal. O(log n).

        If scores differ, members are not in the order of their bytes, and Redis promises nothing. Here the result is
        what Redis returns for small sets, in O(n): from the first member (`backwards`: last) that is inside its bound
        up to the next one that is outside the other bound.
        """
        order = self.order
        if not order:
            return 0, 0
        least = order[0][0]
        if order[-1][0] == least:
            start = self._lex_index(least, low, after=low.excludes)
            stop = self._lex_index(least, high, after=not high.excludes)
            return start, max(start, stop)
        if not low.allows_from(order[-1][1]) or not high.allows_to(order[0][1]) or _is_empty(low, high):
            return 0, 0
        members = [member for _, member in order]
        if backwards:
            stop = next((at for at in range(len(members), 0, -1) if high.allows_to(members[at - 1])), 0)
            return next((at for at in range(stop, 0, -1) if not low.allows_from(members[at - 1])), 0), stop
        start = next((at for at, member in enumerate(members) if low.allows_from(member)), len(members))
        ends = (at for at in range(start, len(members)) if not high.allows_to(members[at]))
        return start, next(ends, len(members))

    def _lex_index(self, score: float, bound: LexBound, after: bool) -> int:
        if bound.side:
            return 0 if bound.side < 0 else len(self.order)
        pair = (score, bound.member)
        if not after:
            return self._before(pair)
        order = self.order
        return bisect_right(order, pair) if isinstance(order, list) else order.bisect_right(pair)

    # -- scanning ---------------------------------------------------------------------------------------------------

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """`count` members from a cursor on, and the next cursor, as HashOrder.walk. The first call costs O(n log n)."""
        if self.scan_order is None:
            self.scan_order = HashOrder(self.scores, 0)
        members, following = self.scan_order.walk(cursor, count)
        if not following:
            self.scan_order = None
        return members, following

    def check(self) -> None:
        """Assert the invariants."""
        assert list(self.order) == sorted((score, member) for member, score in self.scores.items())
        assert all(score == score for score in self.scores.values()), "a score that is no number"
        if self.scan_order is not None:
            self.scan_order.check(self.scores)


def _place(order: list[Pair], score: float, member: bytes) -> int:
    """The index of the first pair that is not below (score, member). O(log n).

    Compiled, it compares doubles, and members only where scores are equal: a third of the instructions that bisect
    needs to compare tuples.
    """
    if not IS_COMPILED:
        return bisect_left(order, (score, member))
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) >> 1
        other, name = order[middle]
        if other < score or (other == score and name < member):
            low = middle + 1
        else:
            high = middle
    return low


def _is_empty(low: LexBound, high: LexBound) -> bool:
    """Whether no member can be between two bounds."""
    if low.side or high.side:
        return low.side > high.side or low.side == high.side
    return low.member > high.member or (low.member == high.member and (low.excludes or high.excludes))
