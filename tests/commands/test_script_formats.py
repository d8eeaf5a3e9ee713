"""cjson and cmsgpack of scripts, beside Python's json and the host's MessagePack."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.clock import SystemClock
from penstock.engine.scripting import lua_numbers
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine

pytest.importorskip("lupa")

WHOLE = st.integers(-(2**53), 2**53) | st.sampled_from(
    [
        sign * (1 << bits) + step
        for bits in (5, 7, 8, 15, 16, 31, 32, 33, 52, 53)
        for step in (-1, 0)
        for sign in (-1, 1)
    ]
)
FLOATS = st.floats(allow_nan=False) | st.floats(width=32, allow_nan=False)
CODES = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xCA: 4, 0xCB: 8}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**13), 10**13) | st.text(max_size=12) | st.floats(-1e6, 1e6, width=32),
    lambda items: st.lists(items, min_size=1, max_size=4) | st.dictionaries(st.text(max_size=8), items, max_size=4),
    max_leaves=15,
)
DIALOGUE = Dialogue(make_engine(SystemClock()))


def script(code: bytes, *words: bytes) -> Any:
    return decoded(DIALOGUE.words(b"EVAL", code, b"0", *words))


def exact(number: float) -> bytes:
    return b"%.17g" % number


@given(st.lists(WHOLE.map(float) | FLOATS, min_size=1, max_size=20))
def test_a_number_is_packed_in_its_shortest_form(numbers: list[float]) -> None:
    code = b"local t = {} for i, v in ipairs(ARGV) do t[i] = cmsgpack.pack(tonumber(v) or v / 1) end return t"
    assert script(code, *map(exact, numbers)) == [lua_numbers.message_number(number) for number in numbers]


@given(st.sampled_from(sorted(CODES)), st.binary(min_size=8, max_size=8), st.booleans())
def test_a_packed_number_is_read_as_the_host_reads_it(code: int, payload: bytes, is_small: bool) -> None:
    size = CODES[code]
    payload = (b"\0\0" + payload)[:size] if is_small else payload[:size]
    expected = (
        lua_numbers.message_double(payload) if code < 0xCC else lua_numbers.message_integer(payload, code >= 0xD0)
    )
    read = b"local n = cmsgpack.unpack(ARGV[1]) return {struct.pack('>d', n), tostring(n ~= n)}"

    found, is_none = script(read, bytes((code,)) + payload)
    assert is_none == (b"true" if expected != expected else b"false")
    assert expected != expected or found == struct.pack(">d", expected)


@given(st.sampled_from(sorted(CODES)), st.integers(0, 7))
def test_a_packed_number_that_is_cut_short_is_refused(code: int, size: int) -> None:
    answer = script(b"return {pcall(cmsgpack.unpack, ARGV[1])}", bytes((code,)) + b"\1" * min(size, CODES[code] - 1))
    assert b"Missing bytes in input." in answer[1]


def plain(value: Any) -> Any:
    """A value as cjson keeps it: numbers with 14 digits, no empty arrays, text as bytes of UTF-8."""
    if isinstance(value, float):
        return float(f"{value:.14g}")
    if isinstance(value, dict):
        return {name: plain(held) for name, held in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_read_and_written_as_python_does(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    answer = script(b"return cjson.encode(cjson.decode(ARGV[1]))", text.encode())
    assert plain(json.loads(answer)) == plain(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a":1', b"Expected comma or object end but found T_END at character 7"),
        (b'{"a" 1}', b"Expected colon but found T_NUMBER at character 6"),
        (b"{1:2}", b"Expected object key string but found T_NUMBER at character 2"),
        (b"[1 2]", b"Expected comma or array end but found T_NUMBER at character 4"),
        (b"[1,]", b"Expected value but found T_ARR_END at character 4"),
        (b'{"a":1,}', b"Expected object key string but found T_OBJ_END at character 8"),
        (b'["a', b"Expected value but found unexpected end of string at character 4"),
        (b'["a\\q"]', b"Expected value but found invalid escape code at character 4"),
        (b"[1] x", b"Expected the end but found invalid token at character 5"),
        (b"", b"Expected value but found T_END at character 1"),
        (b"[" * 1001, b"Found too many nested data structures (1001) at character 1001"),
    ],
)
def test_what_is_no_json_is_refused_by_its_place(text: bytes, problem: bytes) -> None:
    assert script(b"local done, problem = pcall(cjson.decode, ARGV[1]) return problem", text) == problem


@pytest.mark.parametrize(
    "text",
    [b"007", b"1e5", b"-0", b"0x1F", b"123456789012345678", b"12", b"0", b"1.50", b"+5", b"inf", b"-.5", b"-.5e1"],
)
def test_a_number_alone_is_read_as_one_in_an_array(text: bytes) -> None:
    code = b"local n = cjson.decode(ARGV[1]) return {struct.pack('>d', type(n) == 'table' and n[1] or n)}"
    assert script(code, text) == script(code, b"[" + text + b"]")
