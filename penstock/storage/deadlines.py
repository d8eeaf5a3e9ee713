"""Deadlines of names, found by name and in order of time."""

from random import Random
from typing import Final

from penstock.storage.time_order import TimeOrder

NEVER: Final = 2**63  # later than any deadline


class Deadlines:
    """Names and a deadline for each, in unix ms.

    Invariant: `order` has exactly the pairs (times[name], name). In the costs, n is the number of names.
    """

    __slots__ = ("order", "times")

    def __init__(self) -> None:
        self.times: dict[bytes, int] = {}
        self.order = TimeOrder()

    def __len__(self) -> int:
        return len(self.times)

    def set(self, name: bytes, when_ms: int) -> None:
        """Set or replace the deadline of a name. O(log n)."""
        before_ms = self.times.get(name)
        if before_ms is not None:
            if before_ms == when_ms:
                return
            self.order.remove((before_ms, name))
        self.times[name] = when_ms
        self.order.add((when_ms, name))

    def drop(self, name: bytes) -> bool:
        """Remove the deadline of a name; returns whether it had one. O(log n)."""
        when_ms = self.times.pop(name, None)
        if when_ms is None:
            return False
        self.order.remove((when_ms, name))
        return True

    def first_ms(self) -> int:
        """The earliest deadline; NEVER if there is none. O(1)."""
        return self.order.first()[0] if self.times else NEVER

    def overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """At most `max_count` names whose deadline has passed, the earliest deadline first. O(max_count)."""
        return [name for when_ms, name in self.order.up_to(max_count) if when_ms < now_ms]

    def take_overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """As `overdue`; the names have no deadline any more."""
        names = self.overdue(now_ms, max_count)
        self.order.take_first(len(names))
        for name in names:
            del self.times[name]
        return names

    def count_overdue(self, now_ms: int) -> int:
        """How many deadlines have passed. O(log n), and a thousandth of those that have."""
        return self.order.count_before((now_ms, b""))

    def any_of(self, chance: Random) -> bytes:
        """A name by chance; there must be one. O(1), as a rule."""
        return self.order.any_of(chance)[1]

    def copy(self) -> "Deadlines":
        """A copy that shares nothing. O(n)."""
        copied = Deadlines()
        copied.times = dict(self.times)
        copied.order = self.order.copy()
        return copied

    def check(self) -> None:
        """Assert the invariant."""
        self.order.check()
        assert list(self.order) == sorted((when_ms, name) for name, when_ms in self.times.items())
