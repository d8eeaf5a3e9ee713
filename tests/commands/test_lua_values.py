"""Replies and words reach Lua as they are."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from penstock.engine.scripting import lua_values
from penstock.protocol import reply

luajit = pytest.importorskip("lupa.luajit21")
RUNTIME = luajit.LuaRuntime(encoding=None, unpack_returned_tuples=False)
DECODE = RUNTIME.execute(b"return require('string.buffer').decode")
TEXTS = st.binary(max_size=300) | st.sampled_from([b"", b"\0", b"\r\n", b"$3\r\n", b"x" * 0xDF, b"x" * 0x1FE0])
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1])
LINES = st.binary(max_size=20).map(lambda text: text.translate(None, b"\r\n"))
MISSING = object()  # what Lua has where nothing is

# A reply beside what Lua is to have of it.
LEAVES: st.SearchStrategy[tuple[bytes, Any]] = st.one_of(
    TEXTS.map(lambda text: (reply.bulk(text), text)),
    NUMBERS.map(lambda number: (reply.integer(number), float(number))),
    LINES.map(lambda line: (b"+%b\r\n" % line, {b"ok": line})),
    LINES.map(lambda line: (b"-%b\r\n" % line, {b"err": line, b"ignore_error_stats_update": True})),
    LINES.map(lambda line: (b"(%b\r\n" % line, {b"big_number": line})),
    st.sampled_from([
        (b"$-1\r\n", False), (b"*-1\r\n", False), (b"_\r\n", MISSING), (b"#t\r\n", True), (b"#f\r\n", False),
        (b",1.5\r\n", {b"double": 1.5}), (b",inf\r\n", {b"double": math.inf}), (b",-inf\r\n", {b"double": -math.inf}),
        (b"=7\r\ntxt:abc\r\n", {b"verbatim_string": {b"format": b"txt", b"string": b"abc"}}),
    ]),
)  # fmt: skip


def arrays(items: st.SearchStrategy[tuple[bytes, Any]]) -> st.SearchStrategy[tuple[bytes, Any]]:
    several = st.lists(items, max_size=5)
    return several.map(lambda parts: (reply.array([part for part, _ in parts]), [made for _, made in parts]))


def maps(items: st.SearchStrategy[tuple[bytes, Any]]) -> st.SearchStrategy[tuple[bytes, Any]]:
    return st.dictionaries(TEXTS, items, max_size=5).map(
        lambda fields: (
            b"%%%d\r\n" % len(fields) + b"".join([reply.bulk(name) + part for name, (part, _) in fields.items()]),
            {b"map": {name: made for name, (_, made) in fields.items() if made is not MISSING}},
        )
    )


REPLIES = st.recursive(LEAVES, lambda items: arrays(items) | maps(items), max_leaves=12)


def of_lua(value: Any, like: Any) -> Any:
    """A value of Lua's as one of Python's, a table as what it is to be like."""
    if luajit.lua_type(value) != "table":
        return MISSING if value is None else float(value) if type(value) is int else value
    if isinstance(like, list):
        assert all(1 <= place <= len(like) for place in value)
        return [of_lua(value[place + 1], item) for place, item in enumerate(like)]
    return {name: of_lua(held, like.get(name)) for name, held in value.items()}


@given(REPLIES)
def test_a_packed_reply_is_read_as_what_it_says(case: tuple[bytes, Any]) -> None:
    answer, expected = case
    assert of_lua(DECODE(lua_values.packed(answer)), expected) == expected


@given(st.lists(st.binary(max_size=230) | st.sampled_from([b"\r\n", b"\r\n$1\r\na", b"x" * 191, b"x" * 192])))
def test_an_array_of_texts_is_packed_as_any_reply(texts: list[bytes]) -> None:
    answer = reply.bulks(texts)
    out = BytesWriter()
    assert lua_values._pack(answer, 0, out) == len(answer)
    assert lua_values.packed(answer) == out.getvalue()
    for end in range(2, len(answer), 7):  # what is no such array is not taken for one
        assert lua_values._packed_texts(answer[:end] + b"\r\n") in (None, out.getvalue())


def test_a_set_is_read_as_its_members() -> None:
    expected = {b"set": {b"a": True, 5: True}}
    assert of_lua(DECODE(lua_values.packed(b"~2\r\n$1\r\na\r\n:5\r\n")), expected) == expected


def test_no_number_is_read_as_one() -> None:
    assert math.isnan(DECODE(lua_values.packed(b",nan\r\n"))[b"double"])


@given(st.lists(TEXTS, max_size=400))
def test_packed_words_are_read_as_they_are(words: list[bytes]) -> None:
    assert of_lua(DECODE(lua_values.packed_words(words)), words) == words


@given(st.binary(max_size=20), NUMBERS)
def test_the_commonest_replies_are_handed_over_as_values(text: bytes, number: int) -> None:
    assert lua_values.handed(reply.bulk(b"x" + text)) == b"x" + text
    small = int(math.fmod(number, 10**13))
    assert lua_values.handed(reply.integer(small)) == small
    assert lua_values.handed(b"-ERR %b\r\n" % text) == b"\0-ERR " + text


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"$-1\r\n", False), (b"+OK\r\n", True), (b"$0\r\n\r\n", b""), (b":0\r\n", 0), (b":-7\r\n", -7),
        (b"$1\r\n\0\r\n", b"\0=" + lua_values.packed(b"$1\r\n\0\r\n")),
        (b":9223372036854775807\r\n", b"\0=" + lua_values.packed(b":9223372036854775807\r\n")),
        (b"+QUEUED\r\n", b"\0=" + lua_values.packed(b"+QUEUED\r\n")),
    ],
)  # fmt: skip
def test_what_is_handed_over(answer: bytes, expected: object) -> None:
    found = lua_values.handed(answer)
    assert found == expected
    assert type(found) is type(expected)


def test_the_last_reply_in_place_says_so() -> None:
    assert lua_values.handed_in_the_end(b"-ERR x\r\n") == b"\0!\0-ERR x"
    assert lua_values.handed_in_the_end(b":7\r\n") == b"\0!\0=" + lua_values.packed(b":7\r\n")
    assert lua_values.handed_in_the_end(b"$1\r\n\0\r\n") == b"\0!\0=" + lua_values.packed(b"$1\r\n\0\r\n")


@pytest.mark.parametrize("text", [b"", b"x", b"x\0" * 1000])
def test_the_last_text_in_place_is_copied_once(text: bytes) -> None:
    assert lua_values.handed_in_the_end(reply.bulk(text)) == b"\0!" + text


@pytest.mark.parametrize(
    ("answer", "leaves", "times"),
    [
        (b"$3\r\nabc\r\n", False, 1), (b"$3\r\nabc\r\n", True, 2), (b"$3\r\n\0bc\r\n", False, 3),
        (b"$3\r\n\0bc\r\n", True, 3), (b"$-1\r\n", False, 1), (b"$0\r\n\r\n", True, 2), (b"*0\r\n", False, 1),
    ],
)  # fmt: skip
def test_lua_has_a_text_as_many_times_as_it_is_copied(answer: bytes, leaves: bool, times: int) -> None:
    assert lua_values.least_room(answer, leaves) == times * len(answer)


def test_a_reply_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with b'@'"):
        lua_values.packed(b"@1\r\n")
