"""Floating-point numbers as words, read and written as Redis does it (Redis 8.6.3).

Scores are doubles. INCRBYFLOAT, HINCRBYFLOAT and timeouts in seconds are reckoned in 80-bit long doubles: whole
numbers times powers of two, rounded to 64 bits after each step.
"""

from __future__ import annotations

import re
from math import copysign, inf, isinf
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from penstock.engine import shortest_double
from penstock.errors import ReplyError
from penstock.native.build import IS_COMPILED
from penstock.native.digits import number_at

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

SMALL_WHOLE: Final = [b"%d" % number for number in range(1024)]
EXACT: Final = 2.0**62  # whole numbers up to this are written with all their digits
PLAIN_ZEROS: Final = 7  # noughts that may stand behind the digits, or between them and the point, before an e is better
NOT_A_FLOAT: Final = b"ERR value is not a valid float"

PRECISION: Final = 64  # bits
LEAST_EXPONENT: Final = -16445  # of the lowest bit
MOST_BITS: Final = 16384  # of a whole number
ZERO: Final = ord("0")
POINT: Final = ord(".")
MINUS: Final = ord("-")
MOST_WHOLE_DIGITS: Final = 16  # a whole number of fewer digits is a double, and is read as an int, uncompiled
TOO_LONG: Final = 5120  # bytes of a word
FAR: Final = 5  # digits; a longer exponent is out of range whatever stands before it
DECIMALS: Final = 17  # behind the point
ONE_WITH_DECIMALS: Final = 10**DECIMALS
_TENS: Final = [10**digits for digits in range(19)]
_FIVES: Final = [5**digits for digits in range(19)]
MOST_UNITS: Final = 4 * 10**18  # two of them are an i64
SMALL: Final = 40  # see `exact_sum`
MOST_DIGITS: Final = 18  # of a word, and a point
FEW_DIGITS: Final = 4000  # that `int` and `str` take
MOST_PRINTED: Final = 10**FEW_DIGITS

_DECIMAL: Final = re.compile(rb"[+-]?(?:([0-9]+)\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?")
_HEXADECIMAL: Final = re.compile(
    rb"[+-]?0[xX](?:([0-9a-fA-F]+)\.?([0-9a-fA-F]*)|\.([0-9a-fA-F]+))(?:[pP]([+-]?[0-9]+))?"
)
_OF_NOUGHT: Final = b"+-.0"  # what a decimal 0 is written with
_USUAL_ENDS: Final = {b"-inf": -inf, b"+inf": inf, b"inf": inf}  # of ranges
INFINITE: Final = re.compile(rb"([+-]?)inf(?:inity)?", re.IGNORECASE)


def float_word(word: bytes, text: bytes = NOT_A_FLOAT) -> float:
    """A double: decimal, hexadecimal or infinite. Refused with `text` if it is none, NaN, or beyond a double's range.

    >>> float_word(b"-1.5e3"), float_word(b"0x10"), float_word(b"inf")
    (-1500.0, 16.0, inf)
    """
    number = decimal(word)
    if number is None:
        number = _hexadecimal(word)
    elif is_out_of_range(word, number):
        number = None
    if number is None:
        raise ReplyError(text)
    return number


def decimal(word: bytes) -> float | None:
    """A decimal number or an infinite one, None for neither; what is too large is infinite, what is too small 0."""
    size = len(word)
    if IS_COMPILED:
        start = 1 if size and word[0] == MINUS else 0
        whole, stop = number_at(word, start, size)
        if whole >= 0 and stop == size:
            return -float(whole) if start else float(whole)
        if whole >= 0 and word[stop] == POINT:
            _, stop = number_at(word, stop + 1, size)
            if stop == size and word[size - 1] != POINT:
                return float(word)
    elif size < MOST_WHOLE_DIGITS and word.isdigit():
        return float(int(word))
    infinite = _USUAL_ENDS.get(word)
    if infinite is not None:
        return infinite
    if _DECIMAL.fullmatch(word) is not None:
        return float(word)
    found = INFINITE.fullmatch(word)
    return None if found is None else (-inf if found[1] == b"-" else inf)


def is_out_of_range(word: bytes, number: float) -> bool:
    """Whether a decimal word means a finite number other than 0 that a double cannot come near to."""
    if number and not isinf(number):
        return False
    if not word.strip(_OF_NOUGHT) or word in _USUAL_ENDS:  # most of those
        return False
    parts = _DECIMAL.fullmatch(word)
    return parts is not None and (bool(number) or not _is_nought(parts))


def _is_nought(parts: re.Match[bytes]) -> bool:
    return not any(part and part.strip(b"0") for part in parts.groups()[:3])


def _hexadecimal(word: bytes) -> float | None:
    parts = _HEXADECIMAL.fullmatch(word)
    if parts is None:
        return None
    try:
        number = float.fromhex(word.decode())
    except OverflowError:
        return None
    return number if number or _is_nought(parts) else None


def score_text(number: float) -> bytes:
    """A double as Redis answers it, in RESP2 and RESP3: whole numbers in full, others in the fewest digits.

    >>> score_text(3.0), score_text(0.1), score_text(1e21), score_text(-inf)
    (b'3', b'0.1', b'1e+21', b'-inf')
    """
    if -EXACT <= number <= EXACT:
        whole = int(number)
        if number == float(whole):
            if 0 < whole < len(SMALL_WHOLE):
                return SMALL_WHOLE[whole]
            return b"%d" % whole if whole or copysign(1.0, number) > 0 else b"-0"
    if isinf(number):
        return b"inf" if number > 0 else b"-inf"
    if number != number:
        return b"nan"
    made, power = shortest_double.digits(abs(number))
    text = _laid_out(str(made), power)
    return (f"-{text}" if number < 0 else text).encode()


def _laid_out(digits: str, power: int) -> str:
    """Digits times a power of ten, plain unless that takes many noughts."""
    exponent = power + len(digits) - 1  # of the first digit
    if power >= 0 and exponent < len(digits) + PLAIN_ZEROS:
        return digits + "0" * power
    if power < 0 and (power > -PLAIN_ZEROS or -4 < exponent < 4):
        if exponent < 0:
            return "0." + "0" * (-exponent - 1) + digits
        return f"{digits[:power]}.{digits[power:]}"
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{exponent:+d}"


def double_text(number: float) -> bytes:
    """The shortest text that is read as the same number; whole numbers without a point."""
    text = repr(number)
    return (text[:-2] if text.endswith(".0") else text).encode()


# -- long doubles ----------------------------------------------------------------------------------------------------


class LongDouble:
    """A finite number that 80 bits can hold: made * 2**exponent."""

    __slots__ = ("exponent", "made")

    def __init__(self, made: int, exponent: int) -> None:
        self.made = made
        self.exponent = exponent

    def __lt__(self, other: LongDouble) -> bool:
        exponent = min(self.exponent, other.exponent)
        return self._in_units(exponent) < other._in_units(exponent)

    def times(self, factor: int) -> LongDouble | None:
        """The product as the machine multiplies; None where it is infinite."""
        return _rounded_units(self.made * factor, self.exponent)

    def trunc(self) -> int:
        """Without its decimals."""
        whole = self._above() // self._below()
        return -whole if self.made < 0 else whole

    def ceil(self) -> int:
        """The least whole number that is not below it."""
        return self.trunc() + (self.made > 0 and not self.is_whole())

    def is_whole(self) -> bool:
        return not self._above() % self._below()

    def _above(self) -> int:
        """Of the fraction that its absolute value is, the part above the line."""
        return abs(self.made) << max(self.exponent, 0)

    def _below(self) -> int:
        return 1 << max(-self.exponent, 0)

    def _in_units(self, exponent: int) -> int:
        """How many times 2**exponent it is, for an exponent that is not above its own."""
        return self.made << (self.exponent - exponent)


def long_double(word: bytes, text: bytes = NOT_A_FLOAT) -> LongDouble | None:
    """A number as `float_word` reads it, rounded to a long double; None where it is infinite."""
    exact = None if len(word) >= TOO_LONG else _exact(word)
    if exact is not None:
        above, below = exact
        number = rounded(above, below)
        if number is not None and (number.made or not above):
            return number
    elif INFINITE.fullmatch(word) is not None:
        return None
    raise ReplyError(text)


def _exact(word: bytes) -> tuple[int, int] | None:
    """The fraction that a word means; None for an infinite one, one far out of range, and none at all."""
    if IS_COMPILED:
        plain = plain_decimal(word)
        if plain is not None:
            return plain
    parts, base, power_base = _DECIMAL.fullmatch(word), 10, 10
    if parts is None:
        parts, base, power_base = _HEXADECIMAL.fullmatch(word), 16, 2
        if parts is None:
            return None
    if _is_nought(parts):
        return 0, 1
    if len((parts[4] or b"").lstrip(b"+-0")) > FAR:
        return None
    decimals = parts[2] or parts[3] or b""
    digits = (parts[1] or b"") + decimals
    above = int(digits, base) if base == 16 or len(digits) < FEW_DIGITS else _int_of_many(digits)
    if word.startswith(b"-"):
        above = -above
    power = int(parts[4] or b"0") - len(decimals) * (1 if base == 10 else 4)
    factor: int = power_base ** abs(power)
    return (above * factor, 1) if power >= 0 else (above, factor)


def plain_decimal(word: bytes) -> tuple[int, int] | None:
    """As `_exact`, of a word of at most 18 digits before the point and behind it; None for one of another form."""
    size = len(word)
    start = 1 if size and word[0] == MINUS else 0
    whole, stop = number_at(word, start, size)
    above: int = whole
    below = 1
    if above >= 0 and stop < size:
        if word[stop] != POINT:
            return None
        behind = stop + 1
        decimals, stop = number_at(word, behind, size)
        if decimals < 0 or stop < size:
            return None
        below = _TENS[stop - behind]
        above = above * below + decimals
    if above <= 0:
        return None if above < 0 else (0, 1)
    return (-above if start else above, below)


def rounded(number: int, below: int) -> LongDouble | None:
    """The long double nearest to a fraction, of two equally near ones the even one; None beyond them all."""
    above = abs(number)
    size = above.bit_length() - below.bit_length()
    if above >= below << size if size >= 0 else above << -size >= below:
        size += 1
    exponent = max(size - PRECISION, LEAST_EXPONENT)
    if exponent >= 0:
        below <<= exponent
    else:
        above <<= -exponent
    made = _nearest(above, below)
    if made.bit_length() + exponent > MOST_BITS:
        return None
    return LongDouble(-made if number < 0 else made, exponent)


def _nearest(above: int, below: int) -> int:
    """The whole number nearest to a fraction that is not negative, of two equally near ones the even one."""
    whole, rest = divmod(above, below)
    return whole + (2 * rest > below or (2 * rest == below and whole & 1 == 1))


def _rounded_units(count: int, exponent: int) -> LongDouble | None:
    """So many times 2**exponent, rounded."""
    return rounded(count << exponent, 1) if exponent >= 0 else rounded(count, 1 << -exponent)


def long_double_sum(one: LongDouble | None, other: LongDouble | None) -> LongDouble | None:
    """The sum as the machine adds; None where it is infinite or no number."""
    if one is None or other is None:
        return None
    exponent = min(one.exponent, other.exponent)
    return _rounded_units(one._in_units(exponent) + other._in_units(exponent), exponent)


def long_double_difference(one: LongDouble, other: LongDouble) -> LongDouble | None:
    """As `long_double_sum`."""
    return long_double_sum(one, LongDouble(-other.made, other.exponent))


def _int_of_many(digits: bytes) -> int:
    """The number that more digits make than `int` reads."""
    from decimal import Decimal  # imported late: hardly any client sends so many

    return int(Decimal(digits.decode()))


def _text_of_large(number: int) -> str:
    """The digits of a number that has more than `str` writes."""
    from decimal import Decimal  # imported late, likewise

    return str(Decimal(number))


def long_double_text(number: LongDouble) -> bytes:
    """With at most 17 decimals and no nought behind them, as INCRBYFLOAT and HINCRBYFLOAT answer and store it.

    >>> long_double_text(LongDouble(1, -2)), long_double_text(LongDouble(3, 0))
    (b'0.25', b'3')
    """
    units = _nearest(number._above() * ONE_WITH_DECIMALS, number._below())
    digits = str(units) if units < MOST_PRINTED else _text_of_large(units)
    digits = digits.rjust(DECIMALS + 1, "0")
    text = f"{digits[:-DECIMALS]}.{digits[-DECIMALS:]}".rstrip("0").rstrip(".")
    return (f"-{text}" if number.made < 0 and text != "0" else text).encode()


# -- sums of decimals ------------------------------------------------------------------------------------------------


def sum_text(old: bytes, increment: bytes, text: bytes = NOT_A_FLOAT) -> bytes:
    """The text of the sum of two words as long doubles.

    ReplyError where one of them is none (`text`, if that is `old`), or the sum is infinite.
    """
    found = exact_sum(old, increment)
    if found is None:
        total = long_double_sum(long_double(old, text), long_double(increment))
        if total is None:
            raise ReplyError(b"ERR increment would produce NaN or Infinity")
        found = long_double_text(total)
    return found


def exact_sum(one: bytes, other: bytes) -> bytes | None:
    """The text of the sum of two words as long doubles, where it is that of the decimals; None where it may not be.

    A long double is within 2**-64 of its decimal, relatively. If the two are together no larger than 40, what rounding
    adds to both and to the sum is less than 80 * 2**-64: too little to be seen in 17 decimals. Halves, quarters and the
    like are not rounded, nor are whole numbers. O(digits).

    >>> exact_sum(b"10.5", b"0.1"), exact_sum(b"1000.5", b"1"), exact_sum(b"1000.1", b"1")
    (b'10.6', b'1001.5', None)
    """
    units, decimals = _units_of(one)
    other_units, other_decimals = _units_of(other)
    if decimals < 0 or other_decimals < 0:
        return None
    if decimals < other_decimals:
        units, decimals = _widened(units, decimals, other_decimals)
    elif other_decimals < decimals:
        other_units, other_decimals = _widened(other_units, other_decimals, decimals)
    if decimals != other_decimals or decimals > DECIMALS:
        return None
    unit: i64 = _TENS[decimals]
    if _size(units) + _size(other_units) > SMALL * unit:
        five: i64 = _FIVES[decimals]
        if units % five or other_units % five:
            return None
    return _units_text(units + other_units, decimals)


def is_plain(word: bytes) -> bool:
    """Whether it is a decimal of at most 18 digits, without an exponent: `exact_sum` may take it."""
    _, decimals = _units_of(word)
    return decimals >= 0


def _units_of(word: bytes) -> tuple[i64, i64]:
    """A plain decimal of at most 18 digits, as so many times the unit of its last decimal, and how many it has.

    (0, -1) for a word of another form.
    """
    if not IS_COMPILED:
        return _units_by_parts(word)
    size: i64 = len(word)
    start: i64 = 0
    if size and word[0] == MINUS:
        start = 1
    units, stop = number_at(word, start, size)
    decimals: i64 = 0
    if units >= 0 and stop < size and word[stop] == POINT:
        behind: i64 = stop + 1
        rest, stop = number_at(word, behind, size)
        decimals = stop - behind
        if rest < 0 or behind - start + decimals > MOST_DIGITS + 1:
            return 0, -1
        unit: i64 = _TENS[decimals]
        units = units * unit + rest
    if units < 0 or stop < size:
        return 0, -1
    if start:
        units = -units
    return units, decimals


def _units_by_parts(word: bytes) -> tuple[int, int]:
    """As `_units_of`, which is slower uncompiled."""
    whole, point, rest = word.partition(b".")
    digits = whole[1:] if whole.startswith(b"-") else whole
    if not digits.isdigit() or (point and not rest.isdigit()) or len(digits) + len(rest) > MOST_DIGITS:
        return 0, -1
    return int(whole + rest), len(rest)


def _widened(units: i64, decimals: i64, wanted: i64) -> tuple[i64, i64]:
    """The same number with more decimals; unchanged where it is too large."""
    factor: i64 = _TENS[wanted - decimals]
    most = MOST_UNITS // factor
    if units < -most or units > most:
        return units, decimals
    return units * factor, wanted


def _size(units: i64) -> i64:
    """Compiled, `abs` makes an object of an i64."""
    if units < 0:
        return -units
    return units


def _units_text(units: i64, decimals: i64) -> bytes:
    """So many units of the last of some decimals, without noughts behind the last digit.

    >>> _units_text(-1050, 2), _units_text(5, 2), _units_text(0, 2)
    (b'-10.5', b'0.05', b'0')
    """
    written = BytesWriter()
    if units < 0:
        written.append(MINUS)
        units = -units
    while decimals > 0 and units % 10 == 0:
        units //= 10
        decimals -= 1
    place: i64 = decimals  # of the first digit
    above: i64 = _TENS[place + 1]
    while units >= above:
        place += 1
        if place == MOST_DIGITS:
            break
        above = _TENS[place + 1]
    while place >= 0:
        if place == decimals - 1:
            written.append(POINT)
        unit: i64 = _TENS[place]
        digit = units // unit
        letter: int = ZERO + digit  # compiled, what BytesWriter takes
        written.append(letter)
        units -= digit * unit
        place -= 1
    return written.getvalue()
