"""A server in another process, in place of an embedded one (--penstock-url)."""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import redis
import redis.asyncio


class ExternalServer:
    """Clients of a server by its URL; the database is `number` further than the URL says, and emptied at the start."""

    def __init__(self, url: str, number: int) -> None:
        self._options: dict[str, Any] = dict(redis.ConnectionPool.from_url(url).connection_kwargs)
        self._options["db"] = int(self._options.get("db") or 0) + number
        self.url = _with_database(url, self._options["db"])
        self.empty()

    def empty(self) -> None:
        """Delete the keys of the database."""
        with self.client() as client:
            client.flushdb()

    def client(self, **options: Any) -> redis.Redis:
        """A redis-py client with these options."""
        pool = redis.ConnectionPool.from_url(self.url, **(self._options | options))
        pool.connection_kwargs["db"] = (self._options | options)["db"]
        return redis.Redis.from_pool(pool)

    def async_client(self, **options: Any) -> redis.asyncio.Redis:
        """As `client`, for asyncio."""
        pool = redis.asyncio.ConnectionPool.from_url(self.url, **options)
        pool.connection_kwargs["db"] = (self._options | options)["db"]
        return redis.asyncio.Redis.from_pool(pool)


def _with_database(url: str, number: int) -> str:
    """The URL with another database: in its path; for a UNIX socket, whose path is the file's, in its query."""
    parts = urlsplit(url)
    options = {name: value for name, value in parse_qsl(parts.query) if name != "db"}
    if parts.scheme == "unix":
        options["db"] = str(number)
    else:
        parts = parts._replace(path=f"/{number}")
    return parts._replace(query=urlencode(options)).geturl()
