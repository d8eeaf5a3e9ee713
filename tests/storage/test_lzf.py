"""LZF: what liblzf makes of texts is expanded and made again, and no damage does harm."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.rdb import lzf, native_lzf
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.string_writer import StringWriter

JSON = b"".join(b'{"name":"user-%05d","price":%d.45,"tags":["a","b"]}' % (at * 7919 % 99991, at) for at in range(400))
OF_LIBLZF = [  # by python-neo-lzf 0.3.5: a text, and the SHA-256 of lzf.compress(text, len(text) - 5)
    (b"a" * 21, "61bbc201f7b2baed6e0aea9222d69c479a99ee22c6ae2572bbb828af2e9e7f0e"),
    (b"a" * 36, "8ea18d5b78662dc578b040932a96b6786c5350b123e0f02de7b7a67e88261499"),
    (b"a" * 300, "3ae161bb21bddc5f9dd521ea526d539760a1b1b409324183bff4165c199ce540"),
    (b"abc" * 50, "63adadf2c7a113daa145f4ed2c3a3ccd25f9dbf0626bafbf35b3c11c7ece98fd"),
    (bytes(range(256)) * 3, "2bcfabcb4215960da95fb05adee7541d9f17cd9910cd1b965fdc17784ca234d0"),
    (b"ab" * 9000, "e974d7793c594072a02795357d8904211c69dcf1d7147b410d4732ca8c4cea6e"),
    (b"xyz" + b"q" * 299, "52d139e67d7167c3a9865636b86b3ce65ce1a5d8b99cc3db1421cc82e87cb46c"),
    (JSON, "1f7f4e6b3fd7ea8df08988bf7264668fc48040f60db0cc16441293811a937247"),
    (JSON[:2000], "8e8efc4e0031dbea6d85effa1a49c5b931dcfb1bb4c3b6fb51636114b9444b22"),
    (b"136," * 6, "4887344ab924d8421690068c148a7f076f0c51ddd5fb33ba755584b496a90155"),
    (bytes(60_000), "5ff760f3efb4159948d6a7c680259b401383ac9a8e2b82400e98aaf65cf1bf23"),
]
TEXTS = st.one_of(
    st.binary(max_size=600),
    st.lists(st.sampled_from([b"hello ", b"world", b"\0\0\0", b"a", b"{'k':1}", bytes(40)]), max_size=200).map(
        b"".join
    ),
    st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 3000)).map(lambda drawn: drawn[0] * drawn[1]),
)


@pytest.mark.parametrize(("text", "digest"), OF_LIBLZF, ids=lambda one: str(len(one)) if isinstance(one, bytes) else "")
def test_a_text_is_compressed_as_liblzf_does_it(text: bytes, digest: str) -> None:
    packed = lzf.compressed(text)

    assert packed is not None
    assert hashlib.sha256(packed).hexdigest() == digest
    assert lzf.expanded(packed, len(text)) == text


@given(TEXTS)
def test_what_was_compressed_is_expanded_again(text: bytes) -> None:
    packed = lzf.compressed(text)

    assert packed is None or lzf.expanded(packed, len(text)) == text
    assert packed is None or len(packed) + lzf.SAVES_AT_LEAST <= len(text)


@st.composite
def announced(draw: st.DrawFn) -> tuple[bytes, int]:
    """A compressed text that may be damaged, and the size that it is said to have."""
    text = draw(TEXTS)
    packed = bytearray(lzf.compressed(text) or text)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(packed)))
        packed[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(packed), draw(st.sampled_from([len(text), len(text) + 1, 0, 1, 88 * len(packed)]))


@given(announced())
def test_damage_is_refused_or_gives_as_many_bytes_as_were_announced(drawn: tuple[bytes, int]) -> None:
    packed, size = drawn

    assert size_of(packed, size) in (None, size)


@given(announced())
def test_bytes_are_expanded_one_by_one_as_by_pieces(drawn: tuple[bytes, int]) -> None:
    packed, size = drawn

    assert native_lzf.expanded(packed, size) == lzf.expanded_by_pieces(packed, size)


def size_of(packed: bytes, size: int) -> int | None:
    """How many bytes come out; None where it is refused."""
    try:
        return len(lzf.expanded(packed, size))
    except BadRdb:
        return None


@pytest.mark.parametrize(
    ("packed", "size"),
    [
        (b"", 0), (b"", 1), (b"\x00", 1), (b"\x01a", 2), (b"\x00a\x20", 4), (b"\x00a\xe0", 4), (b"\x00a\xe0\x01", 4),
        (b"\x20\x00", 3), (b"\x00a\x20\x01", 4), (b"\x00a", 2), (b"\x00ab", 1), (b"\x00a\xe0\xff\x00", 264),
        (b"\x00a", 1 << 62), (b"\x00a", -1),
    ],
)  # fmt: skip
def test_what_is_not_whole_or_lies_is_refused(packed: bytes, size: int) -> None:
    with pytest.raises(BadRdb):
        lzf.expanded(packed, size)


def test_a_run_of_one_byte_is_expanded() -> None:
    assert lzf.expanded(b"\x00a\xe0\xff\x00", 265) == b"a" * 265


def test_a_text_that_liblzf_has_too_little_room_for_stays_as_it_is() -> None:
    assert lzf.compressed(bytes(range(20)) + bytes(range(20, 256)) + bytes(range(20))) is None


def test_a_text_that_takes_too_long_to_compress_stays_as_it_is() -> None:
    assert lzf.compressed(bytes(lzf.LONGEST_COMPRESSED)) is not None
    assert lzf.compressed(bytes(lzf.LONGEST_COMPRESSED + 1)) is None


def test_a_writer_compresses_so_many_bytes_and_no_more() -> None:
    strings = StringWriter(1500)

    sizes = [len(strings.blob(bytes(1000))) for _ in range(3)]

    assert sizes[0] == sizes[1] < 100
    assert sizes[2] == 1002
