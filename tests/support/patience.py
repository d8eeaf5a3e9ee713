"""How long a test waits for what another process does: a busy machine, which is slower, is given more time."""

import time
from pathlib import Path
from typing import Final

PRESSURE: Final = Path("/proc/pressure/cpu")  # Linux; Documentation/accounting/psi.rst
SLOWEST: Final = 20  # times as long, at most


def stalled_s() -> float:
    """Seconds since the machine's start in which a process waited for a processor; 0.0 where that is not counted."""
    try:
        return int(PRESSURE.read_text().splitlines()[0].partition("total=")[2]) / 1e6
    except OSError:
        return 0.0


class Patience:
    """Is over after so many seconds in which no process waited for a processor.

    `now_s` and `stalled_s` are what the clocks say where the wait begins, and again at each look.
    """

    def __init__(self, seconds: float, now_s: float, stalled_s: float) -> None:
        self._seconds = seconds
        self._began_s = now_s
        self._stalled_s = stalled_s

    @classmethod
    def of(cls, seconds: float) -> "Patience":
        return cls(seconds, time.monotonic(), stalled_s())

    def is_over(self) -> bool:
        return self.is_over_at(time.monotonic(), stalled_s())

    def is_over_at(self, now_s: float, stalled_s: float) -> bool:
        passed_s = now_s - self._began_s
        spare_s = passed_s - min(stalled_s - self._stalled_s, passed_s)
        return max(spare_s, passed_s / SLOWEST) > self._seconds
