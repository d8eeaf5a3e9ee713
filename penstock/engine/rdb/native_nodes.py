"""Nodes of streams, from listpacks to entries as they are sent, byte by byte: for the compiled build.

native_node_writer.py has the way back.

Without compilation, and for what is not ordinary here, storage/rdb/stream_reader.py and stream_writer.py do it element
by element; they own the error texts. The tests compare both. See protocol/native_words.py for the reasons.

An entry is `*2 $size id *words $size word ...`, each followed by CR LF (protocol/entries.py); a listpack's element is
its encoding, its data, and the length of both (storage/rdb/listpack.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i16_le, read_i32_le, read_i64_le, write_i16_le, write_i32_le, write_i64_le

from penstock.storage.rdb import listpack
from penstock.storage.rdb.listpack import END, HEADER_BYTES, UNCOUNTED
from penstock.storage.rdb.stream_reader import DELETED, SAME_FIELDS, NodeHead
from penstock.storage.streams.entry_run import EntryRun

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

_HALF_RANGE: Final = 1 << 61  # distances and halves of ids below it add up without an overflow
LARGEST_BLOB: Final = 1 << 28
_MOST_SIZE: Final = 1 << 30  # bytes of a run's entries
WORD: Final = 8
_SIZES: Final = 63  # values of sizes below it have what stands before them ready,
_FEW_FIELDS: Final = 32  # in entries of as many fields at most
_LONGEST_LOOPED: Final = 40  # bytes of a text that is copied without making an object of it
_NO_NUMBER: Final = -1
CR: Final = 13
_LF: Final = 10
DASH: Final = 45
ZERO: Final = 48
_LINE_END: Final = 0x0A0D  # CR LF, as a little-endian number
_ENTRY: Final = 0x24_0A0D_322A  # `*2`, CR LF, `$`
_EIGHT_DIGITS: Final = 100_000_000  # numbers below it have eight digits at most

# Three elements of an entry's head that are numbers from 0 to 127, the first from 0 to 3: each a byte, and its length.
_SHORT_HEAD_MASK: Final = 0xFF80_FF80_FFFC
_SHORT_HEAD: Final = 0x0100_0100_0100
_SHORT_HEAD_BYTES: Final = 6


def read_node(blob: bytes, node_ms: int, node_seq: int, run: EntryRun, head: NodeHead) -> bool:
    """Append a node's live entries to a run, and fill in its head; False, and nothing is changed, if not ordinary.

    O(bytes). What is damaged is not ordinary.
    """
    if node_ms >= _HALF_RANGE or node_seq >= _HALF_RANGE or run.last_ms >= _HALF_RANGE or run.last_seq >= _HALF_RANGE:
        return False
    count, size, last_id = run.count, len(run.entries), run.last_id
    if len(blob) < LARGEST_BLOB and _read(blob, node_ms, node_seq, run, head):
        return True
    run.cut_back(count, size, last_id)
    return False


def _read(blob: bytes, node_ms: i64, node_seq: i64, run: EntryRun, head: NodeHead) -> bool:
    last: i64 = len(blob) - 1
    if last < HEADER_BYTES or read_i32_le(blob, 0) != last + 1 or blob[last] != END:
        return False
    live, deleted, at = _read_head(blob, last, head)
    if at < 0:
        return False
    entries, ends, ms_column, seq_column, pieces = run.entries, run.ends, run.ms, run.seq, head.pieces
    width: i64 = len(head.names)
    elements: i64 = 4 + width
    last_ms: i64 = run.last_ms
    last_seq: i64 = run.last_seq
    above_ms: i64 = last_ms
    above_seq: i64 = last_seq
    added: i64 = 0
    expected: i64 = 0  # elements of an entry
    texts = _IdTexts()
    while at < last:
        flags, ms, seq, at = _entry_head(blob, at, last)
        if at < 0:
            return False
        ms += node_ms
        seq += node_seq
        if ms < 0 or seq < 0 or ms < above_ms or (ms == above_ms and seq <= above_seq):
            return False
        above_ms, above_seq = ms, seq
        is_live = flags & DELETED == 0
        if is_live:
            texts.add(entries, ms, seq)
        if flags & SAME_FIELDS:
            at = _add_values(entries, pieces, width, blob, at, last, is_live)
            expected = width + 3
        else:
            expected, at = _add_fields(entries, blob, at, last, is_live)
        at = _behind_entry(blob, at, last, expected)
        if at < 0:
            return False
        elements += expected + 1
        if is_live:
            write_i16_le(entries, _LINE_END)
            write_i64_le(ms_column, ms)
            write_i64_le(seq_column, seq)
            end: int = len(entries)
            if end > _MOST_SIZE:
                return False
            write_i32_le(ends, end)
            last_ms, last_seq = ms, seq
            added += 1
        else:
            deleted -= 1
    counted: i64 = blob[4]
    counted_more: i64 = blob[5]
    counted |= counted_more << 8
    if at != last or added != live or deleted != 0 or (counted != elements and counted != UNCOUNTED):
        return False
    run.count += added
    run.last_ms, run.last_seq = last_ms, last_seq
    head.last_ms, head.last_seq = above_ms, above_seq
    return True


def _read_head(blob: bytes, last: i64, head: NodeHead) -> tuple[i64, i64, i64]:
    """Fill in a node's counts and its fields: the counts, and where its first entry is: -2 for what is damaged."""
    damaged: i64 = -2
    kind, live, at = _element(blob, HEADER_BYTES, last)
    if kind != _NO_NUMBER or live < 1:
        return live, live, damaged
    kind, deleted, at = _element(blob, at, last)
    if kind != _NO_NUMBER or deleted < 0:
        return live, deleted, damaged
    kind, width, at = _element(blob, at, last)
    if kind != _NO_NUMBER or width < 1 or width > last:
        return live, deleted, damaged
    names: list[bytes] = []
    for _ in range(width):
        start, stop, at = _element(blob, at, last)
        if at < 0:
            return live, deleted, damaged
        names.append(b"%d" % stop if start == _NO_NUMBER else blob[start:stop])
    kind, nothing, at = _element(blob, at, last)
    if kind != _NO_NUMBER or nothing != 0:
        return live, deleted, damaged
    head.live, head.deleted = live, deleted
    if names != head.names:
        head.names = names
        head.pieces = _pieces(names)
    return live, deleted, at


class _IdTexts:
    """Adds what an entry begins with, up to its id; what the next entries of a millisecond begin with is kept.

    _ms: whose last eight digits are `_lower`, and whose other ones, eight at most, `_upper`. _begun: what such entries
    begin with, up to the dash, where the number behind it has `_begun_digits`: made for the second entry.
    """

    __slots__ = ("_begun", "_begun_digits", "_lower", "_ms", "_upper", "_upper_digits")

    def __init__(self) -> None:
        self._ms: i64 = -1
        self._lower: i64 = 0
        self._upper: i64 = 0
        self._upper_digits: i64 = 0
        self._begun = b""
        self._begun_digits: i64 = 0

    def add(self, entries: BytesWriter, ms: i64, seq: i64) -> None:
        digits: i64 = _digits(seq)
        if ms != self._ms:
            self._ms = ms
            upper: i64 = ms // _EIGHT_DIGITS
            self._upper_digits = _digits(upper)
            self._upper = _digits_text(upper, self._upper_digits)
            self._lower = _digits_text(ms, 8)
            if upper == 0 or self._upper_digits > 8:
                self._upper_digits = 0
            self._begun_digits = 0
        elif self._begun_digits != digits:
            self._begun_digits = digits
            self._begun = b"*2\r\n$%d\r\n%d-" % (_digits(ms) + 1 + digits, ms)
        if self._begun_digits:
            entries.write(self._begun)
        elif self._upper_digits:
            _begin_entry(entries, self._upper_digits + 9 + digits)
            _add_word(entries, self._upper, self._upper_digits)
            write_i64_le(entries, self._lower)
            entries.append(DASH)
        else:
            _begin_entry(entries, _digits(ms) + 1 + digits)
            _add_digits(entries, ms, _digits(ms))
            entries.append(DASH)
        _add_digits(entries, seq, digits)


def _add_values(
    entries: BytesWriter, pieces: list[bytes], width: i64, blob: bytes, at: i64, last: i64, is_live: bool
) -> i64:
    """The values of an entry with the node's fields: where the next element is; -2 for what is damaged."""
    all_pieces: i64 = len(pieces)
    sizes: i64 = all_pieces // width
    place: i64 = 0
    while place < all_pieces:
        size: i64 = _short_text(blob, at, last)
        start: i64 = at + 1
        stop: i64 = start + size
        if size >= 0:
            at = stop + 1
            if is_live and size + 1 < sizes:  # what _add_value does, where its piece is there
                piece = pieces[place + size]
                if len(piece):
                    entries.write(piece)
                    add_text(entries, blob, start, stop)
                    place += sizes
                    continue
        else:
            start, stop, at = _element(blob, at, last)
            if at < 0:
                return at
        if is_live:
            _add_value(entries, pieces, place, sizes - 1, blob, start, stop)
        place += sizes
    return at


def _add_fields(entries: BytesWriter, blob: bytes, at: i64, last: i64, is_live: bool) -> tuple[i64, i64]:
    """The fields and values of an entry with fields of its own: its elements, and where the next one is.

    -2 for what is damaged.
    """
    damaged: i64 = -2
    kind, pairs, at = _element(blob, at, last)
    if kind != _NO_NUMBER or pairs < 1 or pairs > last:
        return pairs, damaged
    if is_live:
        entries.write(b"\r\n*%d" % (2 * pairs))
    for _ in range(2 * pairs):
        start, stop, at = _element(blob, at, last)
        if at < 0:
            return pairs, damaged
        if is_live:
            entries.write(b"\r\n$")
            _add_bulk(entries, blob, start, stop)
    return 2 * pairs + 4, at


def _behind_entry(blob: bytes, at: i64, last: i64, expected: i64) -> i64:
    """Behind an entry's last element, which tells how many there are; -2 for what is damaged, if it is not told yet."""
    if at < 0:
        return at
    behind: i64 = at + 1
    if behind < last and blob[behind] == 1 and blob[at] == expected < 128:
        return at + 2
    kind, count, at = _element(blob, at, last)
    if kind != _NO_NUMBER or count != expected:
        at = -2
    return at


def _pieces(names: list[bytes]) -> list[bytes]:
    """The bytes before each value in an entry with these fields: for each field as many pieces, by the value's size.

    The last one of a field ends before the size. The others are made by _add_value when they are wanted; there are none
    where the fields are many.
    """
    ready = _SIZES if len(names) <= _FEW_FIELDS else 0
    found: list[bytes] = []
    for name in names:
        begin = b"\r\n$%d\r\n%b\r\n$" % (len(name), name)
        if not found:
            begin = b"\r\n*%d%b" % (2 * len(names), begin)
        found += [b""] * ready
        found.append(begin)
    return found


def _entry_head(blob: bytes, at: i64, last: i64) -> tuple[i64, i64, i64, i64]:
    """An entry's flags, its distances to the node's id, and where the next element is: -2 for what is damaged."""
    flags: i64 = 0
    ms: i64 = 0
    seq: i64 = 0
    kind: i64 = 0
    if at + WORD <= last:
        word: i64 = read_i64_le(blob, at)
        if word & _SHORT_HEAD_MASK == _SHORT_HEAD:
            flags = word & 3
            ms = word >> 16 & 127
            seq = word >> 32 & 127
            return flags, ms, seq, at + _SHORT_HEAD_BYTES
    damaged: i64 = -2
    kind, flags, at = _element(blob, at, last)
    if kind != _NO_NUMBER or flags < 0 or flags > DELETED | SAME_FIELDS:
        return flags, ms, seq, damaged
    kind, ms, at = _element(blob, at, last)
    if kind != _NO_NUMBER or ms <= -_HALF_RANGE or ms >= _HALF_RANGE:
        return flags, ms, seq, damaged
    kind, seq, at = _element(blob, at, last)
    if kind != _NO_NUMBER or seq <= -_HALF_RANGE or seq >= _HALF_RANGE:
        return flags, ms, seq, damaged
    return flags, ms, seq, at


def _short_text(blob: bytes, at: i64, last: i64) -> i64:
    """The size of an element that is a text of less than 64 bytes; -1 if it is another one, or damaged."""
    if at + 1 < last:
        first: i64 = blob[at]
        if 0x80 <= first < 0xC0:
            end: i64 = at + 1 + (first & 63)
            if end < last:
                back: i64 = blob[end]
                if back == end - at:
                    return first & 63
    return -1


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
            stored: int = read_i32_le(blob, at + 1)
            size: i64 = stored
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
            number = read_i64_le(blob, at + 1) if width == WORD else _signed(blob, at + 1, end)
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


def _begin_entry(out: BytesWriter, size: i64) -> None:
    """Write the bytes before an entry's id, which has so many bytes (at least 3, at most 41)."""
    if size < 10:
        write_i64_le(out, _ENTRY | (ZERO + size) << 40 | _LINE_END << 48)
        return
    tens: i64 = size // 10
    write_i64_le(out, _ENTRY | (ZERO + tens) << 40 | (ZERO + size - 10 * tens) << 48 | CR << 56)
    out.append(_LF)


def _add_value(
    out: BytesWriter, pieces: list[bytes], place: i64, sizes: i64, blob: bytes, start: i64, stop: i64
) -> None:
    """A field and an element as its value, without the last CR LF.

    The field's pieces begin at a place: one for each of so many sizes, and one for larger ones.
    """
    size: i64 = stop - start
    if start == _NO_NUMBER:
        size = _digits(stop)
        if stop < 0:
            size = sizes
    if size >= sizes:
        out.write(pieces[place + sizes])
        _add_bulk(out, blob, start, stop)
        return
    piece = pieces[place + size]
    if len(piece) == 0:
        piece = pieces[place + size] = b"%b%d\r\n" % (pieces[place + sizes], size)
    out.write(piece)
    if start == _NO_NUMBER:
        _add_digits(out, stop, size)
    else:
        add_text(out, blob, start, stop)


def _add_bulk(out: BytesWriter, blob: bytes, start: i64, stop: i64) -> None:
    """An element as a bulk string, without its `$` and its last CR LF."""
    if start != _NO_NUMBER:
        _add_size(out, stop - start)
        add_text(out, blob, start, stop)
        return
    number: i64 = stop
    minus: i64 = 0
    if number < 0:
        if number < -_HALF_RANGE:
            text = b"%d" % number
            _add_size(out, len(text))
            out.write(text)
            return
        minus = 1
        number = -number
    digits: i64 = _digits(number)
    _add_size(out, digits + minus)
    if minus:
        out.append(DASH)
    _add_digits(out, number, digits)


def _add_size(out: BytesWriter, size: i64) -> None:
    """A size and CR LF."""
    if size < 10:
        digit: int = ZERO + size
        out.append(digit)
        write_i16_le(out, _LINE_END)
    elif size < 100:
        tens: i64 = size // 10
        line: int = (ZERO + tens) | (ZERO + size - 10 * tens) << 8 | _LINE_END << 16
        write_i32_le(out, line)
    else:
        _add_digits(out, size, _digits(size))
        write_i16_le(out, _LINE_END)


def add_text(out: BytesWriter, text: bytes, at: i64, stop: i64) -> None:
    """Some bytes of a text."""
    if stop - at > _LONGEST_LOOPED:
        out.write(text[at:stop])
        return
    while at + 8 <= stop:
        write_i64_le(out, read_i64_le(text, at))
        at += 8
    if at + 4 <= stop:
        write_i32_le(out, read_i32_le(text, at))
        at += 4
    if at + 2 <= stop:
        write_i16_le(out, read_i16_le(text, at))
        at += 2
    if at < stop:
        out.append(text[at])


def _digits(number: i64) -> i64:
    """How many bytes the text of a number has that is not negative."""
    count: i64 = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


def _digits_text(number: i64, digits: i64) -> i64:
    """The last digits of a number, at most eight, as a little-endian number of these bytes."""
    text: i64 = 0
    while digits > 0:
        rest: i64 = number // 10
        text = text << 8 | (ZERO + number - 10 * rest)
        number = rest
        digits -= 1
    return text


def _add_digits(out: BytesWriter, number: i64, digits: i64) -> None:
    """The text of a number that is not negative, and has so many digits."""
    if digits == 1:
        digit: int = ZERO + number
        out.append(digit)
        return
    if digits > 8:
        _add_digits(out, number // _EIGHT_DIGITS, digits - 8)
        digits = 8
    _add_word(out, _digits_text(number, digits), digits)


def _add_word(out: BytesWriter, word: i64, size: i64) -> None:
    """So many bytes, at most eight, of a little-endian number; they are ASCII."""
    if size == WORD:
        write_i64_le(out, word)
        return
    part: int = 0
    if size >= 4:
        part = word & 0xFFFF_FFFF
        write_i32_le(out, part)
        word >>= 32
        size -= 4
    if size >= 2:
        part = word & 0xFFFF
        write_i16_le(out, part)
        word >>= 16
        size -= 2
    if size:
        part = word
        out.append(part)
