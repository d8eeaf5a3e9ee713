"""Short texts packed into one bytes object: the members of a small set, the pairs of a small sorted set.

They lie one behind the other. Each has a head, its last byte the length of the text, and then the text. A place is
where a head starts, in bytes: it is found by a walk from the start, so there may be few texts only.

>>> packed = b"\\1a\\2bb\\1c"
>>> place_of(packed, b"c", head=1), place_of(packed, b"b", head=1), place_at(packed, 1, head=1)
(5, -1, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.native.build import IS_COMPILED

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

EMPTY: Final = b""
# Texts. Compiled, as many as Redis has in a listpack. Interpreted, a walk costs too much: to find a score and change it
# takes 3 us at 16 texts and grows with them, where a table takes 1.
MOST_PACKED: Final = 128 if IS_COMPILED else 16
LONGEST_PACKED: Final = 64  # bytes of a text
NOWHERE: Final = -1


def texts_of(packed: bytes, head: i64) -> list[bytes]:
    """All texts, in order. O(bytes)."""
    found: list[bytes] = []
    at: i64 = 0
    end: i64 = len(packed)
    while at < end:
        start: i64 = at + head
        at = start + packed[start - 1]
        found.append(packed[start:at])
    return found


def without(packed: bytes, text: bytes, head: i64) -> bytes:
    """Without a text and its head; as it was if that is not there. O(bytes)."""
    at: i64 = place_of(packed, text, head)
    if at < 0:
        return packed
    return packed[:at] + packed[at + head + len(text) :]


def place_of(packed: bytes, text: bytes, head: i64) -> i64:
    """The place of a text; NOWHERE if it is not there. O(bytes).

    Compiled, a call of `in` or `find` costs as much as a walk over a few, which compares texts from their ends.
    """
    if not IS_COMPILED:
        found = packed.find(text, head)
        if found < 0:
            return NOWHERE
        place = head
        while place < found:
            place += head + packed[place - 1]
        if place == found and packed[place - 1] == len(text):
            return place - head  # else the bytes are part of a head or of another text
    length: i64 = len(text)
    end: i64 = len(packed)
    at: i64 = 0
    while at < end:
        start: i64 = at + head
        size: i64 = packed[start - 1]
        if size == length:
            rest: i64 = size - 1
            while rest >= 0 and packed[start + rest] == text[rest]:
                rest -= 1
            if rest < 0:
                return at
        at = start + size
    return NOWHERE


def place_at(packed: bytes, index: i64, head: i64) -> i64:
    """The place with an index; the end for the number of texts. O(index)."""
    at: i64 = 0
    while index > 0:
        at += head
        at += packed[at - 1]
        index -= 1
    return at


def index_at(packed: bytes, place: i64, head: i64) -> int:
    """The index of a place. O(index)."""
    at: i64 = 0
    index = 0
    while at < place:
        at += head
        at += packed[at - 1]
        index += 1
    return index
