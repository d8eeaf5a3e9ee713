"""Numbers with two and with six decimals, as INFO has them: what `format` says, at a quarter of what it takes.

The number is scaled to an integer. Scaling rounds, by less than a thousandth of one below MOST: where the integer is
no closer to the next one's half than that, it is the one that `format` finds. `format` says the others.
"""

from typing import Final

MOST: Final = 1e12  # a scaled number: below 2 ** 40, so its last bit is worth less than 2 ** -12
CLEAR: Final = 0.499  # an integer that is so close is the nearest one, scaled exactly or not
_TWO_DIGITS: Final = [f"{number:02d}" for number in range(100)]
_THREE_DIGITS: Final = [f"{number:03d}" for number in range(1000)]


def two_decimals(number: float) -> str:
    """A number that is not -0.0, as format(number, ".2f").

    >>> two_decimals(2.345), two_decimals(0.125)
    ('2.35', '0.12')
    """
    nearest = _nearest(number * 100.0)
    return format(number, ".2f") if nearest < 0 else f"{nearest // 100}.{_TWO_DIGITS[nearest % 100]}"


def six_decimals(number: float) -> str:
    """A number that is not -0.0, as format(number, ".6f")."""
    nearest = _nearest(number * 1_000_000.0)
    if nearest < 0:
        return format(number, ".6f")
    rest = nearest % 1_000_000
    return f"{nearest // 1_000_000}.{_THREE_DIGITS[rest // 1000]}{_THREE_DIGITS[rest % 1000]}"


def _nearest(scaled: float) -> int:
    """The integer that `format` finds for a scaled number; -1 where it is not sure."""
    if 0.0 <= scaled < MOST:
        nearest = int(scaled + 0.5)
        if -CLEAR < scaled - nearest < CLEAR:
            return nearest
    return -1
