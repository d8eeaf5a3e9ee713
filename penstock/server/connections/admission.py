"""Which clients may connect: the two refusals before the first request."""

import asyncio
import socket
from typing import Final

from penstock.engine.engine import Engine
from penstock.server.connections.limits import is_reserved

NOT_COUNTED: Final = 1024  # connections beside the clients at most: handshakes, the console's, the metrics'
TOO_MANY: Final = b"ERR max number of clients reached"
PROTECTED: Final = (  # exactly what Redis 8.6.3 sends, because clients look for it
    b"DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the"
    b" default user. In this mode connections are only accepted from the loopback interface. If you want to connect"
    b" from external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode"
    b" sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the"
    b" same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so."
    b" Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by"
    b" editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the"
    b" server. 3) If you started the server manually just for testing, restart it with the '--protected-mode no'"
    b" option. 4) Set up an authentication password for the default user. NOTE: You only need to do one of the above"
    b" things in order for the server to start accepting connections from the outside."
)


class Admission:
    """Refuses clients, by what the settings say; read once for each change."""

    __slots__ = ("_engine", "_is_protected", "_most_clients")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._most_clients = 0
        self._is_protected = False
        self._read()
        for name in ("maxclients", "protected-mode"):
            engine.settings.watch(name, self._read)

    def _read(self) -> None:
        settings = self._engine.settings
        self._most_clients = settings.number("maxclients")
        self._is_protected = settings.yes("protected-mode")

    def refusal(self, transport: asyncio.BaseTransport) -> bytes | None:
        """The error for a client that may not connect, else None. Clients of the unix socket are of this machine."""
        engine = self._engine
        clients = len(engine.clients.sessions)
        if clients >= self._most_clients:
            return TOO_MANY
        # Far from the limit, which has room for maxclients, no system call is made.
        if clients + NOT_COUNTED >= self._most_clients:
            link: socket.socket | None = transport.get_extra_info("socket")
            if link is not None and is_reserved(link.fileno()):
                return TOO_MANY
        if self._is_protected and engine.access.default.open_to_all:
            peer: object = transport.get_extra_info("peername")
            if isinstance(peer, tuple) and not is_loopback(str(peer[0])):
                return PROTECTED
        return None


def is_loopback(host: str) -> bool:
    """Whether a peer's address, as sockets show it, is of this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::ffff:127.0.0.1"), is_loopback("192.0.2.7"), is_loopback("fe80::1%eth0")
    (True, True, False, False)
    """
    return host == "::1" or host.startswith(("127.", "::ffff:127."))
