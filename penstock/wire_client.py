"""A client for the command line: one request, one reply, without redis-py."""

import socket
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import hiredis

from penstock.errors import UsageError
from penstock.protocol.reply import bulks

PATIENCE_S: Final = 10.0
PIECE: Final = 65536


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


class WireClient:
    """A connection to a server by URL; UsageError where it cannot be reached or refuses the password."""

    def __init__(self, url: str) -> None:
        where = address(url)
        self._reader = hiredis.Reader(notEnoughData=False, encoding=None)
        try:
            if where.path:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(PATIENCE_S)
                self._socket.connect(where.path)
            else:
                self._socket = socket.create_connection((where.host, where.port), PATIENCE_S)
        except OSError as problem:
            raise UsageError(f"cannot connect to {url}: {problem.strerror or problem}") from None
        if where.password:
            self._login(where)
        if where.db:
            self.ask(b"SELECT", b"%d" % where.db)

    def _login(self, where: Address) -> None:
        user = [where.user.encode()] if where.user else []
        reply = self.ask(b"AUTH", *user, where.password.encode())
        if isinstance(reply, hiredis.ReplyError):
            raise UsageError(str(reply))

    def ask(self, *words: bytes) -> Any:
        """The reply as hiredis reads it; an error is returned, not raised. UsageError where the connection ends."""
        try:
            self._socket.sendall(bulks(list(words)))
            while (reply := self._reader.gets()) is False:
                piece = self._socket.recv(PIECE)
                if not piece:
                    raise UsageError("the server has closed the connection")
                self._reader.feed(piece)
        except OSError as problem:
            raise UsageError(f"the connection is lost: {problem.strerror or problem}") from None
        return reply

    def close(self) -> None:
        self._socket.close()
