"""The shortest dialogue that still shows something: requests are left out, then words."""

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

TRIES: Final = 2000


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


def without(steps: list[T], shows: Callable[[list[T]], bool], tries: int = TRIES) -> list[T]:
    """Steps of which none can be left out (delta debugging: halves first, then ever smaller pieces).

    tries: so often `shows` is asked at most; what is found by then is returned.
    """
    size = max(len(steps) // 2, 1)
    while True:
        before, at = len(steps), 0
        while at < len(steps):
            if tries == 0:
                return steps
            tries -= 1
            fewer = steps[:at] + steps[at + size :]
            if shows(fewer):
                steps = fewer
            else:
                at += size
        if size == 1 and len(steps) == before:
            return steps
        size = max(size // 2, 1)
