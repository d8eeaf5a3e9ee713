"""A small blocking client that tells reply types apart, for tests that compare servers reply by reply.

    with Connection("127.0.0.1", port) as client:
        assert client.ask("XLEN", "s") == Integer(0)

Values compare by type and content, so `Bulk(b"OK") != Simple(b"OK")` and RESP2's two nulls differ.
"""

import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeAlias

_END: Final = b"\r\n"


@dataclass(frozen=True, slots=True)
class Simple:
    text: bytes


@dataclass(frozen=True, slots=True)
class Error:
    text: bytes


@dataclass(frozen=True, slots=True)
class Integer:
    number: int


@dataclass(frozen=True, slots=True)
class Bulk:
    text: bytes


@dataclass(frozen=True, slots=True)
class Array:
    elements: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class NullBulk:
    """RESP2's `$-1`."""


@dataclass(frozen=True, slots=True)
class NullArray:
    """RESP2's `*-1`."""


@dataclass(frozen=True, slots=True)
class Null:
    """RESP3's `_`."""


@dataclass(frozen=True, slots=True)
class Map:
    pairs: tuple[tuple["Value", "Value"], ...]


@dataclass(frozen=True, slots=True)
class Set:
    elements: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Push:
    elements: tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Double:
    text: bytes


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool


@dataclass(frozen=True, slots=True)
class BigNumber:
    text: bytes


@dataclass(frozen=True, slots=True)
class Verbatim:
    kind: bytes
    text: bytes


@dataclass(frozen=True, slots=True)
class BulkError:
    text: bytes


@dataclass(frozen=True, slots=True)
class Attribute:
    """RESP3's `|`: something said about the value that follows it."""

    pairs: tuple[tuple["Value", "Value"], ...]
    value: "Value"


Value: TypeAlias = (
    Simple
    | Error
    | Integer
    | Bulk
    | Array
    | NullBulk
    | NullArray
    | Null
    | Map
    | Set
    | Push
    | Double
    | Boolean
    | BigNumber
    | Verbatim
    | BulkError
    | Attribute
)


class Incomplete(Exception):
    """The buffer ends before the reply does; at least so many bytes are missing."""

    def __init__(self, missing: int = 1) -> None:
        super().__init__(missing)
        self.missing = missing


class Closed(Exception):
    """The server closed the connection; `rest` are bytes that are no whole reply."""

    def __init__(self, rest: bytes) -> None:
        super().__init__(rest)
        self.rest = rest


def parse(buffer: bytes, at: int = 0) -> tuple[Value, int]:
    """The reply that begins at `at`, and where it ends. Incomplete if it is cut; ValueError if it is no reply."""
    line_end = buffer.find(_END, at)
    if line_end < 0:
        raise Incomplete
    kind = buffer[at : at + 1]
    line = buffer[at + 1 : line_end]
    after = line_end + 2
    match kind:
        case b"+":
            return Simple(line), after
        case b"-":
            return Error(line), after
        case b":":
            return Integer(int(line)), after
        case b",":
            return Double(line), after
        case b"(":
            return BigNumber(line), after
        case b"_" if line == b"":
            return Null(), after
        case b"#" if line in (b"t", b"f"):
            return Boolean(line == b"t"), after
        case b"$" if line == b"-1":
            return NullBulk(), after
        case b"*" if line == b"-1":
            return NullArray(), after
        case b"$":
            text, after = _text(buffer, after, _size(line))
            return Bulk(text), after
        case b"!":
            text, after = _text(buffer, after, _size(line))
            return BulkError(text), after
        case b"=":
            text, after = _text(buffer, after, _size(line))
            if text[3:4] != b":":
                raise ValueError(f"a verbatim string without its kind: {text!r}")
            return Verbatim(text[:3], text[4:]), after
        case b"*":
            values, after = _values(buffer, after, _size(line))
            return Array(values), after
        case b"~":
            values, after = _values(buffer, after, _size(line))
            return Set(values), after
        case b">":
            values, after = _values(buffer, after, _size(line))
            return Push(values), after
        case b"%":
            values, after = _values(buffer, after, 2 * _size(line))
            return Map(_pairs(values)), after
        case b"|":
            values, after = _values(buffer, after, 2 * _size(line))
            value, after = parse(buffer, after)
            return Attribute(_pairs(values), value), after
        case _:
            raise ValueError(f"no reply begins with {kind + line!r}")


def _size(line: bytes) -> int:
    if not line.isdigit():
        raise ValueError(f"no size: {line!r}")
    return int(line)


def _text(buffer: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if len(buffer) < end + 2:
        raise Incomplete(end + 2 - len(buffer))
    if buffer[end : end + 2] != _END:
        raise ValueError(f"{size} bytes are not followed by a line end: {buffer[at : end + 2]!r}")
    return buffer[at:end], end + 2


def _values(buffer: bytes, at: int, count: int) -> tuple[tuple[Value, ...], int]:
    values: list[Value] = []
    for _ in range(count):
        value, at = parse(buffer, at)
        values.append(value)
    return tuple(values), at


def _pairs(values: tuple[Value, ...]) -> tuple[tuple[Value, Value], ...]:
    return tuple(zip(values[::2], values[1::2], strict=True))


def pack(*words: bytes | str | int) -> bytes:
    """A request as bytes; text is UTF-8."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        text = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(text), text))
    return b"".join(parts)


class Connection:
    """One client. Replies come in order, pushes among them as they arrive."""

    def __init__(self, host: str, port: int, timeout: float = 5.0) -> None:
        self._timeout = timeout
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send_raw(self, data: bytes) -> None:
        self._socket.settimeout(self._timeout)
        self._socket.sendall(data)

    def send(self, *words: bytes | str | int) -> None:
        self.send_raw(pack(*words))

    def reply(self, timeout: float | None = None) -> Value:
        """The next reply; TimeoutError if none comes in `timeout` seconds of silence, Closed if none will."""
        self._socket.settimeout(self._timeout if timeout is None else timeout)
        while True:
            try:
                value, used = parse(self._buffer)
            except Incomplete:
                self._receive()
            else:
                self._buffer = self._buffer[used:]
                return value

    def replies(self, count: int, timeout: float | None = None) -> list[Value]:
        return [self.reply(timeout) for _ in range(count)]

    def ask(self, *words: bytes | str | int) -> Value:
        self.send(*words)
        return self.reply()

    def rest(self, timeout: float | None = None) -> bytes:
        """Every byte until the server closes; TimeoutError if it does not."""
        self._socket.settimeout(self._timeout if timeout is None else timeout)
        while True:
            try:
                self._receive()
            except Closed as closed:
                return closed.rest

    def is_silent(self, seconds: float = 0.05) -> bool:
        """Does nothing come, not even the connection's end, for so long?"""
        try:
            self.reply(seconds)
        except TimeoutError:
            return self._buffer == b""
        except Closed:
            return False
        return False

    def _receive(self) -> None:
        try:
            data = self._socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            rest, self._buffer = self._buffer, b""
            raise Closed(rest)
        self._buffer += data
