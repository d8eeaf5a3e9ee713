"""What random scripts are made of: literals, signatures of library functions, and commands for redis.call."""

# ruff: noqa: E501  (one command or one signature a line)
from typing import Final

NUMBERS: Final = (
    "0", "1", "2", "3", "-1", "7", "10", "0.5", "-2.5", "1.0", "3.99", "1e3", "1e15", "1e16", "123456789012345", "2^31", "2^32-1",
    "2^53", "-2^31", "2^63", "1e100", "1e-7", "0x10", "0xff", "1/3", "0.1", "100", "255", "256", "65536", ".5", "5.", "1e+2", "-0",
    "1/0", "-1/0", "3.14159265358979", "12345678901234567890",
)  # fmt: skip
SMALL: Final = ("0", "1", "2", "3", "-1", "-2", "4", "5", "1.5", "10")
STRINGS: Final = (
    "''", "'a'", "'abc'", "'hello world'", '"x=1, y=2"', "'10'", "'0x1F'", "' 5 '", "'1e2'", "'-7.25'", "'nan'", "'inf'", r"'\0'",
    r"'a\0b'", r"'\255\254'", r"'\n'", r"'tab\tq\"q\'\\'", "[[long]]", "[==[lo]]ng]==]", "'key1'", "'%d'", "'%'", "'a.b.c'", "'ABC'",
    "'aaa'", r"'\195\169'", "'true'", "'3abc'", "'x\\\ny'", r"'\65\066'",
)  # fmt: skip
PATTERNS: Final = (
    "'a'", "'.'", "'%a+'", "'(%w+)=(%w+)'", "'%d*'", "'^h'", "'d$'", "'[abc]'", "'[^a-c]'", "'(a)(b)'", "'()'", "'%s'", "'.-b'",
    "'(.-)%1'", "'%b()'", "'%f[%w]%w+'", "'x*'", "'%z'", "''", "'^'", "'$'", "'[%w_]+'", "'%'", "'['", "'(a'", "'a)'", "'%1'", "'[a-'",
    "'a-'", "'a?b'", "'%p'", "'%x+'", "'[]]'", "'[^]]'", "'%bx'", "'%f'", "'[%a-z]'",
)  # fmt: skip
REPLACEMENTS: Final = ("'x'", "'%1'", "'%0%0'", "'<%1>'", "'%2'", "'%%'", "''", "'%'", "'%9'", "7", "{a='A', b=false, hello='bye'}", "{}",
    "function(m) return m:upper() end", "function() return nil end", "function() return false end", "function(m) return {} end",
    "function(a, b) return (b or a) .. '!' end", "function() return 1.5 end", "true", "nil")  # fmt: skip
FORMATS: Final = (
    ("'%d'", "I"), ("'%5d|'", "I"), ("'%-5d|'", "I"), ("'%05d'", "I"), ("'%+d'", "I"), ("'%i'", "I"), ("'%u'", "U"), ("'%x'", "U"),
    ("'%X'", "U"), ("'%#x'", "U"), ("'%o'", "U"), ("'%c'", "C"), ("'%e'", "N"), ("'%.3f'", "N"), ("'%g'", "N"), ("'%.14g'", "N"),
    ("'%.17g'", "N"), ("'%G'", "N"), ("'%E'", "N"), ("'%10.4f|'", "N"), ("'%s'", "S"), ("'%10s|'", "S"), ("'%-10s|'", "S"),
    ("'%.2s'", "S"), ("'%q'", "Q"), ("'%%'", ""), ("'%s %s'", "SS"), ("'%s=%d'", "SI"), ("'%y'", "N"), ("'%'", ""), ("'%s'", ""),
    ("'%d'", "S"), ("'%s'", "V"), ("'%123d'", "I"), ("'%.20s'", "S"), ("'% d'", "I"), ("'%5.1s'", "S"), ("'%s'", "N"), ("'%f'", "I"),
)  # fmt: skip

# A function, what it takes (capital: always, small: perhaps) and what it answers.
# N number, I small integer, U not negative, C a byte, S string, P pattern, R replacement, T table, L list of numbers
# or strings,
# K the same, and never anything else, F function, V anything, J text of JSON, M message pack, B struct's format, Q
# string to quote.
SIGNATURES: Final = (
    ("string.byte", "SIi", "N"), ("string.char", "CCc", "S"), ("string.find", "SPiv", "N"), ("string.gsub", "SPRi", "S"),
    ("string.len", "S", "N"), ("string.lower", "S", "S"), ("string.upper", "S", "S"), ("string.match", "SPi", "S"),
    ("string.rep", "SK", "S"), ("string.reverse", "S", "S"), ("string.sub", "SIi", "S"), ("string.format", "fmt", "S"),
    ("table.concat", "Lskk", "S"), ("table.getn", "L", "N"), ("table.maxn", "L", "N"), ("table.insert", "LKv", "nil"),
    ("table.insert", "LV", "nil"), ("table.remove", "Li", "V"), ("table.foreach", "LF", "V"), ("table.foreachi", "LF", "V"),
    ("math.abs", "N", "N"), ("math.ceil", "N", "N"), ("math.floor", "N", "N"), ("math.sqrt", "N", "N"), ("math.max", "NNn", "N"),
    ("math.min", "NNn", "N"), ("math.fmod", "NN", "N"), ("math.mod", "NN", "N"), ("math.modf", "N", "N"), ("math.frexp", "N", "N"),
    ("math.ldexp", "NI", "N"), ("math.log", "Nn", "N"), ("math.log10", "N", "N"), ("math.exp", "I", "N"), ("math.pow", "NI", "N"),
    ("math.sin", "I", "N"), ("math.cos", "I", "N"), ("math.tan", "I", "N"), ("math.atan", "N", "N"), ("math.atan2", "NN", "N"),
    ("math.deg", "N", "N"), ("math.rad", "N", "N"), ("math.cosh", "I", "N"), ("math.tanh", "I", "N"), ("math.asin", "N", "N"),
    ("bit.band", "UUu", "N"), ("bit.bor", "IU", "N"), ("bit.bxor", "UI", "N"), ("bit.bnot", "N", "N"), ("bit.lshift", "UI", "N"),
    ("bit.rshift", "NI", "N"), ("bit.arshift", "NI", "N"), ("bit.rol", "UI", "N"), ("bit.ror", "UI", "N"), ("bit.bswap", "N", "N"),
    ("bit.tobit", "N", "N"), ("bit.tohex", "Ni", "S"), ("tostring", "N", "S"), ("tonumber", "Si", "N"), ("type", "V", "S"),
    ("select", "IVv", "V"), ("rawequal", "VV", "V"), ("rawget", "TV", "V"), ("unpack", "Lkk", "V"), ("next", "L", "V"),
    ("assert", "Vs", "V"), ("rawlen", "V", "V"), ("cjson.encode", "L", "S"), ("cjson.encode", "V", "S"), ("cjson.decode", "J", "T"),
    ("cmsgpack.pack", "Vv", "S"), ("cmsgpack.unpack", "M", "V"), ("cmsgpack.unpack_one", "Mi", "V"), ("cmsgpack.unpack_limit", "Mii", "V"),
    ("struct.pack", "BNn", "S"), ("struct.unpack", "BMi", "V"), ("struct.size", "B", "N"), ("redis.sha1hex", "S", "S"),
    ("redis.error_reply", "S", "T"), ("redis.status_reply", "S", "T"), ("redis.setresp", "I", "V"), ("redis.log", "IS", "V"),
    ("redis.acl_check_cmd", "S", "V"), ("redis.set_repl", "I", "V"), ("redis.replicate_commands", "", "V"), ("redis.breakpoint", "", "V"),
    ("getmetatable", "V", "T"), ("setmetatable", "TT", "T"), ("string.gmatch", "SP", "F"), ("ipairs", "L", "F"), ("pcall", "FVv", "V"),
    ("xpcall", "FF", "V"), ("error", "Vi", "V"), ("loadstring", "Ss", "F"), ("load", "G", "F"), ("coroutine.create", "F", "V"),
    ("coroutine.wrap", "F", "F"), ("coroutine.status", "V", "S"), ("coroutine.running", "", "V"), ("collectgarbage", "s", "V"),
    ("string.nosuch", "S", "V"), ("redis.register_function", "SF", "V"), ("newproxy", "v", "V"), ("getfenv", "i", "V"), ("print", "V", "V"),
    ("cjson.encode_max_depth", "i", "N"), ("cjson.decode_max_depth", "i", "N"), ("cjson.encode_sparse_array", "v", "V"),
    ("cjson.encode_number_precision", "i", "N"), ("cjson.encode_keep_buffer", "v", "V"), ("cjson.encode_invalid_numbers", "v", "V"),
    ("cjson.decode_invalid_numbers", "v", "V"), ("string.gfind", "SP", "F"), ("table.setn", "TI", "V"), ("dofile", "s", "V"),
)  # fmt: skip

OFTEN_REFUSED: Final = frozenset(  # left out of scripts that are to run to their end
    [
        "rawlen",
        "string.nosuch",
        "redis.register_function",
        "newproxy",
        "getfenv",
        "print",
        "dofile",
        "table.setn",
        "string.gfind",
        "error",
        "redis.setresp",
        "struct.unpack",
        "struct.pack",
        "struct.size",
        "assert",
        "setmetatable",
        "xpcall",
        "coroutine.status",
        "cmsgpack.unpack",
        "string.byte",
    ]
)
CJSON_DEFAULTS: Final = (  # what a script may have set for all that follow, in Redis, too
    "cjson.encode_max_depth(1000) cjson.decode_max_depth(1000) cjson.encode_sparse_array(false, 2, 10) "
    "cjson.encode_number_precision(14) cjson.encode_keep_buffer(true) cjson.encode_invalid_numbers(false) "
    "cjson.decode_invalid_numbers(true)"
)
JSON: Final = (
    "[1,2,3]", '{"a":1}', '{"a":{"b":[true,null,"x"]}}', "[]", "{}", "[1.5,-2e3,0.1]", '"text"', "12", "true", "null", "[1,]", "{a:1}",
    "", "[", '{"a"', "nul", '["\\\\u00e9\\\\n\\\\\\"\\\\/"]', "[[[[1]]]]", '{"1":1}', "[NaN]", "[0x10]", "[1e999]", '["\\\\ud83d\\\\ude00"]',
    '{"k":[],"k":{}}', " [ 1 ] ", "[1 2]", "01", "-", '"\\\\q"',
)  # fmt: skip
LAYOUTS: Final = ("'>I2'", "'<i4h'", "'bB'", "'d'", "'<f'", "'s'", "'c3'", "'>i8'", "'I4I4'", "'!4bi'", "'x'", "'z'", "'i17'", "'L'", "' >hH'",
    "'Bc0'", "'!3b'", "'lT'")  # fmt: skip
PACKED: Final = (
    r"'\147\1\2\3'", r"'\129\161a\1'", r"'\192'", r"'\195'", r"'\203?\240\0\0\0\0\0\0'", r"'\205\1\2'", r"'\255'", r"'\193'", r"'\163abc'",
    r"'\220\0\2\1\2'", r"'\146\1'", r"'\217\3abc'", "'abcdefgh'", "''", r"'\207\255\255\255\255\255\255\255\255'", r"'\211\128\0\0\0\0\0\0\0'",
    r"'\0\1\0\2\0\0\0\0\0\0\0\3'", r"'\202\63\192\0\0'", r"'\216'",
)  # fmt: skip

# Words of requests; {V} is an expression.
COMMANDS: Final = (
    "'SET', 'str', {V}", "'GET', 'str'", "'GET', KEYS[1]", "'SET', KEYS[1], {V}", "'APPEND', 'str', {V}", "'STRLEN', 'str'", "'INCR', 'num'",
    "'INCRBY', 'num', {V}", "'INCRBYFLOAT', 'num', {V}", "'DECR', 'str'", "'SETRANGE', 'str', {V}, 'zz'", "'GETRANGE', 'str', 0, {V}",
    "'MSET', 'a', {V}, 'b', {V}", "'MGET', 'a', 'b', 'none', 'list'", "'DEL', KEYS[1]", "'EXISTS', 'str', 'num'", "'TYPE', 'list'", "'TYPE', 'none'",
    "'RPUSH', 'list', {V}, {V}", "'LPUSH', 'list', {V}", "'LRANGE', 'list', 0, -1", "'LPOP', 'list'", "'LPOP', 'list', {V}", "'LLEN', 'list'",
    "'LINDEX', 'list', {V}", "'LSET', 'list', 0, {V}", "'LPOS', 'list', {V}", "'LMOVE', 'list', 'list', 'LEFT', 'RIGHT'", "'SADD', 'set', 'm'",
    "'SMEMBERS', 'set'", "'SISMEMBER', 'set', {V}", "'SMISMEMBER', 'set', 'm', {V}", "'SCARD', 'set'", "'HSET', 'hash', 'f', {V}", "'HGET', 'hash', 'f'",
    "'HGETALL', 'hash'", "'HINCRBY', 'hash', 'f', {V}", "'HMGET', 'hash', 'f', 'g'", "'HLEN', 'hash'", "'ZADD', 'zset', {V}, 'm'", "'ZADD', 'zset', 1.5, 'n'",
    "'ZSCORE', 'zset', 'm'", "'ZRANGE', 'zset', 0, -1, 'WITHSCORES'", "'ZRANGE', 'zset', 0, -1", "'ZINCRBY', 'zset', {V}, 'm'", "'ZRANK', 'zset', 'm'",
    "'ZRANK', 'zset', 'n', 'WITHSCORE'", "'ZCARD', 'zset'", "'ZPOPMIN', 'zset'", "'ZMSCORE', 'zset', 'm', 'x'", "'XADD', 'stream', '1-1', 'f', {V}",
    "'XADD', 'stream', '2-*', 'f', 'v'", "'XLEN', 'stream'", "'XRANGE', 'stream', '-', '+'", "'XGROUP', 'CREATE', 'stream', 'g', '0', 'MKSTREAM'",
    "'XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', 'stream', '>'", "'XREAD', 'STREAMS', 'stream', '0'", "'XACK', 'stream', 'g', '1-1'", "'PING'",
    "'PING', {V}", "'ECHO', {V}", "'ECHO', {N}", "'ECHO', {N}", "'EXPIRE', 'str', 1000", "'PERSIST', 'str'", "'RENAME', 'str', 'str2'", "'COPY', 'str', 'str3'", "'DBSIZE'",
    "'SELECT', {V}", "'OBJECT', 'ENCODING', 'num'", "'NOSUCH'", "'GET'", "'SUBSCRIBE', 'c'", "'EVAL', 'return 1', 0", "'MULTI'", "'WATCH', 'a'",
    "'BLPOP', 'none', 0", "'XREAD', 'BLOCK', 0, 'STREAMS', 'none', '$'", "'PUBLISH', 'c', {V}", "'SETBIT', 'bits', 7, 1", "'BITCOUNT', 'bits'",
    "'BITFIELD', 'bits', 'GET', 'u8', 0", "'GETDEL', 'a'", "'GETEX', 'a'", "'SETNX', 'nx', {V}", "'GETSET', 'str', {V}", "'LCS', 'a', 'b'",
    "'SORT', 'list', 'ALPHA'", "'SADD', 'set', -2, 1, 9, 10", "'SORT', 'set', 'BY', 'nosort', 'DESC'", "'SORT_RO', 'set', 'BY', 'nosort'",
    "'DEBUG', 'PROTOCOL', {D}", "'DEBUG', 'PROTOCOL', {D}", "'HELLO', 3", "'CLIENT', 'GETNAME'", "'SCRIPT', 'EXISTS', 'x'",
    "'XINFO', 'GROUPS', 'stream'", "'HSCAN', 'hash', 0", "'TOUCH', 'a', 'b'", "'UNLINK', 'str'", "'LTRIM', 'list', 0, 3", "{V}", "{V}, {V}",
    "'ACL', 'WHOAMI'", "'SINTERCARD', 1, 'set'", "'ZADD', 'zset', 'INCR', 2, 'm'", "'FCALL', 'x', 0", "'SET', 'str', 'v', 'GET'", "'HGETALL', 'none'",
)  # fmt: skip
PROTOCOLS: Final = (
    "'string'",
    "'integer'",
    "'double'",
    "'null'",
    "'array'",
    "'set'",
    "'map'",
    "'verbatim'",
    "'true'",
    "'false'",
    "'bignum'",
)

BROKEN: Final = (
    "return 1 1", "local = 5", "x ==", "if true then", "end", "for i = 1 do end", "local function () end", "return return", "break", "'unfinished", "[[unfinished",
    "--[[ unfinished", "f(", "{1,2", "local a, = 1", "1 = 2", "f() = 1", "a.b:c = 1", "goto x", "x = = 1", "return 'a' .. ", "local x <const> = 1", "::label::",
    "return 1LL", "return 0x1p4", "return 1i", r"return '\x41'", r"return '\z  a'", "return 1//2", "return 1 & 2", "return ~1", "return 3 >> 1", "@", "$x = 1", "return 'a\nb'",
    "return 1..2", "return 0x", "return 1e", "return 08", "return 3x", r"return '\300'", r"return '\q'", "return ...", "local function f() return ... end", "for a, b 1 do end",
    "return #", "not", "local x = function end", "repeat until", "while true", "return [[a]] [[b]]", "f 'a' 'b'", "f{} .x = 1", "return {a=1,,}", "local a.b = 1", "return 1 .. 2 .. nil", "goto = 1 return goto",
    "if x then else elseif y then end", "return function(a, a, ...) return a end", "return (function(...) return arg.n end)(1,2)", "return (...)", "local t = {} t.end = 1", "return - - 1", "a, b", "(f)", "f;", ";", "return 2^-3^2",
)  # fmt: skip
