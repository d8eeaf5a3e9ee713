"""What the host converts for cmsgpack.unpack and cjson.decode is what Lua reads."""

import json
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engine.scripting import native_json, native_message_pack
from penstock.engine.scripting.lua_machine import Machine
from penstock.engine.scripting.script_calls import Calls, OwnRequests

pytest.importorskip("lupa")

DESCRIBE = rb"""
local function text_of(value, depth)
    if type(value) ~= 'table' then
        return type(value) .. ' ' .. (type(value) == 'number' and string.format('%%.17g', value) or tostring(value))
    end
    local parts = {}
    for name, held in pairs(value) do
        parts[#parts + 1] = text_of(name) .. '=' .. text_of(held)
    end
    table.sort(parts)
    return #value .. '{' .. table.concat(parts, ',') .. '}'
end
local function all(...)
    local texts = {select('#', ...)}
    for place = 1, select('#', ...) do
        texts[place + 1] = text_of((select(place, ...)))
    end
    return table.concat(texts, ';')
end
return all(pcall(%b, ARGV[1]))
"""
READS = {"message_pack": DESCRIBE % b"cmsgpack.unpack", "json": DESCRIBE % b"cjson.decode"}


class Reader:
    """Reads texts with Lua alone, or with what the host converts."""

    def __init__(self, converts: bool) -> None:
        self._machine = Machine(Calls(OwnRequests()), "8.6.3", converts=converts)
        self._numbers = {name: self._machine.compile(b"0" * 40, code, []) for name, code in READS.items()}

    def read(self, name: str, text: bytes, in_place: bool) -> bytes | None:
        number = self._numbers[name]
        assert isinstance(number, int), number
        if in_place:
            return self._machine.run_in_place(number, 2, 1_000_000, 0, [text])
        return self._machine.run(number, 2, False, 0, [text], len(text))


LUA_ALONE, CONVERTING = Reader(False), Reader(True)


def assert_both_read_the_same(name: str, text: bytes) -> None:
    expected = LUA_ALONE.read(name, text, True)
    assert expected is not None
    assert CONVERTING.read(name, text, True) == expected
    assert CONVERTING.read(name, text, False) == expected


# -- MessagePack ------------------------------------------------------------------------------------------------------

WIDTHS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
NUMBERS = st.sampled_from(sorted(WIDTHS)).flatmap(
    lambda code: st.binary(min_size=8, max_size=8).map(
        lambda payload: bytes((code,)) + payload[: struct.calcsize(WIDTHS[code])]
    )
)
SMALL = st.integers(0, 255).map(lambda code: bytes((code,))).filter(lambda code: code[0] < 0x80 or code[0] >= 0xE0)
TIMES = st.integers(0, 2**53 + 2).map(lambda number: b"\xcf" + struct.pack(">Q", number))
DOUBLES = st.floats().map(lambda number: b"\xcb" + struct.pack(">d", number))
FLOATS = st.floats(width=32).map(lambda number: b"\xca" + struct.pack(">f", number))
CONSTANTS = st.sampled_from([b"\xc0", b"\xc2", b"\xc3"])
NAMES = st.binary(max_size=40).map(
    lambda text: (bytes((0xA0 + len(text),)) if len(text) < 32 else bytes((0xD9, len(text)))) + text
)
TEXTS = NAMES | st.binary(max_size=300).map(lambda text: b"\xda" + struct.pack(">H", len(text)) + text)


def sized(small: int, long: int, count: int) -> st.SearchStrategy[bytes]:
    """A size as one of the ways to write it."""
    ways = [struct.pack(">BH", long, count), struct.pack(">BI", long + 1, count)]
    return st.sampled_from([*([bytes((small + count,))] * 4 if count < 16 else []), *ways])


def tables(items: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    arrays = st.lists(items, max_size=20).flatmap(
        lambda parts: sized(0x90, 0xDC, len(parts)).map(lambda head: head + b"".join(parts))
    )
    pairs = st.tuples(NAMES | SMALL, items).map(b"".join)
    maps = st.lists(pairs, max_size=8).flatmap(
        lambda parts: sized(0x80, 0xDE, len(parts)).map(lambda head: head + b"".join(parts))
    )
    return arrays | maps


LONG_ENOUGH = b"\x92\xaf" + 15 * b"x"  # an array's begin: shorter texts are not converted
MESSAGES = tables(st.recursive(NUMBERS | SMALL | TIMES | DOUBLES | FLOATS | CONSTANTS | TEXTS, tables, max_leaves=20))


@given(MESSAGES, st.integers(0, 40), st.binary(max_size=2))
@example(b"\x99\xa6prefix\xc0\xc0\xa6double\xcf\0\0\x01\x8b\xcf\xe5\x68\0\xc0\xc0\xc3\xc0", 0, b"")
@example(b"\x82\xa4name\xa4mail\xa4name\xa5other\xc0", 0, b"")
@example(b"\xdd\xff\xff\xff\xffnot so many values", 0, b"")
@example(b"\x91" * 40 + b"\x01", 0, b"")
@example(b"\x91\xcf\xff" + 7 * b"\1", 0, b"")
@example(b"\x91\xcb\xff\xf8" + 6 * b"\1", 0, b"")
@example(b"\x84\1\2\2\3\3\xc0\4\5", 0, b"")
def test_a_message_is_read_as_lua_reads_it(message: bytes, cut: int, more: bytes) -> None:
    assert_both_read_the_same("message_pack", message)
    assert_both_read_the_same("message_pack", message[: len(message) - cut] + more)
    assert_both_read_the_same("message_pack", LONG_ENOUGH + message)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_as_lua_reads_them(text: bytes) -> None:
    assert_both_read_the_same("message_pack", b"\x83" + text)
    assert_both_read_the_same("message_pack", b"\x96" + text)


@pytest.mark.parametrize(
    "message", [b"\x91\xa1a", b"\x93\x01\xc0\x03", b"\x81\xa1a\x92\x01\xff", b"\xdd\0\0\0\1\xcf\0\x1f" + b"\xff" * 6]
)
def test_a_usual_message_is_converted(message: bytes) -> None:
    assert native_message_pack.unpacked(message, 0) is not None


# -- JSON -------------------------------------------------------------------------------------------------------------

LEAVES = (
    st.none() | st.booleans() | st.integers(-(10**16), 10**16) | st.floats() | st.floats(-1e6, 1e6, width=32)
    | st.text(max_size=30) | st.text("abc ", max_size=30)
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda items: st.lists(items, max_size=6) | st.dictionaries(st.text("abc", max_size=8), items, max_size=6)
)
JSON = st.tuples(
    st.lists(VALUES, max_size=6) | st.dictionaries(st.text("abc", max_size=8), VALUES, max_size=6),
    st.sampled_from([None, 1]), st.sampled_from([(",", ":"), (" ,\t", "\r\n:  ")]), st.booleans(),
).map(lambda case: json.dumps(case[0], indent=case[1], separators=case[2], ensure_ascii=case[3]).encode())  # fmt: skip
WORDS = st.sampled_from([
    "[", "]", "{", "}", ",", ":", '"', '"a"', '"name":', "1", "-1", "0", "-0", "01", "1.5", "1.", ".5", "-.5", "1e3",
    "0x1f", "123456789012345", "1234567890123456", "true", "false", "null", "nan", "truex", " ", "\n", "\0", "\\n", "é",
])  # fmt: skip


@given(JSON, st.integers(0, 10))
@example(b'{"name": "a", "name": [1, 2.50, -0.5]}', 0)
@example(b"[" * 40 + b"]" * 40, 0)
def test_json_is_read_as_lua_reads_it(text: bytes, cut: int) -> None:
    assert_both_read_the_same("json", text)
    assert_both_read_the_same("json", text[: len(text) - cut])
    assert_both_read_the_same("json", b'["of some length, at least", %b]' % text)


@given(st.lists(WORDS, max_size=12).map("".join), WORDS)
@example("", "-0")
@example("", "1.")
@example("", "01")
def test_any_words_are_read_as_lua_reads_them(words: str, value: str) -> None:
    assert_both_read_the_same("json", b'["of some length, at least", %b]' % words.encode())
    assert_both_read_the_same("json", b'{"of some length": "at least", "a": %b' % words.encode())
    assert_both_read_the_same("json", b'["of some length, at least", %b]' % value.encode())


@pytest.mark.parametrize("text", [b' [1, -2, 3.5, "a"] ', b'{"a": {"b": [true, false]}}', b"[123456789012345]", b"{}"])
def test_usual_json_is_converted(text: bytes) -> None:
    assert native_json.decoded(text, 0) is not None


# -- what a script has set --------------------------------------------------------------------------------------------


def ran(converts: bool, code: bytes) -> Any:
    machine = Machine(Calls(OwnRequests()), "8.6.3", converts=converts)
    number = machine.compile(b"0" * 40, code, [])
    assert isinstance(number, int), number
    return machine.run_in_place(number, 2, 1_000_000, 0, [])


@pytest.mark.parametrize(
    "code",
    [
        b"cjson.decode_max_depth(2) return select(2, pcall(cjson.decode, '[[[[\"of some length, at least\"]]]]'))",
        b"cjson.decode_array_with_array_mt(true) return cjson.encode({cjson.decode('[                         ]')})",
    ],
    ids=["depth", "arrays"],
)
def test_settings_of_cjson_hold(code: bytes) -> None:
    assert ran(True, code) == ran(False, code)
