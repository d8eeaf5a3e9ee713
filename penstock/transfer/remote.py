"""A blocking connection to the server that data come from: a few requests, and its snapshot."""

from collections.abc import Iterator
from typing import Final

import hiredis

from penstock.errors import UsageError
from penstock.protocol.snapshot_frame import UNKNOWN, SnapshotFrame
from penstock.wire_client import Address, WireClient, info_fields

PATIENCE_S: Final = 60.0
LONGEST_LINE: Final = 64 * 1024


class Remote:
    """One connection. UsageError, in a sentence, for whatever goes wrong, error replies too."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.size = UNKNOWN  # of the snapshot
        self._client = WireClient(address, PATIENCE_S)
        self.ask(b"PING")

    def __enter__(self) -> "Remote":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask_all(self, requests: list[list[bytes]]) -> list[object]:
        """The replies to requests that are sent at once; UsageError for the first that is an error."""
        replies = self._client.ask_all(requests)
        for reply in replies:
            if isinstance(reply, hiredis.ReplyError):
                raise UsageError(f"{self.address.shown} answers: {reply}")
        return replies

    def ask(self, *words: bytes) -> object:
        """The reply to one request."""
        return self.ask_all([list(words)])[0]

    def info(self, section: str) -> dict[str, str]:
        text = self.ask(b"INFO", section.encode())
        return info_fields(text) if isinstance(text, bytes) else {}

    # -- the snapshot -----------------------------------------------------------------------------------------------

    def snapshot(self) -> Iterator[bytes]:
        """Everything, as an RDB file in pieces; the connection is of no use afterwards. `size` is known then or -1."""
        self.ask(b"REPLCONF", b"capa", b"eof")
        self.ask(b"REPLCONF", b"rdb-only", b"1")
        self._client.send([b"SYNC"])
        head, piece = self._head()
        try:
            frame = SnapshotFrame(head)
        except ValueError as line:
            raise UsageError(f"{self.address.shown} answers SYNC with {line}") from None
        self.size = frame.size
        while True:
            ready = frame.take(piece)
            if ready:
                yield ready
            if frame.is_whole:
                return
            piece = self._client.receive()

    def _head(self) -> tuple[bytes, bytes]:
        """The line before the snapshot, and what came behind it. Empty lines say that it is being made."""
        held = b""
        while True:
            line, found, rest = held.partition(b"\n")
            if found and line.strip():
                return line.strip(), rest
            held = rest if found else held + self._client.receive()
            if len(held) > LONGEST_LINE and b"\n" not in held:
                raise UsageError(f"{self.address.shown} sends no snapshot")
