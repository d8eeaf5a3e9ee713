"""When the entries of a group were handed out within the span of its RATE."""

from collections import deque


class RateWindow:
    """Moments and how many entries were handed out at each.

    Invariants: the moments ascend strictly; `count` is the sum of the numbers, each of which is positive.
    """

    __slots__ = ("count", "pairs")

    def __init__(self) -> None:
        self.pairs: deque[tuple[int, int]] = deque()
        self.count = 0

    def add(self, now_ms: int, count: int) -> None:
        """Entries were handed out. A clock that went back counts as one that stands. O(1)."""
        self.count += count
        if self.pairs and self.pairs[-1][0] >= now_ms:
            now_ms, earlier = self.pairs.pop()
            count += earlier
        self.pairs.append((now_ms, count))

    def forget(self, now_ms: int, span_ms: int) -> None:
        """Forget what is not within the span any more. Moments to come count as now: the clock was set back.

        O(1) amortized.
        """
        ahead = 0
        while self.pairs and self.pairs[-1][0] > now_ms:
            ahead += self.pairs.pop()[1]
        if ahead:
            self.count -= ahead
            self.add(now_ms, ahead)
        while self.pairs and self.pairs[0][0] <= now_ms - span_ms:
            self.count -= self.pairs.popleft()[1]

    def move(self, by_ms: int) -> None:
        """Unix time has jumped: the span does not become longer or shorter by that. O(pairs)."""
        self.pairs = deque([(moment + by_ms, count) for moment, count in self.pairs])

    def clear(self) -> None:
        self.pairs.clear()
        self.count = 0

    def copy(self) -> "RateWindow":
        copied = RateWindow()
        copied.pairs, copied.count = self.pairs.copy(), self.count
        return copied

    def check(self) -> None:
        """Assert the invariants."""
        moments = [moment for moment, _ in self.pairs]
        assert moments == sorted(set(moments))
        assert self.count == sum(count for _, count in self.pairs)
        assert all(count > 0 for _, count in self.pairs)
