"""The methods that fakeredis's names add to a library's connection and client, for redis-py and valkey-py."""

from typing import Any, ClassVar, Final, Self

from penstock.engine.access.users import DEFAULT
from penstock.testing.fake.servers import PLACES, FakeServer, Version

PLACE: Final = frozenset({"host", "port", "path"})
LOGIN: Final = frozenset({"password", "username"})
NO_RETRY: Final[dict[str, Any]] = {"retry": None}  # redis.Redis would sleep for seconds between attempts to connect


class FakeLink:
    """A connection to `server`, or to the one at its host and port: a pool's `connection_class`.

    A class of penstock.testing.connections comes after it as a base. defaults: the options of a connection in the
    process. served: the default of server_type.
    """

    defaults: ClassVar[dict[str, Any]]
    served: ClassVar[str] = "redis"

    def __init__(self, server: FakeServer | None = None, **options: Any) -> None:
        self._server = server or PLACES.server(options, None, self.served)  # it lives as long as its connections
        there = self.defaults | _options_there(self._server, options)
        super().__init__(self._server.embedded.openings(), **there)  # type: ignore[call-arg]  # the embedded one's


def _options_there(server: FakeServer, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a connection that mean something on a server in the process.

    A login that the server does not ask for is left out: fakeredis takes any.
    """
    name = str(options.get("username") or DEFAULT.decode())
    left_out = PLACE if server.asks_for_login(name.encode()) else PLACE | LOGIN
    return {name: value for name, value in options.items() if name not in left_out and not name.startswith("ssl")}


class FakeClient:
    """A client of `server`; of the one at its host and port; or, without either, of a server of its own.

    connected: whether the server takes its clients. Other arguments are those of the library's client; lua_modules is
    fakeredis's, and not needed here.

    library: the library's client, which comes after this class as a base.
    """

    library: ClassVar[Any]
    connection_class: ClassVar[type[FakeLink]]

    def __init__(
        self,
        *values: Any,
        server: FakeServer | None = None,
        version: Version | None = None,
        server_type: str | None = None,
        lua_modules: object = None,
        connected: bool = True,
        connection_pool: Any = None,
        single_connection_client: bool = False,
        **options: Any,
    ) -> None:
        is_own = connection_pool is None
        if is_own:
            made = self.library(*values, **self._with_defaults(options))
            is_placed = bool(values) or "host" in options
            connection_pool = self._pool_of(made, is_placed, server, version, server_type)
            if not connected:
                connection_pool.connection_kwargs["server"].connected = False
        super().__init__(  # type: ignore[call-arg]  # the library's
            connection_pool=connection_pool, single_connection_client=single_connection_client
        )
        self.auto_close_connection_pool = is_own

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        server: FakeServer | None = None,
        version: Version | None = None,
        server_type: str | None = None,
        lua_modules: object = None,
        single_connection_client: bool = False,
        **options: Any,
    ) -> Self:
        """A client of `server`, or of the one at the URL's host and port; options as those of the library's."""
        made = cls.library.from_url(url, **cls._with_defaults(options))
        pool = cls._pool_of(made, True, server, version, server_type)
        client = cls(connection_pool=pool, single_connection_client=single_connection_client)
        client.auto_close_connection_pool = True
        return client

    @classmethod
    def _with_defaults(cls, options: dict[str, Any]) -> dict[str, Any]:
        return cls.connection_class.defaults | NO_RETRY | options

    @classmethod
    def _pool_of(
        cls, made: Any, is_placed: bool, server: FakeServer | None, version: Version | None, server_type: str | None
    ) -> Any:
        """The pool of a client that the library made for a server elsewhere, with connections to this one."""
        pool = made.connection_pool
        if server is None:
            kind = server_type or cls.connection_class.served
            server = PLACES.server(pool.connection_kwargs, version, kind) if is_placed else FakeServer(version, kind)
        pool.connection_class = cls.connection_class
        pool.connection_kwargs["server"] = server
        return pool
