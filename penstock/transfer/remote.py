"""A blocking connection to the server that data come from: a few requests, and its snapshot."""

import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Final

import hiredis

from penstock.errors import UsageError
from penstock.protocol import reply
from penstock.transfer.address import Address

PATIENCE_S: Final = 60.0
PIECE_BYTES: Final = 256 * 1024
MARK_BYTES: Final = 40
LONGEST_LINE: Final = 64 * 1024
UNKNOWN: Final = -1  # in place of a size


class Remote:
    """One connection. UsageError, in a sentence, for whatever goes wrong."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.size = UNKNOWN  # of the snapshot
        try:
            self._link = socket.create_connection((address.host, address.port), PATIENCE_S)
        except OSError as failure:
            raise UsageError(f"{address.shown} cannot be reached: {failure.strerror or failure}") from None
        self._reader = hiredis.Reader()
        login = address.login()
        if login:
            self.ask(*login)
        self.ask(b"PING")

    def __enter__(self) -> "Remote":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._link.close()

    def _receive(self) -> bytes:
        try:
            piece = self._link.recv(PIECE_BYTES)
        except OSError as failure:
            raise UsageError(f"{self.address.shown} does not answer: {failure.strerror or failure}") from None
        if not piece:
            raise UsageError(f"{self.address.shown} has closed the connection")
        return piece

    def _send(self, requests: list[list[bytes]]) -> None:
        try:
            self._link.sendall(b"".join([reply.bulks(words) for words in requests]))
        except OSError as failure:
            raise UsageError(f"{self.address.shown} does not listen: {failure.strerror or failure}") from None

    def ask_all(self, requests: list[list[bytes]]) -> list[object]:
        """The replies to requests that are sent at once; UsageError for the first that is an error."""
        self._send(requests)
        answers: list[object] = []
        while len(answers) < len(requests):
            answer = self._reader.gets()
            if answer is False:
                self._reader.feed(self._receive())
                continue
            if isinstance(answer, hiredis.ReplyError):
                raise UsageError(f"{self.address.shown} answers: {answer}")
            answers.append(answer)
        return answers

    def ask(self, *words: bytes) -> object:
        """The reply to one request."""
        return self.ask_all([list(words)])[0]

    def info(self, section: str) -> dict[str, str]:
        """A section of INFO."""
        text = self.ask(b"INFO", section.encode())
        lines = text.decode(errors="replace").splitlines() if isinstance(text, bytes) else []
        return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))

    # -- the snapshot -----------------------------------------------------------------------------------------------

    def snapshot(self) -> Iterator[bytes]:
        """Everything, as an RDB file in pieces; the connection is of no use afterwards. `size` is known then or -1."""
        self.ask(b"REPLCONF", b"capa", b"eof")
        self.ask(b"REPLCONF", b"rdb-only", b"1")
        self._send([[b"SYNC"]])
        head, held = self._head()
        if head.startswith(b"$EOF:") and len(head) == len(b"$EOF:") + MARK_BYTES:
            mark = head[-MARK_BYTES:]
            while not held.endswith(mark):
                ready, held = held[:-MARK_BYTES], held[-MARK_BYTES:]
                if ready:
                    yield ready
                held += self._receive()
            yield held[:-MARK_BYTES]
            return
        if not (head.startswith(b"$") and head[1:].isdigit()):
            raise UsageError(f"{self.address.shown} answers SYNC with {head.decode('utf-8', 'backslashreplace')}")
        self.size = left = int(head[1:])
        while left:
            piece = held or self._receive()
            held = b""
            yield piece[:left]
            left -= min(len(piece), left)

    def _head(self) -> tuple[bytes, bytes]:
        """The line before the snapshot, and what came behind it. Empty lines say that it is being made."""
        held = b""
        while True:
            line, found, rest = held.partition(b"\n")
            if found and line.strip():
                return line.strip(), rest
            held = rest if found else held + self._receive()
            if len(held) > LONGEST_LINE and b"\n" not in held:
                raise UsageError(f"{self.address.shown} sends no snapshot")
