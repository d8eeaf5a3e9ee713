"""What the compiled build does in its own way comes to what Python's way comes to, on either build."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from penstock.engine.arguments import MAX_INT64, MIN_INT64, integer
from penstock.errors import ReplyError
from penstock.native.columns import WIDE, from_little_endian
from penstock.native.digits import NONE
from penstock.native.listpack_sizes import text_size
from penstock.storage.streams import native_ids
from penstock.storage.streams.ids import HALF, IdColumns, parse, parse_all, runs_above, text
from penstock.storage.streams.listpack_nodes import SameFieldEntries

numbers = st.integers(0, HALF) | st.integers(0, 20)
texts = (
    st.builds(b"%d-%d".__mod__, st.tuples(numbers, numbers))
    | st.builds(b"%d".__mod__, numbers)
    | st.sampled_from(
        [b"", b"-", b"5-", b"-5", b"1-2-3", b"+1-1", b" 1-1", b"1- 1", b"01-1", b"1-\x00", b"a-1", b"1-a"]
    )
)
values = st.binary(max_size=25) | st.integers(-(2**70), 2**70).map(b"%d".__mod__) | st.integers(0, 5000).map(bytes)


def ids_of(found: IdColumns) -> list[int]:
    return [found.id_at(at) for at in range(len(found))]


def read_of(words: list[bytes]) -> tuple[int, list[int], list[int]]:
    """What read_ids returns, and the numbers that it writes."""
    ms, seq = BytesWriter(), BytesWriter()
    verdict = native_ids.read_ids(words, ms, seq)
    return verdict, numbers_in(ms), numbers_in(seq)


def numbers_in(written: BytesWriter) -> list[int]:
    return from_little_endian(WIDE, written.getvalue()).tolist()


@given(st.lists(texts, max_size=6) | st.lists(st.builds(b"7-%d".__mod__, numbers), max_size=6))
def test_ids_are_read_as_each_of_them_is(words: Any) -> None:
    try:
        wanted = [parse(word) for word in words]
    except ValueError:
        wanted = None
    verdict, ms, seq = read_of(words)

    if verdict != native_ids.NOT_PLAIN:
        if verdict == native_ids.OF_ONE_MS:
            ms *= len(seq)
        assert [high << 64 | low for high, low in zip(ms, seq, strict=True)] == wanted
        assert verdict == (native_ids.OF_ONE_MS if len(set(ms)) <= 1 else native_ids.OF_SEVERAL_MS)
    if wanted is None:
        with pytest.raises(ValueError):
            parse_all(words)
    else:
        assert ids_of(parse_all(words)) == wanted


@given(texts)
def test_one_id_is_read_as_the_parser_does(word: Any) -> None:
    ms, seq = native_ids.read_id(word)
    if ms == NONE:
        plain = re.fullmatch(rb"[0-9]{1,18}-[0-9]{1,18}", word)
        assert plain is None
    else:
        assert ms << 64 | seq == parse(word)


few = st.integers(0, 3) | st.integers(8, 11) | st.sampled_from([10**18 - 1, 10**18, HALF - 1, HALF])
own_ids = st.builds(b"%d-%d".__mod__, st.tuples(few, few)) | texts
ascending = st.sets(st.tuples(few, few)).map(lambda ids: [b"%d-%d" % (ms, seq) for ms, seq in sorted(ids)])


@given(st.lists(own_ids, max_size=6) | ascending, few, few)
@example([b"0-1", b"0-2", b"1-0", b"1-01"], 0, 0)
@example([b"5-1", b"5-2", b"05-3"], 5, 0)
def test_runs_of_ids_are_those_that_ascend_and_are_written_as_the_server_does(words: Any, ms: int, seq: int) -> None:
    runs = runs_above(words, ms, seq)

    found = [(run_ms, first + at) for run_ms, first, count in runs for at in range(count)]
    assert [b"%d-%d" % one for one in found] == words[: len(found)]
    assert [(ms, seq), *found] == sorted({(ms, seq), *found})
    assert all(one[0] != other[0] or one[1] + one[2] < other[1] for one, other in pairwise(runs))
    if len(found) < len(words):
        assert not is_next(words[len(found)], max([(ms, seq), *found]))


def is_next(word: bytes, last: tuple[int, int]) -> bool:
    """Whether a word is an id of two numbers of at most 18 digits, in canonical form, and above another one."""
    if re.fullmatch(rb"[0-9]{1,18}-[0-9]{1,18}", word) is None or text(parse(word)) != word:
        return False
    return parse(word) > last[0] << 64 | last[1]


def test_ordinary_ids_are_read_digit_by_digit() -> None:
    of_one_ms, of_several_ms = native_ids.OF_ONE_MS, native_ids.OF_SEVERAL_MS

    assert read_of([b"1732212345678-0", b"1732212345678-17"]) == (of_one_ms, [1732212345678], [0, 17])
    assert read_of([b"1-0", b"1-1", b"01-2", b"2-0", b"2-1"]) == (of_several_ms, [1, 1, 1, 2, 2], [0, 1, 2, 0, 1])
    assert read_of([b"1-0", b"2-0", b"2-1", b"1-1"]) == (of_several_ms, [1, 2, 2, 1], [0, 0, 1, 1])
    assert read_of([b"1-" + b"1" * 19])[0] == native_ids.NOT_PLAIN


@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(values, min_size=width, max_size=width), min_size=1)))
def test_entries_are_measured_alike_together_and_one_by_one(rows: Any) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    run = SameFieldEntries([b"name"] * len(columns), columns)
    run._words_sizes, run._sums = [], []
    run._measure_one_by_one()
    one_by_one = sizes_of(run)
    run._measure_together()

    assert sizes_of(run) == one_by_one


def sizes_of(run: SameFieldEntries) -> Any:
    places = range(len(run) + 1)
    totals = [run.total_size(start, stop) for stop in places for start in range(stop + 1)]
    return run.largest, [run.words_size(at) for at in range(len(run))], totals


def canonical(word: bytes) -> int | None:
    """The signed 64-bit integer with a word as its only text."""
    if not re.fullmatch(rb"0|-?[1-9][0-9]*", word):
        return None
    number = int(word)
    return number if MIN_INT64 <= number <= MAX_INT64 else None


number_words = values | st.from_regex(rb"[-+ 0]?[0-9]{0,20}[x ]?", fullmatch=True)


@given(number_words)
@example(b"-0")
@example(b"-")
@example(b"-7")
@example(b"%d" % MIN_INT64)
@example(b"%d" % (MAX_INT64 + 1))
def test_an_integer_is_read_from_its_only_text(word: bytes) -> None:
    wanted = canonical(word)

    if wanted is None:
        with pytest.raises(ReplyError):
            integer(word)
    else:
        assert integer(word) == wanted


@given(number_words)
@example(b"-0")
@example(b"-128")
@example(b"%d" % MIN_INT64)
def test_an_integer_is_packed_as_one(word: bytes) -> None:
    number = canonical(word)
    if number is None:
        plain = len(word) + 2 if len(word) < 64 else len(word) + 3 if len(word) < 126 else None
        if plain is not None:
            assert text_size(word) == plain
        return
    bits = next(bits for bits in (13, 16, 24, 32, 64) if -(1 << bits - 1) <= number < 1 << bits - 1)
    assert text_size(word) == (2 if 0 <= number < 128 else {13: 3, 16: 4, 24: 5, 32: 6, 64: 10}[bits])
