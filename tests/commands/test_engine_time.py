"""The engine's time: the machine's, read without a detour, or that of the clock that it was given."""

import time

from penstock.clock import ManualClock, MovableClock, SystemClock
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine


class LateClock(SystemClock):
    """The machine's clock, an hour behind."""

    def now_us(self) -> int:
        return super().now_us() - 3_600_000_000


def test_an_engine_on_the_machines_clock_has_the_machines_time_to_the_microsecond() -> None:
    engine = make_engine(SystemClock())

    before_us = time.time_ns() // 1000
    read = [engine.now_us() for _ in range(1000)]
    after_us = time.time_ns() // 1000

    assert read == sorted(read)
    assert before_us - 1 <= read[0] and read[-1] <= after_us + 1


def test_an_engine_on_another_clock_has_its_time() -> None:
    movable = MovableClock(SystemClock())
    movable.stop_at(NOW_MS + 5)

    assert make_engine(ManualClock(NOW_MS)).now_us() == NOW_MS * 1000
    assert make_engine(movable).now_us() == (NOW_MS + 5) * 1000
    assert make_engine(LateClock()).now_us() < time.time_ns() // 1000 - 3_000_000_000
