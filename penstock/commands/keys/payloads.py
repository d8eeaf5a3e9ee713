"""The payloads of DUMP and RESTORE: a value as bytes, and back.

The format is our own (docs/dump.md): the requests that create the value at a placeholder key, as a rewritten log has
them, with a version and a checksum. Redis refuses our payloads, and we refuse Redis's.
"""

from collections.abc import Iterator
from typing import Final

from xxhash import xxh3_64_intdigest

from penstock.config.settings import Settings
from penstock.engine.aof import rewrite_values
from penstock.engine.aof.aof_compat import Dialect
from penstock.engine.aof.rewrite import StreamLines
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.context import Context
from penstock.engine.effects import Effects
from penstock.engine.engine_state import EngineState
from penstock.engine.session import Session
from penstock.errors import ReplyError
from penstock.protocol.log_reader import Damage, Unfinished, next_request
from penstock.storage.keyspace import Database, Value
from penstock.storage.streams.stream import Stream

MARK: Final = b"PENSTOCK"
VERSION: Final = 1
VERSION_BYTES: Final = 2  # little-endian, like the checksum
CHECKSUM_BYTES: Final = 8
PLACEHOLDER: Final = b"k"

MAKERS: Final = frozenset([
    b"SET", b"RPUSH", b"SADD", b"ZADD", b"HSET", b"HPEXPIREAT", b"XADD", b"XCFGSET", b"XCLAIM", b"XDEL", b"XGROUP",
    b"XIDMPRECORD", b"XNACK", b"XSETID", b"XTRIM",
])  # fmt: skip  # the commands allowed in a payload: its checksum finds damage, but not forgery


def lines(key: bytes, value: Value, settings: Settings, dialect: Dialect) -> Iterator[bytes]:
    """The requests that create a value at a key, without the key's time of expiry."""
    if isinstance(value, Stream):
        yield from StreamLines(key, value, dialect, Progress()).all(settings)
    else:
        yield from rewrite_values.lines(key, value)


def payload_of(value: Value, settings: Settings) -> bytes:
    """The payload of a value."""
    body = b"".join([MARK, *lines(PLACEHOLDER, value, settings, Dialect()), VERSION.to_bytes(VERSION_BYTES, "little")])
    return body + xxh3_64_intdigest(body).to_bytes(CHECKSUM_BYTES, "little")


def value_from(payload: bytes, engine: EngineState, now_us: int) -> Value:
    """A new value from a payload; nothing is logged and no events are sent. ReplyError if it is damaged or not ours."""
    body, checksum = payload[:-CHECKSUM_BYTES], payload[-CHECKSUM_BYTES:]
    version = int.from_bytes(body[-VERSION_BYTES:], "little")
    if (
        not body.startswith(MARK)
        or not 1 <= version <= VERSION
        or xxh3_64_intdigest(body).to_bytes(CHECKSUM_BYTES, "little") != checksum
    ):
        raise ReplyError(b"ERR DUMP payload version or checksum are wrong")
    scratch = Scratch(engine, now_us)
    try:
        for request in _requests(body[len(MARK) : -VERSION_BYTES]):
            if request[0] not in MAKERS or engine.replay(scratch, [request], 0)[1]:
                raise bad_format()
    except (Damage, Unfinished, ReplyError):
        raise bad_format() from None
    value = scratch.db.values.get(PLACEHOLDER)
    if value is None or len(scratch.db) > 1:
        raise bad_format()
    return value


def _requests(body: bytes) -> Iterator[list[bytes]]:
    at = 0
    while at < len(body):
        request, at = next_request(body, at)
        if not request:
            raise bad_format()
        yield request


def bad_format() -> ReplyError:
    return ReplyError(b"ERR Bad data format")


class Scratch(Context):
    """A request's context in an empty database of its own: nothing is logged, no events are sent."""

    __slots__ = ()

    def __init__(self, engine: EngineState, now_us: int) -> None:
        session = Session(0)
        session.privileged = True
        super().__init__(engine, session)
        self.effects = Effects(None, Dialect())
        self.db_index = -1
        self.db = Database()
        self.now_us = now_us
        self.now_ms = now_us // 1000
        self.waits = False

    def read(self, key: bytes) -> Value | None:
        """The value of a key, without counting a hit or a miss."""
        return self.value(key)

    def event(self, kind: str, name: bytes, key: bytes) -> None:
        """Sends nothing."""
