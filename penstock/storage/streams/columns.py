"""Columns: arrays of one number, and for how long two pairs of columns of ids go alike."""

from array import array
from typing import Final

_QUAD: Final = array("Q", (0,))
_WORD: Final = array("I", (0,))


def repeated(number: int, length: int) -> "array[int]":
    """A number of 64 bits, so often: a copied array is made faster than one from a tuple."""
    column = _QUAD[:]
    column[0] = number
    return column * length


def owner_column(number: int, length: int) -> "array[int]":
    """As `repeated`, of 32 bits: a column of owners."""
    column = _WORD[:]
    column[0] = number
    return column * length


def common_length(
    ms: "array[int]",
    seq: "array[int]",
    at: int,
    other_ms: "array[int]",
    other_seq: "array[int]",
    other_at: int,
    most: int,
) -> int:
    """How many ids from `at` and `other_at` on are the same, `most` at the most; the first ones are.

    Slices are compared: all of it, and if that differs ever longer ones, then ever shorter ones where they differ.
    """
    if (
        seq[at : at + most] == other_seq[other_at : other_at + most]
        and ms[at : at + most] == other_ms[other_at : other_at + most]
    ):
        return most
    known = step = 1
    while known < most:
        end = min(known + step, most)
        if (
            seq[at + known : at + end] == other_seq[other_at + known : other_at + end]
            and ms[at + known : at + end] == other_ms[other_at + known : other_at + end]
        ):
            known = end
            step *= 2
        else:
            most = end - 1
            step = max((most - known) // 2, 1)
    return known
