"""`XGROUP HELP` and the like: for each subcommand a line of syntax and an explanation."""

from collections.abc import Sequence

from penstock.engine.context import Context
from penstock.engine.table.command_table import DECLARED, command
from penstock.protocol import reply


def declare_help(
    container: str,
    since: str,
    lines: Sequence[tuple[str, str]],
    *,
    summary: str = "Lists the subcommands.",
    acl: str = "",
) -> None:
    """Declare the subcommand HELP of a container. lines: as `help_reply` takes them; the others: see `Declaration`."""
    row = next(row.declared for row in DECLARED if row.name == container)
    facts = f"{since} loading stale | acl {acl} | group {row.group} | only_in {row.only_in}"

    def answer(ctx: Context, args: list[bytes]) -> bytes:
        return help_reply(container, lines)

    command(f"{container}|HELP", facts, summary)(answer)


def help_reply(container: str, lines: Sequence[tuple[str, str]]) -> bytes:
    """An array of simple strings in Redis's layout.

    `container` is the name in upper case; `lines` are (syntax, explanation) of all subcommands except HELP, in the
    order of the reply. A newline in an explanation starts a new line of the reply.
    """
    shown = [f"{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
    for syntax, explanation in (*lines, ("HELP", "Print this help.")):
        shown.append(syntax)
        shown.extend("    " + line for line in explanation.split("\n"))
    return reply.array([reply.simple(line.encode()) for line in shown])
