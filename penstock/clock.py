"""The clocks. Only this module imports `time`."""

import time
from typing import Protocol


class Clock(Protocol):
    """The wall clock that an engine is given: for ids, expiry and idle times."""

    def now_us(self) -> int:
        """Unix time in microseconds."""

    def now_ns(self) -> int:
        """Unix time in nanoseconds: the cheapest call, for code that reads the time twice in every request."""

    def sleep(self, seconds: float) -> None:
        """Block the caller (DEBUG SLEEP)."""


class SystemClock:
    """The machine's clock."""

    now_ns = staticmethod(time.time_ns)

    def now_us(self) -> int:
        return time.time_ns() // 1000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that stands still until a test sets or advances it."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_us = now_ms * 1000

    def now_us(self) -> int:
        return self._now_us

    def now_ns(self) -> int:
        return self._now_us * 1000

    def sleep(self, seconds: float) -> None:
        self._now_us += int(seconds * 1_000_000)

    def set_ms(self, now_ms: int) -> None:
        self._now_us = now_ms * 1000

    def advance(self, ms: int) -> None:
        self._now_us += ms * 1000
