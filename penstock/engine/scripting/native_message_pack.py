"""MessagePack as LuaJIT's library string.buffer reads it: C then makes the tables that cmsgpack.unpack gives.

lua/cmsgpack.lua reads what is refused here (None), and is the oracle in a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_f64_be

from penstock.engine.scripting import lua_values

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

HAS_NIL: Final = b"\0"  # before an array that has nil among its values: Lua makes such a table value by value
_DEEPEST: Final = 30  # tables in tables
_NIL: Final = 0xC0
_FALSE: Final = 0xC2
_TRUE: Final = 0xC3
_DOUBLE: Final = 0xCB
_FIRST_UNSIGNED: Final = 0xCC  # whole numbers of 1, 2, 4 and 8 bytes; then as many with a sign
_FIRST_SIGNED: Final = 0xD0
_LAST_SIGNED: Final = 0xD3
_FIRST_TEXT: Final = 0xD9  # texts, then arrays, then maps, with sizes of 1 (texts only), 2 and 4 bytes
_FIRST_ARRAY: Final = 0xDC
_FIRST_MAP: Final = 0xDE
_EXACT: Final = 0x20  # the first of eight bytes of a whole number that a double may not hold
_SMALL: Final = [lua_values.packed(b":%d\r\n" % number) for number in range(128)]
_NEGATIVE: Final = [lua_values.packed(b":%d\r\n" % number) for number in range(-32, 0)]


def unpacked(text: bytes, begin: int) -> bytes | None:
    """The array or map from `begin` to the text's end, packed; HAS_NIL before an array with nil. O(the text's length).

    None if the text has anything else: a value that is cut off, a name that is no text, nil inside an inner array,
    numbers that a double may not hold, short floats, types that Redis does not know.
    """
    reader = _Reader(text, begin)
    if not reader.read(0) or reader.at != reader.end:
        return None
    packed = reader.out.getvalue()
    return HAS_NIL + packed if reader.has_nil else packed


class _Reader:
    """Reads values from `at` on. A method is false where it refuses; then the rest does not matter."""

    __slots__ = ("at", "end", "has_nil", "out", "text")

    def __init__(self, text: bytes, at: i64) -> None:
        self.text = text
        self.at: i64 = at
        self.end: i64 = len(text)
        self.out = BytesWriter()
        self.has_nil = False

    def read(self, depth: i64) -> bool:
        at: i64 = self.at
        if at >= self.end:
            return False
        code: i64 = self.text[at]
        self.at = at + 1
        if code < 0x80:
            self.out.write(_SMALL[code])
            return True
        if code < 0x90:
            return self._read_map(code - 0x80, depth)
        if code < 0xA0:
            return self._read_array(code - 0x90, depth)
        if code < _NIL:
            return self._read_text(code - 0xA0)
        if code >= 0xE0:
            self.out.write(_NEGATIVE[code - 0xE0])
            return True
        return self._read_long(code, depth)

    def _read_long(self, code: i64, depth: i64) -> bool:
        """A value behind a first byte that is neither a small number nor has a size in itself."""
        if code == _NIL:
            self.out.write(lua_values.NIL)
        elif code in (_TRUE, _FALSE):
            self.out.write(lua_values.TRUE if code == _TRUE else lua_values.FALSE)
        elif code == _DOUBLE:
            return self._read_double()
        elif _FIRST_UNSIGNED <= code <= _LAST_SIGNED:
            return self._read_whole(1 << (code & 3), code >= _FIRST_SIGNED)
        elif code >= _FIRST_MAP:
            return self._read_map(self._size(2 << (code - _FIRST_MAP)), depth)
        elif code >= _FIRST_ARRAY:
            return self._read_array(self._size(2 << (code - _FIRST_ARRAY)), depth)
        elif code >= _FIRST_TEXT:
            return self._read_text(self._size(1 << (code - _FIRST_TEXT)))
        else:
            return False
        return True

    def _size(self, width: i64) -> i64:
        """The number of so many bytes that is there; more than the text has left if it is cut off."""
        if self.at + width > self.end:
            return self.end
        number: i64 = 0
        while width > 0:
            number = number << 8 | self.text[self.at]
            self.at += 1
            width -= 1
        return number

    def _read_whole(self, width: i64, has_sign: bool) -> bool:
        if self.at + width > self.end or (width == 8 and self.text[self.at] >= _EXACT):
            return False
        number = self._size(width)
        if has_sign and width < 8 and number >> (8 * width - 1):
            number -= 1 << (8 * width)
        lua_values.pack_integer(number, self.out)
        return True

    def _read_double(self) -> bool:
        if self.at + 8 > self.end:
            return False
        number = read_f64_be(self.text, self.at)
        self.at += 8
        lua_values.pack_double(number, self.out)
        return number - number == 0  # neither infinite nor no number

    def _read_text(self, size: i64) -> bool:
        at: i64 = self.at
        if size > self.end - at:
            return False
        lua_values.pack_part(self.text, at, at + size, self.out)
        self.at = at + size
        return True

    def _read_array(self, count: i64, depth: i64) -> bool:
        if depth == _DEEPEST or count > self.end - self.at:
            return False
        lua_values.begin_array(count, self.out)
        while count > 0:
            if self.at < self.end and self.text[self.at] == _NIL:
                if depth > 0:
                    return False
                self.has_nil = True
            if not self.read(depth + 1):
                return False
            count -= 1
        return True

    def _read_map(self, count: i64, depth: i64) -> bool:
        if depth == _DEEPEST or 2 * count > self.end - self.at:
            return False
        lua_values.begin_map(count, self.out)
        while count > 0:
            name: i64 = self.text[self.at] if self.at < self.end else _NIL
            if not (0xA0 <= name < _NIL or name == _FIRST_TEXT):
                return False
            if not self.read(depth + 1) or not self.read(depth + 1):
                return False
            count -= 1
        return True
