"""Ends a world whose product does not come back: virtual time stands still in a loop without an end."""

import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

LONGEST_S: Final = 90.0  # of CPU, for one world: some twenty times what the longest takes
INNERMOST: Final = 4  # calls that are shown


class Endless(BaseException):
    """A call does not end. No handler of the product may catch it."""


@contextmanager
def limited() -> Iterator[None]:
    """Endless is raised in what takes too long, with the calls in which it is. In a process's main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    calls = traceback.extract_stack(frame)[-INNERMOST:]
    raise Endless(f"a call does not end: {' > '.join(f'{call.name} ({call.lineno})' for call in calls)}")
