"""Scripts begin in place, and go on in a thread where they take more than a few steps."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.clock import ManualClock, SystemClock
from penstock.engine.scripting import quick_code
from penstock.server.script_thread import ScriptThread
from tests.support.builds import replaces_functions
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.late_script import Late, script
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
    "for x in ARGV[1]:gmatch('.') do redis.call('SET', KEYS[1], x) end", "local t = {sub = table.sort} t.sub({2, 1})",
    "local t = {'b', 'a', 'c'} table.sort(t) table.sort(t, function(a, b) return a > b end) return table.concat(t)",
    "table.foreach({1}, function() end) table.foreachi({1}, function() end)",
    "for x, y in ('^a^b'):gmatch('^(%a)()') do end",
    "return {('x y'):gsub('%a', function(x) return x:upper() end), (('x y'):gsub('%a', {x = 1}))}",
    "local n = 0 for i = 1, 900 do n = n + i % 7 end return n",
)  # fmt: skip
WATCHED = (
    "local __joined = 1 return __joined", "local __left = 9", "__turn_of_a_loop(1)", "_G.load()()",
    "local x = 1 " * 9000, "local s = 1 " + "s = s + s " * 5000,
)  # fmt: skip
LEAVING = (
    "return loadstring('return 7')()", "setmetatable({}, {})", "for x in ('a'):rep(300):gmatch('a-a-b') do end",
    "return load('x')",
    "return coroutine.wrap(function() return 1 end)()", "xpcall(function() end, function() end)",
    "local t = {} for i = 1, 1200 do t[i] = {} end table.sort(t, rawget)",
    "local t, s = {}, ('x'):rep(500) for i = 1, 200 do t[i] = s end table.sort(t)",
    "local t = {} for i = 1, 300 do t[i] = i end for i = 1, 50 do table.foreach(t, function() end) end",
    "for i = 1, 50 do ('x'):rep(300):gsub('x', type) end", "for i = 1, 50 do ('x'):rep(300):gsub('x', {}) end",
    "collectgarbage()", "local f = loadstring f('return 7')", "pcall(loadstring, 'x')",
    "local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end return f(5000)",
    "local function f(n) if n > 0 then return f(n - 1) end return 7 end return f(1e5)",
    "local f f = function(n) return n < 2 and n or f(n - 1) + f(n - 2) end return f(20)",
    "local t = {} function t:f(n) return n > 0 and self:f(n - 1) or 7 end return t:f(1e5)",
    "local function f(s, n) if n == 0 then return s end return f(s .. s, n - 1) end return #f('x', 20)",
    "local function f(n) if n == 0 then return 'x' end local s = f(n - 1) return s .. s end return #f(20)",
    "local function f(n) if n == 0 then return 'x' end return f(n - 1) .. f(n - 1) end return #f(15)",
    "local function f(s) return s .. s end return #" + "f(" * 20 + "'x'" + ")" * 20,
    "local s = 'x' " + "s = s .. s " * 20 + " return #s", "local s = ('x'):rep(9000) return #(" + "s .. " * 30 + "s)",
    "local f = function() while true do return 1 end end for i = 1, 1e4 do f() end",
    "for i = 1, 1e5 do pcall(error) end",
    "for i in (function() local i = 0 return function() i = i + 1 if i < 1e5 then return i end end end)() do end",
    "for x in (function() for i = 1, 9 do end return next end)(), KEYS do for i = 1, 1e5 do end end",
    "local t = {} for i = 1, 2000 do t[i] = i end for i = 1, 1e3 do unpack(t) end",
    "local u, t = unpack, {} for i = 1, 900 do t[i] = i end for i = 1, 1e3 do u(t) end",
    "for i = 1, 1e5 do pcall(function() return nil .. 'x' end) end",
    "local s = ('7'):rep(5000) for i = 1, 1e4 do local n = s + 1 end",
    "for i = 1, 1e5 do if KEYS[1] < 'b' then end end",
)  # fmt: skip
HELPERS = """
local rcall = redis.call
local prefix = ARGV[1] .. ':'
--- Puts a job where it waits, and says so.
local function enqueue(id, data)
  rcall("HSET", prefix .. id, "data", data, "at", ARGV[2])
  if rcall("LPUSH", prefix .. "wait", id) > 0 then
    rcall("XADD", prefix .. "events", "1-" .. id, "event", "waiting", "id", prefix .. id)
  end
  return prefix .. id
end
local function each(list, act)
  local made = {}
  for i, value in ipairs(list) do made[#made + 1] = act(i, value) end
  return made
end
local function depth(node, n) if not node.next then return n end return depth(node.next, n + 1) end
"""
LIKE_PACKAGES = (
    HELPERS + "return each({'a', 'b', 'c'}, enqueue)",
    HELPERS + "local function f(s) local t = enqueue(s, 'x'):upper() .. s t = f and t .. t return t end return f('y')",
    HELPERS + "return depth({next = {next = {}}}, 0)",
    HELPERS + "local id = rcall('INCR', prefix .. 'id') return {enqueue(id .. '', 'x'), cjson.encode({id = id})}",
    HELPERS + "local ok, problem = pcall(rcall, 'HGET', prefix) return {tostring(ok), problem, type(problem)}",
    HELPERS + "local ok, problem = pcall(function() error({err = 'BAD x'}) end) return problem",
    HELPERS + "local n = 0 for _, v in pairs({1, 2, 3}) do n = n + (v % 2 == 0 and v or 0) end return n .. '/' .. n",
    HELPERS + "return enqueue(nil, 'x')", HELPERS + "return each({1}, function() return undefined_one end)",
    HELPERS + "if redis.call('SET', KEYS[1], 1, 'NX') then\n\n return enqueue('7', missing.field) end",
    "local now, window = tonumber(ARGV[2]), 10\nlocal function bucket(t) return math.floor(t / window) end\n"
    "local count = redis.call('INCR', KEYS[1] .. ':' .. bucket(now))\nif count == 1 then redis.call('PEXPIRE', KEYS[1]"
    " .. ':' .. bucket(now), window * 1000) end\nreturn {count, 5 - count, tostring(bucket(now))}",
    "local function isolate(...) local args = {...} return #args + select('#', ...) end "
    "return isolate(1, nil, 3, unpack(ARGV))",
    "local M = {} function M.get(k) return redis.call('GET', k) end function M:twice(k) "
    "return self.get(k), M.get(k) end"
    " redis.call('SET', KEYS[1], 'v') return {M:twice(KEYS[1])}",
    "do local x = 1; (function() x = x + 1 end)(); return x .. '' end", "-- " + "a" * 9000 + "\nreturn 1 .. 'x'",
    "local s = '' for i = 1, 3 do s = s .. i .. ',' end local t = {s, f = function(x) return x .. s end} return t.f(s)",
    "local n = 0 repeat local done = n > 3 n = n + 1 until done return n",
    "return (function(a, b) return a .. b end)('x', 'y')",
    "while (function() return false end)() do end if ARGV[1] .. 'x' == 'wx' then"
    " return 'yes' elseif false then return 1 end",
    "local function f() error('deep') end\nlocal function g() f() end\ng()",
    "local function f() return nil .. 'x' end return f()",
    "local f = function()\n return 1 + {} end\nreturn f()", "local a = ARGV[9] .. 'x'",
    "local t = {} t.x.y = 'a' .. 'b'",
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
    *(f"redis.call('SET', 'x', 1) return {called}" for called in (
        "redis.call()", "redis.pcall()", "redis.call(nil)", "redis.pcall(nil, 'x')", "redis.call('PING')",
        "redis.pcall('GET')", "redis.call('GET', nil)", "redis.call(5)", "redis.pcall(5, 6)", "redis.call({})",
        "redis.pcall('GET', {})", "redis.call(true, 'x')", "redis.pcall('GET', print)", "redis.call('ECHO', 1.5)",
        "redis.call('ECHO', '\\0-ERR x')", "redis.call('ECHO', '')", "redis.call('set', 'x', 2).ok",
        "redis.call('OBJECT', 'ENCODING', 'x')", "redis.pcall('EVAL', 'return 1', 0)", "redis.call('TIME', 'x')",
        "{pcall(redis.call, 'GET', 'x')}", "{pcall(redis.call, 'INCR')}", "{pcall(redis.pcall, 'INCR')}",
        "{pcall(pcall, redis.call, 'GET', 'x')}", "{('x x'):gsub('x', redis.pcall)}",
        "{('x'):gsub('x', function(k) return redis.call('GET', k) end)}", "table.foreach({GET = 'x'}, redis.call)",
        "table.foreachi({'x'}, function(_, k) return redis.call('GET', k) end)", "assert(redis.call('GET', 'x'))",
        "tostring(redis.call('GET', 'x'))", "redis.call(unpack({'GET', 'x'}))", "redis.call('GET', 'x'), 7",
    )),
    "local t = {'b', 'a', 'c'} redis.call('MSET', 'a', 2, 'b', 1, 'c', 3) table.sort(t, function(a, b)"
    " return redis.call('GET', a) < redis.call('GET', b) end) return t",
    "local n = 0 for k in redis.call, 'GET', 'x' do n = n + 1 end return n",
    "local t = {'DEL'} for i = 1, 3000 do t[#t + 1] = i end return redis.call(unpack(t))",
)  # fmt: skip


@pytest.fixture
def late() -> Late:
    return Late(UnitLog())


@pytest.fixture
def timeless() -> Late:
    """No time passes: a script leaves for a thread only because of what it does."""
    return Late(UnitLog(), ManualClock(NOW_MS))


def steps_in_place(text: bytes) -> int:
    steps, _ = quick_code.judged(text)
    return steps


def fresh() -> Dialogue:
    return Dialogue(make_engine(SystemClock()))


@pytest.mark.parametrize("code", IN_PLACE)
def test_a_script_of_small_calls_begins_in_place(code: Any) -> None:
    assert steps_in_place(code.encode())


@pytest.mark.parametrize("code", WATCHED)
def test_a_script_that_cannot_count_its_steps_is_watched(code: Any) -> None:
    assert not steps_in_place(code.encode())


@pytest.mark.parametrize("code", LEAVING)
def test_what_takes_long_or_cannot_be_counted_goes_on_in_a_thread(
    late: Late, threads: list[Callable[[], bytes]], code: str
) -> None:
    assert steps_in_place(code.encode())
    late.caller("CONFIG SET busy-reply-threshold 60000")
    script(late.caller, code, "1", "key", "word")

    assert len(threads) == 1


@pytest.mark.parametrize("code", LIKE_PACKAGES)
def test_a_script_with_functions_needs_no_thread(timeless: Late, threads: list[Callable[[], bytes]], code: str) -> None:
    script(timeless.caller, code, "1", "key", "w", "1700000000")

    assert threads == []


def test_a_small_script_needs_no_thread(timeless: Late, threads: list[Callable[[], bytes]]) -> None:
    for code in IN_PLACE:
        script(timeless.caller, code, "1", "key", "1")

    assert threads == []


@pytest.mark.parametrize("code", [*SMALL_SCRIPTS, *LIKE_PACKAGES])
def test_a_script_that_goes_on_in_a_thread_answers_as_one_in_place(code: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(quick_code, "judged", lambda text: (0, []))
        expected = fresh().words(b"EVAL", code.encode(), b"1", b"k", b"w")
    handed_over = Late(UnitLog())
    handed_over.caller("CONFIG SET busy-reply-threshold 60000")
    for steps in (*range(150, 1200, 300), 20_000_000):
        monkeypatch.setattr(quick_code, "MOST_STEPS", steps)
        handed_over.caller("FLUSHALL", "SCRIPT FLUSH")
        assert handed_over.caller.words(b"EVAL", code.encode(), b"1", b"k", b"w") == expected


def test_many_words_reach_a_script_and_its_requests(late: Late) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    words = [b"w%d" % number for number in range(1000)]
    late.caller.words(b"EVAL", b"return redis.call('RPUSH', KEYS[1], unpack(ARGV))", b"1", b"k", *words)
    late.caller.words(b"EVAL", b"return redis.call('DEL', unpack(KEYS))", b"1000", *words)

    assert late.caller("LRANGE k 0 -1") == words


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


def test_a_small_script_behind_what_took_long_in_a_transaction_needs_no_thread(
    late: Late, threads: list[Callable[[], bytes]]
) -> None:
    late.caller.words(b"RPUSH", b"list", *[b"item %d" % (number * 7919 % 50_000) for number in range(50_000)])
    late.caller("MULTI", "SORT list ALPHA STORE sorted")
    late.caller.words(b"EVAL", b"return redis.call('LLEN', 'sorted')", b"0")

    assert late.caller("EXEC") == [50_000, 50_000]
    assert threads == []


def test_a_script_with_loops_that_cannot_count_their_turns_runs_in_a_thread(
    late: Late, threads: list[Callable[[], bytes]]
) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    names = ", ".join([f"a{number}" for number in range(200)])  # as many as a function may have

    assert script(late.caller, f"local {names} = 7 while a1 do end return a0") == 7
    assert len(threads) == 1


def test_what_loops_leave_behind_in_place_is_collected(late: Late, threads: list[Callable[[], bytes]]) -> None:
    code = "local t = {} for i = 1, 50 do t[i] = ('x'):rep(100) .. i end return #t"
    for _ in range(1000):
        assert script(late.caller, code) == 50

    assert threads == []
    assert late.engine.scripts.memory() < 8 * MIB


def test_a_watched_script_does_not_turn_the_collector_off_by_counting_turns(late: Late) -> None:
    late.caller("CONFIG SET busy-reply-threshold 60000")
    code = "local f = function() local t for i = 1, 1e6 do t = {i} end return collectgarbage('count') end"

    script(late.caller, "return 'in place, with steps left'")
    assert script(late.caller, "__turn_of_a_loop(1) " + code + " return f() < 20000 and 1 or 0") == 1


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
def test_a_script_with_a_thread_that_cannot_start_leaves_the_next_one_alone(
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
