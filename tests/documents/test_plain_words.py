"""Docstrings, comments, names of tests and pages have none of the words that a reader must think about twice.

A sentence says what does something, the client, the reader, the replica, or that none does; it does not say "who".
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_trees import ROOT, module_name, nodes_of, trees

FOLDERS = ("bench", "examples", "packaging", "penstock", "pyspark_penstock", "tests", "tools")
SOURCES = [
    path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if "node_modules" not in path.parts
]
GENERATED = {"commands.md"}  # of the texts that COMMAND DOCS answers
PAGES = [path for path in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))) if path.name not in GENERATED]
PEOPLE = re.compile(
    r"(?<![\w'-])(who(m|ever|mever|soever)?|(some|no|any|every)(body|one)('?s)?|no one)(?![\w'-])", re.IGNORECASE
)
QUOTED = re.compile(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"", re.DOTALL)  # requests, Redis's texts, names of tests
TESTS = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
OLD_NAMES = re.compile(
    r"(?:^|_)(owe[ds]?|owing|heeds?|goes_well|alike|told|tells?|let_go|keeper|ghosts?|bound_at|dialects?)(?:_|$)"
)  # of functions and variables, for which there is a term: pending, follow, same, notify, report, release, limit_at ...
FOREIGN = {("penstock.pipeline.connector.values.payloads", "tell")}  # of Python's files


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Each docstring and comment with its line, and the names of tests, their words apart.

    Only names of tests where the whole file has none of the words: to find docstrings takes a hundred times as long.
    """
    source = path.read_text("utf-8")
    for name in TESTS.finditer(source):
        yield source.count("\n", 0, name.start()) + 1, name[1].replace("_", " ")
    if not PEOPLE.search(source):
        return
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        ):
            yield token.start[0], token.string.strip('"').replace('"""', "")
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type


def people_in(text: str) -> list[str]:
    """The words about people in a text, quotations left out."""
    return [found[0] for found in PEOPLE.finditer(QUOTED.sub("", text))]


TEXTS = {
    "a relative clause": ("The client who waits is served.", ["who"]),
    "in place of a noun": ("Nobody is told, nor no one else's neighbour.", ["Nobody", "no one"]),
    "a name of a user": ("`ACL DELUSER nobody` and \"User 'nobody' not found\"", []),
    "a request in a block": ("Before\n```\nREPLICAOF NO ONE\n```\nbehind.", []),
    "parts of other words": ("The whole someone-else.py, ACL WHOAMI", []),
}


@pytest.mark.parametrize(("text", "found"), TEXTS.values(), ids=TEXTS)
def test_words_about_people_are_found(text: str, found: list[str]) -> None:
    assert people_in(text) == found


def test_docstrings_comments_and_names_of_tests_say_what_does_it() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in SOURCES
        for line, text in texts(path)
        for word in people_in(text)
    ]

    assert found == []


def test_pages_say_what_does_it() -> None:
    found = [f"{path.relative_to(ROOT)}: {word}" for path in PAGES for word in people_in(path.read_text("utf-8"))]

    assert found == []


def test_no_name_is_one_of_the_old_ones() -> None:
    names = {
        (module_name(path), name)
        for path, tree in trees().items()
        for name in {getattr(node, field, "") for node in nodes_of(tree) for field in ("id", "attr", "name", "arg")}
        if isinstance(name, str) and OLD_NAMES.search(name.lower())
    }

    assert names == FOREIGN
