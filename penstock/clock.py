"""The clocks. Only this module imports `time`."""

import time
from typing import Final, Protocol

from penstock import system_time

RUNNING: Final = -1  # in place of the time at which a clock stands


class Clock(Protocol):
    """The wall clock that an engine is given: for ids, expiry and idle times."""

    def now_us(self) -> int:
        """Unix time in microseconds."""

    def sleep(self, seconds: float) -> None:
        """Block the caller (DEBUG SLEEP)."""


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        return system_time.now_us()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that stands still until a test sets or advances it."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_us = now_ms * 1000

    def now_us(self) -> int:
        return self._now_us

    def sleep(self, seconds: float) -> None:
        self._now_us += int(seconds * 1_000_000)

    def set_ms(self, now_ms: int) -> None:
        self._now_us = now_ms * 1000

    def advance(self, ms: int) -> None:
        self._now_us += ms * 1000


class MovableClock:
    """Another clock until it is moved: PENSTOCK.CLOCK stops it, moves it and lets it go on (penstock-test-clock)."""

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead_us = 0  # of the base, while it runs
        self._stopped_us = RUNNING

    def now_us(self) -> int:
        return self._base.now_us() + self._ahead_us if self._stopped_us == RUNNING else self._stopped_us

    def sleep(self, seconds: float) -> None:
        if self._stopped_us == RUNNING:
            self._base.sleep(seconds)
        else:
            self._stopped_us += int(seconds * 1_000_000)

    @property
    def is_stopped(self) -> bool:
        return self._stopped_us != RUNNING

    def stop_at(self, now_ms: int) -> None:
        """Stand still at a time."""
        self._stopped_us = now_ms * 1000

    def stop(self) -> None:
        """Stand still from now on."""
        self._stopped_us = self.now_us()

    def advance(self, ms: int) -> None:
        """Move on, whether it runs or stands."""
        self.advance_us(ms * 1000)

    def advance_us(self, us: int) -> None:
        if self._stopped_us == RUNNING:
            self._ahead_us += us
        else:
            self._stopped_us += us

    def run(self) -> None:
        """Go on from where it stands."""
        if self._stopped_us != RUNNING:
            self._ahead_us = self._stopped_us - self._base.now_us()
            self._stopped_us = RUNNING
