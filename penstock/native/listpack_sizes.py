"""How many bytes Redis's listpacks take for texts and integers."""

from collections.abc import Collection
from typing import Final

from penstock.native.build import IS_COMPILED
from penstock.native.digits import MOST_DIGITS, integer_of

LONGEST_INTEGER: Final = 20  # bytes, with a sign
LONGEST_SHORT: Final = 4095  # bytes of the longest element with a two-byte header
_MAX_INT64: Final = 2**63 - 1


def _back_length(payload: int) -> int:
    """Bytes of the trailing length of an element: 7 bits to a byte (limits as observed on Redis 8.6.3)."""
    if payload <= 127:
        return 1
    if payload < 16383:
        return 2
    if payload < 2097151:
        return 3
    return 4 if payload < 268435455 else 5


def integer_size(number: int) -> int:
    """Bytes of an element that is an integer."""
    if 0 <= number <= 127:
        return 2
    if -4096 <= number <= 4095:
        return 3
    if -(1 << 15) <= number < 1 << 15:
        return 4
    if -(1 << 23) <= number < 1 << 23:
        return 5
    return 6 if -(1 << 31) <= number < 1 << 31 else 10


def texts_size(texts: Collection[bytes]) -> int:
    """Total size in bytes of the elements of a listpack."""
    size = 0
    for text in texts:
        size += text_size(text)
    return size


def text_size(text: bytes) -> int:
    """Size in bytes of one element: its length, two bytes, and its surplus."""
    length = len(text)
    return length + 2 if 20 < length < 64 else length + 2 + surplus_of(text)


def surplus_of(text: bytes) -> int:
    """Bytes that an element takes beyond its length and two bytes: more for long texts, usually less for integers.

    A text that is a signed 64-bit integer in canonical form is stored as an integer.
    """
    size = len(text)
    if size <= LONGEST_INTEGER:
        if not size or not (48 <= text[0] <= 57 or text[0] == 45):
            return 0
        if IS_COMPILED and size <= MOST_DIGITS:
            value, is_one = integer_of(text)
            return integer_size(value) - size - 2 if is_one else 0
        digits = text[1:] if text.startswith(b"-") else text
        if not digits.isdigit() or (size > 1 and digits.startswith(b"0")):
            return 0
        number = int(text)
        return integer_size(number) - size - 2 if -_MAX_INT64 - 1 <= number <= _MAX_INT64 else 0
    if size < 64:
        return 0
    if size <= LONGEST_SHORT:
        return 1 if size <= 125 else 2
    payload = size + (2 if size < 4096 else 5)
    return payload + _back_length(payload) - size - 2
