"""Sorted sets: members in the order of their scores, ties in the order of their bytes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf, nextafter
from typing import Final, TypeAlias

from sortedcontainers import SortedList

from penstock.storage.types.collection import PART_OVERHEAD, Collection
from penstock.storage.types.scan_order import HashOrder

SAMPLED: Final = 64  # members that are measured for an estimate

Pair: TypeAlias = tuple[float, bytes]  # a score and its member, as they stand in the order


class ScoreBound:
    """An end of a range of scores, with the score itself or without it."""

    __slots__ = ("excludes", "score")

    def __init__(self, score: float, excludes: bool) -> None:
        self.score = score
        self.excludes = excludes


class LexBound:
    """An end of a range of members: before all (-1), at a member (0), with it or without it, or behind all (1)."""

    __slots__ = ("excludes", "member", "side")

    def __init__(self, member: bytes, excludes: bool, side: int = 0) -> None:
        self.member = member
        self.excludes = excludes
        self.side = side

    def allows_from(self, member: bytes) -> bool:
        """Whether a member may stand in a range that begins here."""
        if self.side:
            return self.side < 0
        return member > self.member if self.excludes else member >= self.member

    def allows_to(self, member: bytes) -> bool:
        """Whether a member may stand in a range that ends here."""
        if self.side:
            return self.side > 0
        return member < self.member if self.excludes else member <= self.member


class SortedSet(Collection):
    """Members and scores.

    Invariants: `order` holds exactly the pairs (scores[member], member); where there is a `walked`, made by the first
    ZSCAN of a large set and dropped when a walk is through, it holds every member. No score is NaN.

    is_large: Redis would keep it in its form for large sets, as it does for good once a set has been large. There is
    one form here; what can be told from outside follows this (OBJECT ENCODING, ZSCAN, the sign of -0).
    """

    __slots__ = ("is_large", "order", "scores", "walked")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        """From pairs of different members, in any order."""
        self.order: SortedList[Pair] = SortedList(pairs)
        self.scores: dict[bytes, float] = {member: score for score, member in self.order}
        self.walked: HashOrder | None = None
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
        """Add a member, or give it another score.  O(log n)."""
        old = self.scores.get(member)
        if old is not None:
            self.order.remove((old, member))
        elif self.walked is not None:
            self.walked.add(member)
        self.scores[member] = score
        self.order.add((score, member))

    def remove(self, member: bytes) -> bool:
        """Take a member out; whether it was there.  O(log n)."""
        score = self.scores.pop(member, None)
        if score is None:
            return False
        self.order.remove((score, member))
        if self.walked is not None:
            self.walked.remove(member)
        return True

    def take(self, start: int, stop: int) -> list[Pair]:
        """Take out what stands at the indexes from `start` to before `stop`, in order."""
        taken = list(self.order.islice(start, stop))
        if len(taken) == len(self.scores):
            self.order.clear()
        else:
            del self.order[start:stop]
        for _, member in taken:
            del self.scores[member]
            if self.walked is not None:
                self.walked.remove(member)
        return taken

    # -- places in the order ----------------------------------------------------------------------------------------

    def rank(self, member: bytes) -> int:
        """The index of a member that is there.  O(log n)."""
        return self.order.bisect_left((self.scores[member], member))

    def score_range(self, low: ScoreBound, high: ScoreBound) -> tuple[int, int]:
        """The indexes, from and before, of the members whose scores lie between two bounds.  O(log n)."""
        start = self._behind(low.score) if low.excludes else self._before(low.score)
        stop = self._before(high.score) if high.excludes else self._behind(high.score)
        return start, max(start, stop)

    def _before(self, score: float) -> int:
        return self.order.bisect_left((score, b""))

    def _behind(self, score: float) -> int:
        return len(self.order) if score == inf else self.order.bisect_left((nextafter(score, inf), b""))

    def lex_range(self, low: LexBound, high: LexBound, backwards: bool = False) -> tuple[int, int]:
        """The indexes, from and before, of the members between two bounds, all scores being equal.  O(log n).

        Where scores differ, the order of the bytes is not the order of the set, and Redis promises nothing. What it
        does in small sets is done here, in O(n): the members from the first (`backwards`: last) that passes its bound
        on, up to the first that fails the other.
        """
        order = self.order
        if not order:
            return 0, 0
        least = order[0][0]
        if order[-1][0] == least:
            start = self._lex_place(least, low, behind=low.excludes)
            stop = self._lex_place(least, high, behind=not high.excludes)
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

    def _lex_place(self, score: float, bound: LexBound, behind: bool) -> int:
        if bound.side:
            return 0 if bound.side < 0 else len(self.order)
        pair = (score, bound.member)
        return self.order.bisect_right(pair) if behind else self.order.bisect_left(pair)

    # -- walking ----------------------------------------------------------------------------------------------------

    def walk(self, place: int, count: int) -> tuple[list[bytes], int]:
        """So many members from a place on, and the place to go on from, as HashOrder.walk."""
        if self.walked is None:
            self.walked = HashOrder(self.scores, 0)
        met, following = self.walked.walk(place, count)
        if not following:
            self.walked = None
        return met, following

    def check(self) -> None:
        """Assert the invariants."""
        assert list(self.order) == sorted((score, member) for member, score in self.scores.items())
        assert all(score == score for score in self.scores.values()), "a score that is no number"
        if self.walked is not None:
            self.walked.check(self.scores)


def _is_empty(low: LexBound, high: LexBound) -> bool:
    """Whether nothing can stand between two bounds."""
    if low.side or high.side:
        return low.side > high.side or low.side == high.side
    return low.member > high.member or (low.member == high.member and (low.excludes or high.excludes))
