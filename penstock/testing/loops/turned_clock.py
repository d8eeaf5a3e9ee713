"""A clock in a test's hand: it runs like the machine's, or stands still, and can be moved forwards."""

from collections.abc import Callable
from datetime import datetime, timedelta

from penstock.clock import Clock, MovableClock
from penstock.errors import UsageError

Moved = Callable[[int], None]


class TurnedClock:
    """The clock of one embedded server. Everything follows it: ids, TIME, expiry, BLOCK, idle times."""

    def __init__(self, base: Clock) -> None:
        self.movable = MovableClock(base)  # the engine's
        self.move: Moved = self.movable.advance_us  # by microseconds; the server does what comes due on the way

    def now_us(self) -> int:
        """Unix time in microseconds."""
        return self.movable.now_us()

    # -- what a test does ---------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Unix time in seconds."""
        return self.now_us() / 1_000_000

    @property
    def is_stopped(self) -> bool:
        return self.movable.is_stopped

    def stop(self) -> None:
        """Stand still from now on."""
        self.movable.stop()

    def start(self) -> None:
        """Run again, from where it stands."""
        if self.movable.is_stopped:
            self.movable.run()
            self.move(0)

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Move forwards, and do at once what becomes due: blocked clients get their replies, keys expire.

        Each thing is done at its moment and in order, as PENSTOCK.CLOCK ADVANCE does it.
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
        self.move(by_us)
