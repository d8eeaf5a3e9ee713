"""Payloads: what DUMP answers and RESTORE takes (Redis's format), and those of Penstock.

The own ones are the requests that make the value anew at a placeholder key, as a rewritten log has them, framed with
a version and a checksum. Earlier versions answered nothing else; now they are for what no RDB format that is known
holds. A Redis refuses them.
"""

from collections.abc import Iterator
from typing import Final

from xxhash import xxh3_64_intdigest

from penstock.config.settings import Settings
from penstock.engine.aof import rewrite_values
from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.context import Context
from penstock.engine.effects import Effects, pack
from penstock.engine.rdb import rdb_values
from penstock.engine.session import Session
from penstock.errors import ReplyError
from penstock.protocol.log_reader import Damage, Unfinished, next_request
from penstock.storage.keyspace import Database, Value
from penstock.storage.rdb import dump_payload
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.sets import Set

MARK: Final = b"PENSTOCK"  # of an own payload: as a value's type, its first letter is none
VERSION: Final = 1
VERSION_BYTES: Final = 2  # little-endian, like the checksum
CHECKSUM_BYTES: Final = 8
PLACEHOLDER: Final = b"k"

MAKERS: Final = frozenset([
    b"SET", b"BITCONVERT", b"RPUSH", b"SADD", b"SPEXPIREAT", b"ZADD", b"HSET", b"HPEXPIREAT", b"XADD", b"XCFGSET",
    b"XCLAIM", b"XDEL", b"XGROUP", b"XIDMPRECORD", b"XNACK", b"XSETID", b"XTRIM",
])  # fmt: skip  # the commands allowed in a payload: its checksum finds damage, but not forgery


def payload_of(value: Value, settings: Settings) -> bytes:
    """A value in the form of `rdb-compat-version`, or of a later one where it has what only that can hold."""
    if isinstance(value, Bitmap) or (isinstance(value, Set) and value.expires):
        lines = _lines_of(value)
        body = b"".join([MARK, *lines, VERSION.to_bytes(VERSION_BYTES, "little")])
        return body + _checksum(body)
    return dump_payload.payload_of(value, rdb_values.writer_of_payloads(settings, value))


def value_from(payload: bytes, ctx: Context, corrections: list[str]) -> Value:
    """The value of a payload, with nothing shared and no event sent; ReplyError where it is damaged or unknown.

    corrections: gets what was wrong in the value, and was put right.
    """
    if payload.startswith(MARK):
        return _value_from_own(payload, ctx)
    try:
        defaults = rdb_values.stream_defaults(ctx.settings, ctx.form_limits.streams)
        value = dump_payload.value_of(payload, defaults, corrections)
    except dump_payload.WrongFooter:
        raise wrong_footer() from None
    except BadRdb:
        raise bad_format() from None
    rdb_values.fit_to_settings(value, ctx.settings)
    return value


def _lines_of(value: Bitmap | Set) -> Iterator[bytes]:
    """A bitmap as one string: its length, and that of a payload, have the same limit."""
    if isinstance(value, Bitmap):
        yield pack((b"SET", PLACEHOLDER, value.text()))
        yield pack((b"BITCONVERT", PLACEHOLDER))
    else:
        yield from rewrite_values.lines(PLACEHOLDER, value, AofCompat())


def _checksum(body: bytes) -> bytes:
    return xxh3_64_intdigest(body).to_bytes(CHECKSUM_BYTES, "little")


def _value_from_own(payload: bytes, ctx: Context) -> Value:
    """Only requests that make values are run, in a database of their own."""
    body, checksum = payload[:-CHECKSUM_BYTES], payload[-CHECKSUM_BYTES:]
    version = int.from_bytes(body[-VERSION_BYTES:], "little")
    if not 1 <= version <= VERSION or _checksum(body) != checksum:
        raise wrong_footer()
    scratch = Scratch(ctx)
    try:
        for request in _requests(body[len(MARK) : -VERSION_BYTES]):
            if request[0] not in MAKERS or scratch.runner.replay(scratch, [request], 0)[1]:
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


def wrong_footer() -> ReplyError:
    return ReplyError(b"ERR DUMP payload version or checksum are wrong")


def bad_format() -> ReplyError:
    return ReplyError(b"ERR Bad data format")


class Scratch(Context):
    """A request's context in an empty database of its own: nothing is logged, no events are sent."""

    __slots__ = ()

    def __init__(self, ctx: Context) -> None:
        session = Session(0)
        session.privileged = True
        super().__init__(ctx.server, session)
        self.effects = Effects(None, AofCompat())
        self.db_index = -1
        self.db = Database()
        self.now_us = ctx.now_us
        self.now_ms = ctx.now_ms
        self.waits = False

    def read(self, key: bytes) -> Value | None:
        """The value of a key, without counting a hit or a miss."""
        return self.value(key)

    def event(self, kind: str, name: bytes, key: bytes) -> None:
        """Sends nothing."""
