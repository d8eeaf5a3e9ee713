"""What one client's script can do to another's: nothing."""

import subprocess
import sys
from typing import Any

import pytest

from penstock.engine.scripting.lua_machine import Machine
from penstock.engine.scripting.script_calls import Calls, OwnRequests
from tests.support.builds import replaces_functions
from tests.support.dialogue import Dialogue, decoded

pytest.importorskip("lupa")

READONLY = "Attempt to modify a readonly table"
SHARED = ("_G", "string", "table", "math", "redis", "cjson", "cmsgpack", "struct", "bit", "os", "coroutine")
CHANGES = (
    "local _,t=pairs({}) t.evil=1", "{}.evil=1", "rawset({},'evil',1)", "table.insert({},'evil')",
    "local n,t=pairs({}) for k in n,t do t[k]=nil end",
)  # fmt: skip
ERRORS = {
    "a level that is no number": "redis.log(0/0,'x')",
    "an endless level": "redis.log(1/0,'x')",
    "a coroutine as a word": "redis.call('GET',coroutine.create(type))",
    "a table as a word": "redis.call({})",
    "an unknown version": "redis.setresp(0/0)",
    "no number to pack": "struct.pack('>d',{})",
    "too large a number to pack": "struct.pack('f',1e300) cmsgpack.pack(1/0) error('x')",
    "a seed that is no number": "math.randomseed(0/0) error('x')",
    "no text for a sum": "redis.sha1hex() ",
    "an unknown flag": "redis.set_repl(0/0)",
}


def ask(dialogue: Dialogue, code: str) -> Any:
    return decoded(dialogue.words(b"EVAL", code.encode(), b"0"))


@pytest.mark.parametrize("table", SHARED)
@pytest.mark.parametrize("change", CHANGES)
def test_a_shared_table_is_read_only_however_it_is_got(dialogue: Dialogue, table: str, change: str) -> None:
    assert READONLY in str(ask(dialogue, change.replace("{}", table)))


@pytest.mark.parametrize("table", SHARED)
def test_a_shared_table_gets_no_metatable(dialogue: Dialogue, table: str) -> None:
    assert READONLY in str(ask(dialogue, f"setmetatable({table},{{}})"))


@pytest.mark.parametrize(
    "code", ["getmetatable('').evil=1", "getmetatable(_G).evil=1", "getmetatable('').__index.evil=1"]
)
def test_metatables_are_read_only(dialogue: Dialogue, code: str) -> None:
    assert READONLY in str(ask(dialogue, code))


def test_a_table_of_functions_cannot_be_changed_for_others(dialogue: Dialogue) -> None:
    ask(dialogue, "local _,t=pairs(string) t.upper=function() return 'X' end")
    ask(dialogue, "getmetatable(_G).__index.evil=1")

    assert ask(dialogue, "return string.upper('a')..('b'):upper()") == b"AB"
    assert "nonexistent global variable 'evil'" in str(ask(dialogue, "return evil"))


def test_what_is_decoded_shares_no_metatable_that_can_be_changed(dialogue: Dialogue) -> None:
    change = "cjson.decode_array_with_array_mt(true) getmetatable(cjson.decode('[]')).__index=1"

    assert READONLY in str(ask(dialogue, change))


@pytest.mark.parametrize("code", ERRORS.values(), ids=ERRORS.keys())
def test_an_error_of_the_server_is_text_for_a_script(dialogue: Dialogue, code: str) -> None:
    caught = (
        "local kinds={{}} local ok,e=pcall(function() {0} end) kinds[1]=type(e) xpcall(function() {0} end,function(p)"
    )
    caught += " kinds[2]=type(p) end) local c=coroutine.create(function() {0} end) local _,p=coroutine.resume(c)"
    kinds = ask(dialogue, (caught + " kinds[3]=type(p) return kinds").format(code))

    assert kinds[0] == b"string" and set(kinds) <= {b"string", b"table"}


class Failing(Calls):
    """A server in which everything that a script asks for fails."""

    def __init__(self) -> None:
        super().__init__(OwnRequests())

    def call(self, words: tuple[object, ...]) -> bytes:
        raise ZeroDivisionError

    def allowed(self, words: tuple[object, ...]) -> bytes:
        raise MemoryError

    def set_resp(self, version: float) -> None:
        raise OSError

    def report(self, level: float, text: bytes) -> None:
        raise OSError

    def give_memory_back(self) -> None:
        """There is no C library to tell."""

    def why_stop(self) -> bytes | None:
        return None


@replaces_functions
@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ("redis.call,'GET','a'", b"false string ERR internal error: ZeroDivisionError"),
        ("redis.acl_check_cmd,'GET'", b"false string ERR not enough memory"),
        ("redis.setresp,3", b"true nil nil"),
        ("redis.log,1,'x'", b"true nil nil"),
    ],
)
def test_an_exception_in_the_server_is_text_for_a_script(asked: str, kinds: bytes) -> None:
    machine = Machine(Failing(), "8.6.3")
    code = f"local ok,e=pcall({asked}) return tostring(ok)..' '..type(e)..' '..tostring(e)"

    number = machine.compile(b"sha", code.encode(), [])
    assert isinstance(number, int)
    assert machine.run(number, 2, False, 0, [], 0) == b"$%d\r\n%b\r\n" % (len(kinds), kinds)
    assert machine.run(number, 2, True, 0, [], 0) == b"$%d\r\n%b\r\n" % (len(kinds), kinds)


@pytest.mark.parametrize("code", ["cjson.null.x=1", "return cjson.null.x", "return -cjson.null", "cjson.null()"])
def test_the_one_userdata_there_is_opens_nothing(dialogue: Dialogue, code: str) -> None:
    assert "(a userdata value)" in str(ask(dialogue, code))


# -- positions --------------------------------------------------------------------------------------------------------

BLAMED = {
    "a missing argument": "string.rep()",
    "no text": "string.format({})",
    "no pattern": "('x'):find('[')",
    "no order": "table.sort({{},{}})",
    "no replacement": "('x'):gsub('x',function() return {} end)",
    "no capture": "('x'):gsub('x','%2')",
    "a slow pattern": "local s=('a'):rep(9000) s:gsub('(a-)(a-)$',function() return {} end)",
    "no json": "cjson.decode('x')",
    "json of a function": "cjson.encode(function() end)",
    "no message": "cmsgpack.unpack('\\193')",
    "a bad layout": "struct.pack('y')",
    "a stack of tables": "table.concat({{}})",
    "a yield": "coroutine.yield()",
    "a wrapped error": "coroutine.wrap(function() error({}) end)()",
    "nothing to call": "redis.call()",
    "a metamethod": "local t=setmetatable({},{__index=redis.call}) local x=t.a",
}


@pytest.mark.parametrize("code", BLAMED.values(), ids=BLAMED.keys())
@pytest.mark.parametrize("way", ["\n{}", "\nreturn {}", "\nlocal function f() {} end f()"])
def test_an_error_names_the_script_and_nothing_of_ours(dialogue: Dialogue, code: str, way: str) -> None:
    if "return" in way and code.startswith("local"):
        way = "\n{}"
    answer = str(ask(dialogue, way.format(code)))

    assert "penstock" not in answer
    assert answer.endswith(", on @user_script:2.")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("local e=cjson.encode e()", "bad argument #1 to 'e' (expected 1 argument)"),
        ("local t={} t.e=struct.pack t:e()", "calling 'e' on bad self (string expected, got table)"),
        ("local x=('%d'):format('x')", "bad argument #1 to 'format' (number expected, got string)"),
        ("local x=({table.insert})[1](0)", "bad argument #1 to '?' (table expected, got number)"),
        ("local x=setmetatable({},{__add=cjson.encode})+1", "bad argument #1 to '?' (expected 1 argument)"),
    ],
)
def test_an_error_names_a_function_as_the_script_called_it(dialogue: Dialogue, code: str, told: str) -> None:
    assert str(ask(dialogue, code)).startswith(f"ERR user_script:1: {told} script: ")


@pytest.mark.parametrize("level", range(2, 12))
def test_an_error_of_any_level_is_at_no_line_of_ours(dialogue: Dialogue, level: int) -> None:
    assert str(ask(dialogue, f"error('x',{level})")).startswith("ERR x script: ")


def test_the_level_of_an_error_counts_a_library_s_function_as_one(dialogue: Dialogue) -> None:
    raising = "pcall(string.gsub,'a','a',function() error('x',i) end)"

    found = ask(dialogue, f"local t={{}} for i=1,5 do\nlocal _,e={raising} t[i]=e end return t")

    assert found == [b"user_script:2: x", b"x", b"x", b"user_script:2: x", b"x"]


def test_an_operator_that_c_uses_fails_at_no_line_of_ours(dialogue: Dialogue) -> None:
    code = "string.gsub('a','a',setmetatable({},{__index=string.rep}))"

    assert "penstock" not in str(ask(dialogue, code))


def test_a_chunk_may_call_itself_as_we_do_and_gains_nothing(dialogue: Dialogue) -> None:
    answer = str(ask(dialogue, "loadstring('error(1)','=[penstock]')()"))

    assert answer.startswith("ERR [penstock] :1: 1 script: ")


@pytest.mark.parametrize("other", ["lua51", "lua54"])
def test_scripts_run_where_the_program_loaded_another_lua_for_all(other: str) -> None:
    program = f"""
import lupa
with lupa.allow_lua_module_loading():
    from lupa import {other}
import penstock
with penstock.Server() as server:
    print(server.client().eval("return cjson.encode({{1, 2}})", 0))
"""

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stdout == "b'[1,2]'\n", ended.stderr
