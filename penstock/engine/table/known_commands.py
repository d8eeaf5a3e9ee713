"""The commands of a server by their names, as handlers and the engine's parts ask for them (command_lookup.py)."""

from collections.abc import Mapping

from penstock.engine.table.row import Row


class KnownCommands:
    """rows: by the upper-case name that clients use, without the commands that they must not know."""

    __slots__ = ("rows",)

    def __init__(self, rows: Mapping[bytes, Row]) -> None:
        self.rows = rows

    def named(self, request: list[bytes]) -> Row:
        """The command that a request names, whatever its arity; a container where nothing follows its name."""
        raise NotImplementedError

    def fitting(self, request: list[bytes]) -> Row:
        """The command of a request whose arity fits, else the refusal (Redis 8.6.3)."""
        raise NotImplementedError

    def logged(self, request: list[bytes]) -> Row:
        """As `fitting`, for a line of the log, which knows what clients do not, and by its own name."""
        raise NotImplementedError
