"""Embedded servers with fakeredis's name, and which of them a client reaches.

As with fakeredis, a client without a server and without a host has a server of its own; clients of the same host and
port meet on one, blocking or asyncio. `FakeServer().embedded` is the `penstock.Server`, with its clock and faults.
Seen by running fakeredis 2.40 (2026-11); docs/instead-of-fakeredis.md has the differences.
"""

import threading
from itertools import filterfalse
from typing import Any, Final, TypeAlias

from penstock.clock import PatchedClock
from penstock.config.settings import is_of_valkey
from penstock.engine.access.users import DEFAULT
from penstock.engine.table.client_compat import VERSIONS
from penstock.testing.embedded import Server

Version: TypeAlias = tuple[int, ...] | str | int


TYPES: Final = ("redis", "valkey", "dragonfly", "kividb")


def compat_version_of(version: Version | None, server_type: str) -> str:
    """The `compat-version` nearest to a version of fakeredis's: the newest that is not above it, or the oldest.

    ValueError for a type that is not one of TYPES; Dragonfly and KiviDB are taken for Redis.
    """
    if server_type not in TYPES:
        raise ValueError(f"Unsupported server type: {server_type}: it is one of {', '.join(TYPES)}")
    if server_type == "valkey":
        return next(filter(is_of_valkey, VERSIONS))
    if version is None:
        return "newest"
    asked = list(version) if isinstance(version, tuple) else [int(word) for word in str(version).split(".")]
    of_redis = list(filterfalse(is_of_valkey, VERSIONS))
    not_above = [name for name in of_redis if [int(word) for word in name.split(".")][: len(asked)] <= asked[:2]]
    return not_above[-1] if not_above else of_redis[0]


class PatchedTimeServer(Server):
    """A server with the process's clock, as a test may have replaced it."""

    _base_clock = PatchedClock


class FakeServer:
    """An embedded server that ends when nothing refers to it. Its clients are refused while `connected` is False.

    version: the server that it passes for; by default the newest. server_type: one of TYPES.
    """

    def __init__(
        self, version: Version | None = None, server_type: str = "redis", config: dict[bytes, bytes] | None = None
    ) -> None:
        self._has_users = False
        directives = {name.decode(): value.decode() for name, value in (config or {}).items()}
        self.embedded = PatchedTimeServer(compat_version=compat_version_of(version, server_type), **directives).start()

    def asks_for_login(self, user: bytes) -> bool:
        """Whether a client that names a user must log in as that one: it would have the rights of `default` otherwise.

        Not if `default` needs no password and is meant, or is the only user that there ever was.
        """
        access = self.embedded.engine.server.access
        self._has_users = self._has_users or len(access.users) > 1
        return not access.default.needs_no_login() or (self._has_users and user != DEFAULT)

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

    def server(self, options: dict[str, Any], version: Version | None, server_type: str) -> FakeServer:
        """The server for a connection's options, of a version and type."""
        compat = compat_version_of(version, server_type)
        place = (compat, options.get("path"), options.get("host", "localhost"), options.get("port", 6379))
        with self._lock:
            if place not in self._servers:
                self._servers[place] = FakeServer(version, server_type)
            return self._servers[place]


PLACES: Final = Places()
