"""Requests typed as a line, beside what Redis 8.6.3 made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ProtocolError
from penstock.protocol import inline

LINES = [
    (b"", []),
    (b" \t\v\f", []),
    (b"PING", [b"PING"]),
    (b"\t PING  a ", [b"PING", b"a"]),
    (b"PING\r ", [b"PING"]),
    (b"PING 'a b'", [b"PING", b"a b"]),
    (b"PING a'b c'", [b"PING", b"ab c"]),
    (b'PING a"b"', [b"PING", b"ab"]),
    (b'""', [b""]),
    (b"'' a", [b"", b"a"]),
    (b"a\x0bb a\x0cb a\x85b a\xa0b", [b"a\x0bb", b"a\x0cb", b"a\x85b", b"a\xa0b"]),
    (b'"a"\x0bb', [b"a", b"b"]),
    (rb'"\x41\n\r\t\b\a\q\"\\\xZZ\x4"', [b'A\n\r\t\x08\x07q"\\xZZx4']),
    (rb"'\'\n\x41'", [b"'\\n\\x41"]),
    (b"*1", [b"*1"]),
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_a_line_is_these_words(line: bytes, words: list[bytes]) -> None:
    assert inline.split(line) == words


@pytest.mark.parametrize("line", [b'"a', b"'a", b'"a"b', b"'a'b", b'"a\\', b'"a\\"', b"'a\\'", b"a\"b'c", b"\"a\"'b'"])
def test_quotes_must_match_and_end_a_word(line: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        inline.split(line)
    assert refused.value.text == b"unbalanced quotes in request"


def quoted(word: bytes) -> bytes:
    return b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"'


@given(st.lists(st.binary(max_size=8), max_size=5))
def test_any_word_can_be_quoted(words: list[bytes]) -> None:
    assert inline.split(b" ".join(map(quoted, words))) == words
