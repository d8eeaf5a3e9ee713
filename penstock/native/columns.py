"""Columns: arrays of integers, and how long two runs of ids in columns are equal.

In the compiled build, an array's number is an object when it is read. Numbers that are only compared are read from the
column's bytes instead.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le

from penstock.native.build import IS_COMPILED

if TYPE_CHECKING:
    from mypy_extensions import i32, i64  # used by mypyc only; Python does not evaluate the annotations

_IS_BIG: Final[bool] = sys.byteorder == "big"

# The type of columns of 64-bit numbers. CPython stores a number in an array of "L" by half of what "Q" takes.
WIDE: Final[Literal["L", "Q"]] = "L" if array("L").itemsize == 8 else "Q"
_ONE: Final = array(WIDE, (1,))
_NO_OWNER: Final = array("I", (0,))
_MOST_WRITTEN: Final = 2**62 - 1  # in the compiled build, larger numbers are objects
NO_PLACE: Final = -1
_FEW: Final = 4  # places that are cheaper written one by one than as a column
_SINGLES: Final = [array(WIDE, (number,)) for number in range(64)]  # the lowest numbers, each a column of its own
_EMPTY: Final = array(WIDE)


class _Last:
    """The last time and the last owner that were written, each with a column of it alone: the next one often is it.

    The time's column may be empty: then it has been written once. Tuples because of other threads.
    """

    __slots__ = ("owner", "time")

    def __init__(self) -> None:
        self.time: tuple[int, array[int]] = (0, _EMPTY)
        self.owner: tuple[int, array[int]] = (0, _NO_OWNER)


_last: Final = _Last()


def append_both(times: array[int], numbers: array[int], time: int, number: int) -> None:
    """Append a time to one column and a number, as a rule a low one, to another. O(1).

    Compiled, adding a column takes 200 instructions, a call of its method `append` 500 to 600: the number becomes an
    object. Uncompiled, `append` is quicker.
    """
    if IS_COMPILED:
        append_again(times, time)
        append_low(numbers, number)
    else:
        times.append(time)
        numbers.append(number)


def append_again(column: array[int], number: int) -> None:
    """Append a 64-bit number that is often the one of the call before. O(1)."""
    last, kept = _last.time
    if number == last and kept:
        column += kept
        return
    column.append(number)
    _last.time = number, column[-1:] if number == last else _EMPTY


def append_low(column: array[int], number: int) -> None:
    """As `append_again`, for a number that is below 64 as a rule."""
    if number < len(_SINGLES):
        column += _SINGLES[number]
    else:
        column.append(number)


def single(number: int) -> array[int]:
    """A column of one 64-bit number. O(1), quicker than building one from a tuple or a list."""
    column = _ONE[:]
    column[0] = number
    return column


def repeated(number: int, length: int) -> array[int]:
    """A column of `length` equal 64-bit numbers: a time, or a delivery count, which usually is low."""
    if number < len(_SINGLES):
        return _SINGLES[number] * length
    last, kept = _last.time
    if number != last or not kept:
        kept = single(number)
        _last.time = number, kept
    return kept * length


def fill(column: array[int], start: int, stop: int, number: int) -> None:
    """Write a 64-bit number to column[start:stop]. Few places need no other column. O(stop - start)."""
    if stop - start == 1:
        column[start] = number
    elif stop - start <= _FEW:
        for at in range(start, stop):
            column[at] = number
    else:
        column[start:stop] = repeated(number, stop - start)


def owner_column(number: int, length: int) -> array[int]:
    """As `repeated`, with 32-bit numbers: for the owner column of a pending block. 0: no owner."""
    if not number:
        return _NO_OWNER * length
    last, kept = _last.owner
    if number != last:
        kept = _NO_OWNER[:]
        kept[0] = number
        _last.owner = number, kept
    return kept * length


def numbered(first: int, length: int) -> array[int]:
    """A column of first, first + 1, ... O(length)."""
    if not IS_COMPILED or first > _MOST_WRITTEN:
        return array(WIDE, range(first, first + length))
    out = BytesWriter()
    for number in range(first, first + length):  # a number that is written is no object
        write_i64_le(out, number)
    return from_little_endian(WIDE, out.getvalue())


def is_constant(column: array[int]) -> bool:
    """Whether all numbers of a column are equal. O(length), without an object for each number, as `count` makes."""
    raw = column.tobytes()
    return not raw or raw.startswith(raw[len(raw) // len(column) :])  # equal to itself, moved by one number


def from_little_endian(letter: Literal["I", "L", "Q"], numbers: bytes) -> array[int]:
    """Little-endian numbers as a column of 32-bit ("I") or of 64-bit numbers.  O(n)."""
    column = _ONE * 0 if letter == WIDE else _NO_OWNER * 0  # faster than array(letter)
    column.frombytes(numbers)
    if _IS_BIG:
        column.byteswap()
    return column


def offsets_of(parts: list[bytes]) -> array[int]:
    """The offsets of parts in their join, and its size, as a column of 32-bit numbers.  O(n)."""
    if not IS_COMPILED:
        return array("I", accumulate(map(len, parts), initial=0))
    out = BytesWriter()
    size = 0
    write_i32_le(out, size)
    for part in parts:  # no objects here either
        size += len(part)
        write_i32_le(out, size)
    return from_little_endian("I", out.getvalue())


def ends_of(sizes: bytes) -> array[int]:
    """As `offsets_of`, of parts with these sizes: little-endian numbers of four bytes.  O(n)."""
    if not IS_COMPILED:
        return array("I", accumulate(from_little_endian("I", sizes), initial=0))
    out = BytesWriter()
    end: i32 = 0
    at: i64 = 0
    size: i64 = len(sizes)
    write_i32_le(out, end)
    while at < size:
        end += read_i32_le(sizes, at)
        write_i32_le(out, end)
        at += 4
    return from_little_endian("I", out.getvalue())


def little_endian(column: array[int]) -> bytes:
    """A column's numbers, little-endian.  O(n)."""
    if _IS_BIG:
        column = column[:]
        column.byteswap()
    return column.tobytes()


def big_endian(column: array[int]) -> bytes:
    """The numbers of a column of the caller's own, which is not used any more, as big-endian bytes. O(numbers)."""
    if not _IS_BIG:
        column.byteswap()
    return column.tobytes()


def counts_up(column: array[int], start: int, stop: int, number: int) -> bool:
    """Whether column[start:stop] is number, number + 1, ... O(stop - start), O(1) if the first differs."""
    if column[start] != number:
        return False
    if not IS_COMPILED:
        return column[start:stop] == numbered(number, stop - start)
    for at in range(start + 1, stop):  # for the usual ten, compiled, cheaper than making an array
        number += 1
        if column[at] != number:
            return False
    return True


def first_at_least(column: array[int], number: int) -> int:
    """The index of the first number of an ascending column that is at least `number`; its length if there is none.

    O(log numbers).
    """
    if not IS_COMPILED or not column or number > _MOST_WRITTEN or column[-1] > _MOST_WRITTEN:
        return bisect_left(column, number)
    return _first_at_least(little_endian(column), number)  # bisect_left compares objects


def _first_at_least(numbers: bytes, number: i64) -> i64:
    """The index of the first number of an ascending column of 64-bit numbers that is at least `number`.

    Its length if there is none. All numbers must be below 2^63. O(log n).
    """
    low: i64 = 0
    high: i64 = len(numbers) // 8
    while low < high:
        middle: i64 = (low + high) // 2
        if read_i64_le(numbers, middle * 8) < number:
            low = middle + 1
        else:
            high = middle
    return low


def runs_of(owners: bytes, owner: i64, start: i64, max_count: i64) -> list[tuple[int, int]]:
    """At most `max_count` slots of an owner from `start` on, as runs [from, to). An owner has four bytes. O(slots)."""
    found: list[tuple[int, int]] = []
    count: i64 = len(owners) // 4
    at: i64 = first_of(owners, owner, start)
    while max_count > 0 and at >= 0:
        first: i64 = at
        while max_count > 0 and at < count and read_i32_le(owners, at * 4) == owner:
            at += 1
            max_count -= 1
        found.append((first, at))
        at = first_of(owners, owner, at)
    return found


def first_of(owners: bytes, owner: i64, start: i64) -> i64:
    """An owner's first slot from `start` on; NO_PLACE if it has none. O(slots).

    Two slots at a time: an owner's number is below 2^31, so both are compared in one number of 64 bits.
    """
    at: i64 = start * 4
    end: i64 = len(owners)
    pair: i64 = owner << 32 | owner
    while at + 8 <= end:
        unlike: i64 = read_i64_le(owners, at) ^ pair
        if unlike & 0xFFFF_FFFF == 0:
            return at // 4
        if unlike >> 32 == 0:
            return at // 4 + 1
        at += 8
    if at < end and read_i32_le(owners, at) == owner:
        return at // 4
    return NO_PLACE


def common_length(
    ms: array[int],
    seq: array[int],
    at: int,
    other_ms: array[int],
    other_seq: array[int],
    other_at: int,
    max_length: int,
) -> int:
    """How many ids are equal from `at` and `other_at` on, `max_length` at most. The first ids must be equal.

    Compares slices: first the whole length; if that differs, slices that double in length up to the first difference,
    then slices that halve until it is found. O(max_length).
    """
    wanted_ms, wanted_seq = other_ms, other_seq
    if max_length < len(other_ms):  # usually they are all wanted, and need not be cut out
        wanted_ms = other_ms[other_at : other_at + max_length]
        wanted_seq = other_seq[other_at : other_at + max_length]
    if seq[at : at + max_length] == wanted_seq and ms[at : at + max_length] == wanted_ms:
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
