"""A long string that is changed where it stands: APPEND, SETRANGE, SETBIT and BITFIELD cost what they change.

Strings are `bytes`, which nobody can change under somebody who holds them. One that is changed in part while it is at
least SHORTEST bytes long becomes a LargeString, and stays one. Whoever keeps any of it longer than a request takes a
copy.
"""

import sys
from typing import Final

SHORTEST: Final = 32 * 1024  # bytes; to copy so many takes a microsecond, a fraction of what a request takes


class LargeString:
    """The bytes are in `held`: to be read, indexed and sliced there within a request, never to be kept."""

    __slots__ = ("held",)

    def __init__(self, held: bytearray) -> None:
        self.held = held

    def __len__(self) -> int:
        return len(self.held)

    def text(self) -> bytes:
        """A copy of the whole; O(n)."""
        return bytes(self.held)

    def copy(self) -> "LargeString":
        return LargeString(bytearray(self.held))

    def parts(self) -> list[bytes]:
        """What tells it from another string (DEBUG DIGEST): the same as of the same bytes."""
        return [self.text()]

    def memory_usage(self) -> int:
        """Bytes held, with the room that a bytearray keeps for growing."""
        return sys.getsizeof(self) + sys.getsizeof(self.held)
