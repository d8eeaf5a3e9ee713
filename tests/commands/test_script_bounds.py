"""Scripts that want all the time or all the memory there is: they are stopped, and what they took comes back."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from penstock.clock import SystemClock
from penstock.engine.scripting import lua_machine
from penstock.server.script_thread import ScriptThread
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.late_script import LIBRARY, Late, script
from tests.support.log import UnitLog

MIB = 1024 * 1024
PATIENCE_S = 20.0
ENDLESS = {
    "a loop": "while true do end",
    "a loop that catches": "while true do pcall(function() while true do end end) end",
    "a chunk named as ours": "loadstring('while true do end','=penstock')()",
    "a chunk named exactly as ours": "loadstring('while true do end','=[penstock]')()",
    "tail calls": "local function f() return f() end return f()",
    "coroutines": "local c=coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end",
    "a coroutine": "coroutine.wrap(function() while true do end end)()",
    "a handler of errors": "xpcall(error,function() while true do end end)",
    "a metamethod": "local t=setmetatable({},{__index=function() while true do end end}) return t.x",
    "a reader of code": "load(function() return ' ' end)",
    "a slow pattern": "return ('a'):rep(50000):find(('.-'):rep(20)..'b')",
    "a slow pattern for gsub": "return ('a'):rep(50000):gsub(('.-'):rep(20)..'b','')",
    "a slow pattern for gmatch": "for _ in ('a'):rep(50000):gmatch(('.-'):rep(20)..'b') do end",
    "a slow search": "local s=('a'):rep(3000000) for i=1,1e9 do s:find(s:sub(1,-9)..'b',1,true) end",
    "a sort without end": "local n=0 while true do pcall(table.sort,{3,2,1},function() n=n+1 return true end) end",
    "an insertion far below": "table.insert({},-2147483648,1)",
    "texts of the largest kind": "local s='x' while true do pcall(function() s=s..s end) end",
    "tables of the largest kind": "while true do pcall(function() local t={} while true do t={t} end end) end",
    "a reply without end of a script without loops": "local t={} " + "t={t,t} " * 60 + "return t",
    "json without end of a script without loops": "local t={1} " + "t={t,t} " * 60 + "return cjson.encode(t)",
    "messages without end of a script without loops": "local t={} "
    + ("t={" + "t," * 90 + "} ") * 16
    + "return cmsgpack.pack(t)",
    "a slow search without loops": "return ('a'):rep(30000):find(('.-'):rep(20)..'b')",
    "a reply without end": "local t={} for i=1,40 do t={t,t} end return t",
    "json of a large text": "while true do cjson.encode(('\\1'):rep(20000000)) end",
    "json without end": "while true do cjson.decode(cjson.encode({1,{2}})) end",
}
GROWING = {
    "tables": "local t={} while true do t={t} end",
    "an array": "local t={} for i=1,1e10 do t[i]=i end",
    "texts": "local t={} for i=1,1e10 do t[i]=('x'):rep(1000)..i end",
    "a text that doubles": "local s='x' while true do s=s..s end",
}
MEMORY = {
    "a text": "return #string.rep('x',1000000000)",
    "a joined text": "local t={} for i=1,20 do t[i]=('x'):rep(50000000) end return #table.concat(t)",
    "a joined text of few items": "local s = ('x'):rep(5e7) return #table.concat({s, s, s, s, s, s, s, s, s, s, s})",
    "a reply of large texts": "local s = ('x'):rep(2e8) return {s, s, s}",
}
STOPPED = "collectgarbage('stop') collectgarbage('setpause',100000) collectgarbage('setstepmul',1) "

pytest.importorskip("lupa")


@pytest.fixture
def late() -> Late:
    return Late(UnitLog())


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the memory that a script gets: to fill all of it takes a second."""
    monkeypatch.setattr(lua_machine, "SOFT_LIMIT", 64 * MIB)
    monkeypatch.setattr(lua_machine, "HARD_LIMIT", 80 * MIB)


@pytest.fixture
def alone() -> Dialogue:
    """An engine with scripts that cannot be killed, with all the time in the world."""
    dialogue = Dialogue(make_engine(SystemClock()))
    dialogue("CONFIG SET busy-reply-threshold 60000")
    return dialogue


# -- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_script_without_end_is_killed(late: Late, code: Any) -> None:
    script(late.caller, code)

    assert str(late.other("PING")).startswith("BUSY")
    assert late.other("SCRIPT KILL") == b"OK"
    late.finish()
    (answer,) = late.caller.arrived()
    assert str(answer).startswith("ERR Script killed by user with SCRIPT KILL...")
    assert late.other("PING") == b"PONG"


@pytest.mark.parametrize("body", ["while true do end", "local function f() return f() end f()"])
def test_a_library_that_does_not_end_is_not_loaded(body: str) -> None:
    dialogue = Dialogue(make_engine(SystemClock()))

    answer = decoded(dialogue.words(b"FUNCTION", b"LOAD", b"#!lua name=a\n" + body.encode()))

    assert str(answer) == "ERR Error registering functions: ERR FUNCTION LOAD timeout"
    assert decoded(dialogue.words(b"FUNCTION", b"LOAD", LIBRARY)) == b"lib"
    assert dialogue("FCALL twice 0 4") == 8


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", STOPPED], ids=["collected", "told not to collect"])
@pytest.mark.parametrize("code", MEMORY.values(), ids=MEMORY.keys())
def test_a_script_gets_so_much_memory_and_leaves_nothing(alone: Dialogue, code: Any, before: Any) -> None:
    assert "not enough memory" in str(script(alone, before + code))
    assert alone.engine.scripts.memory() < 32 * MIB
    assert script(alone, "return redis.call('PING').ok") == b"PONG"


@pytest.mark.parametrize("before", ["", STOPPED], ids=["collected", "told not to collect"])
@pytest.mark.parametrize("code", GROWING.values(), ids=GROWING.keys())
@pytest.mark.usefixtures("small_limits")
def test_a_script_that_grows_gets_so_much_memory_and_leaves_nothing(alone: Dialogue, code: str, before: str) -> None:
    assert "not enough memory" in str(script(alone, before + code))
    assert alone.engine.scripts.memory() < 8 * MIB
    assert script(alone, "return redis.call('PING').ok") == b"PONG"


@pytest.mark.slow
@pytest.mark.parametrize("locals_more", range(12))  # which moves the moment at which the watch finds it
@pytest.mark.usefixtures("small_limits")
def test_a_reply_that_takes_too_much_after_its_script_left_the_place_leaves_nothing(
    alone: Dialogue, locals_more: int
) -> None:
    more = "".join([f"local x{number} = {{1}} " for number in range(locals_more)])
    code = "local v = {} table.insert(v, {v, v}) local function f() return v end "

    endless = code + more + "coroutine.resume(coroutine.create(function() end)) return v"
    assert "not enough memory" in str(script(alone, endless))
    assert script(alone, "return #redis.call('PING').ok") == 4
    assert alone.engine.scripts.memory() < 8 * MIB


def test_scripts_that_stop_the_collector_take_no_more_and_more(alone: Dialogue) -> None:
    for _ in range(40):
        script(alone, STOPPED + "local t = {} for i = 1, 100000 do t[i] = {i} end")

    assert alone.engine.scripts.memory() < 100 * MIB


def test_a_request_with_huge_words_is_refused_and_the_server_goes_on(
    alone: Dialogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lua_machine, "HARD_LIMIT", 64 * MIB)

    assert "not enough memory" in str(decoded(alone.words(b"EVAL", b"return #ARGV[1]", b"0", b"x" * (100 * MIB))))
    assert decoded(alone.words(b"EVAL", b"return #ARGV[1]", b"0", b"x" * MIB)) == MIB


def test_a_huge_reply_is_refused_and_the_server_goes_on(alone: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    alone.words(b"SET", b"a", b"x" * (100 * MIB))
    monkeypatch.setattr(lua_machine, "HARD_LIMIT", 64 * MIB)

    assert "not enough memory" in str(script(alone, "return #redis.call('GET','a')"))
    assert script(alone, "return #redis.call('PING').ok") == 4


def test_a_request_of_a_script_that_took_too_much_is_refused(alone: Dialogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lua_machine, "SOFT_LIMIT", MIB)

    assert "not enough memory" in str(script(alone, "local t = {} for i = 1, 1e5 do t[i] = {} end redis.call('PING')"))


# -- the thread -------------------------------------------------------------------------------------------------------


def test_a_thread_that_cannot_start_is_told_and_tried_again(late: Late, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", failing_start)
        answer = script(late.caller, "collectgarbage() return 1")

    assert "could not start a thread" in str(answer)
    assert late.other("PING") == b"PONG"
    assert script(late.caller, "collectgarbage() return 2") == 2


def failing_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_script_that_ends_with_an_exception_leaves_no_client_busy() -> None:
    worker = ScriptThread(lambda: None)

    assert b"not enough memory" in (worker.run(out_of_memory, PATIENCE_S) or b"")
    assert b"ZeroDivisionError" in (worker.run(divided, PATIENCE_S) or b"")
    assert worker.run(lambda: b"+OK\r\n", PATIENCE_S) == b"+OK\r\n"


def out_of_memory() -> bytes:
    raise MemoryError


def divided() -> bytes:
    return b"%d" % (1 // 0)


# -- what is done in Lua instead of C ---------------------------------------------------------------------------------

LIBRARIES = lua_machine.SOURCES
PATTERNS = (
    "a*b", "a-b", "^a+", "(a*)(b-)$", "%s*(.-)%s*$", "[^a]+", "[a-b]?b", "[]a]", "[^]]", "(()a)", "()", "%f[%a]%a+",
    "%b()", "(a)%1", "((a)b?)%2", "a.c", ".-", "", "$", "^$", "a$b", "[%a-]+", "%(", "x?y?z?a", "[a-]*-", "(a?)(b?)%1",
)  # fmt: skip
SUBJECTS = ("", "a", "b", "ab", "aab", "abc aab", "(a(b)c)", "  aa b ", "a-b-c", "]a[", "aaaaab", "xyza", "abab")


def test_the_matcher_in_lua_finds_what_luas_own_finds(alone: Dialogue) -> None:
    runtime = alone.engine.scripts.machine()._runtime
    matcher = runtime.execute(b"return assert(loadstring(...))", (LIBRARIES / "patterns.lua").read_bytes())()
    compare: Callable[..., Any] = runtime.execute(
        b"local patterns = ... return function(subject, pattern, init)"
        b" local function told(...) local t = {...} for i = 1, select('#', ...) do t[i] = tostring(t[i]) end"
        b" return table.concat(t, ' ') end"
        b" local function flat(first, last, values, count) if not first then return nil end"
        b" return first, last, unpack(values, 1, count) end"
        b" return told(subject:find(pattern, init)), told(flat(patterns.matcher(pattern)(subject, init))) end",
        matcher,
    )
    found = [
        (subject, pattern, init, *compare(subject.encode(), pattern.encode(), init))
        for subject in SUBJECTS
        for pattern in PATTERNS
        for init in range(1, len(subject) + 2)
    ]

    assert [case for case in found if case[3] != case[4]] == []


def test_the_sort_in_lua_leaves_equal_items_as_luas_own_does(alone: Dialogue) -> None:
    runtime = alone.engine.scripts.machine()._runtime
    script(alone, "return 1")
    random_lists: Any = runtime.execute(b"""
        local sort = ...
        local state = 1
        local function chance(n) state = (state * 16807) % 2147483647 return state % n end
        local function before(a, b) return a[1] < b[1] end
        local wrong = 0
        for length = 0, 300 do
            local one, other = {}, {}
            for place = 1, length do local item = {chance(length / 3 + 1)} one[place], other[place] = item, item end
            table.sort(one, before) sort(other, before)
            for place = 1, length do if one[place] ~= other[place] then wrong = wrong + 1 end end
        end
        return wrong""", alone.engine.scripts.machine()._tables()[b"sort"])  # fmt: skip

    assert random_lists == 0


@pytest.mark.parametrize(("place", "found"), [("2^63", b"0"), ("2^62", b"0"), ("2^32 + 7", b"7")])
def test_a_place_beyond_32_bits_is_cut_to_them(alone: Dialogue, place: str, found: bytes) -> None:
    """LuaJIT's own table.insert would move two thousand million items, and nothing could stop it."""
    assert script(alone, f"local t = {{}} table.insert(t, {place}, 'x') return tostring(next(t))") == found
