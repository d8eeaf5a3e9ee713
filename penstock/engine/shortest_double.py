"""The digits in which a double is written: as few as give it back when read, by Grisu2.

Redis writes doubles by Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with
Integers", 2010): 64-bit arithmetic, with its error allowed for. About one double in five hundred therefore gets a
digit more than it needs, or another last digit than Python's repr gives it. Here each step has the same error.

Compiled, numbers of 64 bits are machine words, and a product is made of three parts of each. What does not fit, as
numbers so small that they have no hidden bit, is left to the plain way, which is the oracle of the other.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i64_le, write_f64_le

from penstock.native.build import IS_COMPILED

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

WORD: Final = 64  # bits of the paper's numbers, f * 2^e
FRACTION: Final = 52  # bits of a double behind its hidden one
BIAS: Final = 1023 + FRACTION
LOWEST: Final = -348  # decimal exponents of the powers to multiply with
HIGHEST: Final = 340
STEP: Final = 8
NEAREST: Final = -60  # binary exponents that a product may have
FARTHEST: Final = -32
BITS_A_DIGIT: Final = 3.321928094887362  # log2(10)
PART: Final = 22  # bits of a word's two lower parts; the third has 20
LARGEST_BREADTH: Final = 1 << 59  # ten times as much fits into a signed word

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
_PART: Final = (1 << PART) - 1
_HIGH_PARTS: Final = [power >> 2 * PART for power, _ in _POWERS]
_MIDDLE_PARTS: Final = [power >> PART & _PART for power, _ in _POWERS]
_LOW_PARTS: Final = [power & _PART for power, _ in _POWERS]
_EXPONENTS: Final = [exponent for _, exponent in _POWERS]


def digits(number: float) -> tuple[int, int]:
    """The digits of a finite number above 0 as an integer, and the power of ten to multiply it with.

    >>> digits(0.25)
    (25, -2)
    """
    if IS_COMPILED:
        made, last = digits_by_words(number)
        if made:
            return made, last
    return digits_by_numbers(number)


def digits_by_numbers(number: float) -> tuple[int, int]:
    """As `digits`, with numbers of any size."""
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
    """A power of ten, f, e and its decimal exponent; its product with f * 2^exponent has few enough bits."""
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


# -- by machine words ------------------------------------------------------------------------------------------------


def digits_by_words(number: float) -> tuple[i64, i64]:
    """As `digits`, without an object; (0, 0) where a number does not fit into a word."""
    writer = BytesWriter()
    write_f64_le(writer, number)
    bits: i64 = read_i64_le(writer.getvalue(), 0)
    fraction: i64 = bits & ((1 << FRACTION) - 1)
    exponent: i64 = bits >> FRACTION
    if exponent == 0:
        return 0, 0
    exponent -= BIAS + WORD - FRACTION - 1
    at: i64 = int(-float(exponent + len(_POWERS)) / BITS_A_DIGIT)
    at = (at - LOWEST) // STEP
    point: i64 = -(exponent + _EXPONENTS[at] + WORD)
    while not -FARTHEST <= point <= -NEAREST:
        at += 1 if point > -NEAREST else -1
        point = -(exponent + _EXPONENTS[at] + WORD)
    own: i64 = fraction + (1 << FRACTION)
    upper_high, upper_low = _product_by_words(2 * own + 1, WORD - FRACTION - 2, at)
    own_high, own_low = _product_by_words(own, WORD - FRACTION - 1, at)
    if fraction:
        lower_high, lower_low = _product_by_words(2 * own - 1, WORD - FRACTION - 2, at)
    else:
        lower_high, lower_low = _product_by_words(4 * own - 1, WORD - FRACTION - 3, at)
    beyond: i64 = ((upper_high - own_high) << 32) + upper_low - own_low - 1
    breadth: i64 = ((upper_high - lower_high) << 32) + upper_low - lower_low - 2
    if upper_low == 0:  # the upper end is one less than its product
        upper_high -= 1
        upper_low = 1 << 32
    upper_low -= 1
    whole: i64 = upper_high >> (point - 32)
    rest: i64 = ((upper_high - (whole << (point - 32))) << 32) | upper_low
    decimal: i64 = -(LOWEST + at * STEP)
    return _generated_by_words(whole, rest, point, breadth, beyond, decimal)


def _product_by_words(number: i64, shift: i64, at: i64) -> tuple[i64, i64]:
    """The upper word of the product of number << shift and a power, rounded, as its two halves."""
    high: i64 = number >> (2 * PART - shift)
    middle: i64 = (number >> (PART - shift)) & _PART
    low: i64 = (number << shift) & _PART
    power_high: i64 = _HIGH_PARTS[at]
    power_middle: i64 = _MIDDLE_PARTS[at]
    power_low: i64 = _LOW_PARTS[at]
    carried: i64 = ((low * power_low) >> PART) + low * power_middle + middle * power_low
    carried = (carried >> PART) + low * power_high + middle * power_middle + high * power_low
    carried += 1 << (WORD - 1 - 2 * PART)
    carried = (carried >> (WORD - 2 * PART)) + ((middle * power_high + high * power_middle) << (3 * PART - WORD))
    top: i64 = high * power_high  # to be multiplied with 1 << (4 * PART - WORD)
    carried += (top & 0xFF) << (4 * PART - WORD)
    return (top >> 8) + (carried >> 32), carried & 0xFFFFFFFF


def _generated_by_words(whole: i64, rest: i64, point: i64, breadth: i64, beyond: i64, decimal: i64) -> tuple[i64, i64]:
    """As `_generated`: the upper end is `whole`, and behind the point `rest`."""
    if rest <= breadth:  # the last digits of the whole may be noughts
        power: i64 = 0
        while whole % 10 == 0 and whole:
            whole //= 10
            power += 1
        return whole, decimal + power
    last: i64 = decimal
    unit: i64 = 1  # compiled, `1 << point` would be a number of 32 bits
    unit <<= point
    half: i64 = unit >> 1
    while rest >= breadth:
        if breadth > LARGEST_BREADTH:
            return 0, 0
        five: i64 = rest * 5  # ten times the rest may not fit
        whole = whole * 10 + (five >> (point - 1))
        rest = (five & (half - 1)) << 1
        breadth *= 10
        beyond *= 10
        last -= 1
    above: i64 = rest
    while (
        above < beyond and breadth - above >= unit and (above + unit < beyond or beyond - above > above + unit - beyond)
    ):
        whole -= 1
        above += unit
    return whole, last
