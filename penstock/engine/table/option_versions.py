"""The table of stream commands and options: which Redis brought each, and which test shows it here."""

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.engine.table import command_syntax
from penstock.engine.table.argument_tree import Argument
from penstock.engine.table.row import Row

HEAD: Final = """\
## Stream commands and options, by version

Each is complete: replies, errors and their order, effects on the log. The last column names a test that shows it. Tests
in `tests/against_redis` compare every reply with a real Redis; transcripts cover commands that it does not have yet.

| command, option | since | state | shown by |
|---|---|---|---|
"""

LIVE: Final = "tests/against_redis/test_random_requests.py"
BLOCKED: Final = "tests/against_redis/test_blocked_readers.py"
HELP: Final = "tests/test_laws.py"
XNACK: Final = "tests/transcripts/xnack.txt"
BUDGETS: Final = "tests/transcripts/maxcount.txt"

# What an option's own declaration does not say: COMMAND DOCS has no version for these.
SINCE: Final = {
    ("XADD", "KEEPREF"): "8.2.0", ("XADD", "DELREF"): "8.2.0", ("XADD", "ACKED"): "8.2.0",
    ("XTRIM", "KEEPREF"): "8.2.0", ("XTRIM", "DELREF"): "8.2.0", ("XTRIM", "ACKED"): "8.2.0",
    ("XADD", "IDMP"): "8.6.0", ("XADD", "IDMPAUTO"): "8.6.0",
    ("XREADGROUP", "CLAIM"): "8.4.0",
    ("XGROUP|CREATE", "ENTRIESREAD"): "7.0.0", ("XGROUP|SETID", "ENTRIESREAD"): "7.0.0",
    ("XSETID", "ENTRIESADDED"): "7.0.0", ("XSETID", "MAXDELETEDID"): "7.0.0",
    ("XINFO|STREAM", "FULL"): "6.0.0", ("XINFO|STREAM", "COUNT"): "6.0.0",
}  # fmt: skip


def table(rows: Iterable[Row]) -> str:
    """The section, in Markdown."""
    lines: list[str] = []
    for row in sorted(rows, key=lambda row: row.name):
        if row.group == "stream" and "." not in row.name:  # a dot: none of Redis's
            lines.append(_line(row.name.replace("|", " "), row.declared.since, shown_by(row, "")))
            for option, since in options(command_syntax.parse(row.syntax)):
                version = SINCE.get((row.name, option), since or row.declared.since)
                name = f"{row.name.replace('|', ' ')} ... {option}"
                lines.append(_line(name, version, shown_by(row, option)))
    return HEAD + "".join(lines)


def _line(name: str, since: str, test: str) -> str:
    return f"| `{name}` | {since} | complete | `{test}` |\n"


def options(found: list[Argument]) -> Iterator[tuple[str, str]]:
    """The words typed as they stand, each with the version that its declaration names, if any."""
    for argument in found:
        if argument.token is not None:
            yield argument.token, argument.since
        yield from options(argument.arguments)


def shown_by(row: Row, option: str) -> str:
    """The file of the test, from the root of the project."""
    if row.name == "XNACK":
        return XNACK
    if option in ("MAXCOUNT", "MAXSIZE"):
        return BUDGETS
    if option == "BLOCK":
        return BLOCKED
    return HELP if row.name.endswith("HELP") else LIVE
