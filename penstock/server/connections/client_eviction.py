"""Closes the clients that take most memory, while all take more than maxmemory-clients together (Redis 8.6.3)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.config.settings import Settings
from penstock.engine.telemetry.client_memory import memory_of
from penstock.engine.telemetry.statistics import Statistics
from penstock.server.server_log import ServerLog

if TYPE_CHECKING:
    from penstock.server.connections.connection import Connection

LEAST: Final = 128 * 1024  # bytes: with a lower limit no client could change it any more


class ClientEviction:
    """limit: bytes of all clients together; 0: none. Replicas do not count, and are not closed.

    Clients with CLIENT NO-EVICT count, but are not closed. Nothing is counted while there is no limit.

    Invariant: `_total` is the sum of `_noted`, which has what each connection took when it was last noted.
    """

    __slots__ = ("_connections", "_is_logged", "_noted", "_server_log", "_settings", "_statistics", "_total", "limit")

    def __init__(
        self,
        settings: Settings,
        statistics: Statistics,
        server_log: ServerLog,
        connections: Callable[[], list["Connection"]],
    ) -> None:
        """connections: all there are."""
        self._settings = settings
        self._statistics = statistics
        self._server_log = server_log
        self._connections = connections
        self._noted: dict[Connection, int] = {}
        self._total = 0
        self._is_logged = False  # that no client is left to be closed
        self.limit = 0
        settings.watch("maxmemory-clients", self._set)
        settings.watch("maxmemory", self._set)
        self._set()

    def _set(self) -> None:
        wanted = self._settings.text("maxmemory-clients")
        if wanted.endswith("%"):
            limit = self._settings.number("maxmemory") * int(wanted[:-1]) // 100
        else:
            limit = int(wanted)
        self.limit = max(limit, LEAST) if limit else 0
        self._noted = {}
        self._total = 0
        if self.limit:
            for connection in self._connections():
                self.note(connection)

    @property
    def is_over(self) -> bool:
        """Whether the clients take more than they may."""
        return self.limit > 0 and self._total > self.limit

    def note(self, connection: "Connection") -> None:
        """Something has changed what a client takes. Only while there is a limit. O(1)."""
        if connection.closed or connection.session.is_replica:
            self.forget(connection)
            return
        memory = memory_of(connection.session)
        self._total += memory - self._noted.get(connection, 0)
        self._noted[connection] = memory

    def forget(self, connection: "Connection") -> None:
        """A connection is closed."""
        if self._noted:
            self._total -= self._noted.pop(connection, 0)

    def evict(self) -> None:
        """Close the largest clients until the others may stay. O(clients) for each of them."""
        while self.is_over:
            largest: Connection | None = None
            most = 0
            for connection, memory in self._noted.items():
                if memory > most and not connection.session.no_evict:
                    largest, most = connection, memory
            if largest is None:
                if not self._is_logged:
                    self._is_logged = True
                    self._server_log.warning("Over client maxmemory after evicting all evictable clients")
                return
            self._statistics.evicted_clients += 1
            self._server_log.notice(f"Evicting client {largest.session.address}: {most} bytes")
            largest.abort()
            self.forget(largest)
        self._is_logged = False
