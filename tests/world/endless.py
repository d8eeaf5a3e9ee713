"""Ends a world whose product does not come back: virtual time stands still in a loop without an end."""

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

LONGEST_S: Final = 90.0  # of CPU, in which the clock of a world must go on
INNERMOST: Final = 4  # calls that are shown


class Endless(BaseException):
    """A call does not end. No handler of the product may catch it."""


@contextmanager
def limited(clock: Callable[[], float]) -> Iterator[None]:
    """Endless is raised where `clock` stands still for so long, with the calls. In a process's main thread only.

    It is raised again and again: what is raised in a callback of the garbage collector is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen_s = -1.0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal seen_s
        if clock() == seen_s:
            calls = traceback.extract_stack(frame)[-INNERMOST:]
            raise Endless(f"a call does not end: {' > '.join(f'{call.name} ({call.lineno})' for call in calls)}")
        seen_s = clock()

    before = signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
