"""One dialogue held with a real Redis and with an engine: replies, keyspace events and log lines side by side.

Nothing waits in a dialogue: `SET k v PXAT 1` makes a key that is overdue at once.
"""

import contextlib
import re
import socket
from pathlib import Path
from typing import NamedTuple

import hiredis

from penstock.engine.session import Session
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import EngineProxy, make_engine
from tests.support.same_result import Difference, assert_same
from tests.support.shell_words import split
from tests.support.wire import pack

EVERY_EVENT = "KEAnmoc"
UNUSED_DATABASE = b"9"  # dialogues write elsewhere, so that the first line they log is a SELECT on both sides

_PRESENT = re.compile(r"\b1[789]\d{11}\b")  # a time near the present in ms: it differs between the two


class Step(NamedTuple):
    """What one request led to. Events read `@0 set k`; lines of the log are their words, times replaced by NOW."""

    request: str
    reply: str
    events: list[str]
    logged: list[str]


def shown(value: object) -> str:
    """A reply as text; errors by their own."""
    if isinstance(value, Exception):
        return f"-{value}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)


def timeless(line: str) -> str:
    return _PRESENT.sub("NOW", line)


def words_of(line: str) -> list[bytes]:
    return [word.encode().decode("unicode_escape").encode("latin1") for word in split(line)]


class RedisSide:
    """A real Redis with a log without a preamble, every keyspace event on, and no active expiry."""

    def __init__(self, port: int) -> None:
        self._port = port
        with contextlib.closing(_Client(port)) as client:
            client.ask(b"CONFIG", b"SET", b"notify-keyspace-events", EVERY_EVENT.encode())
            client.ask(b"DEBUG", b"SET-ACTIVE-EXPIRE", b"0")
            folder = client.ask(b"CONFIG", b"GET", b"dir")
        assert isinstance(folder, list), "CONFIG GET answers names and values"
        self._log = Path(folder[1].decode()) / "appendonlydir"
        self._listener = _Client(port)
        self._listener.ask(b"PSUBSCRIBE", b"__keyevent@*")
        self._read = 0

    def play(self, lines: list[str]) -> list[Step]:
        with contextlib.closing(_Client(self._port)) as client:
            client.ask(b"SELECT", UNUSED_DATABASE)
            client.ask(b"FLUSHALL")
            client.ask(b"SELECT", b"0")
            self._logged()
            steps = []
            for line in lines:
                answer = timeless(shown(client.ask(*words_of(line))))
                steps.append(Step(line, answer, self._events(), self._logged()))
            return steps

    def close(self) -> None:
        self._listener.close()

    def _events(self) -> list[str]:
        self._listener.send(b"PING")
        events: list[str] = []
        while True:
            message = self._listener.read()
            assert isinstance(message, list), "a subscriber gets arrays"
            if message[0] == b"pong":
                return events
            database, name = re.findall(rb"__keyevent@(\d+)__:(.*)", message[2])[0]
            events.append(f"@{database.decode()} {name.decode()} {message[3].decode('latin1')}")

    def _logged(self) -> list[str]:
        (file,) = self._log.glob("*.incr.aof")
        with file.open("rb") as log:
            log.seek(self._read)
            chunk = log.read()
        self._read += len(chunk)
        return lines_of(chunk)


class _Client:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 60)  # PFSELFTEST takes a second of CPU
        self._reader = hiredis.Reader(notEnoughData=Ellipsis)

    def send(self, *words: bytes) -> None:
        self._socket.sendall(pack(*words))

    def read(self) -> object:
        while (value := self._reader.gets()) is Ellipsis:
            self._reader.feed(self._socket.recv(65536))
        return value

    def close(self) -> None:
        self._socket.close()

    def ask(self, *words: bytes) -> object:
        self.send(*words)
        return self.read()


class ObservedEngine(EngineProxy):
    """An engine that is listened to: what it publishes of keys, and what it logs."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.units: list[bytes] = []
        self.engine = make_engine(log=self)
        self._listener = Dialogue(self.engine)
        self._listener(f"CONFIG SET notify-keyspace-events {EVERY_EVENT}", "PSUBSCRIBE __keyevent@*")

    def handle(self, session: Session, request: list[bytes]) -> bytes:
        """As the engine's."""
        answer = self.engine.handle(session, request)
        self.listen()
        return answer

    def tick(self) -> None:
        """As the engine's."""
        self.engine.tick()
        self.listen()

    def listen(self) -> None:
        for message in self._listener.arrived():
            assert isinstance(message, list)
            _, _, channel, key = message
            database, _, event = channel.decode().removeprefix("__keyevent@").partition("__:")
            self.events.append(f"@{database} {event} {key.decode('latin1')}")

    def append(self, unit: bytes) -> None:
        """As the log's."""
        self.units.append(unit)


def steps_of_engine(lines: list[str]) -> list[Step]:
    """The dialogue as a fresh engine holds it."""
    engine = ObservedEngine()
    dialogue = Dialogue(engine)
    steps = []
    for line in lines:
        answer = timeless(shown(decoded(dialogue.words(*words_of(line)))))
        steps.append(Step(line, answer, engine.events.copy(), lines_of(b"".join(engine.units))))
        engine.events.clear()
        engine.units.clear()
    return steps


def lines_of(log: bytes) -> list[str]:
    """The requests of a piece of the log."""
    reader = hiredis.Reader(notEnoughData=Ellipsis)
    reader.feed(log)
    lines = []
    while (words := reader.gets()) is not Ellipsis:
        lines.append(timeless(b" ".join(words).decode("latin1")))
    return lines


def assert_as_redis(redis: RedisSide, lines: list[str]) -> None:
    """Fail with the shortest dialogue whose last request is answered, told of or logged otherwise than by Redis."""
    __tracebackhide__ = True

    def compare(some: list[str]) -> Difference | None:
        for count, (one, other) in enumerate(zip(redis.play(some), steps_of_engine(some), strict=True), 1):
            if one != other:
                return Difference("step", one._asdict(), other._asdict(), count)
        return None

    assert_same(lines, compare, ("Redis", "Penstock"), str)
