"""Requests that are alike: what is cut out of the bytes is what the plain reader reads in them.

Both ways are shown, that of Python and that of the compiled build, on either build.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import ProtocolError
from penstock.protocol.limits import Limits
from penstock.protocol.request_batch import (
    NO_SHAPE,
    Alike,
    Shape,
    alike,
    alike_by_heads,
    alike_byte_by_byte,
    shape_of,
)
from penstock.protocol.request_reader import RequestReader, packed
from penstock.protocol.strict_parser import PlainReader

WANTED = frozenset((b"XADD", b"XACK"))
HEAD = [b"XADD", b"s", b"*"]
ADD = packed([*HEAD, b"f", b"v"])


WAYS = [alike_by_heads, alike_byte_by_byte]

Way = Callable[[bytes, Shape], Alike | None]


def found_in(data: bytes, way: Way = alike) -> Alike | None:
    shape = shape_of(data, WANTED)
    return way(data, shape) if shape.behind else None


def requests_of(found: Alike) -> list[list[bytes]]:
    return [found.request(at) for at in range(len(found.tails))]


def read_plainly(data: bytes) -> list[list[bytes]]:
    reader = PlainReader(Limits())
    reader.feed(data)
    requests: list[list[bytes]] = []
    while (request := reader.next()) is not None:
        requests.append(request)
    return requests


words = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"", b"f", b"\r\n", b"*", b"$1", packed([b"XADD", b"s", b"*"]), ADD, ADD[:-1], b"$1\r\n*\r\n"]),
)
requests = st.one_of(
    st.builds(lambda values: [word for value in values for word in (b"f", value)], st.lists(words, max_size=3)),
    st.lists(words, max_size=5),
).map(lambda behind: packed(HEAD + behind))
others = st.sampled_from(
    [packed([b"PING"]), packed([b"XACK", b"s", b"g", b"1-1"]), b"PING\r\n", b"*1\r\n", b"*3\r\n$4"]
)


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None)
@given(st.lists(st.one_of(requests, requests, requests, others), max_size=8), st.integers(0, 40), st.binary(max_size=3))
@example([ADD, ADD], 0, b"")
@example([ADD, ADD, packed([b"PING"])], 0, b"")
@example([ADD, packed([*HEAD, b"f", ADD]), ADD], 0, b"")
@example([packed([*HEAD, b"f", b"\r\n$1\r\n"])] * 2, 0, b"")
def test_what_is_alike_is_what_was_sent(way, pipeline, cut, junk):
    sent = b"".join(pipeline)
    data = sent[: len(sent) - cut] + junk
    found = found_in(data, way)

    if found is not None:
        assert requests_of(found) == read_plainly(data[: found.size])
        assert b"".join([packed(found.head)[4:] + tail for tail in found.tails]).count(b"\r\n") > 0
        assert all(
            packed(request).endswith(tail) for request, tail in zip(requests_of(found), found.tails, strict=True)
        )


@settings(deadline=None)
@given(st.lists(st.one_of(requests, requests, requests, others), max_size=8), st.integers(0, 40), st.binary(max_size=3))
def test_byte_by_byte_nothing_is_missed(pipeline, cut, junk):
    sent = b"".join(pipeline)
    data = sent[: len(sent) - cut] + junk
    found, other = found_in(data, alike_by_heads), found_in(data, alike_byte_by_byte)

    if found is not None:
        assert other is not None
        assert (found.head, found.names, found.columns) == (other.head, other.names, other.columns)
        assert (found.tails, found.size) == (other.tails, other.size)


@pytest.mark.parametrize("way", WAYS)
def test_a_producers_pipeline_is_alike(way):
    found = found_in(b"".join([packed([*HEAD, b"f", b"%d" % n, b"g", b"x" * n]) for n in range(100)]), way)

    assert found is not None
    assert (found.head, found.names, found.words()) == (HEAD, [b"f", b"g"], 7)
    assert found.columns == [[b"%d" % n for n in range(100)], [b"x" * n for n in range(100)]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("behind", [packed([b"XLEN", b"s"]), ADD[:-1], ADD[:9], b"\r\n"])
def test_what_follows_is_left(way, behind):
    found = found_in(ADD * 3 + behind, way)

    assert found is not None
    assert (len(found.tails), found.size) == (3, 3 * len(ADD))


@pytest.mark.parametrize(
    "data",
    [
        ADD,
        packed([b"SET", b"k", b"v"]) * 2,
        packed([b"PING"]) * 2,
        packed([b"XADD", b"s", b"*", b"odd", b"f", b"v"]) * 2,
        b"PING\r\nPING\r\n",
        ADD + packed([*HEAD, b"g", b"v"]),
        ADD + packed([*HEAD, b"f", b"v", b"g", b"w"]),
        ADD + b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$2\r\nv\r\n",
        ADD + b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$01\r\nf\r\n$1\r\nv\r\n",
        packed([*HEAD, b"f", b"v" * 5000]) * 2,
        ADD.replace(b"$1\r\ns", b"$01\r\ns") * 2,
        ADD.replace(b"$4\r\nXADD", b"$5\r\nXADD") * 2,
        b"",
    ],
    ids=["one", "not wanted", "short", "a pair is not whole", "inline", "another field", "more fields",
         "a wrong length", "an odd number", "long words", "an odd number in the head", "a wrong length in the head",
         "nothing"],
)  # fmt: skip
@pytest.mark.parametrize("way", WAYS)
def test_the_rest_is_left_to_the_reader(way, data):
    assert found_in(data, way) is None


def test_a_remembered_shape_is_no_other_ones():
    shape = shape_of(ADD, WANTED)
    longer = packed([b"XADD", b"s", b"*", b"f", b"v", b"g", b"w"]) * 2

    assert shape is not NO_SHAPE
    assert alike(longer, shape) is None
    assert alike(b"PING\r\n" + ADD * 2, shape) is None


def read_in_pieces(pieces: list[bytes], back: set[int]) -> tuple[list[list[bytes]], bytes | None]:
    """What a connection takes: what is alike, unless it puts that back, else the next request."""
    reader = RequestReader(Limits())
    taken: list[list[bytes]] = []
    turn = 0
    for piece in pieces:
        reader.feed(piece)
        try:
            while True:
                turn += 1
                found = reader.next_alike(WANTED)
                if found is not None and turn not in back:
                    taken += requests_of(found)
                    continue
                if found is not None:
                    reader.put_back_alike(found)
                request = reader.next()
                if request is None:
                    break
                taken.append(request)
        except ProtocolError as error:
            return taken, error.text
    return taken, None


def plainly_in_pieces(pieces: list[bytes]) -> tuple[list[list[bytes]], bytes | None]:
    reader = PlainReader(Limits())
    taken: list[list[bytes]] = []
    for piece in pieces:
        reader.feed(piece)
        try:
            while (request := reader.next()) is not None:
                taken.append(request)
        except ProtocolError as error:
            return taken, error.text
    return taken, None


@given(
    st.lists(st.one_of(requests, requests, requests, others), max_size=12),
    st.lists(st.integers(0, 400), max_size=5),
    st.sets(st.integers(1, 12)),
)
@example([ADD] * 6, [len(ADD) * 3 + 7], set())
@example([ADD] * 6, [len(ADD) * 3 + 7], {1})
def test_a_pipeline_that_comes_in_pieces_is_read_as_a_whole(pipeline, cuts, back):
    data = b"".join(pipeline)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:stop] for start, stop in pairwise(places)]

    assert read_in_pieces(pieces, back) == plainly_in_pieces(pieces)


def test_of_a_pipeline_too_long_to_come_at_once_almost_all_is_taken_as_alike():
    data = packed([*HEAD, b"field", b"x" * 100]) * 2000
    reader = RequestReader(Limits())
    together = singly = 0
    for at in range(0, len(data), 100_000):
        reader.feed(data[at : at + 100_000])
        while True:
            found = reader.next_alike(WANTED)
            if found is not None:
                together += len(found.tails)
            elif reader.next() is None:
                break
            else:
                singly += 1

    assert together + singly == 2000
    assert singly < 20
