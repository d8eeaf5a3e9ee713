"""redis-py's connections, made to a server in this process. Needs redis-py (extra `testing`)."""

from typing import Any, Final

import redis
import redis.asyncio
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.maint_notifications import MaintNotificationsConfig

from penstock.testing.connections.embedded_connections import AsyncEmbedded, BlockingEmbedded
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


class EmbeddedConnection(BlockingEmbedded, redis.Connection):
    """A blocking client's connection."""

    closed_error = RedisConnectionError


class AsyncEmbeddedConnection(AsyncEmbedded, redis.asyncio.Connection):
    """An asyncio client's connection."""


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
