"""Deadlines of names, found by name and in order of time."""

from random import Random
from typing import Final

from penstock.storage.pair_order import Pair, PairOrder

NEVER: Final = 2**63  # later than any deadline
LAST_MS: Final = NEVER - 1  # the last moment that a reply or the log can name
MOST_MOVED: Final = 1000  # renewed names that one question looks at: 3 ms
NO_PAIRS: Final = PairOrder()  # of all Deadlines that never had a name; nothing is added


class Deadlines:
    """Names and a deadline for each, in unix ms.

    A deadline that is moved later by `renew` costs no search in the order of times: the name stays where it is, and is
    put in its place once it comes to the front. Nothing is renewed where `first_ms` must be exact.

    Invariants: `order` has one pair (ms, name) for each name, with its deadline; or with an earlier time, and then
    `_early` has that time. There, a time beyond 2**53 ms (in the year 287,396) is rounded to a double. In the costs, n
    is the number of names.
    """

    __slots__ = ("_early", "order", "times")

    def __init__(self) -> None:
        self.times: dict[bytes, int] = {}
        self.order = NO_PAIRS  # most databases stay without deadlines, and each embedded server has 16
        self._early: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.times)

    def set(self, name: bytes, when_ms: int) -> None:
        """Set or replace the deadline of a name. O(log n)."""
        before_ms = self.times.get(name)
        if before_ms is not None:
            if before_ms == when_ms:
                return
            self._leave(name, before_ms)
        self.times[name] = when_ms
        order = self.order
        if order is NO_PAIRS:
            order = self.order = PairOrder()
        order.add((float(when_ms), name))

    def renew(self, name: bytes, when_ms: int) -> bool:
        """Replace the deadline of a name that has one; returns whether it has. O(1) where the new one is later."""
        found_ms = self.times.get(name)
        if found_ms is None:
            return False
        before_ms: int = found_ms
        if when_ms < before_ms:
            self.set(name, when_ms)
        elif when_ms > before_ms:
            self.times[name] = when_ms
            if name not in self._early:
                self._early[name] = before_ms
        return True

    def drop(self, name: bytes) -> bool:
        """Remove the deadline of a name; returns whether it had one. O(log n)."""
        when_ms = self.times.pop(name, None)
        if when_ms is None:
            return False
        self._leave(name, when_ms)
        return True

    def first_ms(self) -> int:
        """The earliest deadline, or an earlier time if names were renewed; NEVER if there is none. O(1)."""
        return int(self.order.first()[0]) if self.times else NEVER

    def soonest(self) -> Pair:
        """The earliest deadline and its name; there must be one. O(1), and O(log n) for each name renewed before it.

        Where MOST_MOVED were renewed before it, the earliest of theirs.
        """
        first = self.order.first()
        if first[1] not in self._early:
            return first
        names = [name for _, name in self.order.part(0, MOST_MOVED)]
        self._move(names)
        first = self.order.first()
        return min([(float(self.times[name]), name) for name in names]) if first[1] in self._early else first

    def overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """At most `max_count` names past their deadline, the earliest deadline first.

        O(max_count), and O(log n) for each name that was renewed. Where some were, there may be more than is returned.
        """
        names = self._placed_before(now_ms, max_count)
        early = self._early
        if early and self._move(names):
            names = self._placed_before(now_ms, max_count)
            renewed = [at for at, name in enumerate(names) if name in early]
            if renewed:
                del names[renewed[0] :]
        return names

    def take(self, names: list[bytes]) -> None:
        """Remove the deadlines of the names that `overdue` has just returned. O(len(names))."""
        self.order.take(0, len(names))
        for name in names:
            del self.times[name]

    def count_overdue(self, now_ms: int) -> int:
        """How many deadlines have passed. O(log n), and a thousandth of those that have.

        Where names were renewed and more than MOST_MOVED are looked at, an estimate by the first of them.
        """
        count = self.order.below(float(now_ms), b"")
        if not count or not self._early:
            return count
        looked_at = self.order.part(0, min(count, MOST_MOVED))
        return count * sum([self.times[name] < now_ms for _, name in looked_at]) // len(looked_at)

    def any_of(self, chance: Random) -> bytes:
        """A name by chance; there must be one. O(1), as a rule."""
        return self.order.any_of(chance)[1]

    def copy(self) -> "Deadlines":
        """A copy that shares nothing. O(n)."""
        copied = Deadlines()
        copied.times = dict(self.times)
        copied.order = self.order.copy()
        copied._early = dict(self._early)
        return copied

    def check(self) -> None:
        """Assert the invariants."""
        assert len(NO_PAIRS) == 0
        self.order.check()
        assert all(early_ms < self.times[name] for name, early_ms in self._early.items())
        placed = {**self.times, **self._early}
        assert list(self.order) == sorted((float(when_ms), name) for name, when_ms in placed.items())

    def _placed_before(self, now_ms: int, max_count: int) -> list[bytes]:
        """The first names of the order with a place before a time, at most so many."""
        return [name for when_ms, name in self.order.part(0, max_count) if when_ms < now_ms]

    def _leave(self, name: bytes, when_ms: int) -> None:
        """Take a name with that deadline out of the order."""
        self.order.remove(float(self._early.pop(name, when_ms) if self._early else when_ms), name)

    def _move(self, names: list[bytes]) -> int:
        """Put those of some names that were renewed in their places; how many they were."""
        early, times, order = self._early, self.times, self.order
        moved = [name for name in names if name in early]
        for name in moved:
            order.remove(float(early.pop(name)), name)
            order.add((float(times[name]), name))
        return len(moved)
