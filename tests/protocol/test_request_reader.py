"""Requests out of bytes: the reader beside the strict parser, at every split."""

import itertools
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import ProtocolError
from penstock.native.resp_sizes import request_bytes
from penstock.protocol.limits import BLOCK, Limits
from penstock.protocol.reply import bulks as packed
from penstock.protocol.request_batch import COLUMNS, REQUESTS, RequestBatch
from penstock.protocol.request_reader import RequestReader
from penstock.protocol.strict_parser import StrictParser, is_web
from tests.support.seeds import examples
from tests.support.wire import pack

PING = b"*1\r\n$4\r\nPING\r\n"
Outcome = tuple[list[list[bytes]], bytes | None]


def requests_of(batches: list[RequestBatch]) -> list[list[bytes]]:
    return [batch.request(at) for batch in batches for at in range(batch.count)]


def taken(reader: RequestReader | StrictParser) -> Outcome:
    """Every request that is there, and the error's text if it came to one."""
    requests: list[list[bytes]] = []
    try:
        if isinstance(reader, StrictParser):
            while (request := reader.next()) is not None:
                requests.append(request)
        else:
            while batches := reader.take(1000):
                requests += requests_of(batches)
    except ProtocolError as error:
        return requests, error.text
    return requests, None


def read(reader: RequestReader | StrictParser, parts: list[bytes]) -> Outcome:
    """What comes out when every part is read as soon as it has come."""
    requests: list[list[bytes]] = []
    for part in parts:
        reader.feed(part)
        more, error = taken(reader)
        requests += more
        if error is not None:
            return requests, error
    return requests, None


def read_at_once(reader: RequestReader | StrictParser, parts: list[bytes]) -> Outcome:
    """What comes out when nothing is read before everything has come, as for a blocked client."""
    for part in parts:
        reader.feed(part)
    return taken(reader)


def fast() -> RequestReader:
    return RequestReader(Limits())


def plain() -> StrictParser:
    return StrictParser(Limits())


def singly(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


CASES = [
    ("two in one", PING * 2, [[b"PING"]] * 2, None),
    ("a star and a dollar as words", b"*3\r\n$1\r\n*\r\n$1\r\n$\r\n$2\r\n*3\r\n", [[b"*", b"$", b"*3"]], None),
    (
        "words that look like types",
        packed([b"XRANGE", b"-", b"+", b":1", b"=8"]),
        [[b"XRANGE", b"-", b"+", b":1", b"=8"]],
        None,
    ),
    (
        "the ends of a range",
        packed([b"XRANGE", b"s", b"-", b"+"]) + PING,
        [[b"XRANGE", b"s", b"-", b"+"], [b"PING"]],
        None,
    ),
    ("an odd type behind a word like a header", b"*2\r\n$2\r\n$1\r\n+\r\n", [], b"expected '$', got '+'"),
    (
        "an odd type behind a word that ends so",
        PING + b"*2\r\n$3\r\na$1\r\n+\r\n",
        [[b"PING"]],
        b"expected '$', got '+'",
    ),
    (
        "words with line ends",
        packed([b"a\r\n*1\r\n$1\r\nx\r\n", b"\r"]) + PING,
        [[b"a\r\n*1\r\n$1\r\nx\r\n", b"\r"], [b"PING"]],
        None,
    ),
    ("nothing asked for", b"*0\r\n*-1\r\n*-10\r\n\r\n \n" + PING, [[b"PING"]], None),
    ("the smallest count", b"*-9223372036854775808\r\n" + PING, [[b"PING"]], None),
    ("other bytes than a line end", b"*2\r\n$1\r\naXX$1\r\nbYY" + PING, [[b"a", b"b"], [b"PING"]], None),
    ("other bytes than a line feed", b"*1\rX$4\rYPING\rZ" + PING, [[b"PING"], [b"PING"]], None),
    ("an odd type behind odd bytes", b"*2\r\n$1\r\naXX+foo\r\n", [], b"expected '$', got '+'"),
    ("odd bytes, later", PING + b"*2\r\n$1\r\naXX+foo\r\n", [[b"PING"]], b"expected '$', got '+'"),
    ("a line end in a word and odd bytes", b"*2\r\n$4\r\n\r\n\r\nXX+foo\r\n", [], b"expected '$', got '+'"),
    ("the same, later", PING + b"*2\r\n$4\r\n\r\n\r\nXX+foo\r\n", [[b"PING"]], b"expected '$', got '+'"),
    (
        "an inner array behind odd bytes",
        PING + b"*2\r\n$1\r\naXX*1\r\n$1\r\nb\r\n",
        [[b"PING"]],
        b"expected '$', got '*'",
    ),
    (
        "odd bytes that make up for a cut request",
        b"*3\r\n$1\r\naXX$1\r\nbXX$1\r\ncXX*2\r\n$1\r\nd\r\n*1\r\n$1\r\ne",
        [[b"a", b"b", b"c"]],
        b"expected '$', got '*'",
    ),
    ("a line", b"SET 'a b' \"c\"\r\n" + PING, [[b"SET", b"a b", b"c"], [b"PING"]], None),
    ("a line between", PING + b"PING\n" + PING, [[b"PING"]] * 3, None),
    ("a NUL hides a line's end", b"PI\0NG\r\n" + PING, [], None),
    ("a NUL hides a count's end", b"*1\0\r\n" + PING, [], None),
    ("a NUL in a length", b"*1\r\n$4\0\r\nPING\r\n", [], b"invalid bulk length"),
    ("a count with a zero in front", b"*01\r\n$4\r\nPING\r\n", [], b"invalid multibulk length"),
    ("a count with a plus", b"*+1\r\n$4\r\nPING\r\n", [], b"invalid multibulk length"),
    ("no count", b"*\r\n", [], b"invalid multibulk length"),
    ("minus zero", b"*-0\r\n", [], b"invalid multibulk length"),
    ("a count and a space", b"*1 \r\n", [], b"invalid multibulk length"),
    ("a count too large", b"*2147483648\r\n", [], b"invalid multibulk length"),
    ("a count beyond 64 bits", b"*-9223372036854775809\r\n", [], b"invalid multibulk length"),
    ("a count that may be", b"*2147483647\r\n", [], None),
    ("a length with a zero in front", b"*1\r\n$04\r\nPING\r\n", [], b"invalid bulk length"),
    ("no length", b"*1\r\n$\r\n", [], b"invalid bulk length"),
    ("a length in letters", b"*1\r\n$abc\r\n", [], b"invalid bulk length"),
    ("a null", b"*3\r\n$-1\r\n", [], b"invalid bulk length"),
    ("a length too large", b"*1\r\n$536870913\r\n", [], b"invalid bulk length"),
    ("a length that may be", b"*1\r\n$536870912\r\n", [], None),
    ("a map with an array for a key", b"*2\r\n%1\r\n*0\r\n$1\r\na\r\n$1\r\nb\r\n", [], b"expected '$', got '%'"),
    ("an integer", b"*2\r\n:5\r\n", [], b"expected '$', got ':'"),
    ("a simple string", b"*1\r\n+PING\r\n", [], b"expected '$', got '+'"),
    ("a verbatim string", b"*1\r\n=8\r\ntxt:PING\r\n", [], b"expected '$', got '='"),
    ("a big number", b"*1\r\n(123\r\n", [], b"expected '$', got '('"),
    ("an array inside", b"*1\r\n*1\r\n$1\r\na\r\n", [], b"expected '$', got '*'"),
    ("an empty header", b"*1\r\n\r\n", [], b"expected '$', got ' '"),
    ("a NUL for a header", b"*1\r\n\0\r\n", [], b"expected '$', got '\0'"),
    ("a header without its end", b"*1\r\nX", [], None),
    ("an error behind requests", PING + b"*1\r\nX\r\n" + PING, [[b"PING"]], b"expected '$', got 'X'"),
    ("a push", b">1\r\n$4\r\nPING\r\n", [[b">1"], [b"$4"], [b"PING"]], None),
    ("a set behind a request", PING + b"~1\r\n", [[b"PING"], [b"~1"]], None),
    ("an attribute", PING + b"|1\r\n+a\r\n+b\r\n" + PING, [[b"PING"], [b"|1"], [b"+a"], [b"+b"], [b"PING"]], None),
    ("a bulk string alone", PING + b"$0\r\n\r\n", [[b"PING"], [b"$0"]], None),
    ("an integer alone", PING + b":0\r\n", [[b"PING"], [b":0"]], None),
    ("quotes that do not match", b"PING 'a\r\n", [], b"unbalanced quotes in request"),
    ("a browser", b"POST / HTTP/1.1\r\n", [], b""),
    ("a browser's second line", PING + b"hOSt: x\r\n", [[b"PING"]], b""),
    ("a browser that knows the protocol", PING * 2 + b"*1\r\n$6\r\npost\0x\r\n" + PING, [[b"PING"]] * 2, b""),
    ("no browser", b"POSTX\r\nHOST\r\n", [[b"POSTX"], [b"HOST"]], None),
    ("an empty word", b'*1\r\n$0\r\n\r\n""\r\n', [[b""], [b""]], None),
]
NAMES = [case[0] for case in CASES]
WORDS_AND_ERRORS = [case[1:] for case in CASES]


@pytest.mark.parametrize(("data", "requests", "error"), WORDS_AND_ERRORS, ids=NAMES)
def test_bytes_are_these_requests_in_one_piece(data: bytes, requests: list[list[bytes]], error: None) -> None:
    assert read(fast(), [data]) == (requests, error)
    assert read(plain(), [data]) == (requests, error)


@pytest.mark.parametrize(("data", "requests", "error"), WORDS_AND_ERRORS, ids=NAMES)
def test_bytes_are_these_requests_one_by_one(data: bytes, requests: list[list[bytes]], error: None) -> None:
    assert read(fast(), singly(data)) == (requests, error)
    assert read(plain(), singly(data)) == (requests, error)


@pytest.mark.parametrize(("data", "requests", "error"), WORDS_AND_ERRORS, ids=NAMES)
def test_bytes_are_these_requests_wherever_they_are_cut_once(
    data: bytes, requests: list[list[bytes]], error: None
) -> None:
    outcomes = [read(fast(), [data[:at], data[at:]]) for at in range(len(data))]

    assert outcomes == [(requests, error)] * len(data)


words = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"XADD", b"XRANGE", b"-", b"+", b"*", b"$", b"*1", b"\r\n*1\r\n", b"\r", b"\r\n$", b"", b":0", b"12345"]
    ),
)
names = words.filter(lambda word: not is_web(word))
ordinary = st.builds(lambda name, others: packed([name, *others]), names, st.lists(words, max_size=5))
good = st.lists(words, min_size=1, max_size=6).map(packed)
lines = st.sampled_from([b"PING\r\n", b"\r\n", b"XLEN 's t' \"\\x41\"\n", b"*0\r\n", b"*-1\r\n"])
broken = st.sampled_from([data for _, data, _, error in CASES if error is not None])
odd = st.builds(
    lambda data, at, byte: data[: at % len(data)] + byte + data[at % len(data) + len(byte) :],
    good,
    st.integers(0, 1000),
    st.sampled_from([b"X", b"+", b"*", b"\r", b"\n", b"XX", b"0", b"9", b"|", b"\r\n*"]),
)
pipelines = st.lists(st.one_of(good, good, good, lines, odd, broken), max_size=12).map(b"".join)
cuts = st.lists(st.integers(0, 400), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(data), *[place % (len(data) + 1) for place in places]})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


@settings(deadline=None)
@given(pipelines, cuts)
@example(b"*1\r\n$1\r\naXX*1\r\n$0\r\n", [])
@example(b"*1\r\n$0\r\n" + PING, [])
def test_every_split_of_a_pipeline_gives_the_same_requests_and_error(data: bytes, places: list[int]) -> None:
    whole = read(plain(), [data])

    assert read(fast(), [data]) == whole
    assert read(fast(), cut(data, places)) == whole
    assert read_at_once(fast(), cut(data, places)) == whole
    assert read(plain(), cut(data, places)) == whole


@settings(deadline=None)
@given(st.lists(pipelines, max_size=4), cuts)
@example([PING, b"*1\r\n*1\r\n$1\r\na\r\n"], [])
@example([PING, b"*1\r\n:1\r\n"], [])
@example([PING, b"*-1\r\n", PING], [])
@example([PING, b"*2\r\n$4\r\nPOST\r\n$1\r\n/\r\n"], [])
@example([PING, b"*1\r\n$4\r\nPINGXX", b"\r\n"], [])
def test_requests_that_come_whole_are_the_same_as_fed_ones(blocks: list[bytes], places: list[int]) -> None:
    parts = [part for block in [PING, *blocks] for part in cut(block, places)]

    assert read(fast(), parts) == read(plain(), parts)


@settings(deadline=None, max_examples=examples(25))
@given(st.lists(good, min_size=1, max_size=4), st.integers(1, 60), cuts)
def test_a_pipeline_of_many_blocks_is_read_like_a_short_one(some: list[bytes], step: int, places: list[int]) -> None:
    data = b"".join(some * (1 + 3 * BLOCK // len(b"".join(some)) // step))

    assert read(fast(), cut(data, [place * step for place in places])) == read(plain(), [data])


def test_long_words_come_whole_however_they_are_cut() -> None:
    request = [b"SET", b"k", bytes(range(256)) * 2000]
    data = packed(request) * 3

    assert read(fast(), [data]) == ([request] * 3, None)
    assert read(fast(), [data[at : at + 10007] for at in range(0, len(data), 10007)]) == ([request] * 3, None)


def test_a_request_of_many_words_is_read() -> None:
    request = [b"XACK", b"s", b"g", *[b"%d-0" % number for number in range(50_000)]]

    assert read(fast(), [packed(request) + PING]) == ([request, [b"PING"]], None)


@pytest.mark.parametrize("start", [b"*", b"*1\r\n$", b"*1\r\n", b""], ids=["count", "length", "header", "line"])
def test_a_line_of_64_kib_is_waited_for_and_a_longer_one_is_refused(start: bytes) -> None:
    line = start.rpartition(b"\n")[2]
    longest = start + b"1" * (65536 - len(line))

    assert read(fast(), [longest]) == ([], None)
    assert read(fast(), [longest + b"1"])[1] == read(fast(), [longest, b"1\r\n"])[1]
    assert b"too big" in (read(fast(), [longest + b"1"])[1] or b"")


def test_the_texts_of_lines_too_long() -> None:
    assert read(fast(), [b"*" + b"1" * 65536])[1] == b"too big mbulk count string"
    assert read(fast(), [b"*1\r\n$" + b"1" * 65536])[1] == b"too big bulk count string"
    assert read(fast(), [b"1" * 65537])[1] == b"too big inline request"


@pytest.mark.parametrize(
    "data",
    [b"*2147483647\r\n", b"*2\r\n*2147483647\r\n", b"*1\r\n$536870912\r\n", PING + b"*2147483647\r\n$1\r\na\r\n"],
)
def test_an_announcement_reserves_no_memory(data: bytes) -> None:
    reader = fast()
    tracemalloc.start()
    reader.feed(data)
    taken(reader)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 100_000


def test_before_authentication_few_and_short_words_are_read() -> None:
    limits = Limits(authenticated=False)

    assert read(RequestReader(limits), [packed([b"a"] * 10)])[1] is None
    assert read(RequestReader(limits), [b"*11\r\n"]) == ([], b"unauthenticated multibulk length")
    assert read(RequestReader(limits), [packed([b"a" * 16384])])[1] is None
    assert read(RequestReader(limits), [b"*1\r\n$16385\r\n"]) == ([], b"unauthenticated bulk length")
    assert read(RequestReader(limits), [b"*2147483648\r\n"]) == ([], b"invalid multibulk length")
    assert read(RequestReader(limits), [b"*1\r\n$536870913\r\n"]) == ([], b"invalid bulk length")
    assert read(RequestReader(limits), [b"PING " + b"a " * 20000 + b"\r\n"])[1] is None


def test_a_request_behind_the_password_in_one_pipeline_may_be_large() -> None:
    limits = Limits(authenticated=False)
    reader = RequestReader(limits)
    reader.feed(packed([b"AUTH", b"pw"]) + packed([b"a"] * 11) + packed([b"b" * 16385]))

    assert requests_of(reader.take(1000)) == [[b"AUTH", b"pw"]]
    limits.authenticated = True
    assert taken(reader) == ([[b"a"] * 11, [b"b" * 16385]], None)


def test_other_limits_hold_from_the_next_word_on() -> None:
    reader = RequestReader(Limits(authenticated=False))
    reader.feed(b"*3\r\n$3\r\nSET\r\n")

    assert taken(reader) == ([], None)
    reader.use_limits(Limits())
    reader.feed(b"$1\r\nk\r\n$16385\r\n" + b"v" * 16385 + b"\r\n")
    assert taken(reader) == ([[b"SET", b"k", b"v" * 16385]], None)
    reader.use_limits(Limits(authenticated=False))
    reader.feed(b"*11\r\n")
    assert taken(reader) == ([], b"unauthenticated multibulk length")


@pytest.mark.parametrize("limit", [3, 2000, 1_048_576])
def test_a_word_may_be_as_long_as_the_limit(limit: int) -> None:
    limits = Limits(max_bulk_len=limit)

    assert read(RequestReader(limits), [packed([b"x" * limit])])[1] is None
    assert read(RequestReader(limits), [packed([b"x" * (limit + 1)])]) == ([], b"invalid bulk length")


def test_a_blocked_client_that_sends_too_much_is_closed() -> None:
    reader = RequestReader(Limits(query_buffer_limit=1000))
    reader.feed(PING * 71)

    with pytest.raises(ProtocolError) as refused:
        reader.feed(PING)
    assert refused.value.text == b""
    assert reader.pending == 0


def test_pending_is_what_has_not_been_read() -> None:
    reader = fast()
    assert reader.pending == 0
    reader.feed(PING * 2 + PING[:5])
    assert reader.pending == 2 * len(PING) + 5
    assert requests_of(reader.take(2)) == [[b"PING"]] * 2
    assert reader.pending == 5
    assert reader.take(1) == []
    assert (reader.pending, reader.is_amid) == (1, True)
    reader.feed(PING[5:])
    assert requests_of(reader.take(1)) == [[b"PING"]]
    assert (reader.pending, reader.is_amid) == (0, False)


def test_an_error_is_told_again_and_what_follows_it_is_forgotten() -> None:
    reader = fast()

    assert read(reader, [PING + b"*x\r\n"]) == ([[b"PING"]], b"invalid multibulk length")
    assert read(reader, [PING]) == ([], b"invalid multibulk length")
    assert reader.pending == 0


def test_what_is_put_back_is_taken_again_first() -> None:
    reader = fast()
    reader.feed(packed([b"a"]) + packed([b"b"]) + packed([b"c"]) + packed([b"d"]))
    size = reader.pending

    batches = reader.take(3)
    reader.put_back(batches[1:])

    assert reader.pending == size // 4 * 3
    assert taken(reader) == ([[b"b"], [b"c"], [b"d"]], None)
    assert reader.pending == 0


def test_the_bytes_of_many_requests_that_are_put_back_are_estimated_and_none_are_left_over() -> None:
    reader = fast()
    reader.feed(PING * 3000)

    reader.put_back(reader.take(2000)[500:])

    assert reader.pending == 2500 * len(PING)
    assert len(taken(reader)[0]) == 2500
    assert reader.pending == 0


@settings(deadline=None)
@given(pipelines, cuts, st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4)), min_size=1, max_size=9))
def test_whatever_is_taken_and_put_back_nothing_is_lost_or_doubled(
    data: bytes, places: list[int], steps: list[tuple[int, int]]
) -> None:
    reader = RequestReader(Limits(), {b"XADD": COLUMNS, b"XRANGE": REQUESTS, b"-": REQUESTS, b"+": COLUMNS})
    requests: list[list[bytes]] = []
    error: bytes | None = None
    turns = itertools.cycle(steps)
    for part in cut(data, places):
        reader.feed(part)
        try:
            while batches := reader.take(next(turns)[0]):
                kept = next(turns)[1] or len(batches)
                requests += requests_of(batches[:kept])
                reader.put_back(batches[kept:])
        except ProtocolError as failure:
            error = failure.text
            break

    assert (requests, error) == read(plain(), [data])


@pytest.mark.parametrize("size", [0, 9, 10, 99, 100, 4058, 4059, 4060, 4095, 4096, 70_000])
def test_a_single_request_is_read_whatever_its_length(size: int) -> None:
    request = [b"SET", b"key", b"v" * size]

    assert read(fast(), [packed(request)]) == read(plain(), [packed(request)]) == ([request], None)


def test_what_was_handled_is_not_kept_while_the_client_rests() -> None:
    reader = fast()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        reader.feed(packed([b"SET", b"k", b"v" * 200_000]))
        assert reader.take(1)[0].count == 1
        reader.rest()

        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()
    assert read(reader, [PING])[0] == [[b"PING"]]


def test_a_long_pipeline_of_odd_requests_is_read_in_time_that_grows_with_its_length() -> None:
    odd = b"*2\r\n$1\r\naXX$1\r\nbYY" * 40_000

    assert len(read(fast(), [odd])[0]) == 40_000


@given(st.lists(words, max_size=5))
def test_a_request_has_the_size_of_its_packed_form(request: list[bytes]) -> None:
    assert request_bytes(request) == len(packed(request)) == len(pack(*request))


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            (
                packed([b"XREADGROUP", b"GROUP", b"g", b"ann", b"STREAMS", b"s", b">"]),
                packed([b"XREADGROUP", b"GROUP", b"g", b"ben", b"STREAMS", b"s", b">"]),
                packed([b"XREADGROUP", b"GROUP", b"g", b"ann", b"STREAMS", b"s", b">"]) * 2,
                packed([b"XREADGROUP", b"GROUP", b"g", b"ann", b"STREAMS", b"s", b">"])[:30],
                packed([b"XREADGROUP", b"GROUP", b"g", b"ann", b"STREAMS", b"s", b">"])[30:],
                packed([b"XREADGROUP", b"n" * 2000, b">"]),
                packed([b"XACK", b"s", b"g", b"1-1"]),
                PING,
            )
        )
    ),
    st.booleans(),
)
def test_a_read_that_is_sent_again_is_read_as_it_was(pieces: list[bytes], is_put_back: bool) -> None:
    reader, oracle = fast(), plain()
    for piece in pieces:
        reader.feed(piece)
        with suppress(ProtocolError):  # it is told again
            if is_put_back:
                reader.put_back(reader.take(1000))
        assert taken(reader) == read(oracle, [piece])
