"""maxmemory: before a request, keys are evicted while too much memory is used; then what needs more is refused.

Nothing of it is asked while maxmemory is 0. The memory in use is read ten times a second, and before a request is
refused; less often where a reading is slow. In between it is what was read and what clients have sent since.
"""

from collections.abc import Callable
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.memory import process_memory
from penstock.engine.telemetry.statistics import Statistics

READ_EVERY_US: Final = 100_000
SHARE_OF_TIME: Final = 20  # a reading may take a twentieth of the time at the most
MUCH: Final = 4 * 1024 * 1024  # bytes that came: reason to read again sooner


class MemoryLimit:
    """The memory limit, the memory in use, and eviction.

    limit: maxmemory in bytes; 0: none. used: bytes in use at the last reading; resident: the resident size then.
    reading: a function that returns both; by default the resident size for both. evict removes keys until so many bytes
    are free (eviction.py); on_change gets whether there is a limit. is_due: keys may have to be evicted without a
    further request (CONFIG SET of the limit, or of a policy that may evict more). give_back: has the C library give
    free memory back to the system.
    """

    __slots__ = (
        "_clock", "_evict", "_most", "_next_us", "_on_change", "_received", "_settings", "_soonest_us", "_statistics",
        "give_back", "is_due", "limit", "peak_s", "reading", "resident", "used",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        statistics: Statistics,
        evict: Callable[[int], tuple[int, bool]],
        on_change: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._statistics = statistics
        self._evict = evict
        self._on_change = on_change
        self.reading: Callable[[], tuple[int, int]] = _resident
        self.give_back: Callable[[], None] = _keep
        self.limit = 0
        self.is_due = False
        self.used = self.resident = 0
        self._most = 0
        self.peak_s = 0  # unix time of the reading that found the most
        self._next_us = self._soonest_us = 0  # when a reading is due, and when it may be at the soonest
        self._received = 0  # bytes that clients had sent then
        settings.watch("maxmemory", self._set)
        settings.watch("maxmemory-policy", self._set)
        self._set()

    def _set(self) -> None:
        self.limit = self._settings.number("maxmemory")
        self.is_due = self.limit > 0
        self._on_change(self.is_due)
        self._next_us = self._soonest_us = 0

    def read(self) -> int:
        """Bytes in use, read now."""
        began_us = self._clock.monotonic_us()
        self.used, self.resident = self.reading()
        if self.resident > self._most:
            self._most = self.resident
            self.peak_s = self._clock.now_us() // 1_000_000
        ended_us = self._clock.monotonic_us()
        self._soonest_us = ended_us + (ended_us - began_us) * SHARE_OF_TIME
        self._next_us = max(ended_us + READ_EVERY_US, self._soonest_us)
        self._received = self._statistics.input_bytes
        return self.used

    def excess(self) -> int:
        """Bytes over the limit, by estimate; not above 0: there is room."""
        came = self._statistics.input_bytes - self._received
        now_us = self._clock.monotonic_us()
        if now_us >= self._next_us or (came > MUCH and now_us >= self._soonest_us):
            self.read()
            came = 0
        return self.used + came - self.limit

    def has_room(self) -> bool:
        """Whether requests may be handled without asking one by one."""
        return self.excess() <= 0

    def fails_to_make_room(self) -> bool:
        """Evict before a request; returns whether that failed: then a request that needs memory is refused (8.6.3)."""
        self.is_due = False
        excess = self.excess()
        if excess <= 0:
            return False
        freed, is_unfinished = self._evict(excess)
        self.used -= freed
        if freed >= excess or is_unfinished:
            self.is_due = freed < excess
            return False
        if self._clock.monotonic_us() < self._soonest_us:
            return True
        self.read()  # before a refusal: keys may have been deleted since the last reading
        return self.excess() > 0

    def refuses(self) -> bool:
        """Whether a script's requests that need memory are refused."""
        return self.limit > 0 and self.excess() > 0


def _resident() -> tuple[int, int]:
    """The resident size, also in place of the memory in use, which is not known."""
    resident = process_memory.resident_bytes()
    return resident, resident


def _keep() -> None:
    """What is free stays with the process."""
