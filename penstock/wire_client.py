"""A client for the command line: requests and their replies, one after another, without redis-py."""

import socket
import ssl
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import hiredis

from penstock.errors import UsageError
from penstock.protocol.reply import bulks

PATIENCE_S: Final = 10.0
PIECE_BYTES: Final = 256 * 1024
USUAL_PORT: Final = 6379
EXPECTED: Final = "redis://[[user][:password]@]host[:port][/db] or unix://path was expected"
TLS_EXPECTED: Final = (
    "rediss://[[user][:password]@]host[:port][/db] with any of ?ssl_ca_certs=FILE, ssl_certfile=FILE, ssl_keyfile=FILE,"
    " ssl_cert_reqs=required or none, was expected"
)
TLS_OPTIONS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")  # as redis-py names them


class Tls(NamedTuple):
    """How a rediss:// URL wants TLS: files' names, empty without one (of the authority: the system's)."""

    ca_file: str
    certificate: str
    key: str
    verifies: bool  # the server's certificate and its name


class Address(NamedTuple):
    """Where a redis://, rediss:// or unix:// URL leads: a path for a unix socket, else host and port.

    Empty user: none.
    """

    path: str
    host: str
    port: int
    user: str
    password: str
    db: int
    tls: Tls | None = None

    @property
    def shown(self) -> str:
        """Without a password."""
        return self.path or f"{self.host}:{self.port}"


def address(url: str) -> Address:
    """Parse redis[s]://[[user][:password]@][host][:port][/db] or unix://path; UsageError for anything else.

    >>> address("redis://:secret@localhost:7000/2")
    Address(path='', host='localhost', port=7000, user='', password='secret', db=2, tls=None)
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # a port beyond 65535, half a pair of brackets
        raise UsageError(f"{url}: {EXPECTED}") from None
    if parts.scheme == "unix" and parts.path:
        return Address(parts.path, "", 0, "", "", 0)
    tls = _tls(url, parts.query) if parts.scheme == "rediss" else None
    number = parts.path.strip("/") or "0"
    is_known = tls is not None or (parts.scheme == "redis" and not parts.query)
    if not is_known or port == 0 or not number.isdecimal() or parts.fragment:
        raise UsageError(f"{url}: {EXPECTED if tls is None else TLS_EXPECTED}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address("", parts.hostname or "localhost", port or USUAL_PORT, user, password, int(number), tls)


def _tls(url: str, query: str) -> Tls:
    options = dict(parse_qsl(query, keep_blank_values=True))
    wanted = options.get("ssl_cert_reqs", "required")
    if not options.keys() <= set(TLS_OPTIONS) or wanted not in ("required", "none"):
        raise UsageError(f"{url}: {TLS_EXPECTED}")
    ca_file, certificate, key = (options.get(name, "") for name in TLS_OPTIONS[:3])
    return Tls(ca_file, certificate, key, wanted == "required")


def _context(tls: Tls) -> ssl.SSLContext:
    """A context of these files; OSError if one of them is not there, or no certificate."""
    context = ssl.create_default_context(cafile=tls.ca_file or None)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 and later ask for more than redis-cli does
    if not tls.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key or None, "")  # without a password it would ask at the terminal
    return context


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
            if where.tls is not None:
                self._socket = _context(where.tls).wrap_socket(self._socket, server_hostname=where.host)
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
        """Wait for bytes, and return at most 256 KiB of them."""
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
