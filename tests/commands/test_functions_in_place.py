"""Functions begin in place where their library's text shows that nothing in them can take long unnoticed."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from penstock.clock import ManualClock, SystemClock
from penstock.engine.scripting import quick_functions
from penstock.engine.scripting.lua_machine import Machine
from tests.commands.test_scripts_in_place import IN_PLACE, LEAVING, LIKE_PACKAGES, SMALL_SCRIPTS, WATCHED
from tests.support.builds import replaces_functions
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.late_script import Late
from tests.support.log import UnitLog
from tests.support.random_libraries import RandomLibrary
from tests.support.seeds import seeds

LOOPING = "while true do end"
MIB = 1024 * 1024
TOO_LONG = b"in place for too long"
STOP_SOON = b"require('debug').sethook(function() error('" + TOO_LONG + b"') end, '', 1000000)"
QUICK_LIBRARIES = (
    "redis.register_function('f', function(keys, args) return redis.call('GET', keys[1]) end)",
    "redis.register_function{function_name='f', callback=function(keys) return keys[1] end, flags={'no-writes'}}",
    "local function f(keys, args) return args[1] end redis.register_function('f', f)",
    "local f = function(keys, args) return args[1] end redis.register_function('f', f)",
    "local function one(x) return x .. '!' end\nlocal function two(x) return one(one(x)) end\n"
    "redis.register_function('f', function(keys, args) return two(args[1]) end)",
    "local PREFIX = 'p:' local ONE = 1 redis.register_function('f', function(keys, args)"
    " local t = {PREFIX = 1, n = ONE} return PREFIX .. (args[1] or 'x') .. t.PREFIX end)",
    "do local function f() return 1 end redis.register_function('f', f) end",
    "redis.register_function('f', function() return {redis.call('PING'), {ok = 'x'}} end)",
    "local function f(n) return n and f() or 1 end redis.register_function('f', function(keys) return f(1) end)",
    "redis.register_function('f', function(...)\n local g = function(x) return x .. 'x' end return g('a') end)",
    "local s = '' redis.register_function('x', function() s = 'y' .. s end)\n"
    "redis.register_function('f', function() return 1 end)",
    "local names = {} for i = 1, 3 do names[i] = i end redis.register_function('f', function() return 1 end)",
)
SLOW_LIBRARIES = {
    "another one in the line": "local t = {} local function x() return t end"
    " redis.register_function('f', function() return 1 end)",
    "a function before its parameters, in the other's line": "local t = {} local function slow\n(keys) return t end"
    " local quick = function() return 1 end redis.register_function('f', slow)",
    "recursion by a forward declaration": "local g\nlocal function f() return g() end\ng = f\n"
    "redis.register_function('f', f)",
    "a helper that keeps something": "local t = {} local function g() t[1] = 1 end\n"
    "redis.register_function('f', function()\n return g() end)",
    "a helper that is set anew": "local function g() return 1 end\n"
    f"redis.register_function('x', function() g = function() {LOOPING} end end)\n"
    "redis.register_function('f', function() return g() end)",
    "a helper that is set anew by a statement": "local function g() return 1 end\n"
    f"function g() {LOOPING} end\nredis.register_function('f', function() return g() end)",
    "a helper that is set among others": "local function g() return 1 end local h\n"
    f"h, g = 1, function() {LOOPING} end\nredis.register_function('f', function() return g() end)",
    "a helper of the same name": f"local function g() return 1 end\nlocal function g() {LOOPING} end\n"
    "redis.register_function('f', function() return g() end)",
    "a helper that a loop sets": "local function g() return 1 end\n"
    f"local h = function() {LOOPING} end for g in function() return h end do break end\n"
    "redis.register_function('f', function() return g() end)",
    "a helper in a table": "local m = {g = function() " + LOOPING + " end}\n"
    "redis.register_function('f', function()\n return m.g() end)",
    "a closure": "redis.register_function('f', function() local g = function() " + LOOPING + " end g() end)",
    "a function that a function made": "local function make()\n return function() " + LOOPING + " end end\n"
    "redis.register_function('f', make())",
    "a library of ours for something else": "local string = {rep = function() " + LOOPING + " end}\n"
    "redis.register_function('f', function()\n return string.rep(1) end)",
    "a value that grows from call to call": "local s = 'x'\nredis.register_function('f', function() s = s .. s end)",
    "a value that another function sets": "local s = 'x'\nredis.register_function('g', function() s = s .. s end)\n"
    "redis.register_function('f', function() return s .. s end)",
    "a value that is set beside a field": "local s = 'x'\nredis.register_function('f', function(keys)"
    " keys[1], s = 1, s .. s end)",
    "a table that is kept": "local t = {}\nredis.register_function('f', function() t[#t + 1] = 1 return t end)",
    "a local of the name of a kept one": "local s = 'x'\nredis.register_function('f', function()"
    " do local s = 1 end s = s .. s end)",
    "an expression that is kept": "local s = ('x'):rep(9)\nredis.register_function('f', function() return s end)",
    "lines that LuaJIT counts": "redis.register_function('f', function()\r return 1 end)",
    "a text of many bytes": f"local s = '{'x' * 5000}'\nredis.register_function('f', function() return s end)",
}  # fmt: skip


@pytest.fixture
def late() -> Late:
    found = Late(UnitLog())
    found.caller("CONFIG SET busy-reply-threshold 60000")
    return found


def load(dialogue: Dialogue, body: str) -> None:
    assert dialogue.words(b"FUNCTION", b"LOAD", b"REPLACE", b"#!lua name=lib\n" + body.encode()) == b"$3\r\nlib\r\n"


def as_function(code: str) -> str:
    """A library with a function that does what a script does."""
    body = code.replace("KEYS", "keys").replace("ARGV", "args")
    return f"redis.register_function('f', function(keys, args)\n{body}\nend)"


def call(dialogue: Dialogue, *words: bytes) -> Any:
    return decoded(dialogue.words(b"FCALL", b"f", b"1", b"key", *words))


@pytest.mark.parametrize("body", [*QUICK_LIBRARIES, *map(as_function, IN_PLACE[:8] + IN_PLACE[9:])])
def test_a_function_of_small_calls_needs_no_thread(threads: list[Callable[[], bytes]], body: str) -> None:
    timeless = Late(UnitLog(), ManualClock(NOW_MS))
    load(timeless.caller, body)
    call(timeless.caller, b"1")

    assert threads == []


@pytest.mark.parametrize("code", [code for code in LEAVING if "function" not in code])
def test_what_takes_long_or_cannot_be_counted_in_a_function_goes_on_in_a_thread(
    late: Late, threads: list[Callable[[], bytes]], code: str
) -> None:
    load(late.caller, as_function(code))
    call(late.caller, b"word")

    assert len(threads) == 1


@pytest.mark.parametrize("code", WATCHED[:2])
def test_a_function_that_cannot_count_its_steps_is_watched(code: str) -> None:
    assert not any(quick_functions.judged(as_function(code).encode())[0].values())


@pytest.mark.parametrize("body", SLOW_LIBRARIES.values(), ids=SLOW_LIBRARIES)
def test_a_function_that_might_take_long_is_watched(body: Any) -> None:
    engine = make_engine(SystemClock())
    load(Dialogue(engine), body)

    assert not engine.scripts.libraries.function(b"f").steps


@pytest.mark.parametrize("text", ["local", "function", "for", "local f = function", "local x =", "end", ")", "for i",
    "local x = 'y", "function(", "local function f(a, end", "\xff", "f(function", "local function", "1LL"])  # fmt: skip
def test_a_text_that_is_no_library_is_refused_by_lua(text: str) -> None:
    engine = make_engine(SystemClock())
    answer = Dialogue(engine).words(b"FUNCTION", b"LOAD", b"#!lua name=lib\n" + text.encode())

    assert answer.startswith(b"-ERR Error compiling function: "), answer


@pytest.mark.parametrize("code", [*SMALL_SCRIPTS, *LIKE_PACKAGES])
def test_a_function_answers_in_place_as_it_does_in_a_thread(code: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Dialogue(make_engine(SystemClock()))
    with monkeypatch.context() as patched:
        patched.setattr(quick_functions, "judged", lambda text: ({}, []))
        load(plain, as_function(code))
    expected = plain.words(b"FCALL", b"f", b"1", b"k", b"w")
    handed_over = Late(UnitLog())
    handed_over.caller("CONFIG SET busy-reply-threshold 60000")
    for steps in (*range(200, 1200, 300), 20_000_000):
        monkeypatch.setattr(quick_functions, "MOST_STEPS", steps)
        handed_over.caller("FLUSHALL", "FUNCTION FLUSH")
        load(handed_over.caller, as_function(code))
        assert handed_over.caller.words(b"FCALL", b"f", b"1", b"k", b"w") == expected


def test_a_function_given_large_words_runs_in_a_thread(late: Late, threads: list[Callable[[], bytes]]) -> None:
    load(late.caller, as_function("return #ARGV[1]"))

    assert call(late.caller, b"x" * MIB) == MIB
    assert len(threads) == 1


def test_a_function_that_reads_much_goes_on_in_a_thread(late: Late, threads: list[Callable[[], bytes]]) -> None:
    late.caller.words(b"SET", b"key", b"x" * MIB)
    load(late.caller, as_function("redis.call('INCR', 'n') return #redis.call('GET', KEYS[1])"))

    assert call(late.caller) == MIB
    assert len(threads) == 1
    assert late.caller("GET n") == b"1"


def test_a_function_is_killed_once_it_goes_on_in_a_thread(late: Late) -> None:
    late.caller("CONFIG SET busy-reply-threshold 20")
    load(late.caller, as_function("local t={} " + "t={t,t} " * 60 + "return t"))
    late.caller.words(b"FCALL", b"f", b"0")

    assert str(late.other("PING")).startswith("BUSY Redis is busy running a script. You can only call FUNCTION KILL")
    assert late.other("FUNCTION KILL") == b"OK"
    late.finish()
    (answer,) = late.caller.arrived()
    assert str(answer).startswith("ERR Script killed by user")
    assert late.other("PING") == b"PONG"


@replaces_functions
@pytest.mark.parametrize("seed", seeds(2, 8))
def test_no_function_stays_in_place_for_long(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random libraries: an error ends what takes a million instructions of Lua in place."""
    monkeypatch.setattr(Machine, "go_on", lambda machine, name: b"-ERR went on\r\n")
    chance = random.Random(seed)
    begun = 0
    for _ in range(60):
        engine = make_engine(SystemClock())
        dialogue = Dialogue(engine)
        dialogue.words(b"FUNCTION", b"LOAD", b"#!lua name=lib\n" + RandomLibrary(chance).text.encode())
        quick = [function.name for function in engine.scripts.libraries.functions.values() if function.steps]
        begun += len(quick)
        if quick:
            engine.scripts.machine()._runtime.execute(STOP_SOON)
        answers = [dialogue.words(b"FCALL", name, b"1", b"key", b"word") for name in quick]
        assert not [answer for answer in answers if TOO_LONG in answer]

    assert begun
