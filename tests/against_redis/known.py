"""What the reference knows: its version and its commands. What it does not know is not sent to it."""

from collections.abc import Iterable
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, int, int]

NEWEST: Final[Version] = (99, 0, 0)


class Known:
    """A server's version and the names of its commands; by default everything."""

    def __init__(self, version: Version = NEWEST, commands: Iterable[str] | None = None) -> None:
        self.version = version
        self._commands = None if commands is None else frozenset(name.upper() for name in commands)

    def command(self, name: str) -> bool:
        return self._commands is None or name in self._commands

    def since(self, major: int, minor: int) -> bool:
        """Whether it has what came with a version."""
        return self.version >= (major, minor, 0)
