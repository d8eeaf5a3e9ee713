"""When commands and expiry took longer than latency-monitor-threshold: the samples that LATENCY shows (Redis 8.6.3)."""

from collections import deque
from typing import Final

from penstock.engine.table.row import Row

MOST_SAMPLES: Final = 160  # kept of an event


class Event:
    """One kind of delay: its latest samples, oldest first, at most one a second, and the worst there ever was."""

    __slots__ = ("samples", "worst_ms")

    def __init__(self) -> None:
        self.samples: deque[tuple[int, int]] = deque(maxlen=MOST_SAMPLES)  # (unix time in s, ms)
        self.worst_ms = 0

    def add(self, now_s: int, took_ms: int) -> None:
        self.worst_ms = max(self.worst_ms, took_ms)
        if self.samples and self.samples[-1][0] == now_s:
            took_ms = max(took_ms, self.samples.pop()[1])
        self.samples.append((now_s, took_ms))


class LatencyMonitor:
    """The events, by name."""

    def __init__(self) -> None:
        self.events: dict[bytes, Event] = {}

    def ran(self, row: Row, now_us: int, usec: int) -> None:
        """A command took longer than the threshold."""
        self.note(b"fast-command" if row.fast else b"command", now_us, usec)

    def note(self, name: bytes, now_us: int, usec: int) -> None:
        """Something took longer than the threshold."""
        event = self.events.get(name)
        if event is None:
            event = self.events[name] = Event()
        event.add(now_us // 1_000_000, usec // 1000)
