"""Scripts without functions begin in place, and go on in a thread where they take more than a few steps."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.clock import SystemClock
from penstock.engine.scripting import quick_code
from penstock.server.script_thread import ScriptThread
from tests.commands.test_scripts import Late, script
from tests.support.builds import replaces_functions
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.log import UnitLog

MIB = 1024 * 1024
IN_PLACE = (
    "return redis.call('GET', KEYS[1])", "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])",
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
    "local n = tonumber(redis.call('INCR', KEYS[1])) return {math.max(n, 2), 'x', {ok = 'y'}}", "return {1, 2}",
    "return cjson.encode({a = cjson.decode(ARGV[1])})", "return redis.call('RPUSH', KEYS[1], unpack(ARGV))",
    "return string.format('%s:%d', KEYS[1], ARGV[1])", "return ARGV[1]:sub(1, 2) .. ':' .. ('x'):rep(3)",
    "redis.log(redis.LOG_WARNING, 'x') return tostring(cjson.null == nil)",
    "local n = 0 for i = 1, 10 do n = n + i end return n", "for i, v in ipairs(KEYS) do redis.call('SET', v, i) end",
    "local n = 3 while n > 0 do n = n - 1 end repeat n = n + 1 until n > 3 return n",
    "local t = {} for k, v in pairs({a = 1}) do table.insert(t, k .. ':' .. v) end return t",
    "for i = 1, 3 do for j = 1, 3 do if j == 2 then break end redis.call('INCR', KEYS[1]) end end return 'x'",
)  # fmt: skip
WATCHED = (
    "for x in next, {} do end", "for x in f do end", "for x in pairs({}), 1 do end", "for x in pairs({})() do end",
    "local __turn = 1 return __turn", "__turn_of_a_loop[1] = false",
    "for x in (pairs)({}) do end", "local pairs = 1 for x in pairs(1) do end",
    "local s = 'x' while true do s = s .. s s = s .. s s = s .. s s = s .. s s = s .. s end",
    "local function f() end", "local f = redis.call f()", "local s = ARGV[1] s[ARGV[2]](s, 1e9)", "_G.load()()",
    "local redis = ARGV return redis.call('x')", "return pcall(pcall)", "redis['call']('x')",
    "local t = {call = string.rep} return t.call('x', 9)", "local tonumber = x return tonumber(1)", "x = redis",
    "return redis.call 'x' 'y'", "return (redis.call)('x')", "redis.call[[get]] [[x]]", "local x = {} {}",
    "return a.redis.call('x')", "return redis:call('x')", "local math = 1 return math.max(1)",
    "local t = {sub = string.gmatch} return t:sub()", "return loadstring('x')", "setmetatable({}, {})", "x:load()",
    "local t = {sub = table.sort} return t:sub()", "local f = tostring return 1", "return ARGV[1]:gmatch('.')",
)  # fmt: skip
BIG = "redis.call('SET', 'big', ('x'):rep(200)) local b = redis.call('GET', 'big') "
SMALL_SCRIPTS = (
    "return redis.call('GET', 'nokey')", BIG + "return #b", BIG + "return b .. b", BIG + "return b:upper():sub(190)",
    BIG + "return {b, {b, b}, {ok = 'fine'}}", BIG + "return cjson.encode({b, {b = 1.5}})",
    BIG + "return cjson.decode('[1, [2, \"x\"]]')[2][2]", BIG + "return cmsgpack.unpack(cmsgpack.pack({1, b}))",
    BIG + "return table.concat({b, 1, b}, ',')", BIG + "return table.concat({b, {}})",
    BIG + "return b:find('y', 1, true)",
    BIG + "return {b:gsub('x', '%0y', 2)}", BIG + "return {b:gsub('x', {x = 'z'})}", BIG + "return b:match('(x-)$')",
    BIG + "return string.format('%s-%5d', b, 7)", BIG + "return redis.sha1hex(b)", BIG + "return nil + 1",
    BIG + "return redis.call('INCR', 'big')", BIG + "return redis.pcall('INCR', 'big')",
    BIG + "error({err = 'MINE x'})",
    BIG + "redis.setresp(3) return redis.call('HGETALL', 'none')", BIG + "return string.rep(b)", BIG + "error('x')",
    BIG + "return redis.error_reply('My' .. ' own')", BIG + "table.insert(KEYS, b) return KEYS",
    BIG + "return string.format('%d', b)", BIG + "return b:rep(2):gsub('(x)(', '')",
    BIG + "return table.remove({b, b}, 1)",
    BIG + "local n = 0 for i = 1, 100 do n = n + #b end return n", BIG + "for i = 1, 20 do b = b .. i end return b",
    BIG + "for i = 1, 30 do redis.call('INCR', 'n') end return redis.call('GET', 'n')",
    BIG + "local t = {} for i, v in ipairs({b, 'x', b}) do t[i] = #v end return t",
    BIG + "repeat b = nil until not b return 1", BIG + "while b do b = nil .. b end",
    BIG + "for i = 1, 3 do for j = i, 3 do redis.call('RPUSH', 'l', j) end end return redis.call('LRANGE', 'l', 0, -1)",
    BIG + "for i = 1, 50 do if i == 7 then return i end end", BIG + "for i = 1, 9 do redis.call('GET') end",
)  # fmt: skip


@pytest.fixture
def late() -> Late:
    return Late(UnitLog())


def steps_in_place(text: bytes) -> int:
    steps, _ = quick_code.judged(text)
    return steps


def fresh() -> Dialogue:
    return Dialogue(make_engine(SystemClock()))


@pytest.mark.parametrize("code", IN_PLACE)
def test_a_script_of_small_calls_begins_in_place(code: Any) -> None:
    assert steps_in_place(code.encode())


@pytest.mark.parametrize("code", WATCHED)
def test_a_script_that_calls_anything_else_is_watched(code: Any) -> None:
    assert not steps_in_place(code.encode())


def test_a_script_whose_texts_may_grow_large_is_watched() -> None:
    assert steps_in_place(b"local s = 'x' " + b"s = s .. s " * 5) == quick_code.MOST_STEPS
    assert 0 < steps_in_place(b"local s = 'x' " + b"s = s .. s " * 9) < quick_code.MOST_STEPS
    assert not steps_in_place(b"local s = 'x' " + b"s = s .. s " * 40)
    assert not steps_in_place(b"local s = ARGV[1] " + b"s = s:upper 'x' .. s " * 40)
    assert steps_in_place(b"local s = 'x' " + b"s = 'x:' .. KEYS[1] .. ':y' " * 20)


def test_a_small_script_needs_no_thread(late: Late, threads: list[Callable[[], bytes]]) -> None:
    for code in IN_PLACE:
        script(late.caller, code, "1", "key", "1")

    assert threads == []


@pytest.mark.parametrize("code", SMALL_SCRIPTS)
def test_a_script_that_goes_on_in_a_thread_answers_as_one_in_place(code: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_code, "MOST_STEPS", 20_000_000)
    expected = fresh().words(b"EVAL", code.encode(), b"1", b"k", b"w")
    handed_over = Late(UnitLog())
    handed_over.caller("CONFIG SET busy-reply-threshold 60000")
    for steps in range(150, 1200, 100):
        monkeypatch.setattr(quick_code, "MOST_STEPS", steps)
        handed_over.caller("FLUSHALL", "SCRIPT FLUSH")
        assert handed_over.caller.words(b"EVAL", code.encode(), b"1", b"k", b"w") == expected


@pytest.mark.parametrize(
    "code",
    [
        "return #redis.call('GET', 'big')", "return redis.call('GET', 'big')", "return cjson.encode(('x'):rep(300000))",
        "return #table.concat({redis.call('GET', 'big')})", "local s = ('x'):rep(50000) return #(s .. s .. s)",
        "return redis.call('STRLEN', 'big') + #cmsgpack.pack(redis.call('GET', 'big'))",
    ],
)  # fmt: skip
def test_a_script_that_reads_much_goes_on_in_a_thread(
    late: Late, threads: list[Callable[[], bytes]], code: str
) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    late.caller.words(b"SET", b"big", b"x" * MIB)

    assert not str(script(late.caller, code)).startswith("ERR")
    assert len(threads) == 1


@pytest.mark.parametrize(
    "code",
    [
        "local n = 0 for i = 1, 1e6 do n = n + 1 end return n", "local n = 1e6 while n > 0 do n = n - 1 end return 1e6",
        "local n = 0 repeat n = n + 1 until n == 1e6 return n",
        "for i = 1, 1e6 do for j = 1, 9 do break end end return 1e6",
        "local s for i = 1, 1e6 do s = i .. 'x' end return 1e6", "for i = 1, 1e6 do end return 1e6",
        "local s = 'x' for i = 1, 20 do s = s .. s end return #s - 48576",
    ],
)  # fmt: skip
def test_a_long_loop_goes_on_in_a_thread(late: Late, threads: list[Callable[[], bytes]], code: str) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")

    assert script(late.caller, code) == 1_000_000
    assert len(threads) == 1


def test_a_loop_of_requests_that_take_long_goes_on_in_a_thread(late: Late, threads: list[Callable[[], bytes]]) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    late.caller.words(b"RPUSH", b"list", *[b"item %d" % (number * 7919 % 50_000) for number in range(50_000)])

    script(late.caller, "for i = 1, 3 do redis.call('SORT', 'list', 'ALPHA', 'STORE', 'sorted') end")
    assert len(threads) == 1


def test_a_script_whose_loops_cannot_count_their_turns_runs_in_a_thread(
    late: Late, threads: list[Callable[[], bytes]]
) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    names = ", ".join([f"a{number}" for number in range(200)])  # as many as a function may have

    assert script(late.caller, f"local {names} = 7 while a1 do end return a0") == 7
    assert len(threads) == 1


def test_what_loops_leave_behind_in_place_is_collected(late: Late, threads: list[Callable[[], bytes]]) -> None:
    code = "local t = {} for i = 1, 50 do t[i] = ('x'):rep(200) .. i end return #t"
    for _ in range(1000):
        assert script(late.caller, code) == 50

    assert threads == []
    assert late.engine.scripts.memory() < 8 * MIB


def test_a_watched_script_does_not_turn_the_collector_off_by_counting_turns(late: Late) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    code = "local f = function() local t for i = 1, 1e6 do t = {i} end return collectgarbage('count') end"

    script(late.caller, "return 'in place, with steps left'")
    assert script(late.caller, "__turn_of_a_loop[2](1) " + code + " return f() < 20000 and 1 or 0") == 1


def test_a_script_given_large_words_runs_in_a_thread(late: Late, threads: list[Callable[[], bytes]]) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")

    assert decoded(late.caller.words(b"EVAL", b"return #ARGV[1]", b"0", b"x" * MIB)) == MIB
    assert len(threads) == 1


def test_what_a_script_wrote_before_it_went_on_in_a_thread_is_logged_once(late: Late) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    late.caller.words(b"SET", b"big", b"x" * MIB)

    script(late.caller, "redis.call('INCR', 'n') local b = redis.call('GET', 'big') return redis.call('INCR', 'n')")

    assert late.caller("GET n") == b"2"


def test_a_script_is_not_killed_once_it_wrote_in_place(late: Late) -> None:
    script(late.caller, "redis.call('SET', 'a', '1') local t={} " + "t={t,t} " * 17 + "return #cjson.encode(t)")

    assert str(late.other("SCRIPT KILL")).startswith("UNKILLABLE")
    late.finish()
    assert late.other("GET a") == b"1"


def test_scripts_run_in_place_after_one_that_was_killed(late: Late, threads: list[Callable[[], bytes]]) -> None:
    script(late.caller, "local t={} " + "t={t,t} " * 60 + "return t")
    assert late.other("SCRIPT KILL") == b"OK"
    late.finish()

    assert [script(late.caller, f"return {number}") for number in range(3)] == [0, 1, 2]
    assert len(threads) == 1


@replaces_functions
def test_a_script_whose_thread_cannot_start_leaves_the_next_one_alone(
    late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "redis.call('SET', 'a', ('x'):rep(100000)) return #redis.call('GET', 'a')"
    with monkeypatch.context() as patched:
        patched.setattr(ScriptThread, "_begin", failing_begin)
        assert "could not start a thread" in str(script(late.caller, code))

    assert script(late.caller, "return 'next'") == b"next"
    assert script(late.caller, code) == 100000


def failing_begin(worker: ScriptThread) -> None:
    raise RuntimeError("can't start new thread")
