"""The base class of the forms of a large sorted set: score_table.py, ordered_pairs.py."""

from collections.abc import Iterable, Iterator

from penstock.storage.pair_order import Pair
from penstock.storage.types.scan_order import HashOrder


class ManyPairs:
    """Members and scores, none of them NaN. In the costs, n is the number of members.

    `scan_order` (created by the first ZSCAN of a large set, dropped at the end of the scan), if it is there, has every
    member.
    """

    __slots__ = ("scan_order",)

    scan_order: HashOrder | None

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Pair]:
        """All pairs in order: valid until the next change."""
        raise NotImplementedError

    def copy(self) -> "ManyPairs":
        raise NotImplementedError

    def memory_usage(self) -> int:
        """An estimate in bytes."""
        raise NotImplementedError

    # -- changing ---------------------------------------------------------------------------------------------------

    def has_room_for(self, member: bytes) -> bool:
        """Whether a new member may be added."""
        raise NotImplementedError

    def put_over(self, member: bytes, score: float, old: float | None) -> None:
        """Add a member, for which there is room, or change its score; `old` is the present one, None for a new one.

        O(log n).
        """
        raise NotImplementedError

    def remove(self, member: bytes) -> bool:
        """Remove a member; returns whether it was there. O(log n)."""
        raise NotImplementedError

    def pop_range(self, start: int, stop: int) -> list[Pair]:
        """Remove and return the pairs at the indexes [start, stop), in order. O(log n) for each."""
        raise NotImplementedError

    # -- reading ----------------------------------------------------------------------------------------------------

    def score(self, member: bytes) -> float | None:
        """The score of a member; None if it is not there. O(1)."""
        raise NotImplementedError

    def by_member(self) -> dict[bytes, float]:
        """The scores by member, not to be changed: valid until the next change. O(1), O(n) where packed."""
        raise NotImplementedError

    def backwards(self) -> Iterable[Pair]:
        """The pairs from the last to the first."""
        raise NotImplementedError

    def part(self, start: int, stop: int) -> list[Pair]:
        """The pairs at the indexes [start, stop), in a list of the caller's own; fewer at the end. O(log n + pairs)."""
        raise NotImplementedError

    def at(self, indexes: Iterable[int]) -> list[Pair]:
        """The pairs at some indexes, in any order. O(log n) each."""
        raise NotImplementedError

    def first(self) -> Pair:
        """The first pair; there must be one."""
        return self.part(0, 1)[0]

    def last(self) -> Pair:
        """The last pair; there must be one."""
        return self.part(len(self) - 1, len(self))[0]

    def below(self, score: float, member: bytes) -> int:
        """How many pairs are before one, there or not: its index. O(log n)."""
        raise NotImplementedError

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """`count` members from a cursor on, and the next cursor, as HashOrder.walk. The first call costs O(n)."""
        if self.scan_order is None:
            self.scan_order = HashOrder(self.by_member(), 0)
        members, following = self.scan_order.walk(cursor, count)
        if not following:
            self.scan_order = None
        return members, following

    def check(self) -> None:
        """Assert the invariants."""
        scores = self.by_member()
        assert len(self) == len(scores)
        assert list(self) == sorted((score, member) for member, score in scores.items())
        assert all(score == score for score in scores.values()), "a score that is no number"
        if self.scan_order is not None:
            self.scan_order.check(scores)
