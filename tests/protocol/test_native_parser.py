"""Requests read byte by byte: what is read is what the strict parser reads, and nothing else is taken.

These loops are the compiled build's way; here they run on either build.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol import native_parser
from penstock.protocol.limits import BLOCK, Limits
from penstock.protocol.reply import bulks as packed
from penstock.protocol.request_batch import NO_WORDS, RequestBatch, one
from penstock.protocol.strict_parser import StrictParser, is_web

WORDS = st.lists(st.binary(max_size=12) | st.sampled_from([b"\r", b"\n", b"$1", b"*2", b"", b"a" * 4096]), min_size=1)
PIECES = st.sampled_from([b"*1", b"*2", b"*3", b"$0", b"$1", b"$2", b"$4", b"\r\n", b"\r", b"\n", b"a", b"PING", b""])


def read(data: bytes) -> tuple[list[list[bytes]], int]:
    """The requests at the head of some bytes, and their size."""
    found: list[RequestBatch] = []
    size = native_parser.batches(data, 0, 1 << 30, {}, found, one(NO_WORDS))
    return [batch.request(0) for batch in found], size


@given(st.lists(WORDS.filter(lambda words: not is_web(words[0])), min_size=1, max_size=4), st.integers(1, 3))
def test_ordinary_requests_are_read_and_what_is_not_whole_is_left(pipeline: list[list[bytes]], cut: int) -> None:
    sent = b"".join(map(packed, pipeline))

    assert read(sent) == (pipeline, len(sent))
    assert read(sent[:-cut]) == (pipeline[:-1], len(sent) - len(packed(pipeline[-1])))


@given(st.lists(PIECES, max_size=20).map(b"".join))
def test_what_is_read_is_what_the_strict_parser_reads_and_nothing_is_left(data: bytes) -> None:
    requests, size = read(data)
    parser = StrictParser(Limits())
    parser.feed(data[:size])

    assert [parser.next() for _ in requests] == requests
    assert not parser.is_amid


def test_the_ends_of_a_transaction_are_read_in_any_letters_and_anywhere() -> None:
    pipeline = [[b"MULTI"], [b"multi"], [b"MULTI", b"x"], [b"EXEC"], [b"PING"], [b"Exec"], [b"EXECX"], [b"EXEC"]]
    sent = b"".join(map(packed, pipeline))

    assert read(sent) == (pipeline, len(sent))
    assert read(sent[:-1])[0] == pipeline[:-1]
    assert read(packed([b"EXEC"])) == ([[b"EXEC"]], 14)
    assert read(packed([b"MULTI"]) + packed([b"MULTI"])[:-1]) == ([[b"MULTI"]], 15)


@pytest.mark.parametrize("request_at_head", [b"POST", b"host:", b"Post\0x"])
def test_a_browser_is_left_to_the_strict_parser(request_at_head: bytes) -> None:
    assert read(packed([b"PING"]) + packed([request_at_head, b"/"])) == ([[b"PING"]], 14)


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
        packed([b"a" * BLOCK]),
        packed([b"a"] * 1000),
    ],
)
def test_what_is_not_one_ordinary_request_is_left(data: bytes) -> None:
    assert read(data) == ([], 0)


def test_the_largest_count_and_the_largest_word_are_read() -> None:
    assert read(packed([b"a"] * 999))[0] == [[b"a"] * 999]
    assert read(packed([b"a" * (BLOCK - 1)]))[0] == [[b"a" * (BLOCK - 1)]]
