"""The options that all roles share: which servers, how to speak to them, and which streams there.

`docs/pipeline.md` explains them to users; the defaults are here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.pipeline.connector.connection.client import Access, Endpoint
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.errors import OptionError

DEFAULT_PORT: Final = 6379
CONNECTION: Final = (
    "endpoints", "username", "password", "db", "tls", "tlsCa", "tlsCert", "tlsKey", "connectTimeout", "readTimeout",
    "retryTimeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Servers:
    """The endpoints, in the order given, and how to speak to them."""

    endpoints: tuple[Endpoint, ...]
    access: Access

    def by_name(self) -> dict[str, Endpoint]:
        return {endpoint.name: endpoint for endpoint in self.endpoints}


def connection_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options among these that say which servers, and how to speak to them, however their names are written."""
    names = {name.lower() for name in CONNECTION}
    return {name: value for name, value in options.items() if name.lower() in names}


def read_servers(reader: OptionReader) -> Servers:
    """The connection's options, of every role."""
    endpoints = tuple(read_endpoint(word) for word in reader.names("endpoints") or [f"127.0.0.1:{DEFAULT_PORT}"])
    if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
        raise reader.mistake("endpoints", "is to name every endpoint once")
    access = Access(
        username=reader.text("username"),
        password=reader.text("password"),
        db=reader.integer("db", 0),
        tls=reader.flag("tls", False),
        tls_ca=reader.text("tlsCa"),
        tls_cert=reader.text("tlsCert"),
        tls_key=reader.text("tlsKey"),
        connect_s=reader.duration_ms("connectTimeout", "5s") / 1000,
        read_s=reader.duration_ms("readTimeout", "30s") / 1000,
        retry_s=reader.duration_ms("retryTimeout", "60s") / 1000,
    )
    if access.username is not None and access.password is None:
        raise OptionError("option 'username' needs 'password' beside it")
    return Servers(endpoints, access)


def read_endpoint(word: str) -> Endpoint:
    """`host`, `host:port` or `name=host:port`; an IPv6 address stands in brackets.

    >>> read_endpoint("a=[::1]:7000")
    Endpoint(name='a', host='::1', port=7000)
    >>> read_endpoint("db1").name
    'db1:6379'
    """
    name, equals, address = word.rpartition("=")
    host, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise OptionError(f"endpoint {word!r} is to be host:port; an IPv6 address stands in brackets: [::1]:6379")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (equals and not name):
        raise OptionError(f"endpoint {word!r} is to be host:port or name=host:port")
    return Endpoint(name or f"{host}:{int(port)}", host, int(port))


@dataclass(frozen=True, slots=True)
class Keys:
    """Which streams: `names`, or those that `pattern` matches (then names is empty)."""

    names: tuple[str, ...]
    pattern: str | None
    discovery_ms: int


def read_keys(reader: OptionReader) -> Keys:
    names, pattern = reader.names("stream"), reader.text("streamPattern")
    return Keys(tuple(dict.fromkeys(names)), pattern, reader.duration_ms("discoveryInterval", "10s"))
