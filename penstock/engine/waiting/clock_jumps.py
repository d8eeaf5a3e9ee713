"""The machine's unix time was set: intervals that began at a request's time do not become longer or shorter by that.

For each request one reading of unix time is made, no second one. What waits or is counted from there is moved by what
the clock has jumped: BLOCK and WAIT, CLIENT PAUSE, how long clients are idle or connected, the uptime, HOTKEYS. What is
stored, or compared with what is stored (ids, expiry, idle times of entries, leases, delays), is not.
"""

from typing import TYPE_CHECKING, Final

from penstock.clock import Clock

if TYPE_CHECKING:
    from penstock.engine.engine_state import EngineState

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


def follow(engine: "EngineState") -> int:
    """Move what began at a request's time by what unix time has jumped since the last call: how far, in us."""
    jumped_us = engine.clock_jumps.take_us()
    if not jumped_us:
        return 0
    by_ms = jumped_us // 1000
    for session in engine.sessions.values():
        session.last_ms += by_ms
        session.connected_ms += by_ms
    engine.statistics.started_ms += by_ms
    policies = engine.policies
    if policies.loaded_ms:
        policies.loaded_ms += by_ms
    policies.retry_ms += by_ms if policies.retry_ms else 0
    engine.blocking.move_deadlines(by_ms)
    if engine.paused_until_ms:
        engine.paused_until_ms = max(engine.paused_until_ms + by_ms, 1)
    if engine.hot_keys is not None:
        engine.hot_keys.move(by_ms)
    for database in engine.keyspace.databases:
        if database.order is not None:
            database.order.used_ms += by_ms
    return jumped_us


def settled(engine: "EngineState", usec: int) -> int:
    """What a request took, by two readings of unix time, which may have jumped between them. In microseconds."""
    return max(usec - follow(engine), 0)
