"""Replies cut into columns, beside a parser that reads them word by word."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from penstock.errors import ReplyError
from penstock.pipeline.connector.source import entry_pages
from penstock.pipeline.connector.source.entry_pages import decode, from_lists

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
NASTY = st.one_of(
    st.sampled_from([b"", b"\r\n", b"\r", b"\n", b"$3\r\nabc\r\n", b"*2\r\n", b"-ERR no", b"\x00\xff", b"a" * 1000]),
    st.binary(max_size=20),
)
TAME = st.binary(max_size=20).filter(lambda word: b"\r" not in word)
ID = st.builds(b"%d-%d".__mod__, st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)))


def pairs(words: Any) -> Any:
    return st.integers(0, 3).flatmap(lambda count: st.lists(words, min_size=2 * count, max_size=2 * count))


def of_one_width(words: Any) -> Any:
    """Replies with as many fields in each entry."""
    return st.integers(0, 3).flatmap(
        lambda count: st.lists(
            st.lists(st.tuples(ID, st.lists(words, min_size=2 * count, max_size=2 * count)), max_size=4), max_size=4
        )
    )


REPLIES = st.one_of(
    st.lists(st.lists(st.tuples(ID, pairs(NASTY)), max_size=4), max_size=4),
    st.lists(st.lists(st.tuples(ID, pairs(TAME)), max_size=4), max_size=4),
    of_one_width(NASTY),
    of_one_width(TAME),
)


def encoded(reply: Any) -> bytes:
    if isinstance(reply, bytes):
        return b"$%d\r\n%b\r\n" % (len(reply), reply)
    return b"*%d\r\n" % len(reply) + b"".join(map(encoded, reply))


def told(page: entry_pages.Page) -> tuple[Any, ...]:
    return (
        page.texts(page.id_at).to_pylist(),
        page.texts(page.name_at).to_pylist(),
        page.texts(page.value_at).to_pylist(),
        page.offsets.tolist(),
        page.counts,
        page.width,
    )


@UNHURRIED
@given(REPLIES)
def test_columns_hold_what_a_parser_reads(replies: list[Any]) -> None:
    raw = b"".join(map(encoded, replies))

    assert told(decode(raw, len(replies))) == told(from_lists([list(map(list, reply)) for reply in replies]))


@UNHURRIED
@given(of_one_width(TAME).filter(lambda replies: any(replies)))
def test_replies_without_line_ends_in_them_are_never_parsed_word_by_word(replies: list[Any]) -> None:
    assert entry_pages._by_columns(b"".join(map(encoded, replies)), len(replies)) is not None


@pytest.mark.parametrize(
    "value",
    [b"two\r\nlines", b"\r\n", b"\r", b"a\rb", b"\r\n\r\n", b"$3\r\nabc\r\n", b"*", b"end\r\n"],
    ids=repr,
)
@pytest.mark.parametrize("width", [1, 3], ids=["one field", "three fields"])
def test_a_value_with_line_ends_does_not_make_a_page_slow(
    value: bytes, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No entry but that one is looked at word by word, and none becomes objects in hiredis."""
    words = [b"f", b"v"] * width
    some = [(b"%d-0" % number, [*words[:-1], value] if number % 50 == 7 else words) for number in range(100)]
    replies: list[Any] = [[], some, [], [], some, []]
    walked: list[int] = []
    walk = entry_pages._Lines._walk

    def counting(self: entry_pages._Lines, begin: int, behind: int, words: int, broken: list[tuple[int, int]]) -> bool:
        walked.append(words)
        return walk(self, begin, behind, words, broken)

    monkeypatch.setattr(entry_pages._Lines, "_walk", counting)
    monkeypatch.delattr(entry_pages, "parsed")
    page = decode(b"".join(map(encoded, replies)), len(replies))

    assert told(page) == told(from_lists([list(map(list, reply)) for reply in replies]))
    assert len(walked) <= 4 * (b"\r\n" in value)


def test_a_refusal_among_the_replies_is_raised() -> None:
    with pytest.raises(ReplyError) as refusal:
        decode(b"*0\r\n-WRONGTYPE no stream\r\n", 2)

    assert refusal.value.text == b"WRONGTYPE no stream"


def test_a_deleted_entry_of_a_history_is_left_out() -> None:
    page = from_lists([[[b"1-0", None], [b"2-0", [b"f", b"v"]]]])

    assert page.texts(page.id_at).to_pylist() == [b"2-0"]


def test_no_requests_have_no_entries() -> None:
    assert len(decode(b"", 0)) == 0


def test_the_first_and_the_last_id_of_each_reply_are_known() -> None:
    page = decode(b"".join(map(encoded, [[(b"1-0", []), (b"2-0", [])], [], [(b"7-1", [])]])), 3)

    assert (page.first_id(0), page.last_id(0), page.first_id(2), page.last_id(2)) == (b"1-0", b"2-0", b"7-1", b"7-1")
