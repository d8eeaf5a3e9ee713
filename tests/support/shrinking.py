"""The shortest dialogue that still shows something: requests are left out, then words."""

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

ATTEMPTS: Final = 2000


def shortest(requests: list[list[str]], shows: Callable[[list[list[str]]], bool]) -> list[list[str]]:
    """Requests without which, one by one and word by word, it would no longer show."""
    requests = without(requests, shows)
    for at in range(len(requests)):
        for size in (2, 1):
            for word in range(len(requests[at]) - size, 0, -1):
                request = requests[at][:word] + requests[at][word + size :]
                fewer = [*requests[:at], request, *requests[at + 1 :]]
                if shows(fewer):
                    requests = fewer
    return requests


def without(steps: list[T], shows: Callable[[list[T]], bool]) -> list[T]:
    """Steps of which none can be left out (delta debugging: halves first, then ever smaller pieces)."""
    pieces = 2
    for _ in range(ATTEMPTS):
        size = max(1, len(steps) // pieces)
        fewer = next(
            (kept for at in range(0, len(steps), size) if shows(kept := steps[:at] + steps[at + size :])), None
        )
        if fewer is not None:
            steps, pieces = fewer, max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(pieces * 2, len(steps))
    return steps
