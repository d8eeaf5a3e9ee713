"""Values of every type and size at the key `k`, by name: "hash 1000 20" is a hash of 1000 fields of 20 bytes."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from tests.support.random_words import Request

WORDS_A_REQUEST: Final = 500


def requests(name: str) -> Iterator[Request]:
    """The requests that make a value."""
    kind, *numbers = name.split()
    return MAKERS[kind](*map(int, numbers))


def _words(count: int, size: int) -> Iterator[str]:
    """Different words; of at most six bytes they are numbers."""
    for number in range(count):
        yield str(number) if size <= 6 else f"{number:06d}".rjust(size, "m")


def _in_parts(command: str, words: Iterator[str]) -> Iterator[Request]:
    while some := list(islice(words, WORDS_A_REQUEST)):
        yield [command, "k", *some]


def _string(size: int) -> Iterator[Request]:
    yield ["SET", "k", "x" * size]


def _appended(size: int) -> Iterator[Request]:
    yield ["SET", "k", "x" * (size // 2)]
    yield ["APPEND", "k", "x" * (size // 2)]


def _integer(digits: int) -> Iterator[Request]:
    yield ["SET", "k", "1" * digits]


def _bits(last: int) -> Iterator[Request]:
    yield ["SETBIT", "k", str(last), "1"]


def _hyperloglog(count: int) -> Iterator[Request]:
    return _in_parts("PFADD", _words(count, 6))


def _list(count: int, size: int) -> Iterator[Request]:
    return _in_parts("RPUSH", _words(count, size))


def _set(count: int, size: int) -> Iterator[Request]:
    return _in_parts("SADD", _words(count, size))


def _zset(count: int, size: int) -> Iterator[Request]:
    pairs = enumerate(_words(count, size))
    return _in_parts("ZADD", (word for score, member in pairs for word in (str(score), member)))


def _hash(count: int, size: int) -> Iterator[Request]:
    return _in_parts("HSET", (word for field in _words(count, size) for word in (field, field)))


def _timed_hash(count: int, size: int) -> Iterator[Request]:
    yield from _hash(count, size)
    yield ["HEXPIRE", "k", "1000", "FIELDS", str(count), *_words(count, size)]


def _stream(count: int, fields: int, size: int) -> Iterator[Request]:
    for number in range(1, count + 1):
        yield ["XADD", "k", f"1000-{number}", *[word for at in range(fields) for word in (f"field{at}", "v" * size)]]


def _groups(count: int) -> Iterator[Request]:
    yield from _stream(10, 1, 1)
    for number in range(count):
        yield ["XGROUP", "CREATE", "k", f"group{number}", "0"]


def _consumers(count: int) -> Iterator[Request]:
    yield from _groups(1)
    for number in range(count):
        yield ["XGROUP", "CREATECONSUMER", "k", "group0", f"consumer{number}"]


def _pending(count: int, consumers: int) -> Iterator[Request]:
    yield from _stream(count, 1, 1)
    yield ["XGROUP", "CREATE", "k", "g", "0"]
    for number in range(consumers):
        read = str(count // consumers)
        yield ["XREADGROUP", "GROUP", "g", f"consumer{number}", "COUNT", read, "STREAMS", "k", ">"]


def _acknowledged(count: int) -> Iterator[Request]:
    yield from _pending(count, 1)
    yield ["XACK", "k", "g", *[f"1000-{number}" for number in range(1, count, 2)]]


def _trimmed(count: int, left: int) -> Iterator[Request]:
    yield from _stream(count, 1, 1)
    yield ["XTRIM", "k", "MAXLEN", str(left)]


def _with_holes(count: int) -> Iterator[Request]:
    yield from _stream(count, 1, 1)
    yield ["XDEL", "k", *[f"1000-{number}" for number in range(1, count, 2)]]


MAKERS: Final[dict[str, Callable[..., Iterator[Request]]]] = {
    "string": _string,
    "appended": _appended,
    "integer": _integer,
    "bits": _bits,
    "hyperloglog": _hyperloglog,
    "list": _list,
    "set": _set,
    "zset": _zset,
    "hash": _hash,
    "timed-hash": _timed_hash,
    "stream": _stream,
    "groups": _groups,
    "consumers": _consumers,
    "pending": _pending,
    "acknowledged": _acknowledged,
    "trimmed": _trimmed,
    "with-holes": _with_holes,
}
