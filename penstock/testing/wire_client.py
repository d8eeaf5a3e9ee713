"""A client for the command line: one request, one reply, without redis-py."""

import socket
from typing import Any

import hiredis

from penstock.errors import UsageError
from penstock.testing import seeding

PATIENCE_S = 10.0
PIECE = 65536


class WireClient:
    """A connection to a server by URL; UsageError where it cannot be reached or refuses the password."""

    def __init__(self, url: str) -> None:
        where = seeding.address(url)
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

    def _login(self, where: seeding.Address) -> None:
        user = [where.user.encode()] if where.user else []
        reply = self.ask(b"AUTH", *user, where.password.encode())
        if isinstance(reply, hiredis.ReplyError):
            raise UsageError(str(reply))

    def ask(self, *words: bytes) -> Any:
        """The reply as hiredis reads it; an error is returned, not raised. UsageError where the connection ends."""
        try:
            self._socket.sendall(seeding.packed(list(words)))
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
