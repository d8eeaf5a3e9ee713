"""A client for the command line: requests and their replies, one after another, without redis-py."""

import socket
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import hiredis

from penstock.errors import UsageError
from penstock.protocol.reply import bulks

PATIENCE_S: Final = 10.0
PIECE_BYTES: Final = 256 * 1024
USUAL_PORT: Final = 6379
EXPECTED: Final = "redis://[[user][:password]@]host[:port][/db] or unix://path was expected"


class Address(NamedTuple):
    """Where a redis:// or unix:// URL leads: a path for a unix socket, else host and port. Empty user: nobody."""

    path: str
    host: str
    port: int
    user: str
    password: str
    db: int

    @property
    def shown(self) -> str:
        """Without a password."""
        return self.path or f"{self.host}:{self.port}"


def address(url: str) -> Address:
    """Parse redis://[[user][:password]@][host][:port][/db] or unix://path; UsageError for anything else.

    >>> address("redis://:secret@localhost:7000/2")
    Address(path='', host='localhost', port=7000, user='', password='secret', db=2)
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port beyond 65535, half a pair of brackets
        raise UsageError(f"{url}: {EXPECTED}") from None
    if parts.scheme == "unix" and parts.path:
        return Address(parts.path, "", 0, "", "", 0)
    if parts.scheme == "rediss":
        raise UsageError(f"{url}: TLS is not spoken here; put a TLS proxy before the server")
    number = parts.path.strip("/") or "0"
    if parts.scheme != "redis" or port == 0 or not number.isdecimal() or parts.query or parts.fragment:
        raise UsageError(f"{url}: {EXPECTED}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address("", parts.hostname or "localhost", port or USUAL_PORT, user, password, int(number))


def info_fields(text: bytes) -> dict[str, str]:
    """The fields of INFO's reply, by name.

    >>> info_fields(b"# Server\\r\\nredis_version:8.6.3\\r\\nexecutable:a:b\\r\\n")
    {'redis_version': '8.6.3', 'executable': 'a:b'}
    """
    lines = [line.partition(":") for line in text.decode(errors="replace").splitlines()]
    return {name: value for name, colon, value in lines if colon and not name.startswith("#")}


class WireClient:
    """A connection to a server. UsageError, in a sentence, where it cannot be reached, refuses the login or ends."""

    def __init__(self, where: Address, patience_s: float = PATIENCE_S) -> None:
        self._shown = where.shown
        self._reader = hiredis.Reader(notEnoughData=False, encoding=None)
        try:
            if where.path:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(patience_s)
                self._socket.connect(where.path)
            else:
                self._socket = socket.create_connection((where.host, where.port), patience_s)
        except OSError as problem:
            raise UsageError(f"{self._shown} cannot be reached: {problem.strerror or problem}") from None
        if where.password:
            names = [name.encode() for name in (where.user, where.password) if name]
            self._demand(b"AUTH", *names)
        if where.db:
            self._demand(b"SELECT", b"%d" % where.db)

    def _demand(self, *words: bytes) -> None:
        reply = self.ask(*words)
        if isinstance(reply, hiredis.ReplyError):
            raise UsageError(f"{self._shown} answers: {reply}")

    def send(self, *requests: list[bytes]) -> None:
        """Send requests without waiting for their replies."""
        try:
            self._socket.sendall(b"".join([bulks(words) for words in requests]))
        except OSError as problem:
            raise UsageError(f"the connection to {self._shown} is lost: {problem.strerror or problem}") from None

    def receive(self) -> bytes:
        """What has come, at most 256 KiB; it waits for something."""
        try:
            piece = self._socket.recv(PIECE_BYTES)
        except OSError as problem:
            raise UsageError(f"the connection to {self._shown} is lost: {problem.strerror or problem}") from None
        if not piece:
            raise UsageError(f"{self._shown} has closed the connection")
        return piece

    def ask_all(self, requests: list[list[bytes]]) -> list[Any]:
        """The replies to requests sent at once, as hiredis reads them; errors are among them, not raised."""
        self.send(*requests)
        replies: list[Any] = []
        while len(replies) < len(requests):
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self.receive())
            else:
                replies.append(reply)
        return replies

    def ask(self, *words: bytes) -> Any:
        """The reply to one request; an error is returned, not raised."""
        return self.ask_all([list(words)])[0]

    def close(self) -> None:
        self._socket.close()
