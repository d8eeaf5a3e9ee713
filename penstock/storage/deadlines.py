"""Deadlines of names, found by name and in order of time."""

from typing import Final

from sortedcontainers import SortedList

NEVER: Final = 2**63  # later than any deadline


class Deadlines:
    """Names and a deadline for each, in unix ms.

    Invariant: `order` has exactly the pairs (times[name], name). In the costs, n is the number of names.
    """

    __slots__ = ("order", "times")

    def __init__(self) -> None:
        self.times: dict[bytes, int] = {}
        self.order: SortedList[tuple[int, bytes]] = SortedList()

    def __len__(self) -> int:
        return len(self.times)

    def set(self, name: bytes, when_ms: int) -> None:
        """Set or replace the deadline of a name. O(log n)."""
        self.drop(name)
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
        return self.order[0][0] if self.times else NEVER

    def overdue(self, now_ms: int, max_count: int) -> list[bytes]:
        """At most `max_count` names whose deadline has passed, the earliest deadline first. O(max_count)."""
        return [name for when_ms, name in self.order.islice(0, max_count) if when_ms < now_ms]

    def copy(self) -> "Deadlines":
        """A copy that shares nothing. O(n)."""
        copied = Deadlines()
        copied.times = dict(self.times)
        copied.order = self.order.copy()
        return copied

    def check(self) -> None:
        """Assert the invariant."""
        assert list(self.order) == sorted((when_ms, name) for name, when_ms in self.times.items())
