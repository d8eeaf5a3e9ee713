"""Virtual time: an event loop whose waiting costs nothing, and a clock for each server that may jump."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

LONGEST_S: Final = 3600.0 * 24 * 365


class Stalled(Exception):
    """Nothing is left that could happen, and a task still waits."""


class NoSelector:
    """Stands where asyncio waits for sockets: time passes instead, at once."""

    def __init__(self, loop: "WorldLoop") -> None:
        self._loop = loop

    def select(self, timeout_s: float | None) -> list[object]:
        if timeout_s is None or timeout_s > LONGEST_S:
            raise Stalled
        self._loop.passed_s += max(timeout_s, 0.0)
        return []

    def close(self) -> None:
        """There is nothing to close."""


class WorldLoop(asyncio.BaseEventLoop):
    """asyncio's loop on virtual time, in one thread, without sockets. `passed_s` is the time since the world began."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0
        self._selector = NoSelector(self)
        self._clock_resolution = 1e-9
        self.complaints: list[str] = []  # of asyncio: exceptions that nothing caught
        self.set_exception_handler(self._complain)

    def time(self) -> float:
        return self.passed_s

    def _process_events(self, events: list[object]) -> None:
        """No socket has any."""

    def _write_to_self(self) -> None:
        """call_soon_threadsafe: there is one thread."""

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.complaints.append(f"{context['message']}: {context.get('exception')!r}")


class WorldClock:
    """A server's clock: unix time that may be set, and the time that passes."""

    def __init__(self, loop: WorldLoop, now_ms: int) -> None:
        self._loop = loop
        self._began_us = now_ms * 1000
        self.jumps: list[tuple[float, int]] = []  # when, on the loop, and by how many ms

    def now_us(self) -> int:
        return self._began_us + self.monotonic_us()

    def monotonic_us(self) -> int:
        return round(self._loop.passed_s * 1e6)

    def sleep(self, seconds: float) -> None:
        """What blocks a process takes no time here."""

    def jump(self, ms: int) -> None:
        """The machine's time is set."""
        self.jumps.append((self._loop.passed_s, ms))
        self._began_us += ms * 1000


Guard = Callable[..., None]
"""Calls a function of a process, if the process is alive."""


class ProcessLoop:
    """The loop as one process sees it: what it asked for is not done once it is dead."""

    def __init__(self, loop: WorldLoop, guard: Guard) -> None:
        self._loop = loop
        self._guard = guard

    def time(self) -> float:
        return self._loop.time()

    def call_soon(self, callback: Callable[[], object]) -> asyncio.Handle:
        return self._loop.call_soon(self._guard, callback)

    def call_soon_threadsafe(self, callback: Callable[[], object]) -> asyncio.Handle:
        return self._loop.call_soon(self._guard, callback)

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_s, self._guard, callback)
