"""FUNCTION DUMP's payload: the same as a real Redis makes and takes (7.0 and later)."""

from typing import Final

from penstock.errors import ReplyError
from penstock.storage.rdb import dump_payload
from penstock.storage.rdb.errors import BadRdb

VERSION: Final = 10  # of Redis 7.0, which every later one takes


def written(codes: list[bytes]) -> bytes:
    """Libraries as one payload."""
    return dump_payload.payload_of_libraries(codes, VERSION)


def read(payload: bytes) -> list[bytes]:
    """The libraries' codes in a payload."""
    try:
        return dump_payload.libraries_of(payload)
    except dump_payload.WrongFooter:
        raise ReplyError(b"ERR DUMP payload version or checksum are wrong") from None
    except dump_payload.NotAFunction:
        raise ReplyError(b"ERR given type is not a function") from None
    except BadRdb:
        raise ReplyError(b"ERR Failed loading library payload") from None
