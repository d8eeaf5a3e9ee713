"""Columns: arrays of integers, and how long two runs of ids in columns are equal."""

from array import array
from typing import Final

_QUAD: Final = array("Q", (0,))
_WORD: Final = array("I", (0,))


def repeated(number: int, length: int) -> "array[int]":
    """A column of `length` equal 64-bit numbers. Repeating a copied array is faster than building one from a tuple."""
    column = _QUAD[:]
    column[0] = number
    return column * length


def owner_column(number: int, length: int) -> "array[int]":
    """As `repeated`, with 32-bit numbers: for the owner column of a pending block."""
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
    max_length: int,
) -> int:
    """How many ids are equal from `at` and `other_at` on, `max_length` at most. The first ids must be equal.

    Compares slices: first the whole length; if that differs, slices that double in length up to the first difference,
    then slices that halve until it is found. O(max_length).
    """
    if (
        seq[at : at + max_length] == other_seq[other_at : other_at + max_length]
        and ms[at : at + max_length] == other_ms[other_at : other_at + max_length]
    ):
        return max_length
    known = step = 1
    while known < max_length:
        end = min(known + step, max_length)
        if (
            seq[at + known : at + end] == other_seq[other_at + known : other_at + end]
            and ms[at + known : at + end] == other_ms[other_at + known : other_at + end]
        ):
            known = end
            step *= 2
        else:
            max_length = end - 1
            step = max((max_length - known) // 2, 1)
    return known
