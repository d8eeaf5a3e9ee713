"""maxmemory: before a request, keys are evicted while too much memory is used; then what needs more is refused.

Nothing of it is asked while maxmemory is 0. The memory in use is read at most ten times a second, less often where a
reading is slow; in between it is what was read and what clients have sent since.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.engine import refusals, state
from penstock.engine.memory import recency
from penstock.engine.memory.allocated_memory import Allocated
from penstock.engine.memory.eviction import Evictor

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.session import Session
    from penstock.engine.table.row import Row

READ_EVERY_US: Final = 100_000
SHARE_OF_TIME: Final = 20  # a reading may take a twentieth of the time at the most
MUCH: Final = 4 * 1024 * 1024  # bytes that came: reason to read again sooner


class MemoryLimit:
    """The limit, what is used, and what makes room.

    limit: maxmemory in bytes; 0: none. used: bytes in use, as last read. reading: what tells them.
    """

    __slots__ = ("_engine", "_evictor", "_next_us", "_received", "_soonest_us", "limit", "reading", "used")

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.reading: Callable[[], int] = Allocated().read
        self._evictor = Evictor(engine)
        self.limit = 0
        self.used = 0
        self._next_us = self._soonest_us = 0  # when a reading is due, and when it may be at the soonest
        self._received = 0  # bytes that clients had sent then
        engine.settings.watch("maxmemory", self._set)
        engine.settings.watch("maxmemory-policy", self._choose)
        self._set()
        self._choose()

    def _set(self) -> None:
        self.limit = self._engine.settings.number("maxmemory")
        self._engine.set_state(state.MEMORY_LIMITED, self.limit > 0)
        self._next_us = self._soonest_us = 0

    def _choose(self) -> None:
        recency.choose_context(self._engine)

    def read(self) -> int:
        """Bytes in use, read now."""
        clock, statistics = self._engine.clock, self._engine.statistics
        began_us = clock.now_us()
        self.used = self.reading()
        ended_us = clock.now_us()
        self._soonest_us = ended_us + (ended_us - began_us) * SHARE_OF_TIME
        self._next_us = max(ended_us + READ_EVERY_US, self._soonest_us)
        self._received = statistics.input_bytes
        return self.used

    def excess(self) -> int:
        """Bytes over the limit, by estimate; not above 0: there is room."""
        came = self._engine.statistics.input_bytes - self._received
        now_us = self._engine.clock.now_us()
        if now_us >= self._next_us or (came > MUCH and now_us >= self._soonest_us):
            self.read()
            came = 0
        return self.used + came - self.limit

    def has_room(self) -> bool:
        """Whether requests may be handled without asking one by one."""
        return self.excess() <= 0

    def admit(self, session: "Session", row: "Row") -> None:
        """Make room before a request; refused is one that needs more where there is none (Redis 8.6.3)."""
        if self._engine.loading or not self._makes_too_little_room():
            return
        if row.denyoom or (row.name == "EXEC" and any(queued.denyoom for queued, _ in session.queue or ())):
            raise refusals.out_of_memory()

    def refuses(self) -> bool:
        """Whether a script may not write what needs memory."""
        return self.limit > 0 and self.excess() > 0

    def _makes_too_little_room(self) -> bool:
        excess = self.excess()
        if excess <= 0:
            return False
        freed, goes_on = self._evictor.evict(excess)
        self.used -= freed
        return freed < excess and not goes_on
