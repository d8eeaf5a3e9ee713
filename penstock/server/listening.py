"""The listening sockets: TCP addresses and a unix socket."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from penstock.config.directive_types import BadValue
from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.server.server_log import ServerLog

ALL: Final = {"*": "0.0.0.0", "::*": "::"}
IN_VAIN_S: Final = 1.0  # a unix socket that accepts no connection for so long counts as alive


class Doors:
    """The listening sockets of one server."""

    def __init__(self, settings: Settings, server_log: ServerLog, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._journal = server_log
        self._loop = loop
        self._greet: Callable[[], asyncio.Protocol] = asyncio.Protocol  # until `open` says
        self._tcp: list[socket.socket] = []
        self._unix: socket.socket | None = None
        self._servers: dict[socket.socket, asyncio.Server] = {}
        self._moves: set[asyncio.Task[None]] = set()

    def bind(self) -> None:
        """Bind every address, or raise UsageError. Until `open`, the system refuses clients."""
        settings = self._settings
        path = settings.text("unixsocket")
        # Without a unix socket, port 0 means a free port, which becomes the setting. (Redis does not start.)
        if settings.number("port") or not path:
            self._tcp = tcp_sockets(settings, self._journal)
            if self._tcp and not settings.number("port"):
                settings.set_pairs([("port", str(self._tcp[0].getsockname()[1]))])
        if path:
            self._unix = unix_socket(path, settings.number("unixsocketperm"))
        if not self._tcp and self._unix is None:
            raise UsageError("there is no address to listen on: bind is empty and unixsocket is not set")
        settings.watch("port", partial(self._rebind, "Unable to listen on this port. Check server logs."))
        settings.watch("bind", partial(self._rebind, "Failed to bind to specified addresses."))

    async def open(self, greet: Callable[[], asyncio.Protocol]) -> None:
        """Listen, and let clients in; UsageError where somebody else began to listen there meanwhile.

        `greet` makes the protocol of a new connection.
        """
        self._greet = greet
        for listener in [*self._tcp, *([self._unix] if self._unix is not None else [])]:
            try:
                await self._open_one(listener)
            except OSError as problem:
                raise UsageError(f"cannot listen on {listener.getsockname()}: {problem.strerror}") from None

    async def _open_one(self, listener: socket.socket) -> None:
        backlog = self._settings.number("tcp-backlog")
        if listener is self._unix:
            server = await self._loop.create_unix_server(self._greet, sock=listener, backlog=backlog)
        else:
            server = await self._loop.create_server(self._greet, sock=listener, backlog=backlog)
        self._servers[listener] = server

    def _rebind(self, refusal: str) -> None:
        """CONFIG SET port or bind: listen there only; if that fails, keep the old sockets and refuse (Redis 8.6.3).

        The old sockets are closed first, because `*` cannot be bound beside an address of its own.
        """
        old, self._tcp = self._tcp, []
        names = [listener.getsockname()[:2] for listener in old]
        for listener in old:
            self._shut(listener)
        problem = ""
        try:
            if self._settings.number("port"):
                self._tcp = tcp_sockets(self._settings, self._journal)
        except UsageError as mistake:
            problem = str(mistake)
            self._tcp = [tcp_socket(host, port) for host, port in names]
        for listener in self._tcp:
            move = self._loop.create_task(self._open_one(listener))
            self._moves.add(move)
            move.add_done_callback(self._moves.discard)
        if problem:
            self._journal.warning(problem)
            raise BadValue(refusal)

    def close(self) -> None:
        """Stop listening."""
        for listener in self._tcp:
            self._shut(listener)
        if self._unix is not None:
            self._shut(self._unix)
            Path(self._settings.text("unixsocket")).unlink(missing_ok=True)

    def _shut(self, listener: socket.socket) -> None:
        server = self._servers.pop(listener, None)
        if server is not None:
            server.close()
        listener.close()

    @property
    def addresses(self) -> list[str]:
        names = [listener.getsockname() for listener in self._tcp]
        shown = [f"[{name[0]}]:{name[1]}" if len(name) == 4 else f"{name[0]}:{name[1]}" for name in names]
        return shown + ([self._settings.text("unixsocket")] if self._unix is not None else [])

    @property
    def kinds(self) -> list[str]:
        """The kinds of sockets in Redis's words: tcp, unix."""
        return ["tcp"] * bool(self._tcp) + ["unix"] * (self._unix is not None)


def tcp_sockets(settings: Settings, server_log: ServerLog) -> list[socket.socket]:
    """A bound socket for each address of `bind`; with port 0 all get the free port that the first one got."""
    port = settings.number("port")
    listeners: list[socket.socket] = []
    for word in settings.words("bind"):
        optional = word.startswith("-")
        address = word.removeprefix("-")
        try:
            listener = tcp_socket(ALL.get(address, address), port)
        except OSError as problem:
            if optional:
                server_log.verbose(f"Not listening on {address}: {problem.strerror}")
                continue
            for taken in listeners:
                taken.close()
            raise UsageError(f"cannot listen on {address}:{port}: {problem.strerror}") from None
        listeners.append(listener)
        port = listener.getsockname()[1]
    return listeners


def tcp_socket(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, name = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(name)
        # Behind `bind` for a free port, lest another starting server is given the same one; yet in time for the
        # connections, which would else keep the port from being bound again while they last.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def unix_socket(path: str, permissions: int) -> socket.socket:
    """A bound unix socket; permissions of 0 mean those of the umask."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        remove_stale(path)
        listener.bind(path)
        if permissions:
            Path(path).chmod(permissions)
        listener.setblocking(False)
    except OSError as problem:
        listener.close()
        raise UsageError(f"cannot listen on {path}: {problem.strerror or problem}") from None
    return listener


def remove_stale(path: str) -> None:
    """Remove the unix socket of a server that died. A file that is no socket, or a live server's socket, is kept."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise UsageError(f"cannot listen on {path}: there is something that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(IN_VAIN_S)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
    raise UsageError(f"cannot listen on {path}: another process does")
