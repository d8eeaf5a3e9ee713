"""Requests from a file, in redis-cli's syntax: one a line, words in quotes as there, comments after #."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

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


def packed(words: list[bytes]) -> bytes:
    """A request's bytes."""
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


def check(line: Line, reply: Any) -> None:
    """UsageError where a line's reply is an error."""
    if isinstance(reply, hiredis.ReplyError):
        raise UsageError(f"line {line.number}: {b' '.join(line.words).decode(errors='replace')}: {reply}")


class Address(NamedTuple):
    """Where a redis:// or unix:// URL leads: a path for a unix socket, else host and port."""

    path: str
    host: str
    port: int
    user: str
    password: str
    db: int


def address(url: str) -> Address:
    """Parse redis://[user[:password]@]host[:port][/db] or unix://path; UsageError for anything else.

    >>> address("redis://:secret@localhost:7000/2")
    Address(path='', host='localhost', port=7000, user='', password='secret', db=2)
    """
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return Address(parts.path, "", 0, "", "", 0)
    number = parts.path.strip("/") or "0"
    if parts.scheme != "redis" or not number.isdigit():
        raise UsageError(f"no redis://host:port/db or unix://path: {url}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address("", parts.hostname or "localhost", parts.port or 6379, user, password, int(number))
