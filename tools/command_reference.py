"""docs/commands.md, made from the table: `python -m tools.command_reference [--check]`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from penstock.commands import registry
from penstock.engine.table import argument_tree, command_syntax, option_versions
from penstock.engine.table.client_compat import OWN_PREFIX
from penstock.engine.table.row import Row

PAGE: Final = Path("docs/commands.md")

TITLES: Final[dict[str, str]] = {  # groups in the page's order; others follow
    "stream": "Streams",
    "generic": "Keys",
    "string": "Strings",
    "transactions": "Transactions",
    "pubsub": "Pub/sub",
    "connection": "Connection",
    "server": "Server",
}

HEAD: Final = """\
# Commands

<!-- Made from the command table by `python -m tools.command_reference`; do not edit by hand. -->

All commands of Penstock, with their arguments and the Redis version that introduced them. Words in capitals are sent
as they are, words in small letters stand for a value, `[...]` is optional, `<a | b>` is a choice, and `[id ...]`
repeats the argument before it. `COMMAND DOCS` returns the same to clients.
"""


def page(rows: Iterable[Row]) -> str:
    """The page, in Markdown: one section for each group, one line for each command; no containers."""
    sections: dict[str, list[str]] = {group: [] for group in TITLES}
    leaves = _leaves(rows)
    for row in sorted(leaves, key=lambda row: row.name):
        sections.setdefault(row.group, []).append(_line(row))
    parts = [HEAD]
    for group, lines in sections.items():
        if lines:
            parts.append(f"## {TITLES.get(group, group.capitalize())}\n\n" + "".join(lines))
    return "\n".join([*parts, option_versions.table(leaves)])


def _leaves(rows: Iterable[Row]) -> list[Row]:
    """Commands with a handler, and subcommands."""
    found: list[Row] = []
    for row in rows:
        if not row.is_container:
            found.append(row)
        found += row.subcommands.values()
    return found


def _line(row: Row) -> str:
    words = f"{row.name.replace('|', ' ')} {argument_tree.shown(command_syntax.parse(row.syntax))}".rstrip()
    notes = f"Since {'Penstock ' if row.name.startswith(OWN_PREFIX) else ''}{row.declared.since}."
    if row.declared.deprecated is not None:
        since, instead = row.declared.deprecated
        notes += f" Deprecated since {since} (instead: {instead})."
    return f"- `{words}`\n  {row.declared.summary} {notes}\n"


def main(options: list[str]) -> int:
    """Write the page, or with --check only test whether it is up to date; returns the exit status."""
    text = page(registry.table().values())
    if "--check" in options:
        if PAGE.exists() and PAGE.read_text("utf-8") == text:
            return 0
        sys.stderr.write(f"{PAGE} is out of date: run `python -m tools.command_reference`\n")
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
