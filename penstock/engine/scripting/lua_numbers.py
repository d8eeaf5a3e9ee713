"""Functions that Lua lacks for its libraries: numbers in binary, numbers as texts, Redis's chance."""

import struct
from math import copysign, isfinite, isinf, isnan
from typing import Final

from penstock.engine import numbers

WHOLE: Final = 2.0**62  # whole numbers below are written with all their digits
LEAST: Final = -(2**63)
LARGEST_FLOAT: Final = 3.4028235677973366e38
MULTIPLIER: Final = 0x5DEECE66D
MASK_48: Final = (1 << 48) - 1
LARGEST_DRAW: Final = 2**31 - 1


class Chance:
    """The 48-bit congruential generator behind math.random, the same sequence as Redis's after the same seed."""

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state = 0x330E

    def seed(self, number: float) -> None:
        self._state = ((int(number) & 0xFFFFFFFF) << 16 | 0x330E) & MASK_48 if isfinite(number) else 0x330E

    def random(self) -> float:
        """From 0 to below 1."""
        self._state = (self._state * MULTIPLIER + 0xB) & MASK_48
        return (self._state >> 17) % LARGEST_DRAW / LARGEST_DRAW


def word(number: int | float) -> bytes:
    """A number as an argument of redis.call. lupa makes an int of a whole one."""
    if isinstance(number, int) and -WHOLE < number < WHOLE:
        return numbers.SMALL_WHOLE[number] if 0 <= number < len(numbers.SMALL_WHOLE) else b"%d" % number
    if isnan(number):
        return b"-nan" if copysign(1.0, number) < 0 else b"nan"
    if isinf(number):
        return b"-inf" if number < 0 else b"inf"
    if number == int(number) and abs(number) < WHOLE:
        return b"%d" % int(number)
    return numbers.score_text(float(number))


def whole(number: float) -> bytes:
    """A number as an integer reply: cut off, and the least integer where it does not fit (a C cast)."""
    if isfinite(number) and LEAST <= number < 2.0**63:
        return b"%d" % int(number)
    return b"%d" % LEAST


def unsigned_text(spec: bytes, number: float) -> bytes:
    """A number as string.format writes it for `%u`: 64 bits without a sign."""
    return (spec[:-1] + b"d") % (int(number) & 0xFFFFFFFFFFFFFFFF)


# -- cmsgpack ---------------------------------------------------------------------------------------------------------


def message_number(number: float) -> bytes:
    """A number in MessagePack: the shortest integer, else the shorter float that holds it."""
    if isfinite(number) and number == int(number) and LEAST <= number < 2.0**64:
        value = int(number)
        if value >= 0:
            if value < 128:
                return bytes((value,))
            for code, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)):
                if value < 1 << 8 * size and not (size == 8 and value >= 1 << 63):
                    return bytes((code,)) + value.to_bytes(size, "big")
        elif value >= -32:
            return bytes((256 + value,))
        else:
            for code, size in ((0xD0, 1), (0xD1, 2), (0xD2, 4), (0xD3, 8)):
                if value >= -(1 << (8 * size - 1)):
                    return bytes((code,)) + value.to_bytes(size, "big", signed=True)
    if not isfinite(number) or abs(number) < LARGEST_FLOAT:
        short = struct.pack(">f", number)
        if isnan(number) is False and struct.unpack(">f", short)[0] == number:
            return b"\xca" + short
    return b"\xcb" + struct.pack(">d", number)


def message_double(text: bytes) -> float:
    number: float = struct.unpack(">f" if len(text) == 4 else ">d", text)[0]
    return number


def message_integer(text: bytes, signed: bool) -> float:
    """A double, as every number in Lua 5.1. Of eight bytes, also an unsigned one has a sign (Redis 8.6.3)."""
    return float(int.from_bytes(text, "big", signed=signed or len(text) == 8))


# -- struct -----------------------------------------------------------------------------------------------------------


def pack_whole(number: float, size: float, little: bool) -> bytes:
    """The low bytes of a 64-bit integer; what lies beyond is zero (Redis 8.6.3).

    A number too large for 64 bits is 0, one too small, or none, the least (as x86-64 casts it).
    """
    value = int(number) if LEAST <= number < 2.0**64 else 0 if number > 0 else LEAST
    length = int(size)
    text = (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")[:length].ljust(length, b"\0")
    return text if little else text[::-1]


def unpack_whole(text: bytes, little: bool, signed: bool) -> float:
    value = int.from_bytes(text, "little" if little else "big") & 0xFFFFFFFFFFFFFFFF
    width = 8 * len(text)
    if signed and 0 < width <= 64 and value >> (width - 1) & 1:
        value -= 1 << width
    return float(value)


def pack_float(number: float, size: float, little: bool) -> bytes:
    code = ("<" if little else ">") + ("f" if size == 4 else "d")
    if code[1] == "f" and isfinite(number) and abs(number) >= LARGEST_FLOAT:
        number = copysign(float("inf"), number)
    return struct.pack(code, float(number))


def unpack_float(text: bytes, little: bool) -> float:
    number: float = struct.unpack(("<" if little else ">") + ("f" if len(text) == 4 else "d"), text)[0]
    return number
