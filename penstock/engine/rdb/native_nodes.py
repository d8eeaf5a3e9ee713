"""Nodes of streams, from listpacks to entries as they are sent and back, byte by byte: for the compiled build.

Without compilation, and for what is not ordinary here, storage/rdb/stream_reader.py and stream_writer.py do it element
by element; they own the error texts. The tests compare both. See protocol/native_parser.py for the reasons.

An entry is `*2 $size id *words $size word ...`, each followed by CR LF (protocol/entries.py); a listpack's element is
its encoding, its data, and the length of both (storage/rdb/listpack.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le

from penstock.storage.rdb import listpack
from penstock.storage.rdb.stream_reader import NodeHead
from penstock.storage.streams.entry_run import EntryRun

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

_HALF_RANGE: Final = 1 << 61  # distances and halves of ids below it add up without an overflow
_LARGEST_BLOB: Final = 1 << 28
_MOST_SIZE: Final = 1 << 30  # bytes of entries beside each other
_HEADER: Final = 6  # bytes before the first element
_END: Final = 255
_UNCOUNTED: Final = 65535
_DELETED: Final = 1  # an entry's flags
_SAME_FIELDS: Final = 2
_WORD: Final = 8
_LONGEST_LOOPED: Final = 40  # bytes of a text that is copied without making an object of it
_NO_NUMBER: Final = -1
_CR: Final = 13
_LF: Final = 10
_DOLLAR: Final = 36
_STAR: Final = 42
_DASH: Final = 45
_ZERO: Final = 48

_ENTRY: Final = b"*2\r\n$"
_LINE_END: Final = b"\r\n"
_SMALL: Final = [b"%d\r\n%d" % (len(b"%d" % number), number) for number in range(128)]  # bulk strings without `$`


# -- reading ----------------------------------------------------------------------------------------------------------


def read_node(blob: bytes, node_ms: int, node_seq: int, run: EntryRun, head: NodeHead) -> bool:
    """Append a node's live entries to a run, and fill in its head; False, and nothing is changed, if not ordinary.

    O(bytes). What is damaged is not ordinary.
    """
    if node_ms >= _HALF_RANGE or node_seq >= _HALF_RANGE or run.last_ms >= _HALF_RANGE or run.last_seq >= _HALF_RANGE:
        return False
    count, size, last_id = run.count, len(run.entries), run.last_id
    if len(blob) < _LARGEST_BLOB and size + 64 * len(blob) < _MOST_SIZE and _read(blob, node_ms, node_seq, run, head):
        return True
    run.cut_back(count, size, last_id)
    return False


def _read(blob: bytes, node_ms: i64, node_seq: i64, run: EntryRun, head: NodeHead) -> bool:
    last: i64 = len(blob) - 1
    if last < _HEADER or read_i32_le(blob, 0) != last + 1 or blob[last] != _END:
        return False
    kind, live, at = _element(blob, _HEADER, last)
    if kind != _NO_NUMBER or live < 1:
        return False
    kind, deleted, at = _element(blob, at, last)
    if kind != _NO_NUMBER or deleted < 0:
        return False
    kind, width, at = _element(blob, at, last)
    if kind != _NO_NUMBER or width < 1 or width > last:
        return False
    names: list[bytes] = []
    for _ in range(width):
        start, stop, at = _element(blob, at, last)
        if at < 0:
            return False
        names.append(b"%d" % stop if start == _NO_NUMBER else blob[start:stop])
    kind, nothing, at = _element(blob, at, last)
    if kind != _NO_NUMBER or nothing != 0:
        return False
    head.live, head.deleted = live, deleted
    if names != head.names:
        head.names = names
        head.pieces = _pieces(names)
    pieces: list[bytes] = head.pieces
    elements: i64 = 4 + width
    above_ms: i64 = run.last_ms
    above_seq: i64 = run.last_seq
    added: i64 = 0
    id_ms: i64 = -1  # whose text is `ms_text`
    ms_text = b""
    entries, ends, ms_column, seq_column = run.entries, run.ends, run.ms, run.seq
    while at < last:
        kind, flags, at = _element(blob, at, last)
        if kind != _NO_NUMBER or flags < 0 or flags > 3:
            return False
        kind, ms, at = _element(blob, at, last)
        if kind != _NO_NUMBER or ms <= -_HALF_RANGE or ms >= _HALF_RANGE:
            return False
        kind, seq, at = _element(blob, at, last)
        if kind != _NO_NUMBER or seq <= -_HALF_RANGE or seq >= _HALF_RANGE:
            return False
        ms += node_ms
        seq += node_seq
        if ms < 0 or seq < 0 or ms < above_ms or (ms == above_ms and seq <= above_seq):
            return False
        above_ms, above_seq = ms, seq
        is_live = flags & _DELETED == 0
        if is_live:
            if ms != id_ms:
                ms_text = b"%d-" % ms
                id_ms = ms
            entries.write(_ENTRY)
            _add_digits(entries, len(ms_text) + _digits(seq))
            entries.write(_LINE_END)
            entries.write(ms_text)
            _add_digits(entries, seq)
        if flags & _SAME_FIELDS:
            for piece in pieces:
                start, stop, at = _element(blob, at, last)
                if at < 0:
                    return False
                if is_live:
                    entries.write(piece)
                    _add_bulk(entries, blob, start, stop)
            expected: i64 = width + 3
        else:
            kind, pairs, at = _element(blob, at, last)
            if kind != _NO_NUMBER or pairs < 1 or pairs > last:
                return False
            if is_live:
                entries.write(b"\r\n*%d" % (2 * pairs))
            for _ in range(2 * pairs):
                start, stop, at = _element(blob, at, last)
                if at < 0:
                    return False
                if is_live:
                    entries.write(b"\r\n$")
                    _add_bulk(entries, blob, start, stop)
            expected = 2 * pairs + 4
        kind, told, at = _element(blob, at, last)
        if kind != _NO_NUMBER or told != expected:
            return False
        elements += expected + 1
        if is_live:
            entries.write(_LINE_END)
            write_i64_le(ms_column, ms)
            write_i64_le(seq_column, seq)
            end: int = len(entries)
            write_i32_le(ends, end)
            run.last_ms, run.last_seq = ms, seq
            added += 1
        else:
            deleted -= 1
    counted: i64 = blob[4]
    upper: i64 = blob[5]
    counted |= upper << 8
    if at != last or added != live or deleted != 0 or (counted != elements and counted != _UNCOUNTED):
        return False
    run.count += added
    head.last_ms, head.last_seq = above_ms, above_seq
    return True


def _pieces(names: list[bytes]) -> list[bytes]:
    """What stands before each value in an entry with these fields, up to the `$` of its size."""
    found = [b"\r\n$%d\r\n%b\r\n$" % (len(name), name) for name in names]
    found[0] = b"\r\n*%d" % (2 * len(names)) + found[0]
    return found


def _element(blob: bytes, at: i64, last: i64) -> tuple[i64, i64, i64]:
    """A listpack's element: where its text starts, where that stops, where the next element is.

    Of an integer: _NO_NUMBER, itself, the next one. All three are -2 for what is damaged.
    """
    start: i64 = -2
    stop: i64 = -2
    after: i64 = -2
    if at < 0 or at + 1 >= last:
        return start, stop, after
    first: i64 = blob[at]
    low: i64 = blob[at + 1]
    if first < 0x80:
        if low == 1:
            start = _NO_NUMBER
            after = at + 2
            return start, first, after
    elif first < 0xC0:
        end: i64 = at + 1 + (first & 63)
        if end < last and blob[end] == end - at:
            start = at + 1
            after = end + 1
            return start, end, after
    elif first < 0xE0:
        if at + 2 < last and blob[at + 2] == 2:
            number: i64 = (first & 31) << 8 | low
            if number >= 4096:
                number -= 8192
            start = _NO_NUMBER
            after = at + 3
            return start, number, after
    elif first <= 0xF0:
        begin: i64 = at + 2
        end = begin + ((first & 15) << 8 | low)
        if first == 0xF0:
            begin = at + 5
            if begin >= last:
                return start, stop, after
            told: int = read_i32_le(blob, at + 1)
            size: i64 = told
            end = begin + size if 0 <= size < last else last
        if end < last:
            span: i64 = end - at
            if span < 128:
                if blob[end] == span:
                    return begin, end, end + 1
            else:
                back = listpack.back_length(span)
                behind: i64 = end + len(back)
                if behind <= last and blob[end:behind] == back:
                    return begin, end, behind
    elif first <= 0xF4:
        width: i64 = first - 0xEF
        if first == 0xF4:
            width = 8
        end = at + 1 + width
        if end < last and blob[end] == width + 1:
            number = read_i64_le(blob, at + 1) if width == _WORD else _signed(blob, at + 1, end)
            start = _NO_NUMBER
            after = end + 1
            return start, number, after
    return start, stop, after


def _signed(blob: bytes, at: i64, stop: i64) -> i64:
    """A little-endian number of less than eight bytes."""
    number: i64 = 0
    shift: i64 = 0
    byte: i64 = 0
    while at < stop:
        byte = blob[at]
        number |= byte << shift
        shift += 8
        at += 1
    if byte >= 128:  # not `1 << shift`: compiled, that is a shift of 32 bits
        number -= 0x1_0000 if shift == 16 else 0x100_0000 if shift == 24 else 0x1_0000_0000
    return number


def _add_bulk(out: BytesWriter, blob: bytes, start: i64, stop: i64) -> None:
    """An element as a bulk string, without its `$` and its last CR LF."""
    if start == _NO_NUMBER:
        if 0 <= stop < 128:
            out.write(_SMALL[stop])
            return
        size = _digits(stop)
        _add_digits(out, size)
        out.write(_LINE_END)
        _add_digits(out, stop)
        return
    _add_digits(out, stop - start)
    out.write(_LINE_END)
    _add_text(out, blob, start, stop)


def _add_text(out: BytesWriter, text: bytes, at: i64, stop: i64) -> None:
    """Some bytes of a text."""
    if stop - at > _LONGEST_LOOPED:
        out.write(text[at:stop])
        return
    while at + _WORD <= stop:
        write_i64_le(out, read_i64_le(text, at))
        at += _WORD
    while at < stop:
        out.append(text[at])
        at += 1


def _digits(number: i64) -> i64:
    """How many bytes the text of a number has."""
    if number < 0:
        return len(b"%d" % number)
    count: i64 = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


def _add_digits(out: BytesWriter, number: i64) -> None:
    """The text of a number."""
    if number < 0:
        out.write(b"%d" % number)
        return
    if number >= 100:
        rest: i64 = number // 100
        _add_digits(out, rest)
        number -= 100 * rest
    elif number < 10:
        digit: int = _ZERO + number
        out.append(digit)
        return
    tens: i64 = number // 10
    digit = _ZERO + tens
    out.append(digit)
    digit = _ZERO + number - 10 * tens
    out.append(digit)


# -- writing ----------------------------------------------------------------------------------------------------------


def write_node(entries: bytes, count: int) -> bytes | None:
    """So many entries, one behind the other, as a node's listpack; None if they are not ordinary.  O(bytes)."""
    out = BytesWriter()
    out.write(bytes(_HEADER))
    elements: int = _write(out, entries, count)
    if elements < 0 or len(out) > _LARGEST_BLOB:
        return None
    out.append(_END)
    blob = out.getvalue()
    return len(blob).to_bytes(4, "little") + min(elements, _UNCOUNTED).to_bytes(2, "little") + blob[_HEADER:]


def _write(out: BytesWriter, entries: bytes, count: i64) -> i64:
    """The elements of a node; how many they are, or -1 for what is not ordinary."""
    end: i64 = len(entries)
    pieces: list[bytes] = []  # `$size name $` of the first entry's fields
    width: i64 = 0
    first_ms: i64 = 0
    first_seq: i64 = 0
    elements: i64 = 0
    at: i64 = 0
    while at < end:
        _, at = _size(entries, at + 5)
        ms, at = _half(entries, at, _DASH)
        seq, at = _half(entries, at, _CR)
        if ms < 0 or seq < 0:
            return -1
        words, at = _size(entries, at + 2)
        if not elements:
            first_ms, first_seq = ms, seq
            width = words // 2
            _add_integer(out, count)
            _add_integer(out, 0)
            _add_integer(out, width)
            behind: i64 = at
            for _ in range(width):
                size, start = _size(entries, behind + 1)
                pieces.append(entries[behind : start + size + 3])
                _add_element(out, entries, start, start + size)
                size, start = _size(entries, start + size + 3)
                behind = start + size + 2
            _add_integer(out, 0)
            elements = width + 4
        kept: int = len(out)
        behind = -1
        if words == 2 * width:
            _add_integer(out, _SAME_FIELDS)
            _add_integer(out, ms - first_ms)
            _add_integer(out, seq - first_seq)
            behind = _add_values(out, entries, at, pieces)
        if behind >= 0:
            at = behind
            _add_integer(out, width + 3)
            elements += width + 4
            continue
        out.truncate(kept)
        _add_integer(out, 0)
        _add_integer(out, ms - first_ms)
        _add_integer(out, seq - first_seq)
        _add_integer(out, words // 2)
        for _ in range(words):
            size, start = _size(entries, at + 1)
            _add_element(out, entries, start, start + size)
            at = start + size + 2
        _add_integer(out, words + 4)
        elements += words + 5
    return elements


def _add_values(out: BytesWriter, entries: bytes, at: i64, pieces: list[bytes]) -> i64:
    """The values of an entry, whose first field is at an offset; the offset behind it, or -1 if its fields differ."""
    for piece in pieces:
        stop: i64 = at + len(piece)
        if not _is_at(piece, entries, at, stop):
            return -1
        size, start = _size(entries, stop)
        _add_element(out, entries, start, start + size)
        at = start + size + 2
    return at


def _is_at(piece: bytes, text: bytes, at: i64, stop: i64) -> bool:
    """Whether a text has a piece at an offset; it must be longer than the piece."""
    if stop > len(text):
        return False
    place: i64 = 0
    while at + _WORD <= stop:
        if read_i64_le(text, at) != read_i64_le(piece, place):
            return False
        at += _WORD
        place += _WORD
    while at < stop:
        if text[at] != piece[place]:
            return False
        at += 1
        place += 1
    return True


def _size(text: bytes, at: i64) -> tuple[i64, i64]:
    """A number that a line ends with, and where the next line begins."""
    number: i64 = 0
    byte: i64 = text[at]
    while byte != _CR:
        number = number * 10 + byte - _ZERO
        at += 1
        byte = text[at]
    at += 2
    return number, at


def _half(text: bytes, at: i64, stop: i64) -> tuple[i64, i64]:
    """One half of an id, up to a byte, and the offset behind that; -1 for one with more digits than 18."""
    number: i64 = 0
    most: i64 = at + 18
    byte: i64 = text[at]
    while byte != stop:
        number = number * 10 + byte - _ZERO
        at += 1
        if at > most:
            number = -1
            return number, at
        byte = text[at]
    at += 1
    return number, at


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
    else:
        out.write(listpack.integer_element(number))


def _add_element(out: BytesWriter, text: bytes, start: i64, stop: i64) -> None:
    """An element that is a text, or the integer whose text this is."""
    size: i64 = stop - start
    if size < 64:
        if size:
            first: i64 = text[start]
            if (first >= _ZERO and first <= 57) or first == _DASH:
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
        _add_text(out, text, start, stop)
        byte = size + 1
        out.append(byte)
        return
    out.write(listpack.text_element(text[start:stop]))


_NOT_SHORT: Final = -(1 << 62)


def _integer(text: bytes, at: i64, stop: i64) -> i64:
    """The integer of at most 18 bytes whose canonical text this is, or _NOT_SHORT."""
    if stop - at > 18:
        return _NOT_SHORT
    byte: i64 = text[at]
    negative = byte == _DASH
    if negative:
        at += 1
        if at == stop:
            return _NOT_SHORT
        byte = text[at]
    if byte == _ZERO and (negative or stop - at > 1):
        return _NOT_SHORT
    number: i64 = 0
    while at < stop:
        byte = text[at]
        if byte < _ZERO or byte > 57:
            return _NOT_SHORT
        number = number * 10 + byte - _ZERO
        at += 1
    return -number if negative else number
