"""The members of a small set of integers in one bytes object; its oracle is member_table.py.

They lie one behind the other in ascending order, each in as many bytes as the largest needs (2, 4 or 8, little-endian,
with a sign), behind a byte that says how many. They are found by halves.

>>> found = with_member(with_member(b"", b"300"), b"-7")
>>> members_of(found), has(found, b"300"), has(found, b"5"), with_member(found, b"70000")[0]
([b'-7', b'300'], True, False, 4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i16_le, read_i32_le, read_i64_le, write_i16_le, write_i32_le, write_i64_le

from penstock.native import digits
from penstock.native.build import IS_COMPILED
from penstock.storage.rdb import listpack

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

# As many as Redis has in an intset. In Python, half a dozen steps of a search take longer than a table.
MOST_INTEGERS: Final = 512 if IS_COMPILED else 16
HEAD: Final = 1  # bytes before the first one
NOWHERE: Final = -1


def number_of(member: bytes) -> tuple[i64, bool]:
    """The integer that a member is the text of, as `listpack.integer_of`, and whether it is one."""
    if IS_COMPILED and len(member) <= digits.MOST_DIGITS:
        return digits.integer_of(member)
    number = listpack.integer_of(member)
    return (0, False) if number is None else (number, True)


def width_for(number: i64) -> i64:
    """How many bytes a number needs."""
    if -(1 << 15) <= number < 1 << 15:
        return 2
    return 4 if -(1 << 31) <= number < 1 << 31 else 8


def packed(members: list[bytes]) -> bytes:
    """Different integers in any order. O(n log n)."""
    return _packed_numbers(sorted(map(int, members)))


def _packed_numbers(numbers: list[int]) -> bytes:
    """Different numbers in ascending order, of 64 bits at most. O(n)."""
    if not numbers:
        return b""
    width = max(width_for(numbers[0]), width_for(numbers[-1]))
    writer = BytesWriter()
    writer.append(int(width))
    for number in numbers:
        _write(writer, width, number)
    return writer.getvalue()


def _write(writer: BytesWriter, width: i64, number: i64) -> None:
    if width == 2:
        write_i16_le(writer, int(number))
    elif width == 4:
        write_i32_le(writer, int(number))
    else:
        write_i64_le(writer, number)


def _number_at(numbers: bytes, width: i64, at: i64) -> i64:
    if width == 2:
        return int(read_i16_le(numbers, at))
    return int(read_i32_le(numbers, at)) if width == 4 else read_i64_le(numbers, at)


def numbers_of(numbers: bytes) -> list[int]:
    """All of them, ascending. O(n)."""
    width = numbers[0] if numbers else 1
    return [int(_number_at(numbers, width, at)) for at in range(HEAD, len(numbers), width)]


def members_of(numbers: bytes) -> list[bytes]:
    """All of them as texts, ascending. O(n)."""
    return [b"%d" % number for number in numbers_of(numbers)]


def member_at(numbers: bytes, index: int) -> bytes:
    """The member with an index from 0 to their number - 1. O(1)."""
    return b"%d" % int(_number_at(numbers, numbers[0], HEAD + index * numbers[0]))


def _place_for(numbers: bytes, width: i64, number: i64) -> i64:
    """The place of the first one that is not below a number; the end if all are. O(log n)."""
    low: i64 = 0
    high: i64 = (len(numbers) - HEAD) // width
    while low < high:
        middle: i64 = (low + high) >> 1
        if _number_at(numbers, width, HEAD + middle * width) < number:
            low = middle + 1
        else:
            high = middle
    return HEAD + low * width


def _place_of(numbers: bytes, member: bytes) -> i64:
    """The place of a member; NOWHERE if it is not there. O(log n)."""
    number, is_one = number_of(member)
    if not is_one or not numbers:
        return NOWHERE
    width: i64 = numbers[0]
    place: i64 = _place_for(numbers, width, number)
    return place if place < len(numbers) and _number_at(numbers, width, place) == number else NOWHERE


def has(numbers: bytes, member: bytes) -> bool:
    """Whether it is one of the members. O(log n)."""
    return _place_of(numbers, member) >= 0


def with_member(numbers: bytes, member: bytes) -> bytes | None:
    """With one more; the same object if it is there; None if it is no integer. O(n)."""
    number, is_one = number_of(member)
    if not is_one:
        return None
    width: i64 = numbers[0] if numbers else 0
    if width_for(number) > width:
        return _packed_numbers(sorted([*numbers_of(numbers), int(number)]))
    place: i64 = _place_for(numbers, width, number)
    if place < len(numbers) and _number_at(numbers, width, place) == number:
        return numbers
    writer = BytesWriter()
    if place < len(numbers):
        writer.write(numbers[:place])
        _write(writer, width, number)
        writer.write(numbers[place:])
    else:
        writer.write(numbers)
        _write(writer, width, number)
    return writer.getvalue()


def without(numbers: bytes, member: bytes) -> bytes:
    """Without a member; as it was if that is not there. O(n)."""
    place: i64 = _place_of(numbers, member)
    if place < 0:
        return numbers
    width: i64 = numbers[0]
    if len(numbers) == HEAD + width:
        return b""
    return numbers[:place] + numbers[place + width :]
