"""What the reference knows: its version and its commands. What it does not know is not sent to it."""

from collections.abc import Iterable
from typing import Final, TypeAlias

from tests.against_redis.exclusions import ERROR_TEXTS_SINCE

Version: TypeAlias = tuple[int, int, int]

NEWEST: Final[Version] = (99, 0, 0)


class Known:
    """A server's version and the names of its commands; by default everything."""

    def __init__(
        self, version: Version = NEWEST, commands: Iterable[str] | None = None, is_valkey: bool = False
    ) -> None:
        self.version = version
        self.has_texts = is_valkey or version >= ERROR_TEXTS_SINCE  # whether errors are compared to the last letter
        self._commands = None if commands is None else frozenset(name.upper() for name in commands)

    def command(self, name: str) -> bool:
        return self._commands is None or name in self._commands

    def may_be_sent(self, name: str) -> bool:
        """Whether requests of this name are made; nameless: those of what is too new for all references."""
        return bool(name) and self.command(name)

    def since(self, major: int, minor: int) -> bool:
        """Whether it has what came with a version."""
        return self.version >= (major, minor, 0)


class Strict(Known):
    """As it is asked beside a Penstock with its version as compat-version: both must refuse what came later.

    Only what differs by design stays unsent: `version` and `command` tell the truth.
    """

    def may_be_sent(self, name: str) -> bool:
        return True

    def since(self, major: int, minor: int) -> bool:
        """True for what came after 7.2, the oldest version there is to be compatible with."""
        return (major, minor) > (7, 2) or super().since(major, minor)
