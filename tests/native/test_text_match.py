"""Bytes compared by machine words, beside Python's own comparison."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.native.text_match import is_at

FEW_LETTERS = st.binary(max_size=24).map(lambda text: bytes(97 + letter % 2 for letter in text))


@given(FEW_LETTERS, FEW_LETTERS, st.integers(0, 24))
def test_a_piece_is_where_startswith_finds_it(piece: bytes, text: bytes, at: int) -> None:
    text = text.ljust(at + len(piece), b"a")  # it does not end before the piece would

    assert is_at(piece, text, at) == text.startswith(piece, at)


@given(FEW_LETTERS, st.binary(max_size=9), st.binary(max_size=9))
def test_a_piece_is_where_it_was_put(piece: bytes, before: bytes, after: bytes) -> None:
    assert is_at(piece, before + piece + after, len(before))
