"""JSON as LuaJIT's library string.buffer reads it: C then makes the tables that cjson.decode gives.

lua/cjson.lua reads what is refused here (None), and is the oracle in a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from penstock.engine.scripting import lua_values

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

_DEEPEST: Final = 30  # tables in tables; cjson.lua asks only where it allows as many (LEAST_DEPTH)
_MOST_DIGITS: Final = 15  # of a number: a double holds it exactly
_QUOTE: Final = 34
_COMMA: Final = 44
_MINUS: Final = 45
_POINT: Final = 46
_ZERO: Final = 48
_NINE: Final = 57
_COLON: Final = 58
_OPEN_ARRAY: Final = 91
_BACKSLASH: Final = 92
_CLOSE_ARRAY: Final = 93
_OPEN_OBJECT: Final = 123
_CLOSE_OBJECT: Final = 125
_END: Final = -1


def decoded(text: bytes, begin: int) -> bytes | None:
    """The array or object from `begin` to the text's end, packed. O(the text's length).

    None if the text has anything else: mistakes, escapes, null, numbers with an exponent or with many digits.
    """
    reader = _Reader(text, begin)
    if not reader.read(0) or reader.sign() != _END:
        return None
    return reader.out.getvalue()


class _Reader:
    """Reads values from `at` on. A method is false where it refuses; then the rest does not matter."""

    __slots__ = ("at", "end", "out", "text")

    def __init__(self, text: bytes, at: i64) -> None:
        self.text = text
        self.at: i64 = at
        self.end: i64 = len(text)
        self.out = BytesWriter()

    def sign(self) -> i64:
        """The next byte that is no blank, which `at` then names; _END where there is none."""
        at: i64 = self.at
        end: i64 = self.end
        while at < end:
            code: i64 = self.text[at]
            if code != 32 and code != 10 and code != 13 and code != 9:
                self.at = at
                return code
            at += 1
        self.at = at
        return _END

    def read(self, depth: i64) -> bool:
        code = self.sign()
        if code == _QUOTE:
            return self._read_text()
        if code in (_OPEN_OBJECT, _OPEN_ARRAY):
            return depth < _DEEPEST and self._read_table(code == _OPEN_OBJECT, depth)
        if code == _MINUS or _ZERO <= code <= _NINE:
            return self._read_number()
        return self._read_word(b"true", lua_values.TRUE) or self._read_word(b"false", lua_values.FALSE)

    def _read_word(self, word: bytes, packed: bytes) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.out.write(packed)
        self.at += len(word)
        return True

    def _read_text(self) -> bool:
        text = self.text
        begin: i64 = self.at + 1
        at: i64 = begin
        end: i64 = self.end
        while at < end:
            code: i64 = text[at]
            if code == _QUOTE:
                lua_values.pack_part(text, begin, at, self.out)
                self.at = at + 1
                return True
            if code == _BACKSLASH or code == 0:
                return False
            at += 1
        return False

    def _read_number(self) -> bool:
        """A number without an exponent, of digits that a double holds."""
        text = self.text
        begin: i64 = self.at
        at: i64 = begin
        number: i64 = 0
        digits: i64 = 0
        point: i64 = 0  # its place
        is_negative = text[at] == _MINUS
        if is_negative:
            at += 1
        first: i64 = at
        while at < self.end:
            code: i64 = text[at]
            if _ZERO <= code <= _NINE:
                number = number * 10 + code - _ZERO
                digits += 1
                if digits > _MOST_DIGITS:
                    return False
            elif code == _POINT and not point and at > first:
                point = at
            elif code in (_COMMA, _CLOSE_ARRAY, _CLOSE_OBJECT) or code <= 32:
                break
            else:
                return False
            at += 1
        if digits == 0 or (text[first] == _ZERO and digits > 1 and point != first + 1) or point == at - 1:
            return False
        self.at = at
        if point:
            lua_values.pack_double(float(text[begin:at]), self.out)
        elif number == 0 and is_negative:
            return False  # -0
        else:
            lua_values.pack_integer(-number if is_negative else number, self.out)
        return True

    def _read_table(self, is_object: bool, depth: i64) -> bool:
        out = self.out
        close: i64 = _CLOSE_OBJECT if is_object else _CLOSE_ARRAY
        count: i64 = 0
        self.at += 1
        if self.sign() == close:
            self.at += 1
            lua_values.begin_array(0, out)
            return True
        place = lua_values.begin_table(is_object, out)
        while True:
            if is_object:
                if self.sign() != _QUOTE or not self._read_text() or self.sign() != _COLON:
                    return False
                self.at += 1
            if not self.read(depth + 1):
                return False
            count += 1
            code = self.sign()
            self.at += 1
            if code == close:
                lua_values.end_table(place, count if is_object else count + 1, out)
                return True
            if code != _COMMA:
                return False
