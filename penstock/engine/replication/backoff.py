"""How long a replica waits before it makes another link to its master."""

from typing import Final

FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0


class Backoff:
    """The waits of one replica. All times are seconds of a clock that never goes back.

    A master that cannot be reached, or refuses, is tried every second. A link that was lost after it had lasted is made
    again at once. One that came to nothing (its snapshot or stream cannot be used, or it was lost at once) costs a copy
    of everything each time: then each wait is twice as long as the one before. After a link that lasted as long as the
    longest wait, or was lost without a fault after the next one, they begin anew.
    """

    __slots__ = ("_next_s",)

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def wait_s(self, was_accepted: bool, is_useless: bool, lasted_s: float) -> float:
        """The wait after a link.

        was_accepted: the master has begun to send data. is_useless: what came was wrong. lasted_s: how long the link
        was up, 0 if it never was.
        """
        if not was_accepted:
            return FIRST_S
        if lasted_s >= LONGEST_S or (lasted_s >= self._next_s and not is_useless):
            self._next_s = FIRST_S
        if lasted_s >= FIRST_S and not is_useless:
            return 0.0
        waits_s = self._next_s
        self._next_s = min(2 * waits_s, LONGEST_S)
        return waits_s
