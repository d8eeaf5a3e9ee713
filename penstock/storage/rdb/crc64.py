"""The checksum of RDB files and DUMP payloads: CRC-64 as Redis has it, by the library anycrc (2.3 GB a second)."""

from typing import Final

import anycrc

CHECKSUM_BYTES: Final = 8  # little-endian
NOT_COMPUTED: Final = 0  # written where checksums are turned off

_MODEL: Final = anycrc.Model("CRC64-REDIS")


def checksum(text: bytes, before: int = 0) -> int:
    """The checksum of bytes that follow others with the checksum `before`.

    >>> hex(checksum(b"123456789")), hex(checksum(b"6789", checksum(b"12345")))
    ('0xe9c6d914c4b8d9ca', '0xe9c6d914c4b8d9ca')
    """
    code: int = _MODEL.calc(text, before)
    return code


def footer(code: int) -> bytes:
    """A checksum as it is stored."""
    return code.to_bytes(CHECKSUM_BYTES, "little")
