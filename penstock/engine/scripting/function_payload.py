"""FUNCTION DUMP's payload: the same as a real Redis makes and takes (7.0 and later).

Each library is the byte 245 and its code as a string of Redis's snapshot format; a version and a checksum follow.
"""

from typing import Final

from penstock.errors import ReplyError

LIBRARY: Final = 245
VERSION: Final = 10  # of Redis 7.0, which every later one takes
NEWEST: Final = 13
FOOTER_BYTES: Final = 10
POLYNOMIAL: Final = 0x95AC9329AC4BC9B5  # Jones, reflected
WRONG: Final = b"ERR DUMP payload version or checksum are wrong"
DAMAGED: Final = b"ERR failed loading functions"


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        code = byte
        for _ in range(8):
            code = code >> 1 ^ (POLYNOMIAL if code & 1 else 0)
        table.append(code)
    return tuple(table)


TABLE: Final = _table()


def checksum(text: bytes) -> int:
    """CRC-64 as Redis has it.

    >>> hex(checksum(b"123456789"))
    '0xe9c6d914c4b8d9ca'
    """
    code = 0
    for byte in text:
        code = TABLE[(code ^ byte) & 0xFF] ^ code >> 8
    return code


def written(codes: list[bytes]) -> bytes:
    """Libraries as one payload."""
    body = b"".join([bytes((LIBRARY,)) + _length(len(code)) + code for code in codes])
    body += VERSION.to_bytes(2, "little")
    return body + checksum(body).to_bytes(8, "little")


def _length(count: int) -> bytes:
    if count < 1 << 6:
        return bytes((count,))
    if count < 1 << 14:
        return (count | 1 << 14).to_bytes(2, "big")
    return b"\x80" + count.to_bytes(4, "big")


def read(payload: bytes) -> list[bytes]:
    """The libraries' codes in a payload."""
    body = payload[:-8]
    if len(payload) < FOOTER_BYTES or int.from_bytes(body[-2:], "little") > NEWEST:
        raise ReplyError(WRONG)
    if checksum(body) != int.from_bytes(payload[-8:], "little"):
        raise ReplyError(WRONG)
    codes, at, end = [], 0, len(body) - 2
    while at < end:
        if body[at] != LIBRARY:
            raise ReplyError(b"ERR given type is not a function")
        code, at = _string(body[:end], at + 1)
        codes.append(code)
    return codes


def _string(body: bytes, at: int) -> tuple[bytes, int]:
    size, at, is_compressed = _size(body, at)
    if not is_compressed:
        text = body[at : at + size]
        if len(text) < size:
            raise ReplyError(DAMAGED)
        return text, at + size
    packed, (length, at, _) = size, _size(body, at)
    text = _expanded(body[at : at + packed])
    if len(text) != length:
        raise ReplyError(DAMAGED)
    return text, at + packed


def _size(body: bytes, at: int) -> tuple[int, int, bool]:
    """A length, where it ends, and whether it is that of a compressed string."""
    if at >= len(body):
        raise ReplyError(DAMAGED)
    first = body[at]
    kind = first >> 6
    if kind == 0:
        return first & 0x3F, at + 1, False
    if kind == 1:
        return int.from_bytes(body[at : at + 2], "big") & 0x3FFF, at + 2, False
    if first in (0x80, 0x81):
        width = 4 if first == 0x80 else 8
        return int.from_bytes(body[at + 1 : at + 1 + width], "big"), at + 1 + width, False
    if first == 0xC3:
        size, at, _ = _size(body, at + 1)
        return size, at, True
    raise ReplyError(DAMAGED)


def _expanded(packed: bytes) -> bytes:
    """What LZF made smaller."""
    out = bytearray()
    at = 0
    try:
        while at < len(packed):
            control = packed[at]
            at += 1
            if control < 32:
                out += packed[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += packed[at]
                at += 1
            start = len(out) - ((control & 0x1F) << 8 | packed[at]) - 1
            at += 1
            if start < 0:
                raise ReplyError(DAMAGED)
            for place in range(start, start + length + 2):
                out.append(out[place])
    except IndexError:
        raise ReplyError(DAMAGED) from None
    return bytes(out)
