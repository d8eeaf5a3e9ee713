"""redis-py's connections, made to a server in this process. Needs redis-py (extra `testing`)."""

import asyncio
from typing import Any, Final, cast

import redis
import redis.asyncio
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.maint_notifications import MaintNotificationsConfig

from penstock.testing.connections.links import HOST, LinkedSocket, LinkedStream
from penstock.testing.openings import Openings

# What CLIENT SETINFO tells. redis-py would read its own package's metadata for each connection, which takes longer than
# starting a server.
DRIVER: Final = DriverInfo()
# No network can lose a reply here: a client that waits for an hour waits for an hour. The server never moves: redis-py
# would ask each connection to be told of that, and the refusal would stand in the server's statistics.
DEFAULTS: Final[dict[str, Any]] = {
    "driver_info": DRIVER,
    "socket_timeout": None,
    "maint_notifications_config": MaintNotificationsConfig(enabled=False),
}


class EmbeddedConnection(redis.Connection):
    """A blocking client's connection. `openings` makes its links.

    redis-py looks the host up when it connects, although nothing is asked there: the address is a number.
    """

    def __init__(self, openings: Openings, **options: Any) -> None:
        self._openings = openings
        super().__init__(host=HOST, port=0, **options)  # type: ignore[no-untyped-call]  # redis-py's

    def _connect(self) -> LinkedSocket:
        return self._openings.socket(self.socket_timeout)

    def can_read(self, timeout: float = 0) -> bool:
        """redis-py polls the socket's descriptor, and there is none."""
        if self._sock is None:
            self.connect()  # type: ignore[no-untyped-call]  # redis-py's
        link = cast(LinkedSocket, self._sock)
        reader = getattr(self._parser, "_reader", None)  # hiredis
        if reader is not None and reader.has_data():
            return True
        if not link.wait(timeout):
            return False
        if link.is_at_end:
            self.disconnect()  # type: ignore[no-untyped-call]  # redis-py's
            raise RedisConnectionError("Connection closed by server.")
        return True


class AsyncEmbeddedConnection(redis.asyncio.Connection):
    """An asyncio client's connection. `openings` makes its links."""

    def __init__(self, openings: Openings, **options: Any) -> None:
        self._openings = openings
        super().__init__(host=HOST, port=0, **options)

    async def _connect(self) -> None:
        reader = asyncio.StreamReader()
        link: LinkedStream = self._openings.stream(reader, asyncio.get_running_loop())
        self._reader = reader
        self._writer = link  # type: ignore[assignment]  # as much of a StreamWriter as redis-py calls


def client(openings: Openings, **options: Any) -> redis.Redis:
    """A client with a pool of its own."""
    options = DEFAULTS | options
    pool = redis.ConnectionPool(connection_class=EmbeddedConnection, openings=openings, **options)
    return redis.Redis.from_pool(pool)


def async_client(openings: Openings, **options: Any) -> redis.asyncio.Redis:
    """An asyncio client with a pool of its own."""
    options = DEFAULTS | options
    pool = redis.asyncio.ConnectionPool(connection_class=AsyncEmbeddedConnection, openings=openings, **options)
    return redis.asyncio.Redis.from_pool(pool)
