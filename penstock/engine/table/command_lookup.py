"""Which command a request names: by the names that clients use, and by those that stand in the log."""

from collections.abc import Sequence

from penstock.engine import refusals
from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.table import renaming
from penstock.engine.table.client_compat import Compatibility
from penstock.engine.table.command_table import Command, Table, command_of
from penstock.engine.table.known_commands import KnownCommands
from penstock.errors import ReplyError


class CommandLookup(KnownCommands):
    """A command table by names, as a server has it; servers with the same settings share one.

    runnable: those that are named by one word, in upper and in lower case. batch_shapes: by such names, of those whose
    requests go together.
    by_own_name: those that clients know by another name, or not at all since rename-command, too. catalog: what
    rules of users can name of it. table: by the upper-case names that clients use.
    """

    __slots__ = ("_logged", "_typed", "batch_shapes", "by_own_name", "catalog", "runnable", "table")

    def __init__(self, rows: Table, compatibility: Compatibility, renamed: Sequence[tuple[str, str]]) -> None:
        shown, hidden = known(rows, compatibility)
        table, kept = renaming.rename(shown, renamed)
        super().__init__(table)
        self.table = table
        self.by_own_name = list((kept | {row.name.encode(): row for row in table.values()}).values())
        self.catalog = CommandCatalog(self.by_own_name)
        self._logged = hidden | kept  # commands that only the log knows, or by another name
        self.runnable: dict[bytes, Command] = {}
        self._typed: dict[bytes, Command] = {}  # as names are typed mostly: in upper and in lower case
        for name, row in table.items():
            self._typed[name] = self._typed[name.lower()] = row
            if row.handler is not None and not row.subcommands:
                self.runnable[name] = self.runnable[name.lower()] = row
        self.batch_shapes = {name: row.batch_shape for name, row in self.runnable.items() if row.batch_shape}

    def named(self, request: list[bytes]) -> Command:
        row = self._typed.get(request[0])
        if row is None:
            row = self.table.get(request[0].upper())
            if row is None:
                raise _unknown_command(request)
        return _subcommand(row, request)

    def fitting(self, request: list[bytes]) -> Command:
        return with_arity(self.named(request), request)

    def logged(self, request: list[bytes]) -> Command:
        row = self._logged.get(request[0].upper())
        return self.fitting(request) if row is None else with_arity(_subcommand(row, request), request)


def known(rows: Table, compatibility: Compatibility) -> tuple[Table, Table]:
    """The commands of the server that this one passes for; and those that only a log and a master may use.

    The latter are the others, and containers with a subcommand among the others that changes data.
    """
    shown = {name: _as_known(row, compatibility) for name, row in rows.items() if compatibility.has_command(row)}
    return shown, {name: row for name, row in rows.items() if name not in shown or _hides_a_change(row, shown[name])}


def _hides_a_change(row: Command, shown: Command) -> bool:
    return any(below.is_replicated for name, below in row.subcommands.items() if name not in shown.subcommands)


def _as_known(row: Command, compatibility: Compatibility) -> Command:
    """A command like it that names what is hidden of it; itself where nothing can be."""
    if compatibility.knows_whole(row):
        return row
    limited = row.as_known(compatibility.declaration(row), {})
    for word, below in row.subcommands.items():
        if compatibility.has_command(below):
            limited.subcommands[word] = _as_known(command_of(below), compatibility)
    return limited


def with_arity(row: Command, request: list[bytes]) -> Command:
    """The command, if a request of it may have so many words; else the refusal."""
    if not row.fits(len(request)) or row.handler is None:
        raise refusals.arity(row.label)
    return row


def _subcommand(row: Command, request: list[bytes]) -> Command:
    """The command itself, or the subcommand that the second word names."""
    if not row.subcommands or len(request) < 2:
        return row
    subcommand = row.subcommands.get(request[1])
    if subcommand is None:
        subcommand = row.subcommands.get(request[1].upper())
        if subcommand is None:
            raise refusals.unknown_subcommand(request[1], request[0])
    return command_of(subcommand)


def _unknown_command(request: list[bytes]) -> ReplyError:
    """The refusal with the arguments' beginning, as Redis cuts it (Redis 8.6.3)."""
    name = refusals.c_string(request[0])[:128]
    if len(request) == 1:
        return ReplyError(b"ERR unknown command '%b'" % name)
    shown = b""
    for arg in request[1:]:
        if len(shown) >= 128:
            break
        shown += b"'%b' " % refusals.c_string(arg)[: 128 - len(shown)]
    return ReplyError(b"ERR unknown command '%b', with args beginning with: %b" % (name, shown))
