"""Reading a log's bytes: what a fast parser is believed is what `next_request` gives; offsets, blocks and ends."""

from functools import partial
from itertools import chain

import pytest

from penstock.engine.effects import pack
from penstock.protocol import line_words, native_words
from penstock.protocol.log_reader import (
    BLOCK_BYTES,
    Damage,
    LogBlock,
    LogReader,
    Unfinished,
    next_request,
    only_zeros,
    whole_requests,
)

LINES = (
    "SELECT 0",
    "XADD s 1-1 abc:defg v",
    "MULTI",
    "XACK s g 1-1",
    "EXEC",
    "SET txt:a txt:hello",
    "SET a =b",
    "GET ~",
)
LOG = b"".join(pack(tuple(line.encode().split())) for line in LINES)
STAMP = b"#TS:1795264424\r\n"
A_SET = pack((b"SET", b"k", b"v"))
Exact = tuple[list[list[bytes]], list[int], int, tuple[int, str] | None]


def exactly(text: bytes) -> Exact:
    """The whole requests at the start of a text, their offsets, the bytes they take, the damage: by `next_request`."""
    requests, offsets, at = [], [], 0
    try:
        while at < len(text):
            request, end = next_request(text, at)
            requests.append(request)
            offsets.append(at)
            at = end
    except Unfinished:
        return requests, offsets, at, None
    except Damage as damage:
        return requests, offsets, at, (damage.offset, damage.expected)
    return requests, offsets, at, None


def quickly(text: bytes) -> Exact:
    """The same by `whole_requests`."""
    block = whole_requests(text)
    damage = None if block.damage is None else (block.damage.offset, block.damage.expected)
    return block.requests, block.offsets(), block.taken, damage


def read_from(text: bytes, offset: int, most: int) -> bytes:
    return text[offset : offset + most]


def blocks_of(reader: LogReader) -> list[LogBlock]:
    return list(iter(reader.next_block, None))


def altered_at(at: int) -> list[bytes]:
    """The log with another byte at a place: each that means something to a reader, and every fourth of all."""
    values = {*b"\r\n$*+- 0123456789", *range(at % 4, 256, 4)}
    return [LOG[:at] + bytes([value]) + LOG[at + 1 :] for value in sorted(values)]


def test_whatever_a_byte_becomes_a_block_is_read_exactly() -> None:
    for at in range(len(LOG)):
        altered = altered_at(at)
        assert [quickly(text) for text in altered] == [exactly(text) for text in altered], at


def test_whatever_a_byte_becomes_the_parser_of_either_build_reads_no_other_requests() -> None:
    for altered in chain.from_iterable(map(altered_at, range(len(LOG)))):
        requests, offsets, taken, _ = exactly(altered)

        found: list[list[bytes]] = []
        end = native_words.cut_requests(altered, 0, found)
        found_by_lines: list[list[bytes]] = []
        end_by_lines = line_words.cut_requests(altered, 0, len(altered), found_by_lines)

        assert found == requests[: len(found)]
        assert end == [*offsets, taken][len(found)]
        assert (found_by_lines, end_by_lines) == (found, end)


def test_wherever_a_block_ends_it_is_read_exactly() -> None:
    for size in range(len(LOG)):
        assert quickly(LOG[:size]) == exactly(LOG[:size]), size


@pytest.mark.parametrize(
    "text",
    [
        STAMP + LOG,
        LOG + STAMP + STAMP + LOG + STAMP + LOG,
        LOG + STAMP[:-1],
        LOG + b"#a line for people\n" + LOG,
        LOG + pack((b"SET", b"k", b"\r\n" + STAMP + b"\r\n*")) + STAMP + LOG,
        LOG + b"*3\r\n$03\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n" + STAMP + LOG,
        LOG + b"*0\r\n" + LOG,
    ],
    ids=["first", "several", "cut off", "another", "within a value", "leading zeros", "a request of no words"],
)
def test_annotations_and_odd_lengths_are_read_exactly(text: bytes) -> None:
    assert quickly(text) == exactly(text)


@pytest.mark.parametrize(
    "request_of_one",
    [
        b"*1\r\n=5\r\ntxt:a\r\n",
        b"~1\r\n$1\r\na\r\n",
        b"*1\r\n%1\r\n*0\r\n$1\r\na\r\n",
        b"*1\r\n,inf\r\n",
        b"*0\r\n",
        b"*2\r\n$4\r\na\r\nb\r\n+x\r\n",
        b"*2\r\n$4\r\na\r\nb\r\n$1\r\nxyz",
    ],
    ids=[
        "verbatim",
        "set",
        "map with a list for a key",
        "double",
        "empty",
        "simple string behind a line end in a word",
        "no line end behind a word, but within one",
    ],
)
@pytest.mark.parametrize("before", [b"", A_SET], ids=["first", "later"])
def test_what_only_replies_have_is_not_taken_for_a_request(before: bytes, request_of_one: bytes) -> None:
    text = before + request_of_one + A_SET

    assert quickly(text) == exactly(text)


def test_a_file_comes_in_blocks_and_a_long_request_in_one_of_its_own() -> None:
    long = pack((b"SET", b"k", b"x" * (3 * BLOCK_BYTES)))
    text = A_SET * 4000 + long + A_SET
    reader = LogReader(partial(read_from, text), len(A_SET), len(text))

    blocks = blocks_of(reader)

    assert [offset for block in blocks for offset in block.offsets()] == exactly(text)[1][1:]
    assert [request for block in blocks for request in block.requests] == exactly(text)[0][1:]
    assert max(len(block.text) for block in blocks[:2]) == BLOCK_BYTES
    assert (reader.offset, reader.damage, reader.is_cut_off) == (len(text), None, False)


def test_an_end_within_a_request_is_told_with_where_the_whole_ones_end() -> None:
    text = A_SET * 9000
    reader = LogReader(partial(read_from, text), 0, len(text) - 1)

    blocks_of(reader)

    assert (reader.offset, reader.damage, reader.is_cut_off) == (len(A_SET) * 8999, None, True)


def test_a_file_that_is_shorter_than_it_was_ends_the_reading() -> None:
    reader = LogReader(partial(read_from, A_SET * 3), 0, len(A_SET) * 9000)

    assert [len(block.requests) for block in blocks_of(reader)] == [3]
    assert reader.is_cut_off


def test_damage_has_its_offset_in_the_file() -> None:
    text = A_SET * 9000 + b"+OK\r\n" + A_SET
    reader = LogReader(partial(read_from, text), 0, len(text))

    count = sum(len(block.requests) for block in blocks_of(reader))

    assert (count, reader.offset, reader.is_cut_off) == (9000, len(A_SET) * 9000, False)
    assert reader.damage is not None
    assert reader.damage.offset == len(A_SET) * 9000


@pytest.mark.parametrize(("tail", "expected"), [(b"", True), (bytes(3_000_000), True), (bytes(9) + b"\1", False)])
def test_zeros_at_an_end_are_known(tail: bytes, expected: bool) -> None:
    assert only_zeros(partial(read_from, A_SET + tail), len(A_SET)) is expected
