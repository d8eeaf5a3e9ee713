"""When names are due: by name, and in order of time."""

from typing import Final

from sortedcontainers import SortedList

NEVER: Final = 2**63  # later than any time


class Deadlines:
    """Names and a time for each, in unix ms.

    Invariant: `order` holds exactly the pairs (times[name], name). Setting and dropping cost O(log n).
    """

    __slots__ = ("order", "times")

    def __init__(self) -> None:
        self.times: dict[bytes, int] = {}
        self.order: SortedList[tuple[int, bytes]] = SortedList()

    def __len__(self) -> int:
        return len(self.times)

    def set(self, name: bytes, when_ms: int) -> None:
        self.drop(name)
        self.times[name] = when_ms
        self.order.add((when_ms, name))

    def drop(self, name: bytes) -> bool:
        """Forget a name's time; whether it had one."""
        when_ms = self.times.pop(name, None)
        if when_ms is None:
            return False
        self.order.remove((when_ms, name))
        return True

    def first_ms(self) -> int:
        """The earliest time; NEVER where there is none."""
        return self.order[0][0] if self.times else NEVER

    def overdue(self, now_ms: int, most: int) -> list[bytes]:
        """At most `most` names whose time has passed, the longest overdue first."""
        return [name for when_ms, name in self.order.islice(0, most) if when_ms < now_ms]

    def copy(self) -> "Deadlines":
        copied = Deadlines()
        copied.times = dict(self.times)
        copied.order = self.order.copy()
        return copied

    def check(self) -> None:
        """Assert the invariant."""
        assert list(self.order) == sorted((when_ms, name) for name, when_ms in self.times.items())
