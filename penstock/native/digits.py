"""Reads decimal numbers digit by digit, for the compiled build: a byte costs less than an object there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

NONE: Final = -1  # instead of a number
MOST_DIGITS: Final = 18  # numbers with more digits may not fit in a signed 64-bit integer
_ZERO: Final = 48
_DASH: Final = 45


def number_at(text: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """The number in the digits from an offset on, and the offset behind them. (NONE, at) for none, or more than 18."""
    start: i64 = at
    number: i64 = 0
    while at < end:
        digit: i64 = text[at]
        digit -= _ZERO
        if digit < 0 or digit > 9:
            break
        number = number * 10 + digit
        at += 1
    if at == start or at - start > MOST_DIGITS:
        return NONE, at
    return number, at


def integer_of(text: bytes) -> tuple[i64, bool]:
    """The integer of at most 18 digits with this as its only text, and whether it is one. O(bytes)."""
    size: i64 = len(text)
    start: i64 = 0
    if size > 1 and text[0] == _DASH:
        start = 1
    number, stop = number_at(text, start, size)
    if number < 0 or stop < size or (size > 1 and text[start] == _ZERO):
        return 0, False
    if start:
        number = -number
    return number, True
