"""Ranges of a sorted set's pairs, which are ordered by score, then by their members' bytes."""

from math import inf, nextafter

from penstock.storage.pair_order import PairOrder
from penstock.storage.types.set_forms.many_pairs import ManyPairs


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


def score_range(pairs: ManyPairs, low: ScoreBound, high: ScoreBound) -> tuple[int, int]:
    """The indexes [start, stop) of the members with scores between two bounds. O(log n)."""
    start = _index_after(pairs, low.score) if low.excludes else pairs.below(low.score, b"")
    stop = pairs.below(high.score, b"") if high.excludes else _index_after(pairs, high.score)
    return start, max(start, stop)


def _index_after(pairs: ManyPairs, score: float) -> int:
    return len(pairs) if score == inf else pairs.below(nextafter(score, inf), b"")


def lex_range(order: PairOrder | ManyPairs, low: LexBound, high: LexBound, backwards: bool = False) -> tuple[int, int]:
    """The indexes [start, stop) of the members between two bounds, if all scores are equal. O(log n).

    If scores differ, members are not in the order of their bytes, and Redis promises nothing. Here the result is
    what Redis returns for small sets, in O(n): from the first member (`backwards`: last) that is inside its bound
    up to the next one that is outside the other bound.
    """
    if not len(order):
        return 0, 0
    (least, first), (most, last) = order.first(), order.last()
    if most == least:
        start = _lex_index(order, least, low, after=low.excludes)
        stop = _lex_index(order, least, high, after=not high.excludes)
        return start, max(start, stop)
    if not low.allows_from(last) or not high.allows_to(first) or _is_empty(low, high):
        return 0, 0
    members = [member for _, member in order]
    if backwards:
        stop = next((at for at in range(len(members), 0, -1) if high.allows_to(members[at - 1])), 0)
        return next((at for at in range(stop, 0, -1) if not low.allows_from(members[at - 1])), 0), stop
    start = next((at for at, member in enumerate(members) if low.allows_from(member)), len(members))
    ends = (at for at in range(start, len(members)) if not high.allows_to(members[at]))
    return start, next(ends, len(members))


def _lex_index(order: PairOrder | ManyPairs, score: float, bound: LexBound, after: bool) -> int:
    if bound.side:
        return 0 if bound.side < 0 else len(order)
    return order.below(score, bound.member + b"\0" if after else bound.member)  # the next member there can be


def _is_empty(low: LexBound, high: LexBound) -> bool:
    """Whether no member can be between two bounds."""
    if low.side or high.side:
        return low.side > high.side or low.side == high.side
    return low.member > high.member or (low.member == high.member and (low.excludes or high.excludes))
