"""The connections to servers that keys are moved to (MIGRATE): kept for ten seconds after their last use."""

import socket
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.waiting.migrating import TargetError
from penstock.protocol import reply
from penstock.server.connections.limits import is_reserved
from penstock.server.tls import tls_context
from penstock.server.tls.tls_context import TlsError

KEPT_MS: Final = 10_000
PIECE_BYTES: Final = 64 * 1024
LONGEST_LINE: Final = 64 * 1024
NO_DATABASE: Final = -1


Place = tuple[str, str, bool]  # host, port, whether encrypted


class Target:
    """One connection, and the database that it is in."""

    __slots__ = ("db_index", "link", "used_ms")

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.db_index = NO_DATABASE
        self.used_ms = 0


class Targets:
    """All of them, by host, port, and whether they are encrypted (tls-cluster, as in Redis)."""

    __slots__ = ("_clock", "_settings", "_targets")

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._targets: dict[Place, Target] = {}

    def ask(
        self, host: str, port: str, timeout_ms: int, db_index: int, login: list[bytes], requests: list[list[bytes]]
    ) -> list[bytes]:
        """See Migrator.ask. A connection that was kept and is dead is replaced by a new one, once."""
        place = host, port, self._settings.yes("tls-cluster")
        known = self._targets.pop(place, None)
        if known is not None:
            try:
                return self._ask(known, place, db_index, login, requests, timeout_ms)
            except TargetError as failure:
                if failure.answers or failure.is_late:
                    raise
        return self._ask(self._connected(place, timeout_ms), place, db_index, login, requests, timeout_ms)

    def _ask(
        self,
        target: Target,
        place: Place,
        db_index: int,
        login: list[bytes],
        requests: list[list[bytes]],
        timeout_ms: int,
    ) -> list[bytes]:
        before = [login] if login else []
        if target.db_index != db_index:
            before.append([b"SELECT", b"%d" % db_index])
        target.link.settimeout(timeout_ms / 1000)
        answers: list[bytes] = []
        doing = "writing"
        try:
            text = memoryview(b"".join([reply.bulks(request) for request in [*before, *requests]]))
            for at in range(0, len(text), PIECE_BYTES):  # each has the time that one sendall has for everything
                target.link.sendall(text[at : at + PIECE_BYTES])
            doing = "reading"
            held = b""
            for _ in range(len(before) + len(requests)):
                line, held = self._line(target.link, held, timeout_ms)
                answers.append(line)
        except OSError as failure:
            target.link.close()
            raise TargetError(doing, answers[len(before) :], isinstance(failure, TimeoutError)) from None
        refused = [answer for answer in answers[: len(before)] if answer.startswith(b"-")]
        if refused:
            target.link.close()
            return refused[:1] * len(requests)
        target.db_index = db_index
        target.used_ms = self._clock.monotonic_us() // 1000
        self._targets[place] = target
        return answers[len(before) :]

    def _line(self, link: socket.socket, held: bytes, timeout_ms: int) -> tuple[bytes, bytes]:
        """The next line and what came behind it. OSError if it has not come as a whole in time.

        (Redis waits so long for each byte, and meanwhile no client is served.)
        """
        until_us = self._clock.monotonic_us() + timeout_ms * 1000
        while b"\r\n" not in held:
            left_us = until_us - self._clock.monotonic_us()
            if left_us <= 0 or len(held) > LONGEST_LINE:
                raise TimeoutError
            link.settimeout(left_us / 1_000_000)
            piece = link.recv(PIECE_BYTES)
            if not piece:
                raise ConnectionResetError
            held += piece
        line, _, rest = held.partition(b"\r\n")
        return line, rest

    def _connected(self, place: Place, timeout_ms: int) -> Target:
        """A new connection. The target's certificate must be signed by tls-ca-cert-file, as a master's."""
        host, port, is_encrypted = place
        try:
            source = self._settings.text("bind-source-addr")
            link = socket.create_connection((host, int(port)), timeout_ms / 1000, (source, 0) if source else None)
        except socket.gaierror:
            raise TargetError("connecting", [], is_late=True) from None
        except (OSError, ValueError, OverflowError):
            raise TargetError("connecting" if is_encrypted else "writing", [], is_late=True) from None
        if is_reserved(link.fileno()):
            link.close()
            raise TargetError("connecting", [], is_late=True)
        if not is_encrypted:
            return Target(link)
        try:
            return Target(tls_context.build_outgoing(self._settings).wrap_socket(link))
        except (OSError, TlsError):
            link.close()
            raise TargetError("connecting", [], is_late=True) from None

    def cron(self) -> None:
        """Close what was not used for ten seconds."""
        now_ms = self._clock.monotonic_us() // 1000
        for place, target in list(self._targets.items()):
            if now_ms - target.used_ms > KEPT_MS:
                target.link.close()
                del self._targets[place]

    def close(self) -> None:
        """At the server's end."""
        for target in self._targets.values():
            target.link.close()
        self._targets.clear()
