"""Values for Lua: replies and words, packed as LuaJIT's library string.buffer reads them.

The format is that of https://luajit.org/ext_buffer.html (LuaJIT 2.1, "Serialization Format Specification"). C makes
the tables from it, at a tenth of what reading RESP costs in Lua.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_f64_le, write_i32_le

from penstock.native.build import IS_COMPILED
from penstock.protocol import reply

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

AS_ERROR: Final = b"\0-"  # before the text of an error
AS_PACKED: Final = b"\0="  # before what string.buffer reads
LEAVE: Final = b"\0!"  # before these two and texts, to a script that is to leave its place

NIL: Final = b"\0"
FALSE: Final = b"\1"
TRUE: Final = b"\2"
_INTEGER: Final = b"\6"
_NUMBER: Final = b"\7"
_EMPTY: Final = b"\x08"  # a table
_MAP: Final = b"\x09"
_ARRAY: Final = b"\x0c"
_TEXT: Final = 0x20  # what the length of a text begins at
_ONE_BYTE: Final = 0xE0  # lengths below take one byte,
_TWO_BYTES: Final = 0x1FE0  # and below this two
_LENGTHS: Final = [bytes((size,)) for size in range(_ONE_BYTE)]
_SIZES: Final = {b"$%d" % size: size for size in range(_ONE_BYTE - _TEXT)}  # by a bulk string's first line
_TEXT_HEADERS: Final = {head: bytes((_TEXT + size,)) for head, size in _SIZES.items()}
_LONG_LENGTH: Final = b"\xff\0\0\0\0"  # a length of four bytes
_MOST_COPIED: Final = 24  # bytes of a text that are quicker copied one by one than by a slice
_LARGEST_INTEGER: Final = 2**31
_EXACT_DIGITS: Final = 18  # an integer's reply that is shorter is a number that Lua's hold exactly
_CR: Final = 13
_ZERO: Final = 48
_DOLLAR: Final = 36  # the types of RESP
_STAR: Final = 42
_COLON: Final = 58
_PLUS: Final = 43
_MINUS: Final = 45
_UNDERSCORE: Final = 95
_HASH: Final = 35
_COMMA: Final = 44
_PERCENT: Final = 37
_TILDE: Final = 126
_BRACKET: Final = 40
_EQUALS: Final = 61
_GREATER: Final = 62


def handed(found: bytes) -> bytes | int:
    """A reply as sandbox.lua takes it: the commonest as values, any other behind a NUL.

    A bulk string is itself, unless it begins with a NUL; an integer a number, as long as Lua's hold it exactly; a null
    False, OK True.
    """
    kind: i64 = found[0]
    size: i64 = len(found)
    if kind == _DOLLAR:
        if found[1] == _MINUS:
            return False
        at: i64 = _behind(found, 1)
        if at + 2 == size or found[at] != 0:
            return found[at:-2]
    elif kind == _COLON and size < _EXACT_DIGITS:
        return _number(found, 1)
    elif found == reply.OK:
        return True
    return _marked(found)


def handed_in_the_end(found: bytes) -> bytes:
    """A reply as sandbox.lua takes it, and with it that the script is to leave its place."""
    value = handed(found)
    return LEAVE + (value if isinstance(value, bytes) else _marked(found))


def least_room(found: bytes, leaves: bool) -> int:
    """Bytes of Lua's memory that a reply takes at least, to be asked for before it is copied.

    A text that begins with a NUL is there as it is handed over, without what stands before it, and by itself.
    """
    size = len(found)
    if found[0] == _DOLLAR and found[1] != _MINUS and found[_behind(found, 1)] == 0:
        return 3 * size
    return 2 * size if leaves else size


def _marked(found: bytes) -> bytes:
    """A reply that is no value by itself, behind what says how it is to be read."""
    return AS_ERROR + found[1:-2] if found[0] == _MINUS else AS_PACKED + packed(found)


def packed(found: bytes) -> bytes:
    """One reply, in RESP2 or RESP3. O(its length)."""
    if not IS_COMPILED and found[0] == _STAR:
        texts = _packed_texts(found)
        if texts is not None:
            return texts
    out = BytesWriter()
    _pack(found, 0, out)
    return out.getvalue()


def packed_words(words: list[bytes]) -> bytes:
    """An array of texts."""
    out = BytesWriter()
    begin_array(len(words), out)
    for word in words:
        pack_text(word, out)
    return out.getvalue()


def _packed_texts(found: bytes) -> bytes | None:
    """An array of short texts without line ends, for the uncompiled build: by a split and a join. None for any other.

    `packed` without this is the oracle in a test.
    """
    lines = found.split(b"\r\n")
    heads, texts = lines[1:-1:2], lines[2::2]
    if len(heads) != len(texts) or lines[0] != b"*%d" % len(texts) or not texts:
        return None
    if [_SIZES.get(head, -1) for head in heads] != [len(text) for text in texts]:
        return None
    out = BytesWriter()
    begin_array(len(texts), out)
    parts = [b""] * (2 * len(texts))
    parts[::2] = [_TEXT_HEADERS[head] for head in heads]
    parts[1::2] = texts
    return out.getvalue() + b"".join(parts)


def _number(data: bytes, at: i64) -> i64:
    """The number that stands there, up to the end of its line."""
    if not IS_COMPILED:
        return int(data[at : data.index(b"\r", at)])
    sign: i64 = 1
    if data[at] == _MINUS:
        sign, at = -1, at + 1
    number: i64 = 0
    digit: i64 = data[at]
    while digit != _CR:
        number = number * 10 + digit - _ZERO
        at += 1
        digit = data[at]
    return sign * number


def _behind(data: bytes, at: i64) -> i64:
    """Where the next line begins."""
    if not IS_COMPILED:
        return data.index(b"\n", at) + 1
    while data[at] != _CR:
        at += 1
    return at + 2


def _pack(data: bytes, at: i64, out: BytesWriter) -> i64:
    """Pack the reply that begins there; where it ends."""
    kind: i64 = data[at]
    after: i64 = _behind(data, at)
    if kind == _DOLLAR:
        size: i64 = _number(data, at + 1)
        if size < 0:
            out.write(FALSE)
            return after
        pack_text(data[after : after + size], out)
        return after + size + 2
    if kind in (_STAR, _GREATER):
        count: i64 = _number(data, at + 1)
        if count < 0:
            out.write(FALSE)
            return after
        begin_array(count, out)
        return _pack_several(data, after, count, out)
    if kind == _COLON:
        pack_integer(int(data[at + 1 : after - 2]), out)
        return after
    return _pack_rare(data, at, after, kind, out)


def _pack_several(data: bytes, at: i64, count: i64, out: BytesWriter) -> i64:
    while count > 0:
        if IS_COMPILED and data[at] == _DOLLAR and data[at + 2] == _CR:
            at = _pack_short(data, at, data[at + 1] - _ZERO, out)
        elif IS_COMPILED and data[at] == _DOLLAR and data[at + 3] == _CR and data[at + 1] != _MINUS:
            at = _pack_short(data, at + 1, 10 * (data[at + 1] - _ZERO) + data[at + 2] - _ZERO, out)
        else:
            at = _pack(data, at, out)
        count -= 1
    return at


def _pack_short(data: bytes, at: i64, size: i64, out: BytesWriter) -> i64:
    """Pack a bulk string of less than a hundred bytes; where it ends. at: four bytes before its text."""
    end: i64 = at + 4 + size
    pack_part(data, at + 4, end, out)
    return end + 2


def _pack_rare(data: bytes, at: i64, after: i64, kind: i64, out: BytesWriter) -> i64:
    """Pack a status, an error, or what only RESP3 has. after: where the reply's first line ends."""
    head = data[at + 1 : after - 2]
    if kind == _PLUS:
        _pack_field(b"ok", head, out)
    elif kind == _MINUS:
        begin_map(2, out)
        pack_text(b"err", out)
        pack_text(head, out)
        pack_text(b"ignore_error_stats_update", out)
        out.write(TRUE)
    elif kind == _UNDERSCORE:
        out.write(NIL)
    elif kind == _HASH:
        out.write(TRUE if head == b"t" else FALSE)
    elif kind == _BRACKET:
        _pack_field(b"big_number", head, out)
    elif kind == _COMMA:
        begin_map(1, out)
        pack_text(b"double", out)
        pack_double(float(head), out)
    elif kind == _PERCENT:
        begin_map(1, out)
        pack_text(b"map", out)
        count: i64 = _number(data, at + 1)
        begin_map(count, out)
        return _pack_several(data, after, 2 * count, out)
    elif kind == _TILDE:
        begin_map(1, out)
        pack_text(b"set", out)
        members: i64 = _number(data, at + 1)
        begin_map(members, out)
        while members > 0:
            after = _pack(data, after, out)
            out.write(TRUE)
            members -= 1
    elif kind == _EQUALS:
        size: i64 = _number(data, at + 1)
        begin_map(1, out)
        pack_text(b"verbatim_string", out)
        begin_map(2, out)
        pack_text(b"format", out)
        pack_text(data[after : after + 3], out)
        pack_text(b"string", out)
        pack_text(data[after + 4 : after + size], out)
        return after + size + 2
    else:
        raise ValueError(f"a reply that begins with {data[at : at + 1]!r}")
    return after


def _pack_field(name: bytes, text: bytes, out: BytesWriter) -> None:
    """A table of one field."""
    begin_map(1, out)
    pack_text(name, out)
    pack_text(text, out)


def pack_text(text: bytes, out: BytesWriter) -> None:
    _pack_length(_TEXT + len(text), out)
    out.write(text)


def pack_part(text: bytes, begin: i64, end: i64, out: BytesWriter) -> None:
    """Pack a part of a text, as a text."""
    _pack_length(_TEXT + end - begin, out)
    if end - begin > _MOST_COPIED:
        out.write(text[begin:end])
        return
    while begin < end:
        out.append(text[begin])
        begin += 1


def pack_integer(number: int, out: BytesWriter) -> None:
    if -_LARGEST_INTEGER <= number < _LARGEST_INTEGER:
        out.write(_INTEGER)
        write_i32_le(out, number)
    else:
        pack_double(float(number), out)


def pack_double(number: float, out: BytesWriter) -> None:
    out.write(_NUMBER)
    write_f64_le(out, number)


def begin_array(count: i64, out: BytesWriter) -> None:
    if count:
        out.write(_ARRAY)
        _pack_length(count + 1, out)
    else:
        out.write(_EMPTY)


def begin_map(count: i64, out: BytesWriter) -> None:
    out.write(_MAP)
    _pack_length(count, out)


def begin_table(is_map: bool, out: BytesWriter) -> int:
    """Begin a map or an array before its length is known: the place that `end_table` fills in."""
    out.write(_MAP if is_map else _ARRAY)
    out.write(_LONG_LENGTH)
    return len(out) - 4


def end_table(place: i64, count: i64, out: BytesWriter) -> None:
    """Say how many pairs a map has; of an array one more than it has values."""
    for part in range(4):
        out[place + part] = int(count >> 8 * part & 0xFF)


def _pack_length(size: i64, out: BytesWriter) -> None:
    if size < _ONE_BYTE:
        out.write(_LENGTHS[size])
    elif size < _TWO_BYTES:
        size -= _ONE_BYTE
        out.append(_ONE_BYTE | size >> 8)
        out.append(size & 0xFF)
    else:
        out.append(0xFF)
        write_i32_le(out, int(size))
