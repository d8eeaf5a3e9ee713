"""rename-command: commands that clients know by another name, or not at all (Redis 8.6.3).

The log has every command by its own name, so that it can be loaded whatever the names are: by this server, by one with
other names, by a Redis. (Redis logs what the client typed.) A log with the new names is loaded, too.
"""

from collections.abc import Sequence
from typing import Final

from penstock.engine.context import Context
from penstock.engine.table.command_table import Command, Handler, Table, command_of
from penstock.engine.table.row import Row
from penstock.errors import UsageError

# Commands of Redis 8.6.3 that are not here: taking one away does nothing. Any other unknown name is a mistake.
ABSENT: Final = frozenset(
    b"TRIMSLOTS VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR VSIM".split()
)


def rename(rows: Table, lines: Sequence[tuple[str, str]]) -> tuple[Table, Table]:
    """The table by the names that clients use, and the rows that only the log knows by theirs.

    lines: old and new name, in their order; an empty new name takes the command away. UsageError, with Redis's
    reason, where there is no such command, or another one has the new name.
    """
    shown = dict(rows)
    for old, new in lines:
        name = old.encode(errors="surrogateescape").upper()
        wanted = new.encode(errors="surrogateescape").upper()
        row = shown.pop(name, None)
        if row is None and name not in ABSENT:
            raise UsageError(f"rename-command {old}: No such command in rename-command")
        if wanted in shown:
            raise UsageError(f"rename-command {old} {new}: Target command name already exists")
        if row is not None and wanted:
            shown[wanted] = _renamed(row, row.name.encode())
    return shown, {name: row for name, row in rows.items() if name not in shown or shown[name].name != row.name}


def _renamed(row: Command, name: bytes) -> Command:
    """The same command under another name: its handler is given its own one."""
    below: dict[bytes, Row] = {word: _renamed(command_of(one), name) for word, one in row.subcommands.items()}
    renamed = row.as_known(row.declared, below)
    renamed.batch_handler = None  # it would log the new name
    if row.handler is not None:
        renamed.handler = _named(row.handler, name)
    return renamed


def _named(handler: Handler, name: bytes) -> Handler:
    def handle(ctx: Context, args: list[bytes]) -> bytes:
        ctx.text = b""  # it has the new name
        return handler(ctx, [name, *args[1:]])

    return handle
