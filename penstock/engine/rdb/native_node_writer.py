"""Nodes of streams, from entries as they are sent to listpacks, byte by byte: for the compiled build.

native_nodes.py has the way back, and says what both are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i64_le, write_i16_le, write_i32_le, write_i64_le

from penstock.engine.rdb.native_nodes import CR, DASH, LARGEST_BLOB, WORD, ZERO, add_text
from penstock.native.text_match import is_at
from penstock.storage.rdb import listpack
from penstock.storage.rdb.listpack import END, HEADER_BYTES, UNCOUNTED
from penstock.storage.rdb.stream_reader import SAME_FIELDS

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

_NINE: Final = 57
_SHORT_HEAD_START: Final = 0x0100_0100  # of an entry's head: two elements that are numbers, each a byte, and its length
_BEFORE_ID: Final = 5  # bytes of an entry before its id's size
_LONGEST_MIDDLE: Final = 4096  # bytes from which on a text's size takes four bytes


def write_node(entries: bytes, ms_column: bytes, seq_column: bytes) -> bytes | None:
    """Entries, one behind the other, as a node's listpack; None if they are not ordinary.  O(bytes).

    The columns have the halves of the ids, eight bytes each, little-endian.
    """
    out = BytesWriter()
    out.write(bytes(HEADER_BYTES))
    elements: int = _write(out, entries, ms_column, seq_column)
    if elements < 0 or len(out) > LARGEST_BLOB:
        return None
    out.append(END)
    blob = out.getvalue()
    return len(blob).to_bytes(4, "little") + min(elements, UNCOUNTED).to_bytes(2, "little") + blob[HEADER_BYTES:]


def _write(out: BytesWriter, entries: bytes, ms_column: bytes, seq_column: bytes) -> i64:
    """The elements of a node; how many they are, or -1 for what is not ordinary."""
    count: i64 = len(ms_column) // WORD
    first_ms: i64 = read_i64_le(ms_column, 0)
    first_seq: i64 = read_i64_le(seq_column, 0)
    _add_integer(out, count)
    _add_integer(out, 0)
    pieces: list[bytes] = _add_names(out, entries)
    width: i64 = len(pieces)
    elements: i64 = width + 4
    at: i64 = 0  # where an entry begins
    index: i64 = 0
    while index < count:
        ms: i64 = read_i64_le(ms_column, index * WORD)
        seq: i64 = read_i64_le(seq_column, index * WORD)
        if ms < 0 or seq < 0:  # 2^63 or more
            return -1
        ms -= first_ms
        seq -= first_seq
        index += 1
        size, at = _size(entries, at + _BEFORE_ID)
        at += size  # where the id ends
        kept: int = len(out)
        _add_entry_head(out, SAME_FIELDS, ms, seq)
        behind: i64 = _add_values(out, entries, at, pieces)
        if behind >= 0:
            at = behind
            _add_integer(out, width + 3)
            elements += width + 4
            continue
        out.truncate(kept)
        _add_entry_head(out, 0, ms, seq)
        words, at = _size(entries, at + 3)
        _add_integer(out, words // 2)
        for _ in range(words):
            size, at = _size(entries, at + 1)
            _add_element(out, entries, at, at + size)
            at += size + 2
        _add_integer(out, words + 4)
        elements += words + 5
    return elements


def _add_names(out: BytesWriter, entries: bytes) -> list[bytes]:
    """The first entry's field names; what stands before each value in an entry that has the same."""
    size, at = _size(entries, _BEFORE_ID)
    at += size
    begin: i64 = at
    words, at = _size(entries, at + 3)
    width: i64 = words // 2
    pieces: list[bytes] = []
    _add_integer(out, width)
    for _ in range(width):
        size, at = _size(entries, at + 1)
        _add_element(out, entries, at, at + size)
        at += size + 3
        pieces.append(entries[begin:at])
        size, at = _size(entries, at)
        begin = at + size
        at = begin + 2
    _add_integer(out, 0)
    return pieces


def _add_values(out: BytesWriter, entries: bytes, at: i64, pieces: list[bytes]) -> i64:
    """The values of an entry with an id that ends at an offset; the offset behind it, or -1 if its fields differ."""
    for piece in pieces:
        stop: i64 = at + len(piece)
        if stop > len(entries) or not is_at(piece, entries, at):
            return -1
        size, start = _size(entries, stop)
        at = start + size
        _add_element(out, entries, start, at)
    return at + 2


def _size(text: bytes, at: i64) -> tuple[i64, i64]:
    """A number that a line ends with, and where the next line begins."""
    number: i64 = 0
    byte: i64 = text[at]
    while byte != CR:
        number = number * 10 + byte - ZERO
        at += 1
        byte = text[at]
    at += 2
    return number, at


def _add_entry_head(out: BytesWriter, flags: i64, ms: i64, seq: i64) -> None:
    """An entry's flags, and its distances to the first one's id."""
    if 0 <= ms < 128 and 0 <= seq < 128:
        part: int = _SHORT_HEAD_START | flags | ms << 16
        write_i32_le(out, part)
        part = seq | 1 << 8
        write_i16_le(out, part)
    else:
        _add_integer(out, flags)
        _add_integer(out, ms)
        _add_integer(out, seq)


def _add_integer(out: BytesWriter, number: i64) -> None:
    """An element that is an integer."""
    if 0 <= number < 128:
        byte: int = number
        out.append(byte)
        out.append(1)
    elif -4096 <= number < 4096:
        byte = 0xC0 | (number & 0x1FFF) >> 8
        out.append(byte)
        byte = number & 255
        out.append(byte)
        out.append(2)
    elif -(1 << 31) <= number < 1 << 31:
        size: i64 = 4
        if -(1 << 15) <= number < 1 << 15:
            size = 2
        elif -(1 << 23) <= number < 1 << 23:
            size = 3
        byte = 0xEF + size
        out.append(byte)
        for _ in range(size):
            byte = number & 255
            out.append(byte)
            number >>= 8
        byte = size + 1
        out.append(byte)
    else:
        out.append(listpack.INT64)
        write_i64_le(out, number)
        out.append(9)


def _add_element(out: BytesWriter, text: bytes, start: i64, stop: i64) -> None:
    """An element that is a text, or the integer with this text."""
    size: i64 = stop - start
    if size < 64:
        if size:
            first: i64 = text[start]
            if (first >= ZERO and first <= _NINE) or first == DASH:
                number = listpack.integer_of(text[start:stop]) if 18 < size <= 20 else None
                if number is not None:
                    out.write(listpack.integer_element(number))
                    return
                short: i64 = _integer(text, start, stop)
                if short != _NOT_SHORT:
                    _add_integer(out, short)
                    return
        byte: int = 0x80 | size
        out.append(byte)
        add_text(out, text, start, stop)
        byte = size + 1
        out.append(byte)
    elif size < _LONGEST_MIDDLE:
        byte = 0xE0 | size >> 8
        out.append(byte)
        byte = size & 255
        out.append(byte)
        out.write(text[start:stop])
        size += 2
        if size >= 128:
            byte = size >> 7
            out.append(byte)
            size = size & 127 | 128
        byte = size
        out.append(byte)
    else:
        out.write(listpack.text_element(text[start:stop]))


_NOT_SHORT: Final = -(1 << 62)


def _integer(text: bytes, at: i64, stop: i64) -> i64:
    """The integer with this canonical text of at most 18 bytes, or _NOT_SHORT."""
    if stop - at > 18:
        return _NOT_SHORT
    byte: i64 = text[at]
    negative = byte == DASH
    if negative:
        at += 1
        if at == stop:
            return _NOT_SHORT
        byte = text[at]
    if byte == ZERO and (negative or stop - at > 1):
        return _NOT_SHORT
    number: i64 = 0
    while at < stop:
        byte = text[at]
        if byte < ZERO or byte > _NINE:
            return _NOT_SHORT
        number = number * 10 + byte - ZERO
        at += 1
    return -number if negative else number
