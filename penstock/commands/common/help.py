"""What `XGROUP HELP` and its like answer: a container's subcommands, one line of syntax and what each does."""

from collections.abc import Sequence

from penstock.protocol import reply


def help_reply(container: str, lines: Sequence[tuple[str, str]]) -> bytes:
    """An array of simple strings, laid out as Redis does.

    `container` is the name in upper case; `lines` are (syntax, explanation) of every subcommand but HELP, in the
    order in which they are shown. Newlines in an explanation begin a new line of the reply.
    """
    shown = [f"{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
    for syntax, explanation in (*lines, ("HELP", "Print this help.")):
        shown.append(syntax)
        shown.extend("    " + line for line in explanation.split("\n"))
    return reply.array([reply.simple(line.encode()) for line in shown])
