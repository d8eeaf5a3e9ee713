"""A client that costs little: buffers made beforehand go out, replies are only counted and kept."""

import socket
from typing import Final

import hiredis

Request = tuple[bytes, ...]

PATIENCE_S: Final = 300.0
CHUNK: Final = 1 << 20
UNFINISHED: Final = object()


def packed(requests: list[Request]) -> bytes:
    """Requests as one pipeline."""
    return b"".join([hiredis.pack_command(request) for request in requests])


class Link:
    """One blocking connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader(notEnoughData=UNFINISHED)

    def replies(self, count: int) -> list[object]:
        """The next replies; ConnectionError where the server goes before them."""
        found: list[object] = []
        while len(found) < count:
            value = self._reader.gets()
            if value is UNFINISHED:
                received = self.socket.recv(CHUNK)
                if not received:
                    raise ConnectionError("the server has gone")
                self._reader.feed(received)
            else:
                found.append(value)
        return found

    def ask(self, *words: bytes) -> object:
        self.socket.sendall(hiredis.pack_command(words))
        return self.replies(1)[0]

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
