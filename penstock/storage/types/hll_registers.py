"""The registers of a HyperLogLog: packed and unpacked, united, and the estimate that they give.

Unpacked registers are 16384 bytes, each from 0 to 63. Packed, register i occupies the bits 6i to 6i + 5, counted from
the lowest bit of the first byte (Redis 8.6.3): four registers in three bytes, `bbaaaaaa ccccbbbb ddddddcc`. All is done
on whole columns of bytes, or on one long number: no loop over registers.
"""

from __future__ import annotations

from math import floor, inf, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

HEADER: Final = 16  # bytes of a value before its registers, or their runs
REGISTERS: Final = 16384
LARGEST: Final = 51  # value that a register takes
PACKED: Final = REGISTERS * 6 // 8  # bytes
ALPHA: Final = 0.721347520444481703680  # 0.5 / ln 2

_LOW_6: Final = bytes(byte & 63 for byte in range(256))
_HIGH_2: Final = bytes(byte >> 6 for byte in range(256))
_LOW_4_ABOVE_2: Final = bytes((byte & 15) << 2 for byte in range(256))
_HIGH_4: Final = bytes(byte >> 4 for byte in range(256))
_LOW_2_ABOVE_4: Final = bytes((byte & 3) << 4 for byte in range(256))
_HIGH_6: Final = bytes(byte >> 2 for byte in range(256))
_TO_BIT_6: Final = bytes((byte & 3) << 6 for byte in range(256))
_TO_BIT_4: Final = bytes((byte & 15) << 4 for byte in range(256))
_TO_BIT_2: Final = bytes((byte & 63) << 2 for byte in range(256))

_ONES: Final = int.from_bytes(b"\x01" * REGISTERS, "little")
_HIGHEST_BITS: Final = _ONES << 7


def unpacked(packed: bytes) -> bytes:
    """One byte a register.  O(n), no loop in Python."""
    first, second, third = packed[0::3], packed[1::3], packed[2::3]
    registers = bytearray(REGISTERS)
    registers[0::4] = first.translate(_LOW_6)
    registers[1::4] = _either(first.translate(_HIGH_2), second.translate(_LOW_4_ABOVE_2))
    registers[2::4] = _either(second.translate(_HIGH_4), third.translate(_LOW_2_ABOVE_4))
    registers[3::4] = third.translate(_HIGH_6)
    return bytes(registers)


def register_at(value: bytes, index: i64) -> int:
    """A register of a value with packed registers from byte HEADER on.  O(1)."""
    bit: i64 = 6 * index
    place: i64 = HEADER + (bit >> 3)
    shift: i64 = bit & 7
    pair: i64 = value[place]
    if shift > 2:  # it spills into the next byte
        spilt: i64 = value[place + 1]
        pair |= spilt << 8
    return pair >> shift & 63


def packed(registers: bytes) -> bytes:
    """Six bits a register.  O(n), no loop in Python."""
    first, second, third, fourth = registers[0::4], registers[1::4], registers[2::4], registers[3::4]
    made = bytearray(PACKED)
    made[0::3] = _either(first, second.translate(_TO_BIT_6))
    made[1::3] = _either(second.translate(_HIGH_6), third.translate(_TO_BIT_4))
    made[2::3] = _either(third.translate(_HIGH_4), fourth.translate(_TO_BIT_2))
    return bytes(made)


def _either(one: bytes, other: bytes) -> bytes:
    """The bits of both, which have none in common and are equally long."""
    return (int.from_bytes(one, "little") | int.from_bytes(other, "little")).to_bytes(len(one), "little")


def largest(one: bytes, other: bytes) -> bytes:
    """The larger of both in each register: the union of what both have counted.

    As one long number: where a byte of `a`, with its highest bit set, less that of `b` keeps the bit, a >= b.
    """
    a, b = int.from_bytes(one, "little"), int.from_bytes(other, "little")
    keeps_a = (((a | _HIGHEST_BITS) - b) & _HIGHEST_BITS) >> 7
    mask = (keeps_a << 8) - keeps_a  # 255 in each byte with a kept bit
    return (b ^ ((a ^ b) & mask)).to_bytes(REGISTERS, "little")


# -- the estimate ----------------------------------------------------------------------------------------------------


def cardinality(registers: bytes) -> int:
    """How many different elements were probably counted, by Ertl's estimator; as Redis 8.6.3 to the last digit."""
    counts = _counts(registers)
    z = REGISTERS * _tau((REGISTERS - counts[LARGEST]) / REGISTERS)
    for value in range(LARGEST - 1, 0, -1):
        z = (z + counts[value]) * 0.5
    z += REGISTERS * _sigma(counts[0] / REGISTERS)
    return floor(ALPHA * REGISTERS * REGISTERS / z + 0.5)


def _counts(registers: bytes) -> list[int]:
    """How many registers have each value. Taken out value by value: five times quicker than `count` of each."""
    counts: list[int] = []
    rest = registers
    for value in range(LARGEST + 1):
        others = rest.translate(None, bytes([value])) if rest else rest
        counts.append(len(rest) - len(others))
        rest = others
    return counts


def _sigma(x: float) -> float:
    """x + the sum of x ** 2 ** k * 2 ** (k - 1), k from 1 on."""
    if x == 1.0:
        return inf
    y, z = 1.0, x
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if z == before:
            return z


def _tau(x: float) -> float:
    """A third of 1 - x - the sum of (1 - x ** 2 ** -k) ** 2 * 2 ** -k, k from 1 on."""
    if x in (0.0, 1.0):
        return 0.0
    y, z = 1.0, 1.0 - x
    while True:
        x = sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
        if z == before:
            return z / 3.0
