"""Where a key is in a request, and what the command does with it."""

from collections.abc import Callable
from typing import Final, TypeAlias

WRITING_FLAGS: Final = ("insert", "delete", "update")


class KeyPlace:
    """One key of a request: its position, Redis's flags, and whether the command reads the value and changes it.

    Neither of the two where it only looks whether there is a value, or how large it is: EXISTS, XLEN (Redis 8.6.3).
    """

    __slots__ = ("flags", "position", "reads", "writes")

    def __init__(self, position: int, flags: list[str]) -> None:
        self.position = position
        self.flags = flags
        self.reads = "access" in flags
        self.writes = any(flag in flags for flag in WRITING_FLAGS)


KeyFinder: TypeAlias = Callable[[list[bytes]], list[KeyPlace]]
"""Finds the keys of a request with a valid number of arguments; reads options as the command's handler does. Its result
does not matter for a request that the handler refuses."""
