"""Listpacks: the blobs in which RDB keeps small collections, nodes of lists, and nodes of streams.

`uint32 bytes | uint16 count | elements | 0xFF`. An element is its encoding, its data, and the length of both, which is
read from the right. Texts that are 64-bit integers in their canonical form are kept as integers.
"""

from typing import Final

from penstock.storage.rdb.errors import BadRdb

HEADER_BYTES: Final = 6
END: Final = 0xFF
UNCOUNTED: Final = 65535  # in the header: count them
LONGEST_INTEGER: Final = 20  # bytes, with a sign

INT16: Final = 0xF1
INT32: Final = 0xF3
INT64: Final = 0xF4
LONG_TEXT: Final = 0xF0
SHORT_TEXT: Final = 64  # bytes: shorter ones have a head of one byte
NINE: Final = ord("9")


def elements(blob: bytes) -> list[bytes | int]:
    """All elements, integers as such.  O(n)."""
    last = len(blob) - 1
    if last < HEADER_BYTES or int.from_bytes(blob[:4], "little") != last + 1 or blob[last] != END:
        raise BadRdb("a listpack has another size than it says")
    found: list[bytes | int] = []
    at = HEADER_BYTES
    while at < last:
        first = blob[at]
        if first < 0x80 and blob[at + 1] == 1:  # the usual number, at least two bytes before the end
            found.append(first)
            at += 2
            continue
        stop = at + 1
        value: bytes | int
        if first < 0x80:
            value = first
        elif first < 0xC0:
            stop += first & 63
            value = blob[at + 1 : stop]
        elif first < 0xE0:
            number = (first & 31) << 8 | blob[stop]
            value = number - 8192 if number >= 4096 else number
            stop += 1
        elif first < LONG_TEXT:
            stop = at + 2 + ((first & 15) << 8 | blob[stop])
            value = blob[at + 2 : stop]
        elif first == LONG_TEXT:
            stop = at + 5 + int.from_bytes(blob[at + 1 : at + 5], "little")
            value = blob[at + 5 : stop]
        elif first <= INT64:
            stop += 8 if first == INT64 else first - LONG_TEXT + 1
            value = int.from_bytes(blob[at + 1 : stop], "little", signed=True)
        else:
            raise BadRdb(f"the byte {first} begins no element of a listpack")
        if stop >= last:
            raise BadRdb("an element of a listpack is cut off")
        length = stop - at
        if length < 128:
            if blob[stop] != length:
                raise _wrong_back_length()
            at = stop + 1
        else:
            back = back_length(length)
            at = stop + len(back)
            if blob[stop:at] != back:
                raise _wrong_back_length()
        found.append(value)
    if at != last:
        raise _wrong_back_length()
    count = blob[4] | blob[5] << 8
    if count != len(found) and count != UNCOUNTED:
        raise BadRdb(f"a listpack says that it has {count} elements, and has {len(found)}")
    return found


def _wrong_back_length() -> BadRdb:
    return BadRdb("an element of a listpack has another length than stands behind it")


def texts_of(found: list[bytes | int]) -> list[bytes]:
    """Elements as the texts that were put in."""
    return [element if isinstance(element, bytes) else b"%d" % element for element in found]


def texts(blob: bytes) -> list[bytes]:
    """All elements as the texts that were put in."""
    return texts_of(elements(blob))


def back_length(length: int) -> bytes:
    """The length of an element as it stands behind it: groups of seven bits; all but the first byte have bit 7 set.

    Redis takes one byte more for 16383, 2097151 and so on than it has to (8.6.3).
    """
    if length < 128:
        return bytes((length,))
    if length < 16383:
        return bytes((length >> 7, length & 127 | 128))
    groups = [length >> 14 & 127, length >> 7 & 127 | 128, length & 127 | 128]
    if length >= 2097151:
        groups[0] |= 128
        groups.insert(0, length >> 21 & 127)
    if length >= 268435455:
        groups[0] |= 128
        groups.insert(0, length >> 28)
    return bytes(groups)


def integer_of(text: bytes) -> int | None:
    """The 64-bit integer with this canonical text, or None.

    >>> integer_of(b"-12"), integer_of(b"012"), integer_of(b"-0"), integer_of(b"9223372036854775808")
    (-12, None, None, None)
    """
    size = len(text)
    if size == 0 or size > LONGEST_INTEGER:
        return None
    first = text[0]
    if first == 45:
        if size == 1 or not 49 <= text[1] <= 57 or not text[1:].isdigit():
            return None
    elif not 48 <= first <= 57 or (first == 48 and size > 1) or not text.isdigit():
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def packed(texts_or_numbers: list[bytes | int]) -> bytes:
    """A listpack of these elements; texts that are integers become integers."""
    parts: list[bytes] = [b""]
    for element in texts_or_numbers:
        if isinstance(element, bytes):
            size = len(element)
            if 0 < size < SHORT_TEXT and element[0] > NINE:  # the usual text, no number
                parts.append(HEADS[size] + element + BACKS[size])
                continue
            number = integer_of(element)
            if number is None:
                parts.append(text_element(element))
                continue
        else:
            number = element
        parts.append(SMALL[number] if 0 <= number < 128 else integer_element(number))
    count = min(len(parts) - 1, UNCOUNTED)
    whole = HEADER_BYTES + sum(map(len, parts)) + 1
    parts[0] = whole.to_bytes(4, "little") + count.to_bytes(2, "little")
    parts.append(b"\xff")
    return b"".join(parts)


def text_element(text: bytes) -> bytes:
    size = len(text)
    if size < SHORT_TEXT:
        return HEADS[size] + text + BACKS[size]
    if size < 4096:
        return bytes((0xE0 | size >> 8, size & 255)) + text + back_length(size + 2)
    return b"\xf0" + size.to_bytes(4, "little") + text + back_length(size + 5)


def integer_element(number: int) -> bytes:
    if 0 <= number < 128:
        return bytes((number, 1))
    if -4096 <= number < 4096:
        return bytes((0xC0 | (number & 0x1FFF) >> 8, number & 255, 2))
    if -(1 << 15) <= number < 1 << 15:
        return b"\xf1" + number.to_bytes(2, "little", signed=True) + b"\x03"
    if -(1 << 23) <= number < 1 << 23:
        return b"\xf2" + number.to_bytes(3, "little", signed=True) + b"\x04"
    if -(1 << 31) <= number < 1 << 31:
        return b"\xf3" + number.to_bytes(4, "little", signed=True) + b"\x05"
    return b"\xf4" + number.to_bytes(8, "little", signed=True) + b"\x09"


HEADS: Final = [bytes((0x80 | size,)) for size in range(SHORT_TEXT)]  # before a short text, and behind it
BACKS: Final = [bytes((size + 1,)) for size in range(SHORT_TEXT)]
SMALL: Final = tuple([bytes((number, 1)) for number in range(128)])  # the elements of numbers from 0 to 127
