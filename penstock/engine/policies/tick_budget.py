"""How much one tick may do for policies, so that no other client waits long for it: by count, and by time."""

from typing import Final

from penstock.clock import Clock

MOST_LOOKS: Final = 10_000  # entries that are looked at
MOST_MOVES: Final = 1000  # entries that move to another stream, or are acknowledged by the server
MOST_US: Final = 10_000  # a request that comes within a tick may be answered after the next one


class TickBudget:
    """The budget of one tick for all streams. looks, moves: how many entries may still be examined, and moved."""

    __slots__ = ("_clock", "_until_us", "looks", "moves")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_us = clock.monotonic_us() + MOST_US
        self.looks = MOST_LOOKS
        self.moves = MOST_MOVES

    def is_over(self) -> bool:
        """Whether the rest is to wait for the next tick. O(1), but reads the clock."""
        return self.looks <= 0 or self.moves <= 0 or self._clock.monotonic_us() >= self._until_us
