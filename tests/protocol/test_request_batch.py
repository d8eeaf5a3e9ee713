"""Batches: what begins alike stays together, and is what the strict parser reads.

The parsers of both builds and the plain way, over words, are shown on either build.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import ProtocolError
from penstock.native.resp_sizes import request_bytes
from penstock.protocol import line_parser, native_parser
from penstock.protocol.limits import Limits
from penstock.protocol.reply import bulks as packed
from penstock.protocol.request_batch import COLUMNS, NO_WORDS, OWN, POSITIONS, REQUESTS, RequestBatch, one
from penstock.protocol.request_reader import RequestReader
from penstock.protocol.strict_parser import StrictParser
from tests.support.word_batches import batches_of

SHAPES = {b"XADD": COLUMNS | OWN, b"XACK": COLUMNS, b"GET": REQUESTS, b"SET": POSITIONS | REQUESTS}
TOGETHER = {name: shape | REQUESTS for name, shape in SHAPES.items()}  # those that fit no columns, too
HEAD = [b"XADD", b"s", b"*"]
ADD = packed([*HEAD, b"f", b"v"])
ADD_LONG = packed([*HEAD, b"f", b"v" * 200])

Batches = tuple[list[RequestBatch], int]


def of_bytes(data: bytes, shapes: dict[bytes, int] = SHAPES) -> Batches:
    found: list[RequestBatch] = []
    return found, native_parser.batches(data, 0, 1 << 30, shapes, found, one(NO_WORDS))


def of_words(data: bytes, shapes: dict[bytes, int] = SHAPES) -> Batches:
    """As of_bytes, for bytes that are whole ordinary requests."""
    return batches_of(read_strictly(data)[0], shapes), len(data)


def of_lines(data: bytes, shapes: dict[bytes, int] = SHAPES) -> Batches:
    found: list[RequestBatch] = []
    return found, line_parser.batches(data, 0, 1 << 30, shapes, found, one(NO_WORDS))


PARSERS = [of_bytes, of_lines, of_words]


def requests_of(batches: list[RequestBatch]) -> list[list[bytes]]:
    return [batch.request(at) for batch in batches for at in range(batch.count)]


def picture_of(batch: RequestBatch) -> tuple[object, ...]:
    return batch.prefix, batch.own, batch.middle, batch.names, batch.columns, batch.count, batch.width


def read_strictly(data: bytes) -> tuple[list[list[bytes]], bytes | None]:
    parser = StrictParser(Limits())
    parser.feed(data)
    requests: list[list[bytes]] = []
    try:
        while (request := parser.next()) is not None:
            requests.append(request)
    except ProtocolError as error:
        return requests, error.text
    return requests, None


words = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"", b"f", b"\r\n", b"*", b"$1", packed([b"XADD", b"s", b"*"]), ADD, ADD[:-1], b"$1\r\n*\r\n"]),
)
requests = st.one_of(
    st.builds(lambda values: [word for value in values for word in (b"f", value)], st.lists(words, max_size=3)),
    st.lists(words, max_size=5),
).map(lambda behind: packed(HEAD + behind))
idempotent = st.builds(
    lambda own, middle, value: packed([b"XADD", b"s", *own, *middle, b"f", value]),
    st.tuples(st.sampled_from([b"IDMP", b"IDMP", b"idmp", b"IDMPAUTO"]), words, words),
    st.sampled_from([b"*", b"*", b"MAXLEN ~ 9 *", b"MAXLEN = 9 *", b"MAXLEN ~ 9 LIMIT 5 *", b"1-1"]).map(bytes.split),
    words,
)
ALIKE = [packed(line.split()) for line in (b"GET k", b"GET k", b"GET other", b"get k", b"SET k v", b"SET k v NX")]
unlike = st.builds(
    lambda name, key, own, value: packed([name, key, own, b"f", value]),
    st.sampled_from([b"XADD", b"XADD", b"XACK"]),
    st.sampled_from([b"s", b"s", b"t"]),
    st.sampled_from([b"*", b"*", b"1-1", b"2-1", b"5", b"6-*", b"007-1", b"-1", b""]),
    words,
)
others = st.sampled_from(
    [packed([b"PING"]), packed([b"XACK", b"s", b"g", b"1-1"]), b"PING\r\n", b"*1\r\n", b"*3\r\n$4", *ALIKE]
)


@settings(deadline=None)
@given(
    st.lists(st.one_of(requests, requests, idempotent, unlike, others), max_size=8),
    st.integers(0, 40),
    st.binary(max_size=3),
    st.sampled_from([SHAPES, TOGETHER]),
)
@example([ADD, ADD], 0, b"", SHAPES)
@example([ADD, ADD, packed([b"PING"])], 0, b"", SHAPES)
@example([ADD, packed([*HEAD, b"f", ADD]), ADD], 0, b"", SHAPES)
@example([packed([*HEAD, b"f", b"\r\n$1\r\n"])] * 2, 0, b"", SHAPES)
def test_what_is_read_by_bytes_or_by_lines_is_what_the_strict_parser_reads(
    pipeline: list[bytes], cut: int, junk: bytes, shapes: dict[bytes, int]
) -> None:
    sent = b"".join(pipeline)
    data = sent[: len(sent) - cut] + junk
    batches, size = of_bytes(data, shapes)
    texts = [(batch.text_of(at), packed(batch.request(at))) for batch in batches for at in range(batch.count)]

    by_lines, size_by_lines = of_lines(data, shapes)

    assert requests_of(batches) == read_strictly(data[:size])[0]
    assert ([picture_of(one) for one in by_lines], size_by_lines) == ([picture_of(one) for one in batches], size)
    assert requests_of(by_lines) == requests_of(batches)
    assert all(text in (b"", whole) for text, whole in texts)
    assert sum(batch.size() for batch in batches) == size
    for batch in batches:
        if batch.columns:
            whole = [packed(batch.request(at)) for at in range(batch.count)]
            assert [part.endswith(tail) for part, tail in zip(whole, batch.tails(), strict=True)] == [
                True
            ] * batch.count
            assert batch.packed() == whole


@pytest.mark.parametrize("parser", [of_bytes, of_lines])
@settings(deadline=None)
@given(
    st.lists(st.one_of(requests, idempotent, idempotent, unlike, unlike, st.sampled_from(ALIKE)), max_size=8),
    st.sampled_from([SHAPES, TOGETHER]),
)
def test_the_parsers_make_the_same_batches(
    parser: Callable[..., Batches], pipeline: list[bytes], shapes: dict[bytes, int]
) -> None:
    data = b"".join(pipeline)
    words, (batches, size) = of_words(data, shapes)[0], parser(data, shapes)

    assert size == len(data)
    assert [picture_of(one) for one in words] == [picture_of(one) for one in batches]
    assert requests_of(words) == requests_of(batches)
    assert [one.tails() for one in words if one.columns] == [one.tails() for one in batches if one.columns]
    assert [one.size() for one in words] == [one.size() for one in batches]


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(requests, idempotent, others, st.sampled_from([ADD, ADD_LONG, ADD + ADD, ADD[:-1]])), max_size=12
    )
)
@example([ADD, ADD, ADD_LONG, ADD])
def test_requests_that_come_alone_are_what_the_strict_parser_reads(pipeline: list[bytes]) -> None:
    single = one(NO_WORDS)
    for data in pipeline:
        found: list[RequestBatch] = []
        size = native_parser.batches(data, 0, 1 << 30, SHAPES, found, single)

        assert (requests_of(found), size) == (requests_of(of_bytes(data)[0]), of_bytes(data)[1])
        assert all(batch.text in (b"", data) for batch in found)


@pytest.mark.parametrize("parser", PARSERS)
def test_a_producers_pipeline_is_one_batch(parser: Callable[..., Any]) -> None:
    ((batch,), _) = parser(b"".join([packed([*HEAD, b"f", b"%d" % n, b"g", b"x" * n]) for n in range(100)]))

    assert (batch.prefix, batch.names, batch.width, batch.count) == (HEAD, [b"f", b"g"], 7, 100)
    assert batch.columns == [[b"%d" % n for n in range(100)], [b"x" * n for n in range(100)]]


@pytest.mark.parametrize("middle", [[b"*"], [b"MAXLEN", b"~", b"90", b"*"]])
@pytest.mark.parametrize("parser", PARSERS)
def test_what_tells_idempotent_requests_apart_does_not_part_them(
    parser: Callable[..., Any], middle: list[bytes]
) -> None:
    sent = [[b"XADD", b"s", b"IDMP", b"p%d" % (n % 3), b"i%d" % n, *middle, b"f", b"x" * n] for n in range(30)]
    data = b"".join(map(packed, sent))
    ((batch,), size) = parser(data)

    assert (batch.prefix, batch.middle, batch.names, batch.count) == ([b"XADD", b"s", b"IDMP"], middle, [b"f"], 30)
    assert batch.own == [[b"p%d" % (n % 3) for n in range(30)], [b"i%d" % n for n in range(30)]]
    assert requests_of([batch.part(0, 7), batch.after(7)]) == sent
    assert (size, batch.size(), batch.after(20).size()) == (len(data), len(data), len(b"".join(map(packed, sent[20:]))))
    assert batch.word_bytes() == sum(len(word) for request in sent for word in request)


@pytest.mark.parametrize("parser", PARSERS)
def test_ids_of_their_own_do_not_part_requests(parser: Callable[..., Any]) -> None:
    sent = [[b"XADD", b"s", b"%d-1" % n, b"f", b"x" * n, b"g", b"y"] for n in range(30)]
    data = b"".join(map(packed, sent))
    ((batch,), size) = parser(data)

    assert (batch.prefix, batch.middle, batch.names, batch.count) == ([b"XADD", b"s"], [], [b"f", b"g"], 30)
    assert batch.own == [[b"%d-1" % n for n in range(30)]]
    assert requests_of([batch.part(0, 7), batch.after(7)]) == sent
    assert (size, batch.size(), batch.after(20).size()) == (len(data), len(data), len(b"".join(map(packed, sent[20:]))))
    assert not batch.is_one_repeated()


@pytest.mark.parametrize("parser", PARSERS)
def test_ids_and_stars_are_not_in_one_batch(parser: Callable[..., Any]) -> None:
    sent = [[b"XADD", b"s", own, b"f", b"v"] for own in (b"1-1", b"1-2", b"*", b"*", b"NOMKSTREAM", b"", b"2", b"3-*")]

    batches, _ = parser(b"".join(map(packed, sent)))

    assert [(batch.prefix, batch.own) for batch in batches[:2]] == [([b"XADD", b"s"], [[b"1-1", b"1-2"]]), (HEAD, [])]
    assert [batch.count for batch in batches] == [2, 2, 1, 1, 2]


@pytest.mark.parametrize("parser", PARSERS)
def test_entries_with_other_field_names_are_requests_of_one_name(parser: Callable[..., Any]) -> None:
    sent = [[b"XADD", b"s", b"%d-1" % n, b"f", b"v", b"g%d" % (n % 2), b"v"] for n in range(9)]

    batches, _ = parser(b"".join(map(packed, sent)), TOGETHER)

    assert [(batch.prefix, batch.count) for batch in batches] == [([b"XADD"], 9)]
    assert requests_of(batches) == sent


@pytest.mark.parametrize("parser", PARSERS)
def test_requests_with_one_name_and_as_many_words_are_one_batch(parser: Callable[..., Any]) -> None:
    sent = [[b"GET", b"a"], [b"GET", b"b"], [b"GET", b"c", b"d"], [b"GET", b"e", b"f"], [b"get", b"a"], [b"SET", b"a"]]

    batches, _ = parser(b"".join(map(packed, sent)))

    assert [(batch.prefix, batch.width, batch.count) for batch in batches[:2]] == [([b"GET"], 2, 2), ([b"GET"], 3, 2)]
    assert [batch.count for batch in batches[2:]] == [1, 1]
    assert batches[0].words_at(1) == [b"a", b"b"]
    assert requests_of(batches) == sent
    assert batches[0].packed() == [packed(request) for request in sent[:2]]
    assert requests_of([batches[1].part(0, 1), batches[1].after(1)]) == [sent[2], sent[3]]


@pytest.mark.parametrize("parser", PARSERS)
def test_requests_that_fit_no_columns_stay_together_up_to_two_that_do(parser: Callable[..., Any]) -> None:
    sent = [[b"XADD", key, b"*", b"f", b"v"] for key in (b"a", b"b", b"c", b"d", b"d", b"e", b"f")]

    batches, _ = parser(b"".join(map(packed, sent)), TOGETHER)

    assert [(batch.prefix, batch.count) for batch in batches] == [
        ([b"XADD"], 3),
        ([b"XADD", b"d", b"*"], 2),
        ([b"XADD"], 2),
    ]
    assert requests_of([*batches[:1], batches[1], batches[2].part(0, 1), batches[2].after(1)]) == sent


def test_requests_with_neighbours_that_may_fit_columns_keep_their_bytes() -> None:
    sent = [packed([b"XADD", b"%d" % at, b"*", b"f", b"v"]) for at in range(5)]

    (batch,), _ = of_bytes(b"".join(sent), TOGETHER)

    assert [batch.text_of(at) for at in range(5)] == sent
    assert [batch.part(1, 4).text_of(at) for at in range(3)] == sent[1:4]


@pytest.mark.parametrize("values", [1, 15, 40], ids=["one value", "columns", "too many words for columns"])
@pytest.mark.parametrize("parser", PARSERS)
def test_a_batch_gives_the_words_at_a_position_however_it_keeps_them(parser: Callable[..., Any], values: int) -> None:
    sent = [[b"SET", b"k%d" % n, *[b"v%d.%d" % (n, at) for at in range(values - 1)]] for n in range(5)]

    ((batch,), _) = parser(b"".join(map(packed, sent)))

    assert (batch.prefix, batch.width, batch.count) == ([b"SET"], values + 1, 5)
    assert requests_of([batch.part(0, 1), batch.part(1, 3), batch.after(3)]) == sent
    assert [batch.words_at(at) for at in range(1, values + 1)] == [list(column) for column in zip(*sent, strict=True)][
        1:
    ]
    assert [batch.words_from(1, at) for at in range(5)] == [request[1:] for request in sent]
    assert batch.size() == sum(request_bytes(request) for request in sent)


@pytest.mark.parametrize("parser", PARSERS)
def test_a_part_of_a_batch_is_its_requests(parser: Callable[..., Any]) -> None:
    ((batch,), _) = parser(b"".join([packed([b"XACK", b"s", b"g", b"%d-1" % n]) for n in range(9)]))

    assert requests_of([batch.part(2, 5), batch.after(8), batch.after(9)]) == [
        [b"XACK", b"s", b"g", b"%d-1" % n] for n in (2, 3, 4, 8)
    ]


@pytest.mark.parametrize("behind", [packed([b"XLEN", b"s"]), packed([*HEAD, b"g", b"v"]), packed([b"XADD"])])
@pytest.mark.parametrize("parser", PARSERS)
def test_what_begins_otherwise_is_a_batch_of_its_own(parser: Callable[..., Any], behind: bytes) -> None:
    batches, _ = parser(ADD * 3 + behind)

    assert [batch.count for batch in batches] == [3, 1]


@pytest.mark.parametrize("behind", [ADD[:-1], ADD[:9], b"\r\n", b"PING\r\n"])
def test_what_is_not_whole_or_not_ordinary_is_left(behind: bytes) -> None:
    batches, size = of_bytes(ADD * 3 + behind)

    assert ([batch.count for batch in batches], size) == ([3], 3 * len(ADD))


@pytest.mark.parametrize(
    "sent",
    [
        packed([b"DEL", b"k"]),
        packed([b"PING"]),
        packed([b"XADD", b"s", b"*", b"odd", b"f", b"v"]),
        packed([b"XADD", b"s", b"*"]),
        packed([b"XADD", b"s", b"IDMP", b"p", b"i", b"*", b"odd", b"f", b"v"]),
        packed([b"XADD", b"s", b"IDMP", b"p", b"i", b"1-1", b"f", b"v"]),
    ],
    ids=[
        "a command without a shape",
        "one word",
        "a pair is not whole",
        "nothing behind the prefix",
        "IDMP, and a pair is not whole",
        "IDMP with an id",
    ],
)
@pytest.mark.parametrize("parser", PARSERS)
def test_these_stay_alone(parser: Callable[..., Any], sent: bytes) -> None:
    assert [batch.count for batch in parser(sent * 3)[0]] == [1, 1, 1]


@settings(deadline=None)
@given(
    st.lists(st.one_of(requests, requests, idempotent, others), max_size=12),
    st.lists(st.integers(0, 400), max_size=5),
    st.integers(1, 5),
)
@example([ADD] * 6, [len(ADD) * 3 + 7], 2)
def test_a_pipeline_that_comes_in_pieces_is_read_as_a_whole(pipeline: list[bytes], cuts: list[int], limit: int) -> None:
    data = b"".join(pipeline)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = RequestReader(Limits(), SHAPES)
    taken: list[list[bytes]] = []
    error: bytes | None = None
    for start, stop in pairwise(places):
        reader.feed(data[start:stop])
        try:
            while batches := reader.take(limit):
                taken += requests_of(batches)
        except ProtocolError as refusal:
            error = refusal.text
            break

    assert (taken, error) == read_strictly(data)


def test_of_a_pipeline_too_long_to_come_at_once_almost_all_is_in_batches() -> None:
    data = packed([*HEAD, b"field", b"x" * 100]) * 2000
    reader = RequestReader(Limits(), SHAPES)
    counts: list[int] = []
    for at in range(0, len(data), 100_000):
        reader.feed(data[at : at + 100_000])
        while batches := reader.take(1000):
            counts += [batch.count for batch in batches]

    assert sum(counts) == 2000
    assert counts.count(1) < 20


@given(st.lists(words, max_size=5))
def test_a_request_has_the_size_of_its_packed_form(request: list[bytes]) -> None:
    assert request_bytes(request) == len(packed(request))


@given(st.lists(st.one_of(requests, idempotent, st.sampled_from(ALIKE)), max_size=4), st.integers(1, 3))
@example([packed([b"GET", b"k"])], 3)
def test_a_batch_knows_whether_its_requests_are_one_repeated(pipeline: list[bytes], times: int) -> None:
    for batch in of_words(b"".join([request * times for request in pipeline]))[0]:
        different = {tuple(batch.request(at)) for at in range(batch.count)}

        assert batch.is_one_repeated() == (len(different) == 1)


@given(st.lists(st.binary(max_size=12), min_size=2, max_size=6))
def test_a_batch_knows_the_bytes_of_its_words(values: list[bytes]) -> None:
    for words in ([b"XADD", b"s", b"*", b"field"], [b"SET", b"key"]):
        requests = [[*words, value] for value in values]
        (batch,) = batches_of(requests, SHAPES)

        assert batch.word_bytes() == sum(len(word) for request in requests for word in request)
