"""Where time comes from: the one module that imports `time`."""

import time
from typing import Protocol


class Clock(Protocol):
    """What an engine is given: wall time for ids and expiry, nothing else."""

    def now_us(self) -> int:
        """Microseconds of unix time."""

    def now_ns(self) -> int:
        """Nanoseconds of unix time: for who asks twice a request, as the system's clock is asked without a detour."""

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
    """A clock that a test turns by hand."""

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
