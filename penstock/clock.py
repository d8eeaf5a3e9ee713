"""The clocks: unix time, and time that never jumps. Only this module imports `time`.

Ids, expiry and whatever else is stored or shown is unix time, which an administrator or NTP may set. How long something
takes, or until when it waits, is measured by the monotonic reading (docs/architecture.md, "Time").
"""

import time
from typing import Final, Protocol

from penstock import system_time

RUNNING: Final = -1  # in place of the time at which a clock stands


class Clock(Protocol):
    """The clock that an engine is given."""

    def now_us(self) -> int:
        """Unix time in microseconds."""

    def monotonic_us(self) -> int:
        """Microseconds since some moment: they pass as time does, and never jump."""

    def sleep(self, seconds: float) -> None:
        """Block the caller (DEBUG SLEEP)."""


class SystemClock:
    """The machine's clock."""

    now_us = staticmethod(system_time.now_us)

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class PatchedClock(SystemClock):
    """The machine's clock as `time.time` tells it, which freezegun, time_machine and mocks replace."""

    now_us = staticmethod(lambda: round(time.time() * 1_000_000))


class ManualClock:
    """A clock that stands still until a test sets or advances it."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_us = self._monotonic_us = now_ms * 1000

    def now_us(self) -> int:
        return self._now_us

    def monotonic_us(self) -> int:
        return self._monotonic_us

    def sleep(self, seconds: float) -> None:
        self._pass(int(seconds * 1_000_000))

    def set_ms(self, now_ms: int) -> None:
        """Time passes until then; backwards it is a jump."""
        self._monotonic_us += max(now_ms * 1000 - self._now_us, 0)
        self._now_us = now_ms * 1000

    def advance(self, ms: int) -> None:
        self._pass(ms * 1000)

    def jump(self, ms: int) -> None:
        """The machine's unix time is set, forwards or backwards; no time passes."""
        self._now_us += ms * 1000

    def _pass(self, us: int) -> None:
        self._now_us += us
        self._monotonic_us += us


class MovableClock:
    """Another clock until it is moved: PENSTOCK.CLOCK stops it, moves it and lets it go on (penstock-test-clock)."""

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead_us = 0  # of the base, while it runs
        self._stopped_us = RUNNING
        self._monotonic_ahead_us = 0  # likewise, of the time that never jumps
        self._monotonic_stopped_us = 0

    def now_us(self) -> int:
        return self._base.now_us() + self._ahead_us if self._stopped_us == RUNNING else self._stopped_us

    def monotonic_us(self) -> int:
        if self._stopped_us == RUNNING:
            return self._base.monotonic_us() + self._monotonic_ahead_us
        return self._monotonic_stopped_us

    def sleep(self, seconds: float) -> None:
        if self._stopped_us == RUNNING:
            self._base.sleep(seconds)
        else:
            self.advance_us(int(seconds * 1_000_000))

    @property
    def is_stopped(self) -> bool:
        return self._stopped_us != RUNNING

    def stop_at(self, now_ms: int) -> None:
        """Stand still at a time. Until then time passes; backwards it is a jump."""
        passed_us = max(now_ms * 1000 - self.now_us(), 0)
        self._monotonic_stopped_us = self.monotonic_us() + passed_us
        self._stopped_us = now_ms * 1000

    def stop(self) -> None:
        """Stand still from now on."""
        self._monotonic_stopped_us = self.monotonic_us()
        self._stopped_us = self.now_us()

    def advance(self, ms: int) -> None:
        """Move on, whether it runs or stands."""
        self.advance_us(ms * 1000)

    def advance_us(self, us: int) -> None:
        if self._stopped_us == RUNNING:
            self._ahead_us += us
            self._monotonic_ahead_us += us
        else:
            self._stopped_us += us
            self._monotonic_stopped_us += us

    def follow_base(self) -> None:
        """Be the other clock again, as if it had never been moved."""
        self._ahead_us = self._monotonic_ahead_us = 0
        self._stopped_us = RUNNING

    def run(self) -> None:
        """Go on from where it stands."""
        if self._stopped_us != RUNNING:
            self._ahead_us = self._stopped_us - self._base.now_us()
            self._monotonic_ahead_us = self._monotonic_stopped_us - self._base.monotonic_us()
            self._stopped_us = RUNNING
