"""By how much the machine's unix time was set, seen beside a time that never jumps."""

from typing import Final

from penstock.clock import Clock

LEAST_US: Final = 100_000  # a jump; less is how NTP adjusts a clock
PRECISE_US: Final = 10_000  # what may pass between two readings that are compared


class ClockJumps:
    """How far unix time is ahead of the time that never jumps."""

    __slots__ = ("_ahead_us", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_us = clock.now_us() - clock.monotonic_us()

    def take_us(self) -> int:
        """By how much unix time was set since the last call, in microseconds; 0: it was not."""
        before_us = self._clock.monotonic_us()
        now_us = self._clock.now_us()
        after_us = self._clock.monotonic_us()
        jumped_us = now_us - after_us - self._ahead_us
        if -LEAST_US < jumped_us < LEAST_US or after_us - before_us > PRECISE_US:
            return 0
        self._ahead_us += jumped_us
        return jumped_us
