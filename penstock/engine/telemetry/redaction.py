"""A request as MONITOR and SLOWLOG show it: without passwords.

Redis hides a password that the command has read, and shows the arguments of a request that was refused before that.
Here every word that may be a password is hidden, by the function `hide` in the command's declaration; also in a request
that another one asks about (ACL DRYRUN, COMMAND GETKEYS).
"""

from typing import Final

from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.errors import ReplyError

HIDDEN: Final = b"(redacted)"
AUTH_OPTIONS: Final = (b"AUTH", b"AUTH2")


def redacted(commands: KnownCommands, row: Row, request: list[bytes]) -> list[bytes]:
    """The request of a row with its secrets hidden; the same list where there are none.

    A request that it asks about is hidden as it is by itself. All arguments of an unknown one are hidden: its name may
    be a mistake for another.
    """
    at = 0
    while row.asks_about and at + row.asks_about < len(request):
        at += row.asks_about
        try:
            row = commands.named(request[at : at + 2])
        except ReplyError:
            return hidden_from(request, at + 1)
    if row.hide is None:
        return request
    return [*request[:at], *row.hide(request[at:])] if at else row.hide(request)


def arguments_hidden(request: list[bytes]) -> list[bytes]:
    """All words behind the command's name."""
    return hidden_from(request, 1)


def subcommand_arguments_hidden(request: list[bytes]) -> list[bytes]:
    """All words behind the subcommand's name."""
    return hidden_from(request, 2)


def hidden_from(request: list[bytes], at: int) -> list[bytes]:
    return [*request[:at], *[HIDDEN] * (len(request) - at)]


def hidden_behind_auth(shown: list[bytes], at: int) -> list[bytes]:
    """All words behind the first AUTH or AUTH2 from a place on."""
    for place in range(at, len(shown)):
        if shown[place].upper() in AUTH_OPTIONS:
            return hidden_from(shown, place + 1)
    return shown
