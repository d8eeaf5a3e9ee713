"""A request that comes alone is cut apart, or left to the reader: never read as something else.

Both ways are shown, that of Python and that of the compiled build, on either build.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol import native_parser
from penstock.protocol.limits import Limits
from penstock.protocol.lone_request import cut_at_line_ends, one_request
from penstock.protocol.request_reader import packed
from penstock.protocol.strict_parser import PlainReader

WORDS = st.lists(st.binary(max_size=12) | st.sampled_from([b"\r", b"\n", b"$1", b"*2", b"", b"a" * 4095]), min_size=1)
PIECES = st.sampled_from([b"*1", b"*2", b"*3", b"$0", b"$1", b"$2", b"$4", b"\r\n", b"\r", b"\n", b"a", b"PING", b""])
WAYS = [one_request, cut_at_line_ends, native_parser.one_request]

Way = Callable[[bytes], list[bytes] | None]


@given(WORDS)
def test_an_ordinary_request_is_cut_into_its_words(words):
    has_line_end = any(b"\r\n" in word for word in words)

    assert cut_at_line_ends(packed(words)) == (None if has_line_end else words)
    assert native_parser.one_request(packed(words)) == words


@given(st.lists(WORDS, min_size=1, max_size=4), st.integers(0, 3), st.lists(PIECES, max_size=2).map(b"".join))
def test_several_are_read_if_all_of_them_are_ordinary(pipeline, cut, behind):
    sent = b"".join(map(packed, pipeline))

    assert native_parser.requests(sent) == pipeline
    assert native_parser.requests(sent + packed([b"a" * 4096])) == []
    if cut:
        assert native_parser.requests(sent[:-cut]) == []
    elif not behind.startswith(b"*"):
        assert native_parser.requests(sent + behind) == ([] if behind else pipeline)


@pytest.mark.parametrize("way", WAYS)
@given(st.lists(PIECES, max_size=20).map(b"".join))
def test_what_is_cut_is_what_the_plain_reader_reads_and_nothing_is_left(way: Way, data: bytes) -> None:
    words = way(data)

    if words is not None:
        reader = PlainReader(Limits())
        reader.feed(data)
        assert reader.next() == words
        assert reader.unread == 0
        assert not reader.is_amid


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"PING\r\n",
        b"*0\r\n",
        b"*1\r\n",
        b"*01\r\n$4\r\nPING\r\n",
        b"*1\r\n$04\r\nPING\r\n",
        b"*1\r\n$4\r\nPIN",
        b"*1\r\n$4\r\nPING",
        b"*1\r\n$4\r\nPING\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nPING\r\n",
        b"*1\r\n$-1\r\n\r\n",
        b"*1\r\n+PING\r\n",
        b"*1\r\n$4\r\nPINGxx",
        b"*1\r\n$4\r\nPING\r",
        b"*1\r\n$\r\n\r\n",
        b"*\r\n$4\r\nPING\r\n",
        b"*1\r$4\r\nPING\r\n",
        b"*1\n\n$4\r\nPING\r\n",
        b"*1\r\n$4\r\rPING\r\n",
        b"*1000000000000000000000\r\n$4\r\nPING\r\n",
        b"*1\r\n$1000000000000000000000\r\nPING\r\n",
        b"*1\r\n$4096\r\n" + b"a" * 4096 + b"\r\n",
        packed([b"a"] * 1000),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_one_ordinary_request_is_left_to_the_reader(way: Way, data: bytes) -> None:
    assert way(data) is None


def test_the_largest_count_is_cut():
    assert one_request(packed([b"a"] * 999)) == [b"a"] * 999
