"""A clock in a test's hand: it runs like the machine's, or stands still, and can be moved forwards."""

from collections.abc import Callable
from datetime import datetime, timedelta

from penstock.clock import MovableClock, SystemClock
from penstock.errors import UsageError

Turned = Callable[[], None]


class TurnedClock:
    """The clock of one embedded server. Everything follows it: ids, TIME, expiry, BLOCK, idle times."""

    def __init__(self) -> None:
        self._clock = MovableClock(SystemClock())
        self.turned: Turned = _nothing  # called when the time has changed by a call of this class

    # -- what the engine asks -----------------------------------------------------------------------------------------

    def now_us(self) -> int:
        return self._clock.now_us()

    def now_ns(self) -> int:
        return self._clock.now_ns()

    def sleep(self, seconds: float) -> None:
        """DEBUG SLEEP: a stopped clock is moved instead."""
        self._clock.sleep(seconds)

    # -- what a test does ---------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Unix time in seconds."""
        return self.now_us() / 1_000_000

    @property
    def is_stopped(self) -> bool:
        return self._clock.is_stopped

    def stop(self) -> None:
        """Stand still from now on."""
        self._clock.stop()

    def start(self) -> None:
        """Run again, from where it stands."""
        if self._clock.is_stopped:
            self._clock.run()
            self.turned()

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Move forwards, and do at once what becomes due: blocked clients get their replies, keys expire.

        UsageError if the time would go backwards.
        """
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        self._move(span // timedelta(microseconds=1))

    def travel(self, to: datetime | float) -> None:
        """Move forwards to a moment: a datetime, or unix time in seconds. UsageError if that is in the past."""
        moment_s = to.timestamp() if isinstance(to, datetime) else to
        self._move(round(moment_s * 1_000_000) - self.now_us())

    def _move(self, by_us: int) -> None:
        if by_us < 0:
            raise UsageError("the clock cannot be turned back")
        self._clock.advance_us(by_us)
        self.turned()


def _nothing() -> None:
    """Nobody is told."""
