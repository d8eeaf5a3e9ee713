"""Sorted sets: members ordered by score, and by their bytes where scores are equal.

A small one is packed into one bytes object (packed_pairs.py), one of some hundred members into a few of them
(score_table.py). Once it has too many members or a long one, it is made of Python's containers (ordered_pairs.py), for
good.
"""

from collections.abc import Collection as Members
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.native.class_marks import mypyc_attr
from penstock.storage.pair_order import Pair, PairOrder
from penstock.storage.types.collection import MOST_AT_REST, SORTED_SET_MARK, Collection
from penstock.storage.types.packed_table import MOST_ENTRIES
from penstock.storage.types.scan_order import HashOrder
from penstock.storage.types.set_forms import packed_pairs, pair_ranges
from penstock.storage.types.set_forms.many_pairs import ManyPairs
from penstock.storage.types.set_forms.ordered_pairs import OrderedPairs
from penstock.storage.types.set_forms.packed_pairs import HEAD
from penstock.storage.types.set_forms.packed_parts import EMPTY, LONGEST_PACKED, MOST_PACKED, place_at
from penstock.storage.types.set_forms.pair_ranges import LexBound, ScoreBound
from penstock.storage.types.set_forms.score_table import ScoreTable

__all__ = ["LexBound", "Pair", "ScoreBound", "SortedSet"]

OWN_BYTES: Final = 120  # of the object and the bytes object of the few, about


@mypyc_attr(acyclic=True)
class SortedSet(Collection):
    """Members and scores.

    Invariants: where `_many` is None, `_few` has `_count` pairs, packed; else `_few` is empty, `_count` 0. No score is
    NaN. In the costs, n is the number of members; while packed, what costs O(1) or O(log n) is a walk over the few.

    is_large: Redis would use its encoding for large sets, which it keeps for good once a set was large. It says nothing
    of the form here; what a client can observe follows this flag (OBJECT ENCODING, ZSCAN, the sign of -0).
    """

    __slots__ = ("_count", "_few", "_many", "is_large")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        """Takes pairs with different members, in any order. O(n log n)."""
        self.counts = None
        self._few = EMPTY
        self._count = 0
        self._many: ManyPairs | None = None
        self.is_large = False
        if pairs:
            self._take(OrderedPairs(pairs))

    def _take(self, ordered: OrderedPairs) -> None:
        """Take these pairs, packed where they are few."""
        count = len(ordered)
        if count > max(MOST_PACKED, MOST_ENTRIES):
            self._many = ordered
            return
        pairs = ordered.part(0, count)
        few = packed_pairs.packed(pairs)
        if few is not None:
            self._few, self._count, self._many = few, count, None
        else:
            is_for_table = count <= MOST_ENTRIES and packed_pairs.are_short(pairs)
            self._many = ScoreTable(pairs) if is_for_table else ordered

    def pack(self) -> None:
        """Pack the pairs where they are few; the caller has added many at once after `unpack`. O(n)."""
        if isinstance(self._many, OrderedPairs):
            self._take(self._many)

    def unpack(self) -> None:
        """Have the pairs in Python's containers from now on. O(n)."""
        if not isinstance(self._many, OrderedPairs):
            self._many = OrderedPairs(self.pairs())
            self._few, self._count = EMPTY, 0

    def _with_room_for(self, member: bytes) -> ManyPairs:
        """Take a form that has room for one more pair, if necessary, and return it. O(1); O(n) if the form changes."""
        many = self._many
        if many is None and self._count < MOST_ENTRIES:
            many = self._many = ScoreTable(packed_pairs.pairs_of(self._few))
            self._few, self._count = EMPTY, 0
        if many is None or not many.has_room_for(member):
            self.unpack()
            many = self._many
        assert many is not None, "the pairs are in a form for many"
        return many

    def __len__(self) -> int:
        return self._count if self._many is None else len(self._many)

    def copy(self) -> "SortedSet":
        copied = SortedSet()
        copied._few, copied._count = self._few, self._count
        copied._many = None if self._many is None else self._many.copy()
        copied.is_large = self.is_large
        return copied

    def at_rest(self, most: int) -> bytes:
        """Its text at rest, of at most so many bytes; empty if it is too large."""
        if self._many is not None or len(self._few) + 2 > most or self._count > MOST_AT_REST:
            return b""
        return b"%c%c%b" % (SORTED_SET_MARK + self.is_large, self._count, self._few)

    @staticmethod
    def woken(text: bytes) -> "SortedSet":
        """The sorted set that has this text at rest."""
        made = SortedSet()
        made.is_large = text[0] != SORTED_SET_MARK
        made._count = text[1]
        made._few = text[2:]
        return made

    def memory_usage(self) -> int:
        return OWN_BYTES + len(self._few) if self._many is None else self._many.memory_usage()

    def parts(self) -> Iterator[bytes]:
        for score, member in self.pairs():
            yield member
            yield b"%.17g" % score

    # -- changing ---------------------------------------------------------------------------------------------------

    def put(self, member: bytes, score: float) -> float | None:
        """Add a member, or change its score unless that is equal; returns the one before, None for a new member.
        O(log n)."""
        many = self._many
        if isinstance(many, OrderedPairs):
            before = many.put(member, score)
            count = len(many.scores)
            if before is None and not count & count - 1:
                self.recount(count - 1, count)
            return before
        old = self.score(member)
        if old is None or old != score:
            self.put_over(member, score, old)
        return old

    def put_over(self, member: bytes, score: float, old: float | None) -> None:
        """Add a member or change its score, for a caller that has looked it up: `old`, None for a new member.
        O(log n)."""
        if self._many is None:
            if old is not None:
                self._few = packed_pairs.with_score(self._few, score, member)
                return
            if self._count < MOST_PACKED and len(member) <= LONGEST_PACKED:
                self._few = packed_pairs.with_pair(self._few, score, member)
                self._count += 1
                self.recount(self._count - 1, self._count)
                return
        many = self._many
        if many is None or old is None:
            many = self._with_room_for(member)
        many.put_over(member, score, old)
        if old is None:
            self.recount(len(self) - 1, len(self))

    def remove(self, member: bytes) -> bool:
        """Remove a member; returns whether it was there. O(log n)."""
        if self._many is not None:
            if not self._many.remove(member):
                return False
        else:
            left = packed_pairs.without(self._few, member)
            if len(left) == len(self._few):
                return False
            self._few = left
            self._count -= 1
        self.recount(len(self) + 1, len(self))
        return True

    def pop_range(self, start: int, stop: int) -> list[Pair]:
        """Remove and return the pairs at the indexes [start, stop), in order. O(log n) for each."""
        if self._many is not None:
            popped = self._many.pop_range(start, stop)
        else:
            few, stop = self._few, min(stop, self._count)
            start = min(start, stop)
            first, last = place_at(few, start, HEAD), place_at(few, stop, HEAD)
            self._few = few[:first] + few[last:]
            self._count -= stop - start
            popped = packed_pairs.pairs_of(few[first:last])
        self.recount(len(self) + len(popped), len(self))
        return popped

    # -- reading ----------------------------------------------------------------------------------------------------

    def score(self, member: bytes) -> float | None:
        """The score of a member; None if it is not there. O(1)."""
        if self._many is None:
            return packed_pairs.score_of(self._few, member)
        return self._many.score(member)

    def scores(self) -> dict[bytes, float]:
        """The scores by member, not to be changed: valid until the next change. O(1), O(n) while packed."""
        if self._many is None:
            return {member: score for score, member in packed_pairs.pairs_of(self._few)}
        return self._many.by_member()

    def members(self) -> Members[bytes]:
        """The members, in any order: valid until the next change. O(1), O(n) while packed."""
        return self.scores().keys()

    def pairs(self) -> Iterable[Pair]:
        """All pairs in order: valid until the next change. O(1), O(n) while packed."""
        return packed_pairs.pairs_of(self._few) if self._many is None else self._many

    def pairs_backwards(self) -> Iterable[Pair]:
        """As `pairs`, from the last to the first."""
        return packed_pairs.pairs_of(self._few)[::-1] if self._many is None else self._many.backwards()

    def pairs_of(self, indexes: Iterable[int]) -> list[Pair]:
        """The pairs at some indexes, in any order. O(log n) each."""
        if self._many is not None:
            return self._many.at(indexes)
        pairs = packed_pairs.pairs_of(self._few)
        return [pairs[index] for index in indexes]

    def pairs_at(self, start: int, stop: int) -> list[Pair]:
        """The pairs at the indexes [start, stop), in order, in a list of the caller's own. O(log n + pairs)."""
        if self._many is not None:
            return self._many.part(start, stop)
        return packed_pairs.pairs_of(self._few_at(start, stop))

    def members_at(self, start: int, stop: int) -> list[bytes]:
        """The members alone, as `pairs_at`."""
        if self._many is not None:
            return [member for _, member in self._many.part(start, stop)]
        return packed_pairs.members_of(self._few_at(start, stop))

    def _few_at(self, start: int, stop: int) -> bytes:
        """The packed pairs at the indexes [start, stop)."""
        few = self._few
        if stop < self._count:
            few = few[: place_at(few, stop, HEAD)]
        return few[place_at(few, min(start, self._count), HEAD) :] if start > 0 else few

    def rank(self, member: bytes) -> int:
        """The index of a member, which must be there. O(log n)."""
        many = self._many
        if many is None:
            return packed_pairs.index_of(self._few, member)
        score = many.score(member)
        assert score is not None, "the member is there"
        return many.below(score, member)

    def score_range(self, low: ScoreBound, high: ScoreBound) -> tuple[int, int]:
        """The indexes [start, stop) of the members with scores between two bounds. O(log n)."""
        if self._many is not None:
            return pair_ranges.score_range(self._many, low, high)
        start = packed_pairs.index_for(self._few, low.score, after=low.excludes)
        stop = packed_pairs.index_for(self._few, high.score, after=not high.excludes)
        return start, max(start, stop)

    def lex_range(self, low: LexBound, high: LexBound, backwards: bool = False) -> tuple[int, int]:
        """The indexes [start, stop) of the members between two bounds, as pair_ranges.lex_range."""
        many = self._many
        order: PairOrder | ManyPairs = PairOrder(packed_pairs.pairs_of(self._few)) if many is None else many
        return pair_ranges.lex_range(order, low, high, backwards)

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """`count` members from a cursor on, and the next cursor, as HashOrder.walk. The first call costs O(n), each one
        while the pairs are few."""
        if self._many is None:
            return HashOrder(self.members(), 0).walk(cursor, count)
        return self._many.walk(cursor, count)

    def check(self) -> None:
        """Assert the invariants."""
        if self._many is not None:
            assert not self._few and not self._count, "the pairs are in one form"
            self._many.check()
            return
        pairs = packed_pairs.pairs_of(self._few)
        assert len(pairs) == self._count <= MOST_PACKED
        assert packed_pairs.packed(sorted(pairs)) == self._few, "the pairs are in order"
        OrderedPairs(pairs).check()
