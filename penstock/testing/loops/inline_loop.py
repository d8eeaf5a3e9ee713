"""As much of an event loop as the server floor needs, without a thread: a request runs what is due.

`lock` is held while anything of the server runs, so clients may be in different threads and event loops. Its time is
the engine's clock, as it passes: a test that turns the clock turns the timers too.
"""

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Final

from penstock.clock import Clock

LONGEST_WAIT_S: Final = 1.0  # of every wait in this package without a time by its caller: then it looks again


class InlineTimer:
    """A callback that is due at a time, unless it is cancelled."""

    __slots__ = ("callback", "is_cancelled", "number", "when_s")

    def __init__(self, when_s: float, number: int, callback: Callable[[], None]) -> None:
        self.when_s = when_s
        self.number = number
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def __lt__(self, other: "InlineTimer") -> bool:
        return (self.when_s, self.number) < (other.when_s, other.number)


class InlineLoop:
    """Callbacks that are to be run soon, and timers.

    `start_thread` has a thread run the timers when they are due: needed while a client waits for a time to come.
    """

    def __init__(self, clock: Clock) -> None:
        self.lock = threading.RLock()
        self._clock = clock
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[InlineTimer] = []
        self._numbers = 0
        self._runs = False  # in a call of run_due
        self._changed = threading.Event()  # the thread must look again
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._starting = threading.Lock()

    # -- what asyncio's loops have ------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._clock.monotonic_us() / 1_000_000

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Called in another thread; it does not wait for the lock, so the callback is run by the loop's own thread."""
        self._soon.append(callback)
        self.start_thread()
        self._changed.set()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> InlineTimer:
        self._numbers += 1
        timer = InlineTimer(self.time() + delay_s, self._numbers, callback)
        insort(self._timers, timer)
        if self._timers[0] is timer:
            self._changed.set()
        return timer

    # -- running ------------------------------------------------------------------------------------------------------

    def run_due(self) -> None:
        """Run what is due, with the lock held; nothing where a callback called this."""
        if self._runs:
            return
        self._runs = True
        try:
            while True:
                while self._soon:
                    self._soon.popleft()()
                if not self._timers or self._timers[0].when_s > self.time():
                    return
                timer = self._timers.pop(0)
                if not timer.is_cancelled:
                    timer.callback()
        finally:
            self._runs = False

    def start_thread(self) -> None:
        """Have a thread run the timers, if none does: one that a callback's error has ended is replaced."""
        with self._starting:
            if (self._thread is None or not self._thread.is_alive()) and not self._is_closed:
                self._thread = threading.Thread(target=self._run_timers, name="penstock-timers", daemon=True)
                self._thread.start()

    def look_again(self) -> None:
        """The clock was turned."""
        self._changed.set()

    def close(self) -> None:
        """End the thread, which is waited for only so long: a callback that runs in it may take longer."""
        with self._starting:
            self._is_closed = True
        self._changed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(LONGEST_WAIT_S)

    def _run_timers(self) -> None:
        """The thread's function. Every caller of `_changed.set` changes first what is to be seen, then sets it.

        So it is cleared before anything is looked at: what changes behind the look finds it cleared and ends the wait.
        """
        while True:
            self._changed.clear()
            if self._is_closed:
                return
            with self.lock:
                self.run_due()
                wait_s = self._timers[0].when_s - self.time() if self._timers else LONGEST_WAIT_S
            self._changed.wait(min(max(wait_s, 0.0), LONGEST_WAIT_S))
