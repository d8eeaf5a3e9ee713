"""The two that are compared, asked alike: a server over TCP, and an engine in this process."""

import re
import socket
import time
import traceback
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from penstock.engine.session import Session
from penstock.storage.streams.stream import Stream
from tests.support.engines import make_engine, settings_with
from tests.support.reference_knowledge import Known, Strict
from tests.support.wire import Array, Bulk, Incomplete, Map, Value, pack, parse

PATIENCE_S: Final = 10.0
BUFFER: Final = 1 << 20
NEAR_MS: Final = 600_000
LATE_MS: Final = 20  # how much older than the request an id may be that Redis makes: it reads its clock once a turn

_ID = re.compile(rb"(\d{13})-\d+\Z")


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Side(Protocol):
    """A server to ask: the requests of a batch first, then one answer after the other."""

    def send(self, requests: Sequence[Sequence[str | bytes]]) -> None: ...

    def answer(self, now_ms: int = 0) -> bytes:
        """The next reply; now_ms, if not 0, is what the time was when the other side handled the request."""


class Piped:
    """A server over TCP, with a batch of requests at once."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._at = 0

    def close(self) -> None:
        self._socket.close()

    def send(self, requests: Sequence[Sequence[str | bytes]]) -> None:
        self.send_raw(b"".join([pack(*request) for request in requests]))

    def send_raw(self, packed: bytes) -> None:
        """Requests that are bytes already, in pieces small enough for the replies to be read in between."""
        for start in range(0, len(packed), BUFFER):
            self._socket.sendall(packed[start : start + BUFFER])

    def answer(self, now_ms: int = 0) -> bytes:
        while True:
            try:
                _, after = parse(self._buffer, self._at)
            except Incomplete as cut:
                self._receive(cut.missing)
            else:
                reply = self._buffer[self._at : after]
                self._at = after
                return reply

    def has_answered(self, reply: bytes) -> bool:
        """Whether the next reply is this one, which is taken if so: quicker than parsing it."""
        while len(self._buffer) - self._at < len(reply) and reply.startswith(self._buffer[self._at :]):
            self._receive()
        if not self._buffer.startswith(reply, self._at):
            return False
        self._at += len(reply)
        return True

    def ask(self, *words: str) -> Value:
        self.send([list(words)])
        return parse(self.answer())[0]

    def _receive(self, missing: int = 1) -> None:
        """Receive so many bytes or more. They are joined once: a reply may have some hundred megabytes."""
        parts = [self._buffer[self._at :]]
        while missing > 0:
            chunk = self._socket.recv(BUFFER)
            if not chunk:
                raise ConnectionError("the server closed the connection")
            parts.append(chunk)
            missing -= len(chunk)
        self._buffer = b"".join(parts)
        self._at = 0


class InProcess:
    """An engine with a clock that is turned by hand: the time of the batch, or what the other side's ids tell."""

    def __init__(self, compat_version: str = "newest") -> None:
        self._clock = ManualClock(wall_ms())
        settings = settings_with(compat_version=compat_version)
        self.engine = make_engine(self._clock, settings=settings)
        self._session = self.engine.server.connect()
        self._requests: deque[Sequence[str | bytes]] = deque()

    def send(self, requests: Sequence[Sequence[str | bytes]]) -> None:
        self._requests.extend(requests)
        self._turn_to(wall_ms() - LATE_MS)
        self.engine.tick()

    def answer(self, now_ms: int = 0) -> bytes:
        if not now_ms:
            return handled(self.engine, self._session, self._requests.popleft())
        here_ms = self._clock.now_us() // 1000
        self._clock.set_ms(now_ms)  # it may be earlier: a duplicate is answered with an id made before
        reply = handled(self.engine, self._session, self._requests.popleft())
        self._turn_to(here_ms)
        return reply

    def _turn_to(self, now_ms: int) -> None:
        """Turn the clock forward, never back: entries delivered later are not older."""
        self._clock.set_ms(max(now_ms, self._clock.now_us() // 1000))

    def check(self) -> None:
        """Assert the invariants of everything that is kept."""
        for database in self.engine.keyspace.databases:
            database.check()
            for value in database.values.values():
                if isinstance(value, Stream):
                    value.check()


def handled(engine: Engine, session: Session, request: Sequence[str | bytes]) -> bytes:
    """An engine's reply; a failure of its own is shown as one, so that it is found and shortened like a difference."""
    try:
        return engine.handle(session, [word if isinstance(word, bytes) else word.encode() for word in request])
    except Exception as failure:  # whatever it is: to find it is what the comparison is for
        place = traceback.extract_tb(failure.__traceback__)[-1]
        return f"-FAILED {failure!r} at {place.filename.rpartition('/')[2]}:{place.lineno}\r\n".encode()


def without_made_ids(value: Value) -> Value:
    """A reply in which ids that a clock made just now are all alike."""
    if isinstance(value, Array):
        return Array(tuple(map(without_made_ids, value.elements)))
    if isinstance(value, Map):
        return Map(tuple((name, without_made_ids(held)) for name, held in value.pairs))
    return Bulk(b"made by a clock") if isinstance(value, Bulk) and made_ms(value.text) else value


def made_ms(text: bytes) -> int:
    """The time in an id that a clock made just now; 0 for any other text."""
    found = _ID.match(text)
    return int(found[1]) if found and abs(int(found[1]) - wall_ms()) < NEAR_MS else 0


def latest_made_ms(value: Value) -> int:
    """The latest such time in a reply of XADD, or of EXEC."""
    if isinstance(value, Array):
        return max((made_ms(one.text) for one in value.elements if isinstance(one, Bulk)), default=0)
    return made_ms(value.text) if isinstance(value, Bulk) else 0


def known_by(port: int, strict: bool = False) -> Known:
    """What the server at a port knows; `strict`: and it is sent all the same what it does not."""
    piped = Piped(port)
    server, listed = piped.ask("INFO", "server"), piped.ask("COMMAND", "LIST")
    piped.close()
    assert isinstance(server, Bulk) and isinstance(listed, Array), "INFO and COMMAND LIST answer so"
    found = re.search(rb"redis_version:(\d+)\.(\d+)\.(\d+)", server.text)
    assert found is not None, "INFO names the version"
    version = (int(found[1]), int(found[2]), int(found[3]))
    kind = Strict if strict else Known
    is_valkey = b"valkey_version:" in server.text
    return kind(version, [name.text.decode() for name in listed.elements if isinstance(name, Bulk)], is_valkey)
