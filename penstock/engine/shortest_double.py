"""The digits in which a double is written: as few as give it back when read, by Grisu2.

Redis writes doubles by Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with
Integers", 2010): 64-bit arithmetic, whose error is allowed for. About one double in five hundred therefore gets a
digit more than it needs, or another last digit than Python's repr gives it. Here each step has the same error.
"""

import struct
from typing import Final

WORD: Final = 64  # bits of the paper's numbers, f * 2^e
FRACTION: Final = 52  # bits of a double behind its hidden one
BIAS: Final = 1023 + FRACTION
LOWEST, HIGHEST, STEP = -348, 340, 8  # decimal exponents of the powers to multiply with
NEAREST, FARTHEST = -60, -32  # binary exponents that a product may have
BITS_A_DIGIT: Final = 3.321928094887362  # log2(10)

_DOUBLE: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<Q")


def _power(exponent: int) -> tuple[int, int]:
    """10^exponent as f * 2^e, f of 64 bits and rounded to the nearest."""
    if exponent >= 0:
        whole = 10**exponent
        shift = whole.bit_length() - WORD
        if shift <= 0:
            return whole << -shift, shift
        return (whole + (1 << (shift - 1))) >> shift, shift
    divisor = 10**-exponent
    shift = divisor.bit_length() + WORD - 1
    return ((1 << (shift + 1)) // divisor + 1) >> 1, -shift


_POWERS: Final = tuple(_power(exponent) for exponent in range(LOWEST, HIGHEST + 1, STEP))


def digits(number: float) -> tuple[int, int]:
    """The digits of a finite number above 0 as an integer, and the power of ten to multiply it with.

    >>> digits(0.25)
    (25, -2)
    """
    bits: int = _BITS.unpack(_DOUBLE.pack(number))[0]
    fraction = bits & ((1 << FRACTION) - 1)
    exponent = bits >> FRACTION
    hidden = 1 << FRACTION
    if exponent:
        fraction |= hidden
        exponent -= BIAS
    else:
        exponent = 1 - BIAS
    # The number and the two ends of what is read as it, each with its highest bit at the top of the word.
    shift = WORD - fraction.bit_length()
    own = fraction << shift
    upper = own + (1 << (shift - 1))
    lower = own - (1 << (shift - 2 if fraction == hidden else shift - 1))
    exponent -= shift
    power, power_exponent, decimal = _fitting_power(exponent)
    own = _product(own, power)
    upper = _product(upper, power) - 1
    lower = _product(lower, power) + 1
    return _generated(own, upper, upper - lower, -(exponent + power_exponent + WORD), -decimal, _last_power(number))


def _fitting_power(exponent: int) -> tuple[int, int, int]:
    """A power of ten, f, e and its decimal exponent, whose product with f * 2^exponent has few enough bits."""
    guess = int(-(exponent + len(_POWERS)) / BITS_A_DIGIT)
    at = (guess - LOWEST) // STEP
    while True:
        power, power_exponent = _POWERS[at]
        reached = exponent + power_exponent + WORD
        if reached < NEAREST:
            at += 1
        elif reached > FARTHEST:
            at -= 1
        else:
            return power, power_exponent, LOWEST + at * STEP


def _product(one: int, other: int) -> int:
    """The upper word of a product, rounded."""
    return (one * other + (1 << (WORD - 1))) >> WORD


def _generated(own: int, upper: int, breadth: int, point: int, decimal: int, power: int) -> tuple[int, int]:
    """The fewest digits of a number between upper - breadth and upper, as near to `own` as they can be.

    All are fixed-point numbers with `point` bits behind the point, to be multiplied with 10^decimal. `power` is a
    power of ten that the last digit does not exceed.
    """
    beyond = upper - own
    power -= decimal
    while power >= 0:
        unit = 10**power << point
        made, above = divmod(upper, unit)
        if above <= breadth:
            return _nearest(made, breadth, above, unit, beyond), decimal + power
        power -= 1
    one = 1 << point
    while True:
        scale = 10**-power
        made, above = divmod(upper * scale, one)
        if above < breadth * scale:
            return _nearest(made, breadth * scale, above, one, beyond * scale), decimal + power
        power -= 1


def _last_power(number: float) -> int:
    """The power of ten of the last digit that Python writes: with exact arithmetic, no fewer digits do."""
    mantissa, _, exponent = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction.strip("0"):
        return int(exponent or 0) - len(fraction)
    return int(exponent or 0) + len(whole) - len(whole.rstrip("0"))


def _nearest(made: int, breadth: int, above: int, unit: int, beyond: int) -> int:
    """Lower the last digit while that brings the number, `above` below the upper end, nearer to `beyond` below it."""
    while (
        above < beyond and breadth - above >= unit and (above + unit < beyond or beyond - above > above + unit - beyond)
    ):
        made -= 1
        above += unit
    return made
