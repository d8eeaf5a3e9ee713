"""Requests from a file, in redis-cli's syntax: one a line, words in quotes as there, comments after #."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import hiredis

from penstock.config import quoting
from penstock.errors import UsageError

PIECE: Final = 65536


class Line(NamedTuple):
    """A request and the number of its line, from 1."""

    number: int
    words: list[bytes]


def requests_of(text: str) -> Iterator[Line]:
    """The requests of a text; UsageError, with the line's number, for quotes that are not closed."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        words = quoting.split(stripped.encode(errors="surrogateescape"))
        if words is None:
            raise UsageError(f"line {number}: a quote is not closed: {stripped}")
        yield Line(number, words)


def check(line: Line, reply: Any) -> None:
    """UsageError where a line's reply is an error."""
    if isinstance(reply, hiredis.ReplyError):
        raise UsageError(f"line {line.number}: {b' '.join(line.words).decode(errors='replace')}: {reply}")
