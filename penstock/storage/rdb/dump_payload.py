"""The payload of DUMP, FUNCTION DUMP and RESTORE: a value's type and body, the RDB version, a checksum."""

from typing import Final

from penstock.storage.chunks import in_chunks
from penstock.storage.keyspace import Value
from penstock.storage.rdb import crc64, rdb_format, value_reader
from penstock.storage.rdb.crc64 import CHECKSUM_BYTES
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.source import Source
from penstock.storage.rdb.stream_reader import StreamDefaults
from penstock.storage.rdb.string_writer import StringWriter
from penstock.storage.rdb.value_writer import ValueWriter

VERSION_BYTES: Final = 2  # little-endian
FOOTER_BYTES: Final = VERSION_BYTES + CHECKSUM_BYTES
PIECE_BYTES: Final = 1 << 18  # that one call makes the checksum of


class WrongFooter(BadRdb):
    """The payload is of a version that is not known, or its checksum is not that of its bytes."""


def with_footer(body: list[bytes], version: int) -> bytes:
    """The payload of a body in parts, which are copied once: they may have 512 MB, and memory takes longer to find."""
    parts = [*body, version.to_bytes(VERSION_BYTES, "little")]
    code = 0
    for chunk in in_chunks(parts):
        code = crc64.checksum(chunk, code)
    return b"".join([*parts, crc64.footer(code)])


def _checksum_of_first(payload: bytes, size: int) -> int:
    """The checksum of the first `size` bytes, piece by piece: a slice would be a copy of 512 MB."""
    code = 0
    for start in range(0, size, PIECE_BYTES):
        code = crc64.checksum(payload[start : min(start + PIECE_BYTES, size)], code)
    return code


def payload_of(value: Value, writer: ValueWriter) -> bytes:
    """A value as a payload of the writer's version."""
    kind = writer.kind(value)
    return with_footer([bytes((kind,)), *writer.parts(value, kind)], writer.version)


def version_of(payload: bytes) -> int:
    """The RDB version of a payload with a right footer: WrongFooter otherwise.

    A checksum of zeros says that none was computed, and is right (Redis 8.6.3).
    """
    version = int.from_bytes(payload[-FOOTER_BYTES:-CHECKSUM_BYTES], "little")
    if len(payload) < FOOTER_BYTES or (version > rdb_format.NEWEST and version != rdb_format.VALKEY):
        raise WrongFooter("a payload of an unknown version")
    stored = int.from_bytes(payload[-CHECKSUM_BYTES:], "little")
    if stored not in (crc64.NOT_COMPUTED, _checksum_of_first(payload, len(payload) - CHECKSUM_BYTES)):
        raise WrongFooter("a payload with a wrong checksum")
    return version


def value_of(payload: bytes, defaults: StreamDefaults, corrections: list[str]) -> Value:
    """The value of a payload. What follows it, before the footer, is not looked at (Redis 8.6.3).

    corrections: gets what was wrong in the value, and was put right.
    """
    is_valkey = version_of(payload) == rdb_format.VALKEY
    source = Source(payload)  # with its footer: without it, it would be a copy of 512 MB
    kind = source.byte()
    if kind == rdb_format.KEY_META and not is_valkey:
        value_reader.skip_key_meta(source)
        kind = source.byte()
    value = value_reader.read_value(source, kind, is_valkey, defaults)
    if source.left() < FOOTER_BYTES:
        raise BadRdb("it ends too early")
    corrections += source.take_corrections()
    return value


# -- libraries of functions -------------------------------------------------------------------------------------------


def payload_of_libraries(codes: list[bytes], version: int) -> bytes:
    strings = StringWriter(0)
    parts = [bytes((rdb_format.FUNCTION,)) + strings.blob(code) for code in codes]
    return with_footer(parts, version)


class NotAFunction(BadRdb):
    """Something else than a library stands in the payload."""


def libraries_of(payload: bytes) -> list[bytes]:
    """The libraries' code in a payload."""
    version_of(payload)
    source = Source(payload[:-FOOTER_BYTES])
    codes: list[bytes] = []
    while source.left():
        if source.byte() != rdb_format.FUNCTION:
            raise NotAFunction("another record than a library of functions")
        codes.append(source.string())
    return codes
