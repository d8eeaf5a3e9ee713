"""The listening sockets: TCP addresses, with and without TLS, and a unix socket."""

import asyncio
import errno
import os
import socket
import stat
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from penstock.config.directive_types import BadValue
from penstock.config.settings import Settings
from penstock.errors import UsageError
from penstock.server.server_log import ServerLog
from penstock.server.tls import tls_context
from penstock.server.tls.tls_context import TlsError
from penstock.server.tls.tls_door import TlsDoor, TlsHandshakes

ALL: Final = {"*": "0.0.0.0", "::*": "::"}
TCP: Final = "tcp"
TLS: Final = "tls"
PORT_DIRECTIVES: Final = {TCP: "port", TLS: "tls-port"}
ALL_PORTS: Final = ("port", "tls-port", "metrics-port", "console-port")
BAD_PORT: Final = "Unable to listen on this port. Check server logs."
TLS_DIRECTIVES: Final = (
    "tls-cert-file", "tls-key-file", "tls-key-file-pass", "tls-ca-cert-file", "tls-ca-cert-dir", "tls-auth-clients",
    "tls-protocols", "tls-ciphers", "tls-ciphersuites", "tls-groups", "tls-prefer-server-ciphers",
    "tls-session-caching", "tls-dh-params-file", "tls-client-cert-file", "tls-client-key-file",
    "tls-client-key-file-pass", "tls-replication", "tls-cluster",
)  # fmt: skip
if sys.platform == "darwin":
    KEEPALIVE_IDLE: Final = socket.TCP_KEEPALIVE
else:
    KEEPALIVE_IDLE: Final = socket.TCP_KEEPIDLE
KEEPALIVE_PROBES: Final = 3
LONGEST_SILENCE_S: Final = 32_767  # the most that the system takes
IN_VAIN_S: Final = 1.0  # a unix socket that accepts no connection for so long counts as alive


class Doors:
    """The listening sockets of one server."""

    def __init__(self, settings: Settings, server_log: ServerLog, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._journal = server_log
        self._loop = loop
        self._greet: Callable[[], asyncio.Protocol] = asyncio.Protocol  # until `open` says
        self._greet_tls: Callable[[], asyncio.Protocol] = asyncio.Protocol
        self._sockets: dict[str, list[socket.socket]] = {TCP: [], TLS: []}
        self._unix: socket.socket | None = None
        self._opened: dict[socket.socket, asyncio.Server | TlsDoor] = {}
        self._moves: set[asyncio.Task[None]] = set()
        self._handshakes = TlsHandshakes(loop, server_log, lambda: self._greet_tls())

    def bind(self) -> None:
        """Bind every address, or raise UsageError. Until `open`, the system refuses clients."""
        settings = self._settings
        path = settings.text("unixsocket")
        # Without another socket, port 0 means a free port, which becomes the setting. (Redis does not start.)
        if settings.number("port") or not (path or settings.number("tls-port")):
            self._sockets[TCP] = tcp_sockets(settings, "port", settings.number("port"), self._journal)
            if self._sockets[TCP] and not settings.number("port"):
                settings.set_pairs([("port", str(self._sockets[TCP][0].getsockname()[1]))])
        self._handshakes.context = tls_context.at_start(settings)
        if settings.number("tls-port"):
            self._sockets[TLS] = tcp_sockets(settings, "tls-port", settings.number("tls-port"), self._journal)
        if path:
            self._unix = unix_socket(path, settings.number("unixsocketperm"))
        if not self._listeners() and self._unix is None:
            raise UsageError("there is no address to listen on: bind is empty and unixsocket is not set")
        settings.watch("tcp-keepalive", self._keep_alive)
        settings.watch("port", partial(self._rebind, (TCP,), BAD_PORT), may_refuse=True)
        settings.watch("tls-port", self._move_tls, may_refuse=True)
        rebind_all = partial(self._rebind, (TCP, TLS), "Failed to bind to specified addresses.")
        settings.watch("bind", rebind_all, may_refuse=True)
        for name in TLS_DIRECTIVES:  # always: the same path may have another certificate
            settings.watch(name, self._renew_context, always=True, may_refuse=True)

    def _listeners(self) -> list[socket.socket]:
        return [listener for listeners in self._sockets.values() for listener in listeners]

    async def open(self, greet: Callable[[], asyncio.Protocol], greet_tls: Callable[[], asyncio.Protocol]) -> None:
        """Listen, and let clients in; UsageError where another process began to listen there meanwhile.

        `greet` makes the protocol of a new connection, `greet_tls` that of one that is encrypted.
        """
        self._greet = greet
        self._greet_tls = greet_tls
        for listener in [*self._listeners(), *([self._unix] if self._unix is not None else [])]:
            shown = listener.getsockname()  # one that cannot listen is closed
            try:
                await self._open_one(listener)
            except OSError as problem:
                if listener is self._unix:
                    raise UsageError(f"cannot listen on {shown}: {problem.strerror}") from None
                directive = PORT_DIRECTIVES[TLS if listener in self._sockets[TLS] else TCP]
                raise cannot_listen(self._settings, directive, shown[0], shown[1], problem) from None

    async def _open_one(self, listener: socket.socket) -> None:
        backlog = self._settings.number("tcp-backlog")
        listener.listen(backlog)  # uvloop's create_server closes a socket that cannot, and raises nothing
        if listener in self._sockets[TLS]:
            door = self._opened[listener] = TlsDoor(self._loop, self._journal, listener, self._handshakes)
            door.open(backlog)
        elif listener is self._unix:
            self._opened[listener] = await self._loop.create_unix_server(self._greet, sock=listener, backlog=backlog)
        else:
            self._opened[listener] = await self._loop.create_server(self._greet, sock=listener, backlog=backlog)

    # -- changes ----------------------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        """CONFIG SET of tcp-keepalive: it holds for new connections."""
        for listener in self._listeners():
            keep_alive(listener, self._settings.number("tcp-keepalive"))

    def _renew_context(self) -> None:
        """CONFIG SET of a TLS directive: it holds for new connections. If it is wrong, nothing changes."""
        try:
            self._handshakes.context = tls_context.wanted(self._settings)
        except TlsError as problem:
            self._journal.warning(str(problem))
            raise BadValue("Unable to update TLS configuration. Check server logs.") from None

    def _move_tls(self) -> None:
        """CONFIG SET tls-port."""
        before = self._handshakes.context
        self._renew_context()
        try:
            self._rebind((TLS,), BAD_PORT)
        except BadValue:
            self._handshakes.context = before
            raise

    def _rebind(self, kinds: tuple[str, ...], refusal: str) -> None:
        """CONFIG SET port, tls-port or bind: listen there only; if that fails, keep the old sockets and refuse.

        The old sockets are closed first, because `*` cannot be bound beside an address of its own (Redis 8.6.3).
        """
        names = {kind: [listener.getsockname()[:2] for listener in self._sockets[kind]] for kind in kinds}
        self._shut_all(kinds)
        problem = ""
        try:
            for kind in kinds:
                directive = PORT_DIRECTIVES[kind]
                port = self._settings.number(directive)
                if port:
                    self._sockets[kind] = self._listening(tcp_sockets(self._settings, directive, port, self._journal))
        except (UsageError, OSError) as mistake:
            problem = str(mistake)
            self._shut_all(kinds)
            for kind in kinds:
                self._sockets[kind] = self._listening([tcp_socket(host, port) for host, port in names[kind]])
        for listener in [listener for kind in kinds for listener in self._sockets[kind]]:
            move = self._loop.create_task(self._open_one(listener))
            self._moves.add(move)
            move.add_done_callback(self._moves.discard)
        if problem:
            self._journal.warning(problem)
            raise BadValue(refusal)

    def _listening(self, listeners: list[socket.socket]) -> list[socket.socket]:
        """Have sockets listen, or raise OSError: after the reply to its CONFIG SET a client may connect to them."""
        for listener in listeners:
            listener.listen(self._settings.number("tcp-backlog"))
        return listeners

    def _shut_all(self, kinds: tuple[str, ...]) -> None:
        for kind in kinds:
            listeners, self._sockets[kind] = self._sockets[kind], []
            for listener in listeners:
                self._shut(listener)

    def close(self) -> None:
        """Stop listening."""
        self._shut_all((TCP, TLS))
        self._handshakes.close()
        if self._unix is not None:
            self._shut(self._unix)
            Path(self._settings.text("unixsocket")).unlink(missing_ok=True)

    def _shut(self, listener: socket.socket) -> None:
        door = self._opened.pop(listener, None)
        if door is not None:
            door.close()
        listener.close()

    @property
    def addresses(self) -> list[str]:
        shown = [address_of(listener) for listener in self._sockets[TCP]]
        shown += [f"{address_of(listener)} for TLS" for listener in self._sockets[TLS]]
        return shown + ([self._settings.text("unixsocket")] if self._unix is not None else [])

    @property
    def kinds(self) -> list[str]:
        """The kinds of sockets in Redis's words: tcp, tls, unix."""
        return [kind for kind, there in self._sockets.items() if there] + ["unix"] * (self._unix is not None)


def address_of(listener: socket.socket) -> str:
    name = listener.getsockname()
    return f"[{name[0]}]:{name[1]}" if len(name) == 4 else f"{name[0]}:{name[1]}"


def tcp_sockets(settings: Settings, directive: str, port: int, server_log: ServerLog) -> list[socket.socket]:
    """A bound socket for each address of `bind`; with port 0 all get the free port that the first one got."""
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
            raise cannot_listen(settings, directive, address, port, problem) from None
        keep_alive(listener, settings.number("tcp-keepalive"))
        listeners.append(listener)
        port = listener.getsockname()[1]
    return listeners


def keep_alive(listener: socket.socket, seconds: int) -> None:
    """Have a peer that says nothing for so long be probed, three times a third of that apart; 0: never.

    A connection has these options from the socket that accepts it: nothing is to be said for each.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, seconds > 0)
    if seconds:
        seconds = min(seconds, LONGEST_SILENCE_S)
        listener.setsockopt(socket.IPPROTO_TCP, KEEPALIVE_IDLE, seconds)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(seconds // KEEPALIVE_PROBES, 1))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


def cannot_listen(settings: Settings, directive: str, host: str, port: int, problem: OSError) -> UsageError:
    """The error if a directive's port cannot be listened on, with the other directive that has the port."""
    reason = f"cannot listen on {host}:{port} ({directive}): {problem.strerror or problem}"
    if problem.errno != errno.EADDRINUSE:
        return UsageError(reason)
    others = [name for name in ALL_PORTS if name != directive and settings.number(name) == port]
    if others:
        return UsageError(f"{reason}; {others[0]} is {port}, too: give one of them another port")
    if directive in PORT_DIRECTIVES.values() and settings.words("bind").count(host) > 1:
        return UsageError(f"{reason}; bind has it twice: name it once")
    return UsageError(f"{reason}; stop what listens there, or choose another port")


def tcp_socket(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except ValueError:  # no name at all: a zero byte, bytes that are no text, more than 63 letters
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from None
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
    """Remove the unix socket of a server that died, or an empty file. Other files, and a live server's socket, stay.

    (Redis removes any file.)
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISREG(found.st_mode) and not found.st_size:
        Path(path).unlink()
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"cannot listen on {path}: there is something that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(IN_VAIN_S)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
    raise UsageError(f"cannot listen on {path}: another process does")
