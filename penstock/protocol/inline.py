r"""Requests typed as a line: `XADD s * name "a \"quoted\" word"` (telnet, netcat, health checks).

>>> split(rb'''SET a"b c" 'it\'s' "\x41\n"''')
[b'SET', b'ab c', b"it's", b'A\n']
"""

import re
from typing import Final

from penstock.errors import ProtocolError

# A word: unquoted characters, then perhaps one quoted part, which ends the word. Vertical tab and form feed separate
# words only before a word and behind a quote; among unquoted characters they are part of the word (Redis 8.6.3).
_WORD: Final = re.compile(
    rb"""
    (?P<bare> [^\ \t\r\n"']* )
    (?: " (?P<double> (?: [^"\\] | \\. )* ) " (?= \s | \Z )
      | ' (?P<single> (?: [^'\\] | \\' | \\(?!') )* ) ' (?= \s | \Z )
    )?
    """,
    re.VERBOSE | re.DOTALL,
)
_SPACE: Final = re.compile(rb"\s*")
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_CONTROL: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_ENDS: Final = b" \t\r\n\v\f"
_QUOTES: Final = b"\"'"


def split(line: bytes) -> list[bytes]:
    """The words of a line, given without its line end; none for an empty line. ProtocolError for unbalanced quotes."""
    words: list[bytes] = []
    at = _end(_SPACE, line, 0)
    while at < len(line):
        found = _WORD.match(line, at)
        assert found is not None, "the pattern matches the empty string"
        at = found.end()
        if at < len(line) and (line[at] in _QUOTES or line[at] not in _ENDS):
            raise ProtocolError(b"unbalanced quotes in request")
        bare, double, single = found.group("bare", "double", "single")
        if double is not None:
            bare += _ESCAPE.sub(_unescaped, double)
        elif single is not None:
            bare += single.replace(b"\\'", b"'")
        words.append(bare)
        at = _end(_SPACE, line, at)
    return words


def _end(pattern: re.Pattern[bytes], line: bytes, at: int) -> int:
    found = pattern.match(line, at)
    return at if found is None else found.end()


def _unescaped(found: re.Match[bytes]) -> bytes:
    code: bytes = found.group(1)
    if len(code) == 3:
        return bytes([int(code[1:], 16)])
    return _CONTROL.get(code, code)
