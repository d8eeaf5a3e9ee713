"""docs/commands.md, made from the table: `python -m tools.command_reference [--check]`."""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from penstock.commands import registry
from penstock.engine.table import argument_tree, command_syntax
from penstock.engine.table.argument_tree import Argument
from penstock.engine.table.client_compat import OWN_PREFIX
from penstock.engine.table.row import Row
from penstock.errors import ReplyError
from tests.support.transcripts import FOLDER, SENT, words_of

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

OPTIONS_HEAD: Final = """\
## Stream commands and options, by version

The last column names the transcripts (`tests/transcripts`) that send the word. Most were recorded from Redis 8.6.3; a
transcript of what that version does not have says where its replies come from. `make compare` sends random requests of
all commands to Penstock and to a Redis.

| command, option | since | sent by |
|---|---|---|
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
    return "\n".join([*parts, option_table(leaves)])


def option_table(leaves: Iterable[Row]) -> str:
    """Stream commands and their options, each with its version and the transcripts that send it, in Markdown."""
    topics = _sent_by()
    lines: list[str] = []
    for row in sorted(leaves, key=lambda row: row.name):
        if row.group != "stream" or row.name.startswith(OWN_PREFIX):
            continue
        name = row.name.replace("|", " ")
        lines.append(_option_line(f"`{name}`", row.declared.since, topics[row.name, ""]))
        for option, since in argument_tree.dated_tokens(_arguments(row)):
            lines.append(_option_line(f"`{name} ... {option}`", since or row.declared.since, topics[row.name, option]))
    return OPTIONS_HEAD + "".join(lines)


def _option_line(words: str, since: str, topics: set[str]) -> str:
    return f"| {words} | {since} | {', '.join(sorted(topics)) or 'none'} |\n"


def _sent_by() -> dict[tuple[str, str], set[str]]:
    """Which transcripts send a command, or a word in a request of it."""
    topics: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text("utf-8").splitlines():
            sent = SENT.fullmatch(line)
            words = words_of(sent[2]) if sent else []
            try:
                row = registry.COMMANDS.named(words) if words else None
            except ReplyError:
                row = None
            if row is not None:
                topics[row.name, ""].add(path.stem)
                for word in words[1:]:
                    topics[row.name, word.upper().decode("latin-1")].add(path.stem)
    return topics


def _leaves(rows: Iterable[Row]) -> list[Row]:
    """Commands with a handler, and subcommands."""
    found: list[Row] = []
    for row in rows:
        if not row.is_container:
            found.append(row)
        found += row.subcommands.values()
    return found


def _arguments(row: Row) -> list[Argument]:
    return argument_tree.without(command_syntax.parse(row.syntax), row.hidden)


def _line(row: Row) -> str:
    words = f"{row.name.replace('|', ' ')} {argument_tree.shown(_arguments(row))}".rstrip()
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
