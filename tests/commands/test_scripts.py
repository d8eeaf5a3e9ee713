"""Scripts and functions: effects, the cache, the sandbox."""

import pytest

from penstock.clock import ManualClock, SystemClock
from penstock.engine.aof.replay import Replay
from penstock.engine.aof.rewrite import base_lines
from penstock.engine.scripting import function_payload, scripts
from tests.support.clock import NOW_MS
from tests.support.dialogue import Dialogue, decoded
from tests.support.engines import make_engine
from tests.support.late_script import LIBRARY, script
from tests.support.log import UnitLog

pytest.importorskip("lupa")


def test_the_requests_of_a_script_count_as_commands_of_its_client(logged: Dialogue) -> None:
    script(logged, "redis.call('PING') redis.call('SET', 'a', '1') return 1")
    logged("MULTI", "PING", "PING", "EXEC")

    shown = logged.raw("CLIENT INFO")

    assert b" tot-cmds=7 " in shown  # Redis 8.6.3
    assert b" parse-batch-cmd-sum=5 " in shown


@pytest.mark.parametrize(
    ("request_words", "found"),
    [
        ("'SORT', 's', 'BY', 'nosort'", [b"-2", b"1", b"10", b"9"]),
        ("'SORT', 's', 'BY', 'nosort', 'DESC'", [b"9", b"10", b"1", b"-2"]),
        ("'SORT_RO', 's', 'BY', 'nosort', 'LIMIT', 1, 2", [b"1", b"10"]),
    ],
)
def test_a_set_that_is_not_sorted_is_in_the_order_of_bytes_in_a_script(
    logged: Dialogue, request_words: str, found: list[bytes]
) -> None:
    logged("SADD s -2 1 9 10")

    assert script(logged, f"return redis.call({request_words})") == found  # Redis 8.6.3
    assert logged("SORT s BY nosort") == [b"-2", b"1", b"9", b"10"]


# -- effects ----------------------------------------------------------------------------------------------------------


def test_what_a_script_changed_is_logged_as_one_unit(logged: Dialogue, log: UnitLog) -> None:
    script(logged, "redis.call('SET', KEYS[1], 'v') redis.call('INCR', KEYS[2])", "2", "a", "b")

    assert len(log.units) == 1
    assert b"EVAL" not in log.units[0]
    assert log.units[0].startswith(b"*1\r\n$5\r\nMULTI\r\n") and log.units[0].endswith(b"*1\r\n$4\r\nEXEC\r\n")


def test_one_change_of_a_script_stands_alone_in_the_log(logged: Dialogue, log: UnitLog) -> None:
    script(logged, "return redis.call('XADD', 's', '*', 'f', 'v')")

    assert b"MULTI" not in log.units[0] and b"XADD" in log.units[0]


def test_what_a_script_changed_before_an_error_stays(logged: Dialogue, log: UnitLog) -> None:
    script(logged, "redis.call('SET', 'a', '1') error('late')")

    assert logged("GET a") == b"1"
    assert len(log.units) == 1


def test_a_script_works_in_the_callers_database_and_its_select_is_its_own(dialogue: Dialogue) -> None:
    dialogue("SELECT 2")
    script(dialogue, "redis.call('SET', 'a', '1') redis.call('SELECT', 3) redis.call('SET', 'b', '1')")

    assert dialogue("GET a", "EXISTS b") == 0
    assert dialogue("GET a") == b"1"


def test_a_script_wakes_a_blocked_reader(dialogue: Dialogue) -> None:
    waiting = dialogue.another()
    waiting("BLPOP l 0")

    script(dialogue, "redis.call('RPUSH', 'l', 'x')")

    assert waiting.arrived() == [[b"l", b"x"]]


def test_a_script_breaks_a_watch(dialogue: Dialogue) -> None:
    other = dialogue.another()
    other("WATCH a", "MULTI", "PING")
    script(dialogue, "redis.call('SET', 'a', '1')")

    assert other("EXEC") is None


def test_a_script_inside_a_transaction_is_logged_with_it(logged: Dialogue, log: UnitLog) -> None:
    logged("MULTI", "SET a 1")
    logged.words(b"EVAL", b"redis.call('INCR', 'a') return redis.call('GET', 'a')", b"0")

    assert logged("EXEC") == [b"OK", b"2"]
    assert len(log.units) == 1


def test_an_endless_script_inside_a_transaction_is_stopped_where_none_could_kill_it(clock: ManualClock) -> None:
    engine = make_engine(SystemClock())
    dialogue = Dialogue(engine)
    dialogue("CONFIG SET busy-reply-threshold 50", "MULTI")
    dialogue.words(b"EVAL", b"while true do end", b"0")

    (answer,) = dialogue("EXEC")

    assert "Script killed by user with SCRIPT KILL" in str(answer)


# -- the cache --------------------------------------------------------------------------------------------------------


def test_of_the_scripts_that_eval_brought_the_one_used_longest_ago_goes(dialogue: Dialogue) -> None:
    shas = [dialogue.engine.scripts.add(b"return %d" % number, False) for number in range(scripts.MOST_EVALUATED)]
    dialogue.words(b"EVALSHA", shas[0], b"0")

    script(dialogue, "return 'one more'")

    assert dialogue(f"SCRIPT EXISTS {shas[0].decode()} {shas[1].decode()}") == [1, 0]
    assert dialogue.engine.scripts.evicted == 1


def test_a_script_that_was_loaded_stays(dialogue: Dialogue) -> None:
    sha = dialogue.engine.scripts.add(b"return 'kept'", False)
    dialogue.words(b"SCRIPT", b"LOAD", b"return 'kept'")
    for number in range(scripts.MOST_EVALUATED + 1):
        dialogue.engine.scripts.add(b"return %d" % number, False)

    assert dialogue(f"EVALSHA {sha.decode()} 0") == b"kept"


def test_info_counts_scripts_and_functions(dialogue: Dialogue) -> None:
    dialogue.words(b"SCRIPT", b"LOAD", b"return 1")
    dialogue.words(b"FUNCTION", b"LOAD", LIBRARY)

    told = dialogue("INFO memory")

    assert b"number_of_cached_scripts:1\r\n" in told
    assert b"number_of_functions:1\r\nnumber_of_libraries:1\r\n" in told


# -- the sandbox ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "return python", "return io", "return debug", "return require", "return package", "return dofile",
        "return loadfile", "return print", "return getfenv", "return setfenv", "return newproxy", "return module",
        "return os.execute", "return os.getenv", "return string.python", "return getmetatable(redis.call)",
        "return rawget(_G, 'debug')", "return getmetatable(_G).__index(_G, 'debug')",
        "return loadstring('\\27' .. 'Lua')",
        "return select(2, pcall(loadstring('return io')))", "return coroutine.wrap(function() return package end)()",
    ],
)  # fmt: skip
def test_nothing_outside_is_within_reach(dialogue: Dialogue, code: str) -> None:
    answer = script(dialogue, f"{code}")

    assert answer is None or "nonexistent global variable" in str(answer)


def test_a_script_leaves_nothing_behind_in_the_libraries(dialogue: Dialogue) -> None:
    script(dialogue, "string[1] = 'x'")
    script(dialogue, "table.insert(math, 'x')")

    assert script(dialogue, "return {string[1] or 'none', math[1] or 'none'}") == [b"none", b"none"]


def test_any_bytes_go_in_and_out(dialogue: Dialogue) -> None:
    every = bytes(range(256))

    assert decoded(dialogue.words(b"EVAL", b"return ARGV[1]", b"0", every)) == every


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99, 100, 999, 1000, 70_000])
@pytest.mark.parametrize("first", ["", "\0", "$", ":", "-", "\0-", "\r\n"])
def test_a_value_of_any_size_and_beginning_reaches_the_script_whole(dialogue: Dialogue, size: int, first: str) -> None:
    value = (first + "x" * size)[: max(size, len(first))]
    dialogue.words(b"SET", b"k", value.encode())

    assert script(dialogue, "return {redis.call('GET','k') == ARGV[1], redis.call('GET','k')}", "0", value) == [
        1,
        value.encode(),
    ]


KINDS_OF_REPLIES = {
    "redis.call('SET','k','v')": b"table ok OK",
    "redis.call('PING')": b"table ok PONG",
    "redis.call('GET','none')": b"boolean false",
    "redis.call('LPOP','none',2)": b"boolean false",
    "redis.call('EXISTS','none')": b"number 0",
    "redis.call('INCRBY','n',-7)": b"number -7",
    "redis.call('INCRBY','n','99999999999999')": b"number 99999999999999",
    "redis.call('INCRBY','n','9007199254740993')": b"number 9.007199254741e+15",
    "redis.call('INCRBY','n','-9223372036854775808')": b"number -9.2233720368548e+18",
    "redis.call('LRANGE','none',0,1)": b"table",
    "redis.pcall('INCRBY','n','x')": b"table err ERR value is not an integer or out of range",
    "redis.pcall('NONE')": b"table err ERR Unknown Redis command called from script",
    "redis.setresp(3) or redis.call('GET','none')": b"nil nil",
    "redis.setresp(3) or redis.call('HGETALL','none')": b"table map",
}


@pytest.mark.parametrize("asked", KINDS_OF_REPLIES)
def test_a_reply_reaches_the_script_as_the_value_that_it_is_in_redis(dialogue: Dialogue, asked: str) -> None:
    code = (
        f"local found = {asked} if type(found) ~= 'table' then return type(found)..' '..tostring(found) end"
        " local told = 'table' for name, held in pairs(found) do if type(name) == 'string' and type(held) ~= 'boolean'"
        " then told = told..' '..name..(type(held) == 'string' and ' '..held or '') end end return told"
    )

    assert script(dialogue, code) == KINDS_OF_REPLIES[asked]


def test_a_request_with_many_words_reaches_the_script(dialogue: Dialogue) -> None:
    words = [b"%d" % number for number in range(20_000)]

    assert decoded(dialogue.words(b"EVAL", b"return {#KEYS, #ARGV, ARGV[#ARGV]}", b"1", *words)) == [
        1,
        19_999,
        b"19999",
    ]


# -- functions --------------------------------------------------------------------------------------------------------


def test_a_library_is_logged_and_stands_in_a_fresh_base(logged: Dialogue, log: UnitLog) -> None:
    logged.words(b"FUNCTION", b"LOAD", LIBRARY)
    again = make_engine()
    replay = Replay(again.server, pytest.fail)
    replay.begin()
    replay.lines(base_lines(logged.engine.keyspace, logged.engine.settings, NOW_MS))
    replay.end()

    assert log.units[0].endswith(b"FUNCTION\r\n$4\r\nLOAD\r\n$%d\r\n%b\r\n" % (len(LIBRARY), LIBRARY))
    assert Dialogue(again)("FCALL twice 0 21") == 42


def test_a_dump_is_restored(dialogue: Dialogue) -> None:
    dialogue.words(b"FUNCTION", b"LOAD", LIBRARY)
    payload = dialogue("FUNCTION DUMP")
    dialogue("FUNCTION FLUSH")

    assert decoded(dialogue.words(b"FUNCTION", b"RESTORE", payload)) == b"OK"
    assert dialogue("FCALL twice 0 4") == 8


def test_a_dump_of_redis_is_restored(dialogue: Dialogue) -> None:
    payload = (
        b"\xf5@H#!lua name=a\nredis.register_function('f',function(k,a) return {k,a} end)"
        b"\r\x00%\x80\x02\x83\xc9u\xea\xbe"  # Redis 8.6.3
    )

    assert decoded(dialogue.words(b"FUNCTION", b"RESTORE", payload)) == b"OK"
    assert dialogue("FCALL f 1 x y") == [[b"x"], [b"y"]]


def test_a_restore_that_is_refused_changes_nothing(dialogue: Dialogue) -> None:
    dialogue.words(b"FUNCTION", b"LOAD", LIBRARY)
    clash = LIBRARY.replace(b"name=lib", b"name=other")
    fine = b"#!lua name=fine\nredis.register_function('fine', function() return 1 end)"

    answer = decoded(dialogue.words(b"FUNCTION", b"RESTORE", function_payload.written([fine, clash])))

    assert "already exists" in str(answer)
    assert dialogue("FCALL twice 0 2") == 4
    assert "Function not found" in str(dialogue("FCALL fine 0"))


COUNTING = (
    b"#!lua name=counting\nlocal calls = 0\n"
    b"redis.register_function('calls', function() calls = calls + 1 return calls end)"
)
TWICE_AGAIN = LIBRARY.replace(b"name=lib", b"name=other")
REFUSED_RESTORES = {
    "a library that is there": ([LIBRARY, COUNTING], "APPEND", "Library lib already exists"),
    "a function that is there": ([TWICE_AGAIN], "REPLACE", "Function twice already exists"),
    "a library twice": ([LIBRARY, LIBRARY], "FLUSH", "Library 'lib' already exists"),
    "a library twice, to be replaced": ([LIBRARY, LIBRARY], "REPLACE", "Library 'lib' already exists"),
    "a function twice": ([LIBRARY, TWICE_AGAIN], "FLUSH", "Function twice already exists"),
    "no code": ([COUNTING, b"#!lua name=bad\nthis is no Lua"], "FLUSH", "Error compiling function"),
    "code that fails, behind what would be refused": (
        [LIBRARY, b"#!lua name=bad\nx()"], "APPEND", "Error registering functions",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("codes", "policy", "text"), REFUSED_RESTORES.values(), ids=REFUSED_RESTORES)
def test_what_functions_keep_is_there_after_a_restore_that_is_refused(
    dialogue: Dialogue, codes: list[bytes], policy: str, text: str
) -> None:
    dialogue.words(b"FUNCTION", b"LOAD", LIBRARY)
    dialogue.words(b"FUNCTION", b"LOAD", COUNTING)
    dialogue("FCALL calls 0", "FCALL calls 0")
    listed = dialogue("FUNCTION LIST WITHCODE")

    answer = decoded(dialogue.words(b"FUNCTION", b"RESTORE", function_payload.written(codes), policy.encode()))

    assert text in str(answer)
    assert (dialogue("FCALL calls 0"), dialogue("FCALL twice 0 2")) == (3, 4)
    assert dialogue("FUNCTION LIST WITHCODE") == listed


@pytest.mark.parametrize("policy", ["FLUSH", "REPLACE"])
def test_a_restore_takes_the_place_of_libraries_whose_functions_have_the_same_names(
    dialogue: Dialogue, policy: str
) -> None:
    dialogue.words(b"FUNCTION", b"LOAD", LIBRARY)
    dialogue.words(b"FUNCTION", b"LOAD", COUNTING)
    moved = [LIBRARY.replace(b"twice", b"calls"), COUNTING.replace(b"'calls'", b"'twice'")]

    assert decoded(dialogue.words(b"FUNCTION", b"RESTORE", function_payload.written(moved), policy.encode())) == b"OK"
    assert (dialogue("FCALL twice 0 9"), dialogue("FCALL calls 0 9")) == (1, 18)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "DUMP payload version or checksum are wrong"),
        (b"x" * 9, "DUMP payload version or checksum are wrong"),
        (b"\xf5\x05abc" + b"\0" * 9 + b"\1", "DUMP payload version or checksum are wrong"),
        (b"\xf5\x03abc" + b"\0" * 10, "Missing library metadata"),  # zeros: no checksum was computed
        (b"\xf5\x15abc" + b"\0" * 10, "Failed loading library payload"),
        (b"\x00\x05abc" + b"\0" * 10, "given type is not a function"),
    ],
)
def test_a_damaged_dump_is_refused(dialogue: Dialogue, payload: bytes, text: str) -> None:
    answer = decoded(dialogue.words(b"FUNCTION", b"RESTORE", payload))

    assert str(answer) == f"ERR {text}"


def test_a_double_that_is_minus_zero_keeps_its_sign(logged: Dialogue) -> None:
    assert logged.words(b"EVAL", b"local a = 0 return {double = a * -0.5}", b"0") == b"$2\r\n-0\r\n"


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (b"return string.gsub('abc', '(a', 'x')", b"$3\r\nxbc\r\n"),
        (b"return select(2, pcall(string.gsub, 'abc', '(a', '%1'))", b"$18\r\nunfinished capture\r\n"),
        (b"return select(2, pcall(string.gsub, 'abc', '(a', type))", b"$18\r\nunfinished capture\r\n"),
        (b"return {string.gsub('abc', '()', function() end, 1.5)}", b"*2\r\n$3\r\nabc\r\n:1\r\n"),
        (
            b"return select(2, pcall(cmsgpack.unpack_one, '\\192', 1 / 0))",
            b"$58\r\nInvalid request to unpack with offset of 0 and limit of 1.\r\n",
        ),
        (b"return select(2, pcall(function() assert(1 > 2, nil) end))", b"$32\r\nuser_script:1: assertion failed!\r\n"),
        (
            b"return {pcall(assert, false, {})}",
            b"*2\r\n$-1\r\n$51\r\nbad argument #2 to '?' (string expected, got table)\r\n",
        ),
        (b"local t = {1, 2} table.insert(t, -1e100, 5) return {t[0], t[1], t[2], t[3]}", b"*1\r\n:5\r\n"),
        (b"return cmsgpack.unpack('\\207\\255\\255\\255\\255\\255\\255\\255\\255')", b":-1\r\n"),
        (
            b"return select(2, pcall(function() cjson.encode_max_depth(0, 1) end))",
            b"$79\r\nuser_script:1: bad argument #2 to 'encode_max_depth' (found too many arguments)\r\n",
        ),
        (b"return cjson.encode_max_depth(1e16)", b":1874919424\r\n"),
        (b"return cjson.encode({1, [2 ^ 31] = 1})", b'$22\r\n{"1":1,"2147483648":1}\r\n'),
        (b"return math.ldexp(7, 4294967298)", b":28\r\n"),
        (b"return select(2, pcall(error, {err = 12}))", b":12\r\n"),
        (b"return select(2, pcall(error, setmetatable({}, {__index = {err = 'E x'}})))", b"$3\r\nE x\r\n"),
        (b"redis.log('1', 'x') redis.log(-0.5, 'x') redis.setresp(3.5) return 'taken'", b"$5\r\ntaken\r\n"),
        (
            b"return select(2, pcall(struct.unpack, 't', 'a', 3))",
            b"$46\r\nbad argument #2 to '?' (data string too short)\r\n",
        ),
        (b"return {cmsgpack.unpack_limit(cmsgpack.pack(7, 8), 0)}", b"*2\r\n:7\r\n:8\r\n"),
        (b"return redis.error_reply('\\n-1')", b"-ERR -1\r\n"),
        (b"return redis.error_reply('\\n2ABC 5 ')", b"- 2ABC 5 \r\n"),
        (b"return cmsgpack.pack(cjson.decode('[NaN]'))", b"$10\r\n\x91\xcb\x7f\xf8\0\0\0\0\0\0\r\n"),
    ],
)
def test_what_random_scripts_found_beside_redis(logged: Dialogue, script: bytes, answer: bytes) -> None:
    assert logged.words(b"EVAL", script, b"0") == answer


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (b"string.gsub('abc', '[', '%1')", b"malformed pattern (missing ']')"),
        (b"string.match('true', '%1')", b"invalid capture index"),
        (b"unpack()", b"bad argument #1 to 'unpack' (table expected, got no value)"),
    ],
)
def test_a_function_that_ends_with_a_library_s_names_its_own_line(
    logged: Dialogue, call: bytes, problem: bytes
) -> None:
    library = b"#!lua name=lib\nredis.register_function('f', function()\nreturn %b end)" % call
    logged.words(b"FUNCTION", b"LOAD", library)

    assert (
        logged.words(b"FCALL", b"f", b"0") == b"-ERR user_function:3: %b script: f, on @user_function:3.\r\n" % problem
    )


def test_functions_that_end_with_calls_of_each_other_go_as_deep_as_they_like(logged: Dialogue) -> None:
    code = b"local function select(n) if n == 0 then return 'deep' end return select(n - 1) end return select(100000)"

    assert logged.words(b"EVAL", code, b"0") == b"$4\r\ndeep\r\n"


def test_an_error_that_is_a_number_is_its_text(logged: Dialogue) -> None:
    assert logged.words(b"EVAL", b"error({err = 12.5})", b"0").startswith(b"-12.5 script: ")


def test_struct_size_refuses_signs_that_are_no_options(logged: Dialogue) -> None:
    refusal = logged.words(b"EVAL", b"return struct.size('-')", b"0")

    assert b"bad argument #1 to 'size' (invalid format option '-')" in refusal
    assert logged.words(b"EVAL", b"return struct.size('q')", b"0") == b":0\r\n"


@pytest.mark.parametrize(("number", "integer"), [
    ("0", 0), ("-0", 0), ("0.5", 0), ("-0.5", 0), ("7.9", 7), ("-7.9", -7), ("1e9", 10**9), ("-3", -3),
    ("99999999999999", 99999999999999), ("99999999999999.9", 99999999999999), ("1e14", 10**14), ("-1e14", -(10**14)),
    ("-99999999999999.9", -99999999999999), ("2^53", 2**53), ("-2^53", -(2**53)), ("1e15", 10**15), ("2^63", -(2**63)),
    ("-2^63", -(2**63)), ("0/0", -(2**63)), ("1/0", -(2**63)), ("-1/0", -(2**63)),
])  # fmt: skip
def test_a_number_is_cut_off_to_an_integer_wherever_it_stands(dialogue: Dialogue, number: str, integer: int) -> None:
    assert script(dialogue, f"return {number}") == integer
    assert script(dialogue, f"return {{{number}}}") == [integer]
