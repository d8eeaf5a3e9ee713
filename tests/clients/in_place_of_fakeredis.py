"""A pytest plugin: other projects' suites get embedded servers where they import fakeredis (see fakeredis_suites.py).

With SUITE_URL they get the server there, which is emptied for each FakeServer: the judge of both.
"""

import os
import sys
from types import ModuleType
from typing import Any, Final

import redis
import redis.asyncio

import penstock
from penstock.testing.connections.redis_py import DEFAULTS, AsyncEmbeddedConnection, EmbeddedConnection

URL: Final = os.environ.get("SUITE_URL", "")
SHARED: Final = penstock.Server().start()
NO_PLACE: Final = ("host", "port", "username", "password")  # of a connection: there is one server


class FakeServer:
    """A server of its own. While `connected` is False no client reaches it."""

    def __init__(self) -> None:
        self.embedded = penstock.Server().start()
        if URL:
            redis.Redis.from_url(URL).flushall()

    def _connect(self, wanted: bool) -> None:
        (self.embedded.start if wanted else self.embedded.close)()

    connected = property(fset=_connect)

    def __del__(self) -> None:
        self.embedded.close()


def options_of(given: dict[str, Any]) -> dict[str, Any]:
    """A connection's options without those that say where."""
    return DEFAULTS | {name: value for name, value in given.items() if name not in NO_PLACE}


class FakeRedis(redis.Redis):
    """A client of a FakeServer, or of the one that all others share."""

    def __init__(self, server: FakeServer | None = None, connection_pool: Any = None, **options: Any) -> None:
        self._keeps = server
        if connection_pool is None and URL:
            connection_pool = redis.ConnectionPool.from_url(URL, **options)
        if connection_pool is None:
            connection_pool = (SHARED if server is None else server.embedded).client(**options).connection_pool
        super().__init__(connection_pool=connection_pool)


class FakeConnection(EmbeddedConnection):
    """A connection to the shared server."""

    def __init__(self, **options: Any) -> None:
        super().__init__(SHARED._opened(), **options_of(options))


class AsyncFakeConnection(AsyncEmbeddedConnection):
    """The same for asyncio."""

    def __init__(self, **options: Any) -> None:
        super().__init__(SHARED._opened(), **options_of(options))


class RealConnection(redis.Connection):
    """A connection to the server at the URL."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**(options_of(options) | redis.connection.parse_url(URL)))


class AsyncRealConnection(redis.asyncio.Connection):
    """The same for asyncio."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**(options_of(options) | redis.connection.parse_url(URL)))


def modules() -> dict[str, ModuleType]:
    """fakeredis and fakeredis.aioredis, as far as the suites use them."""
    blocking, waiting = ModuleType("fakeredis"), ModuleType("fakeredis.aioredis")
    places: dict[ModuleType, dict[str, object]] = {
        blocking: {
            "FakeServer": FakeServer,
            "FakeRedis": FakeRedis,
            "FakeConnection": RealConnection if URL else FakeConnection,
            "aioredis": waiting,
        },
        waiting: {
            "FakeRedis": redis.asyncio.Redis,
            "FakeConnection": AsyncRealConnection if URL else AsyncFakeConnection,
        },
    }
    for module, names in places.items():
        vars(module).update(names)
    return {module.__name__: module for module in places}


sys.modules.update(modules())
