"""Scripts that ended or corrupted the process: each gets an answer, and the server goes on."""

from typing import Any

import pytest

from penstock.engine.scripting import function_payload
from tests.support.dialogue import Dialogue, decoded

pytest.importorskip("lupa")

MANY_NAMES = (
    "local p={} for i=1,190 do p[i]='p'..i end "
    "local f=loadstring('return function('..table.concat(p,',')..',...) local a,b,c=... return 1 end')() "
)
UNPACKING = ("-2,2147483647", "0,2147483647", "-2147483648,1", "1,1e9")
NESTING = {
    "gsub with a function": "local function f() string.gsub('a','a',f) end f()",
    "gsub with a table": (
        "local t={} setmetatable(t,{__index=function() return (string.gsub('a','a',t)) end}) string.gsub('a','a',t)"
    ),
    "sort": "local function f() table.sort({1,2,3},f) end f()",
    "sort with a metamethod": (
        "local a=setmetatable({},{}) getmetatable(a).__lt=function() table.sort({a,a,a}) end table.sort({a,a,a})"
    ),
    "foreach": "local function f() table.foreach({1},f) end f()",
    "foreachi": "local function f() table.foreachi({1},f) end f()",
    "coroutines": "local function f() coroutine.wrap(f)() end f()",
    "coroutines that are resumed": "local function f() assert(coroutine.resume(coroutine.create(f))) end f()",
    "load": "local function f() local _, why = load(f) error(why, 0) end f()",
    "pcall": "local function f() assert(pcall(f)) end f()",
}
CODE = b"\x1bLJ\x02\x08\x00"
LIBRARY_OF_CODE = b"#!lua name=a\n" + CODE


def ask(dialogue: Dialogue, code: str) -> Any:
    return decoded(dialogue.words(b"EVAL", code.encode("latin-1"), b"0"))


@pytest.mark.parametrize("bounds", UNPACKING)
def test_unpacking_beyond_the_stack_is_refused(dialogue: Dialogue, bounds: str) -> None:
    assert "too many results to unpack" in str(ask(dialogue, f"return {{unpack({{1,2,3}},{bounds})}}"))


def test_many_names_and_more_arguments_in_many_coroutines_are_harmless(dialogue: Dialogue) -> None:
    assert ask(dialogue, MANY_NAMES + "for i=1,5000 do coroutine.wrap(f)() end return 1") == 1


@pytest.mark.parametrize("code", NESTING.values(), ids=NESTING.keys())
def test_what_nests_in_c_ends_with_an_overflow(dialogue: Dialogue, code: str) -> None:
    assert "C stack overflow" in str(ask(dialogue, code))
    assert ask(dialogue, "return 'alive'") == b"alive"


def test_a_coroutine_that_waited_outside_does_not_forget_how_deep_it_is(dialogue: Dialogue) -> None:
    code = (
        "local function enter(n) local c=coroutine.wrap(function() while true do "
        "pcall(function() coroutine.yield() error('x') end) if n<2000 then enter(n+1)() enter(n+1)() end end end) "
        "pcall(c) return c end local c=enter(1) for i=1,10 do pcall(c) end return 'alive'"
    )

    assert ask(dialogue, code) == b"alive"


def test_a_script_nests_as_deep_in_pcall_as_in_redis(dialogue: Dialogue) -> None:
    code = "local d=0 local function f() d=d+1 pcall(f) end pcall(f) return d"

    assert ask(dialogue, code) == 198  # Redis 8.6.3


@pytest.mark.parametrize(
    "words",
    [
        (b"EVAL", CODE, b"0"), (b"SCRIPT", b"LOAD", CODE), (b"FUNCTION", b"LOAD", LIBRARY_OF_CODE),
        (b"EVAL", b"\xef\xbb\xbf" + CODE, b"0"), (b"EVAL", b"#x\n" + CODE, b"0"),
    ],
)  # fmt: skip
def test_compiled_code_is_refused(dialogue: Dialogue, words: tuple[bytes, bytes, bytes]) -> None:
    answer = str(decoded(dialogue.words(*words)))

    assert "Error compiling" in answer and "unexpected symbol near" in answer


def test_a_library_of_compiled_code_is_not_restored(dialogue: Dialogue) -> None:
    kept = b"#!lua name=kept\nredis.register_function('f', function() return 1 end)"
    dialogue.words(b"FUNCTION", b"LOAD", kept)
    payload = function_payload.written([kept.replace(b"kept", b"other").replace(b"'f'", b"'g'"), LIBRARY_OF_CODE])

    answer = str(decoded(dialogue.words(b"FUNCTION", b"RESTORE", payload)))

    assert "Error compiling function" in answer and "unexpected symbol near 'char(27)'" in answer
    assert dialogue("FCALL f 0") == 1
    assert str(dialogue("FCALL g 0")) == "ERR Function not found"


@pytest.mark.parametrize("way", ["loadstring(code)", "load(function() local c=code code=nil return c end)"])
def test_a_script_cannot_load_compiled_code(dialogue: Dialogue, way: str) -> None:
    code = f"local code='\\27LJ\\2' local f,why={way} return {{type(f),why}}"

    kind, why = ask(dialogue, code)

    assert kind == b"nil" and why.endswith(b"unexpected symbol near 'char(27)'")


@pytest.mark.parametrize("name", ["redis.call", "function() end", "string.rep", "loadstring"])
def test_no_function_is_dumped(dialogue: Dialogue, name: str) -> None:
    assert "unable to dump given function" in str(ask(dialogue, f"return string.dump({name})"))


@pytest.mark.parametrize("number", ["1LL", "1ULL", "0x1ll", "2i", "1.5i", "0b11", "3x", "1..2"])
def test_numbers_that_lua_5_1_does_not_know_are_malformed(dialogue: Dialogue, number: str) -> None:
    assert f"malformed number near '{number}'" in str(ask(dialogue, f"return {number}"))


@pytest.mark.parametrize("number", ["1LL", "1ULL", "0x1ll", "2i", "1.5i"])
def test_they_are_malformed_in_a_large_script_too(dialogue: Dialogue, number: str) -> None:
    code = "local a = 1 -- 1LL\n" * 8000 + f"local b = '2i' return {number}"

    assert f"user_script:8001: malformed number near '{number}'" in str(ask(dialogue, code))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("goto x", "'=' expected near 'x'"), ("::a::", "unexpected symbol near ':'"),
        ("#x", "unexpected symbol near '#'"), ("break", "no loop to break near '<eof>'"),
        ("end break", "'<eof>' expected near 'end'"),
        ("while f(function() do end end) do local g = function() break end end", "no loop to break near 'end'"),
        ("return 'a' local x", "'<eof>' expected near 'local'"), ("return 0x1.8", "'<eof>' expected near '.8'"),
    ],
)  # fmt: skip
def test_grammar_that_lua_5_1_does_not_know_is_refused(dialogue: Dialogue, code: str, problem: str) -> None:
    assert str(ask(dialogue, code)) == f"ERR Error compiling script (new function): user_script:1: {problem}"


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("local goto = 1 return goto", 1), ("return -0", 0), ("return 0/-1", 0),
        ("for i=1,(function() do return 5 end end)() do if i > 2 then break end end repeat break until 1 return 1", 1),
        ('return "\\x41\\z  b\\065\\q"', b"x41z  bAq"),
        ("local function f(...) return arg.n end return f(1,2,nil)", 3),
        ("local function f(...) local x=... return type(arg) end return f(1)", b"nil"),
        ("return tonumber('0b1')", None), ("return string.rep('x',3,',')", b"xxx"), ("return math.log(8,2)*100", 207),
        ("return xpcall(function(...) return select('#',...) end,type,1,2) and 1", 1),
        ("return tostring(0/0)..tostring(-(0/0))", b"-nannan"),
        ("return string.format('%10.4f%-6g%+e', 0/0, 0/0, -(0/0))", b"      -nan-nan  +nan"),
        ("return string.format('% 5g%09E', -(0/0), 0/0)", b"  nan     -NAN"),
        ("return string.format('%q','a\\n\\0')", b'"a\\\n\\000"'),
        ("return string.format('%u',-3)", b"18446744073709551613"), ("return math.mod(7,3)", 1),
        ("return bit.tohex(255,2^32-3)..bit.tohex(255,-2^31)", b"0FF000000FF"),
        ("return bit.tohex(-1,20)", b"ffffffff"), ("return string.format('%s','a\\0b')", b"a"),
    ],
)  # fmt: skip
def test_what_luajit_reads_otherwise_is_read_as_in_lua_5_1(
    dialogue: Dialogue, code: str, answer: bytes | int | None
) -> None:
    assert ask(dialogue, code) == answer  # Redis 8.6.3


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("math.floor()", "bad argument #1 to 'floor' (number expected, got no value)"),
        ("math.ceil()", "bad argument #1 to 'ceil' (number expected, got no value)"),
        ("math.floor('x')", "bad argument #1 to 'floor' (number expected, got string)"),
        ("math.pow()", "bad argument #2 to 'pow' (number expected, got no value)"),
        ("math.fmod('x', {})", "bad argument #2 to 'fmod' (number expected, got table)"),
        ("math.fmod('x', '2')", "bad argument #1 to 'fmod' (number expected, got string)"),
        ("error((select(2, pcall())), 0)", "attempt to call a boolean value"),
    ],
)
def test_a_missing_argument_is_named_and_is_not_what_was_left_on_the_stack(
    dialogue: Dialogue, call: str, problem: str
) -> None:
    """Redis 8.6.3. LuaJIT's math.floor took a number that an earlier call had left for its argument."""
    answer = str(ask(dialogue, f"do local a, b, c, d, e = 16, 17, 18, 19, 20 end return ({call})"))

    assert answer.startswith(("ERR user_script:1: " + problem, "ERR " + problem))


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (r"return {ok='\n\na b\r\n'}", b"+  a b  \r\n"), (r"return {ok='\n'}", b"+ \r\n"),
        (r"return {err='\nA b\n'}", b"- A b\r\n"), (r"return {err='\n\n'}", b"-\r\n"),
        (r"return {big_number='1\0\nb'}", b"$4\r\n1\0 b\r\n"), (r"return {ok='a\0b'}", b"+a\r\n"),
        ("return struct.pack('>i8', 1/0)", b"$8\r\n" + bytes(8) + b"\r\n"),
        ("return struct.pack('>i8', -1/0)", b"$8\r\n\x80" + bytes(7) + b"\r\n"),
        ("return struct.pack('>i8', 0/0)", b"$8\r\n\x80" + bytes(7) + b"\r\n"),
    ],
)  # fmt: skip
def test_line_ends_and_zeros_in_what_a_script_answers_are_as_in_redis(
    dialogue: Dialogue, code: str, answer: bytes
) -> None:
    assert dialogue.words(b"EVAL", code.encode(), b"0") == answer  # Redis 8.6.3


def test_functions_and_scripts_have_settings_of_json_of_their_own(dialogue: Dialogue) -> None:
    code = b"#!lua name=a\nredis.register_function('f', function() return cjson.decode_max_depth(5) end)"
    dialogue.words(b"FUNCTION", b"LOAD", code)

    assert dialogue("FCALL f 0") == 5
    assert ask(dialogue, "return cjson.decode_max_depth()") == 1000


def test_an_error_without_the_text_that_is_looked_for_is_an_error(dialogue: Dialogue) -> None:
    code = b"error(setmetatable({}, {__index = function() error('x') end}))"

    assert dialogue.words(b"EVAL", code, b"0").startswith(b"-ERR unknown error script: ")
