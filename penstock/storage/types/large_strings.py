"""A long string that is changed in place: APPEND, SETRANGE, SETBIT and BITFIELD cost what they change, not its length.

Strings are `bytes`, which cannot change. A string of at least SHORTEST bytes becomes a LargeString when a part of it
is changed, and stays one. Code that keeps its text longer than one request must copy it.
"""

import sys
from typing import Final

from penstock.native.class_marks import mypyc_attr
from penstock.storage.types.collection import Counted

SHORTEST: Final = 32 * 1024  # bytes; copying a shorter string takes at most a microsecond, far less than a request


@mypyc_attr(acyclic=True)
class LargeString(Counted):
    """A string in a `buffer`: read, index and slice it within a request, but do not keep a reference to it."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: bytearray) -> None:
        self.counts = None
        self.buffer = buffer

    def __len__(self) -> int:
        return len(self.buffer)

    def text(self) -> bytes:
        """A copy of the whole text. O(n)."""
        return bytes(self.buffer)

    def copy(self) -> "LargeString":
        """A copy that shares nothing. O(n)."""
        return LargeString(bytearray(self.buffer))

    def parts(self) -> list[bytes]:
        """The contents for DEBUG DIGEST: equal to those of `bytes` with the same text. O(n)."""
        return [self.text()]

    def memory_usage(self) -> int:
        """Bytes of memory, with the bytearray's spare room. O(1)."""
        return sys.getsizeof(self) + sys.getsizeof(self.buffer)
