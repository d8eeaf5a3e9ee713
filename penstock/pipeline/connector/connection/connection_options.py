"""The options that all roles share: which servers, how to speak to them, and which streams there.

`docs/pipeline.md` explains them to users; the defaults are here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from penstock.pipeline.connector.connection.client import CLUSTER, SENTINEL, SERVER, Access, Endpoint
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.errors import OptionError

DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
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
    """A server, `host:port`; one behind Sentinels, `sentinel://host:port/master`; a cluster, `cluster://host:port`.

    Several addresses are parted by semicolons. `name=` may stand before all of them.

    >>> read_endpoint("a=[::1]:7000").addresses
    (('::1', 7000),)
    >>> read_endpoint("db1;db2:7000").name
    'db1:6379;db2:7000'
    >>> read_endpoint("orders=sentinel://s1;s2/main").address
    'sentinel://s1:26379;s2:26379/main'
    """
    name, equals, address = word.rpartition("=")
    kind, scheme, places = address.rpartition("://")
    master = ""
    if kind == SENTINEL:
        places, _, master = places.rpartition("/")
    if (equals and not name) or (scheme and kind not in (SENTINEL, CLUSTER)) or (kind == SENTINEL and not master):
        raise OptionError(
            f"endpoint {word!r} is to be host:port, sentinel://host:port/master or cluster://host:port, with name= "
            "before it or without; several addresses of one are parted by semicolons"
        )
    port = SENTINEL_PORT if kind == SENTINEL else DEFAULT_PORT
    (first_host, first_port), *others = (_read_address(word, place, port) for place in places.split(";"))
    found = Endpoint(name, first_host, first_port, tuple(others), kind or SERVER, master)
    return found if name else replace(found, name=found.address)


def _read_address(word: str, address: str, default_port: int) -> tuple[str, int]:
    """A host and a port; an IPv6 address stands in brackets. `word` is what the user gave."""
    host, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = address, str(default_port)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise OptionError(f"endpoint {word!r} is to be host:port; an IPv6 address stands in brackets: [::1]:6379")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise OptionError(f"endpoint {word!r} is to be host:port or name=host:port")
    return host, int(port)


@dataclass(frozen=True, slots=True)
class Keys:
    """Which streams: `names`, or those that `pattern` matches (then names is empty)."""

    names: tuple[str, ...]
    pattern: str | None
    discovery_ms: int


def read_keys(reader: OptionReader) -> Keys:
    names, pattern = reader.names("stream"), reader.text("streamPattern")
    return Keys(tuple(dict.fromkeys(names)), pattern, reader.duration_ms("discoveryInterval", "10s"))
