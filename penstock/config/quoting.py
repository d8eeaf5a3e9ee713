"""Words in quotes, as in redis.conf: a line split into words, and a word put in quotes."""

from typing import Final

_BLANKS: Final = b" \t\n\r\v\f"  # may come before a word and after a closing quote
_ENDS: Final = b" \t\n\r"  # end a word without quotes (Redis 8.6.3)
_ESCAPES: Final = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}
_SHOWN: Final = {value: "\\" + chr(letter) for letter, value in _ESCAPES.items()}
_HEX: Final = b"0123456789abcdefABCDEF"
NOT_CLOSED: Final = -1  # in place of an index


def split(line: bytes) -> list[bytes] | None:
    """The words of a line; None if a quote is not closed, or if something other than a blank follows a closing one.

    In double quotes the escapes are \\n \\r \\t \\b \\a, \\xHH, and a backslash before any other byte; in single
    quotes only \\'.

    >>> split(b'save "60 1" \\'it\\\\\\'s\\' "\\\\x41"')
    [b'save', b'60 1', b"it's", b'A']
    """
    words: list[bytes] = []
    at, end = 0, len(line)
    while True:
        while at < end and line[at] in _BLANKS:
            at += 1
        if at == end:
            return words
        word = bytearray()
        while at < end and line[at] not in _ENDS:
            if line[at] == ord('"'):
                at = _double(line, at + 1, word)
            elif line[at] == ord("'"):
                at = _single(line, at + 1, word)
            else:
                word.append(line[at])
                at += 1
                continue
            if at == NOT_CLOSED or (at < end and line[at] not in _BLANKS):
                return None
            break
        words.append(bytes(word))


def quoted(text: bytes) -> str:
    """The text in double quotes: `split` returns the text again.

    >>> quoted(b'a "b"\\x00')
    '"a \\\\"b\\\\"\\\\x00"'
    """
    shown = []
    for byte in text:
        if byte in b'"\\':
            shown.append("\\" + chr(byte))
        elif byte in _SHOWN:
            shown.append(_SHOWN[byte])
        else:
            shown.append(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")
    return '"' + "".join(shown) + '"'


def _double(line: bytes, at: int, word: bytearray) -> int:
    """Read up to the closing double quote; returns the index after it, or NOT_CLOSED."""
    end = len(line)
    while at < end:
        byte = line[at]
        if byte == ord('"'):
            return at + 1
        if byte == ord("\\") and line[at + 1 : at + 2] == b"x" and _is_hex(line[at + 2 : at + 4]):
            word.append(int(line[at + 2 : at + 4], 16))
            at += 4
        elif byte == ord("\\") and at + 1 < end:
            word.append(_ESCAPES.get(line[at + 1], line[at + 1]))
            at += 2
        else:
            word.append(byte)
            at += 1
    return NOT_CLOSED


def _single(line: bytes, at: int, word: bytearray) -> int:
    """As `_double`, for single quotes."""
    end = len(line)
    while at < end:
        if line[at] == ord("'"):
            return at + 1
        if line[at : at + 2] == b"\\'":
            at += 1
        word.append(line[at])
        at += 1
    return NOT_CLOSED


def _is_hex(digits: bytes) -> bool:
    return len(digits) == 2 and digits[0] in _HEX and digits[1] in _HEX
