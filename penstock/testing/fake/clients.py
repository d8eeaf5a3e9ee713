"""Clients with fakeredis's names, and the embedded servers that they reach.

As with fakeredis, a client without a server and without a host has a server of its own; clients of the same host and
port meet on one, blocking or asyncio. `FakeServer().embedded` is the `penstock.Server`, with its clock and faults.
Seen by running fakeredis 2.40 (2026-11); docs/instead-of-fakeredis.md has the differences.
"""

import threading
from typing import Any, Final, Self, TypeAlias

import redis
import redis.asyncio

from penstock.engine.access.users import DEFAULT
from penstock.engine.table.client_compat import VERSIONS
from penstock.testing.connections.redis_py import DEFAULTS, AsyncEmbeddedConnection, EmbeddedConnection
from penstock.testing.embedded import Server

Version: TypeAlias = tuple[int, ...] | str | int
PLACE: Final = frozenset({"host", "port", "path"})
NO_RETRY: Final[dict[str, Any]] = {"retry": None}  # redis.Redis would sleep for seconds between attempts to connect
LOGIN: Final = frozenset({"password", "username"})


def compat_version_of(version: Version | None, server_type: str) -> str:
    """The `compat-version` nearest to a version of fakeredis's: the newest that begins like it, or the oldest."""
    if server_type == "valkey":
        return next(name for name in VERSIONS if name.startswith("valkey"))
    if version is None:
        return "newest"
    words = [str(number) for number in version] if isinstance(version, tuple) else str(version).split(".")
    of_redis = [name for name in VERSIONS if not name.startswith("valkey")]
    same = [name for name in of_redis if name.split(".")[: len(words)] == words[:2]]
    return same[-1] if same else of_redis[0]


class FakeServer:
    """An embedded server that ends when nothing refers to it. Its clients are refused while `connected` is False.

    version: the server that it passes for; by default the newest. server_type: "redis" or "valkey"; another one is
    taken for Redis.
    """

    def __init__(
        self,
        version: Version | None = None,
        server_type: str = "redis",
        config: dict[bytes, bytes] | None = None,
    ) -> None:
        directives = {name.decode(): value.decode() for name, value in (config or {}).items()}
        self.embedded = Server(compat_version=compat_version_of(version, server_type), **directives).start()

    @property
    def connected(self) -> bool:
        return self.embedded.faults.is_reachable

    @connected.setter
    def connected(self, wanted: bool) -> None:
        self.embedded.faults.is_reachable = wanted

    def __del__(self) -> None:
        embedded = getattr(self, "embedded", None)  # its constructor may have failed
        if embedded is not None:
            embedded.close()


class Places:
    """The servers that clients with the same host and port share, to the end of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[tuple[object, ...], FakeServer] = {}

    def server(self, options: dict[str, Any], version: Version | None = None, server_type: str = "redis") -> FakeServer:
        """The server for a connection's options; version and server_type are those of a new one."""
        place = (options.get("path"), options.get("host", "localhost"), options.get("port", 6379))
        with self._lock:
            if place not in self._servers:
                self._servers[place] = FakeServer(version, server_type)
            return self._servers[place]


PLACES: Final = Places()


def _options_there(server: FakeServer, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a connection that mean something on a server in the process.

    A password that the server does not ask for is left out: fakeredis takes any.
    """
    user = server.embedded.engine.server.access.users.get(str(options.get("username") or DEFAULT.decode()).encode())
    left_out = PLACE | LOGIN if user is None or user.open_to_all else PLACE
    kept = {name: value for name, value in options.items() if name not in left_out and not name.startswith("ssl")}
    return DEFAULTS | kept


class FakeConnection(EmbeddedConnection):
    """A connection to `server`, or to the one at its host and port: a pool's `connection_class`."""

    def __init__(self, server: FakeServer | None = None, **options: Any) -> None:
        self._server = server or PLACES.server(options)  # it lives as long as its connections
        super().__init__(self._server.embedded.openings(), **_options_there(self._server, options))


class FakeAsyncConnection(AsyncEmbeddedConnection):
    """The same for asyncio."""

    def __init__(self, server: FakeServer | None = None, **options: Any) -> None:
        self._server = server or PLACES.server(options)
        super().__init__(self._server.embedded.openings(), **_options_there(self._server, options))


def _pool_of(
    kind: type,
    connection_class: type,
    values: tuple[Any, ...],
    server: FakeServer | None,
    version: Version | None,
    server_type: str,
    options: dict[str, Any],
) -> Any:
    """The pool of a client that is given none: of a server, the one at a host and port, or one of its own.

    kind: redis-py's class, which reads the options; the others are a fake client's arguments.
    """
    pool = kind(*values, **(DEFAULTS | NO_RETRY | options)).connection_pool
    if server is None and (values or "host" in options):
        server = PLACES.server(pool.connection_kwargs, version, server_type)
    return _faked(pool, connection_class, server or FakeServer(version, server_type))


def _faked(pool: Any, connection_class: type, server: FakeServer | None) -> Any:
    """A pool that redis-py made for a server elsewhere, with connections to this one."""
    pool.connection_class = connection_class
    pool.connection_kwargs["server"] = server
    return pool


class FakeRedis(redis.Redis):
    """A client of `server`; of the one at its host and port; or, without either, of a server of its own.

    Other arguments are redis.Redis's; lua_modules is fakeredis's, and not needed here.
    """

    def __init__(
        self,
        *values: Any,
        server: FakeServer | None = None,
        version: Version | None = None,
        server_type: str = "redis",
        lua_modules: object = None,
        connection_pool: Any = None,
        single_connection_client: bool = False,
        **options: Any,
    ) -> None:
        is_own = connection_pool is None
        if is_own:
            connection_pool = _pool_of(redis.Redis, FakeConnection, values, server, version, server_type, options)
        super().__init__(connection_pool=connection_pool, single_connection_client=single_connection_client)
        self.auto_close_connection_pool = is_own

    @classmethod
    def from_url(cls, url: str, *, server: FakeServer | None = None, **options: Any) -> Self:
        """A client of `server`, or of the one at the URL's host and port; options as those of redis.Redis.from_url."""
        is_single = options.pop("single_connection_client", False)
        pool = _faked(redis.ConnectionPool.from_url(url, **(DEFAULTS | options)), FakeConnection, server)
        return cls(connection_pool=pool, single_connection_client=is_single)


class FakeAsyncRedis(redis.asyncio.Redis):
    """FakeRedis for asyncio."""

    def __init__(
        self,
        *values: Any,
        server: FakeServer | None = None,
        version: Version | None = None,
        server_type: str = "redis",
        lua_modules: object = None,
        connection_pool: Any = None,
        single_connection_client: bool = False,
        **options: Any,
    ) -> None:
        is_own = connection_pool is None
        if is_own:
            kind = redis.asyncio.Redis
            connection_pool = _pool_of(kind, FakeAsyncConnection, values, server, version, server_type, options)
        super().__init__(connection_pool=connection_pool, single_connection_client=single_connection_client)
        self.auto_close_connection_pool = is_own

    @classmethod
    def from_url(cls, url: str, *, server: FakeServer | None = None, **options: Any) -> Self:  # type: ignore[override]
        """A client of `server`, or of the one at the URL's host and port; options as those of Redis.from_url."""
        is_single = options.pop("single_connection_client", False)
        pool = _faked(redis.asyncio.ConnectionPool.from_url(url, **(DEFAULTS | options)), FakeAsyncConnection, server)
        return cls(connection_pool=pool, single_connection_client=is_single)


FakeStrictRedis = FakeRedis
