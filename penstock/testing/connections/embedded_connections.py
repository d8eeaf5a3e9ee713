"""Connections of client libraries that have, in place of a socket, a link to a server in this process.

redis-py and valkey-py (which began as a copy of it) name the same methods; these come before a class of theirs as
bases.
"""

import asyncio
from typing import Any, ClassVar, cast

from penstock.testing.connections.links import HOST, LinkedSocket
from penstock.testing.openings import Openings


class BlockingEmbedded:
    """A blocking client's connection. `openings` makes its links; `closed_error` is the library's ConnectionError.

    The library looks the host up when it connects, although nothing is asked there: the address is a number.
    """

    closed_error: ClassVar[type[Exception]]
    _sock: Any
    _parser: Any
    socket_timeout: float | None

    def __init__(self, openings: Openings, **options: Any) -> None:
        self._openings = openings
        super().__init__(host=HOST, port=0, **options)  # type: ignore[call-arg]  # the library's

    def _connect(self) -> LinkedSocket:
        return self._openings.socket(self.socket_timeout)

    def can_read(self, timeout: float = 0) -> bool:
        """With hiredis or libvalkey the library polls the socket's descriptor, and there is none."""
        if self._sock is None:
            cast(Any, self).connect()
        reader = getattr(self._parser, "_reader", None)
        if reader is None:  # the library's parser in Python, which reads
            return bool(self._parser.can_read(timeout))
        if reader.has_data():
            return True
        link = cast(LinkedSocket, self._sock)
        if not link.wait(timeout):
            return False
        if link.is_at_end:
            cast(Any, self).disconnect()
            raise self.closed_error("Connection closed by server.")
        return True


class AsyncEmbedded:
    """An asyncio client's connection. `openings` makes its links."""

    _reader: Any
    _writer: Any

    def __init__(self, openings: Openings, **options: Any) -> None:
        self._openings = openings
        super().__init__(host=HOST, port=0, **options)  # type: ignore[call-arg]  # the library's

    async def _connect(self) -> None:
        reader = asyncio.StreamReader()
        self._writer = self._openings.stream(reader, asyncio.get_running_loop())
        self._reader = reader
