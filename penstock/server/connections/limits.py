"""Limits of what clients may use: open files, bytes of requests, bytes of replies that wait to be sent."""

import resource
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.engine.state import NOT_AUTHENTICATED, REPLICA, SUBSCRIBED
from penstock.protocol.limits import Limits

HAS_OWN_LIMIT: Final = REPLICA | SUBSCRIBED | NOT_AUTHENTICATED  # other output limits than a client that only asks
SPARE_FILES: Final = 32  # for the log, the listening sockets and the loop; as in Redis
RESERVED: Final = 10  # of them: what a rewrite and a snapshot open at most, at the same time

Limit = tuple[int, int, int]  # hard and soft limit in bytes, and the seconds that the soft one may be exceeded
BEFORE_LOGIN: Final[Limit] = (16 * 1024, 0, 0)  # where Redis 8.6.3 closes a client that has not logged in


class RequestLimits:
    """proto-max-bulk-len and client-query-buffer-limit: what all clients share that have authenticated, or have not."""

    __slots__ = ("_authenticated", "_others", "_settings")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._authenticated = Limits()
        self._others = Limits(authenticated=False)
        self._read()
        for name in ("proto-max-bulk-len", "client-query-buffer-limit"):
            settings.watch(name, self._read)

    def _read(self) -> None:
        for limits in (self._authenticated, self._others):
            limits.max_bulk_len = self._settings.number("proto-max-bulk-len")
            limits.query_buffer_limit = self._settings.number("client-query-buffer-limit")
            limits.weigh()

    def of(self, session: Session) -> Limits:
        return self._authenticated if session.authenticated else self._others


class OutputLimits:
    """client-output-buffer-limit, parsed once for each change."""

    __slots__ = ("_normal", "_pubsub", "_replica", "_settings", "bound_everybody")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._normal: Limit = (0, 0, 0)
        self._pubsub: Limit = (0, 0, 0)
        self._replica: Limit = (0, 0, 0)
        self.bound_everybody = False  # not only subscribers
        self._read()
        settings.watch("client-output-buffer-limit", self._read)

    def _read(self) -> None:
        limits = self._settings.buffer_limits()
        self._normal, self._replica, self._pubsub = limits["normal"], limits["slave"], limits["pubsub"]
        self.bound_everybody = self._normal[0] > 0 or self._normal[1] > 0

    def bind(self, session: Session) -> bool:
        """Whether there is a limit of what this client may leave untaken. O(1)."""
        if session.state & HAS_OWN_LIMIT:
            hard, soft, _ = self.of(session)
            return hard > 0 or soft > 0
        return self.bound_everybody

    def of(self, session: Session) -> Limit:
        if session.state & NOT_AUTHENTICATED:
            return BEFORE_LOGIN
        if session.is_replica:
            return self._replica
        return self._pubsub if session.is_subscribed else self._normal


def raise_file_limit(clients: int) -> int:
    """Raise the limit of open files for so many clients; the number of clients that it then allows."""
    wanted = clients + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return clients
    for ceiling in (hard, max(hard, wanted)):  # only root may exceed the hard limit
        allowed = wanted if ceiling == resource.RLIM_INFINITY else min(wanted, ceiling)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, ceiling))
        except (OSError, ValueError):
            continue
        soft = allowed
    return min(clients, soft - SPARE_FILES)


def is_reserved(descriptor: int) -> bool:
    """Whether a connection has one of the last descriptors, which are for the server's own files: it is to be closed.

    The system gives the lowest number that is free. So whatever connections there are, of clients, of the console and
    of the metrics, the server can still write its log and its snapshots.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and descriptor >= soft - RESERVED
