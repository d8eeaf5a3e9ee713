"""What hostile scripts are made of: what broke interpreters before, extreme values.

Ways to recurse and never to end.
"""

# ruff: noqa: E501  (scripts as they are written)
from typing import Final

from tests.scripts import vocabulary

# What issue after issue has found in Lua interpreters that others may send scripts to.
REGRESSIONS: Final = (
    "return {unpack({1,2,3},-2,2147483647)}",
    "return {unpack({1,2,3},0,2147483647)}",
    "return {unpack({},-2147483647,1)}",
    "return string.dump(loadstring('return 42'))",
    "local p={} for i=1,190 do p[i]='p'..i end local f=loadstring('return function('..table.concat(p,',')..',...) local a,b,c=... return 1 end')() "
    "for i=1,5000 do coroutine.wrap(f)() end return 1",
    "local _,t=pairs(string) t.upper=function() return 'X' end",
    "getmetatable(_G).__index.evil=1",
    "local ok,e=pcall(redis.log,0/0,'x') getmetatable(e).__call=function() return '+pwned\\r\\n' end return 1",
    "loadstring('while true do end','=penstock')()",
    "collectgarbage('stop') local t={} for i=1,1e5 do t[i]={i} end return 1",
    "return #string.rep('x',1000000000)",
    "local function f() string.gsub('a','a',f) end f()",
    "local function f() return coroutine.wrap(f)() end return f()",
    "return ('a'):rep(50000):find(('.-'):rep(20)..'b')",
    "return load(coroutine.wrap(function() while true do coroutine.yield('a=a ') end end))",
    "local t=setmetatable({},{__tostring=function(t) return tostring(t) end}) return tostring(t)",
    "local t={} for i=1,1e7 do t[i]=i end return #t",
    "local a={} setmetatable(a,{__index=a,__newindex=a}) a.x=a.y",
    "return cjson.decode(string.rep('[',100000))",
    "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[',1000000)..string.rep(']',1000000))",
    "cjson.encode_max_depth(2147483647) local t={} for i=1,200000 do t={t} end return #cjson.encode(t)",
    "cjson.encode_sparse_array(false,0,0) return #cjson.encode({[2147483647]=1})",
    "local t={} for i=1,200000 do t={t} end return #cmsgpack.pack(t)",
    "return cmsgpack.unpack(string.rep('\\145',200000))",
    "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
    "return struct.pack('i2147483647',1)",
    "return struct.unpack('c2147483647','x')",
    "return struct.pack(string.rep('x',1e6))",
    "return struct.size('!2147483648i')",
    "return {struct.unpack(string.rep('b',1e5),string.rep('x',1e5))}",
    "local t={} t[1]=t return t",
    "local t={} for i=1,200000 do t={t} end return t",
    "redis.setresp(3) local t={} t.map=t return t",
    "error(setmetatable({},{__tostring=error,__index=error}))",
    "return table.concat(setmetatable({},{__index=function() return 'x' end}),'',1,2147483647)",
    "return string.format('%99999999d',1)",
    "return string.format(string.rep('%99d',1e5),1)",
    "return ('x'):rep(-2147483648)",
    "return string.char(unpack({},1,1e6))",
    "local t={} for i=1,8000 do t[i]=i end return select('#',unpack(t))",
    "local s='return ' for i=1,5000 do s=s..'(' end return loadstring(s)",
    "return loadstring('return '..string.rep('{',5000)..string.rep('}',5000))",
    "return loadstring('return '..string.rep('not ',100000)..'1')",
    "return loadstring('local a '..string.rep('a=',50000)..'1')",
    "return loadstring('return '..string.rep('1 ..',50000)..'1')()",
    "return loadstring(string.rep('do ',50000)..string.rep('end ',50000))",
    "return loadstring(string.rep('local a ',300))",
    "return loadstring('return function() '..string.rep('return function() ',5000)..string.rep('end ',5001))",
    "return loadstring('goto a')",
    "table.sort({3,2,1,5,4,9,7,8,6,0},function() return true end)",
    "local t={} for i=1,1000 do t[i]=i%7 end table.sort(t,function(a,b) return a<=b end)",
    "table.insert({},-2147483648,1)",
    "table.insert({},2147483647,1) return 1",
    "return table.remove({},-2147483648)",
    "for i=1,1/0 do end",
    "for i=2^53,2^53+1 do end",
    "return ('('):rep(40)..'a'",
    "return ('a'):find(('(a)'):rep(40))",
    "return ('a'):rep(300000):find(('a?'):rep(300000)..('a'):rep(300000))",
    "return ('a'):rep(200000):match('(.-)%1b')",
    "return ('('):rep(100000):find('%b()')",
    "return ('x'):gsub(('x'):rep(100000)..'[','')",
    "while true do pcall(error) end",
    "repeat pcall(redis.call,'PING') until false",
    "local function f() return f() end f()",
    "local a,b a=coroutine.wrap(function() while true do coroutine.yield() end end) while true do a() end",
    "xpcall(error,function() while true do end end)",
    "local t=setmetatable({},{__index=function(t,k) while true do end end}) return t.x",
    "table.sort({1,2,3},function() while true do end end)",
    "('x'):gsub('.',function() while true do end end)",
    "return load(function() while true do end end)",
    "return load(function() return ' ' end)",
    "local s='x' while true do s=s..s end",
    "local t={} while true do t[#t+1]=t end",
    "local s='x' while true do pcall(function() s=s..s end) end",
    "while true do local ok=pcall(function() local t={} for i=1,1e9 do t[i]={} end end) end",
    "local f=function() while true do end end while true do pcall(f) end",
    "local c=coroutine.create(function() while true do end end) while true do coroutine.resume(c) end",
    "local s=string.rep('x',1e6) local t={} for i=1,600 do t[i]=s..i end return #t",
    "local s=string.rep('x',1e8) return #table.concat({s,s,s,s,s,s,s})",
    "local s=string.rep('x',1e8) return #(s..s..s..s..s..s..s)",
    "return #string.gsub(string.rep('x',1e5),'x',string.rep('y',1e4))",
    "return #cjson.encode(string.rep('\\0',5e7))",
    "return #cmsgpack.pack(string.rep('\\0',2e8),string.rep('\\0',2e8))",
    "return redis.sha1hex(string.rep('x',3e8))",
    "redis.log(redis.LOG_DEBUG,string.rep('x',1e7))",
    "return string.rep('x',3e8):upper()",
    "redis.call(unpack({'PING','a','b'},1,3))",
    "local t={} for i=1,7000 do t[i]='x' end return redis.pcall(unpack(t))",
    "return redis.pcall('ECHO',string.rep('x',1e8))",
    "newproxy(true)",
    "setfenv(0,{})",
    "return debug.getregistry()",
    "return require('ffi')",
    "return package.loaded.ffi",
    "return 1LL",
    "return tostring(print)..tostring(redis.call)",
    "jit.on()",
    "return io.open('/etc/passwd')",
    "return os.execute('true')",
)  # fmt: skip
EXTREMES: Final = (
    "0/0", "1/0", "-1/0", "2^31", "2^31-1", "-2^31", "-2^31-1", "2^32", "2^32-1", "2^53", "2^63", "-2^63", "2^64", "1e308", "5e-324", "-0", "0", "1", "-1", "0.5",
    "2^24", "65536", "''", "'x'", "'\\0'", "'%'", "string.rep('x', 100000)", "string.rep('%', 1000)", "string.rep('(', 50)", "string.rep('a?', 2000)", "{}", "{1, 2, 3}",
    "{[2^31]=1}", "{[-1]=1, [1.5]=2, x=3}", "setmetatable({}, {__index=function(t, k) return k end})", "setmetatable({}, {__index=error, __tostring=error, __call=error})",
    "nil", "true", "false", "cjson.null", "function() end", "error", "function(...) return ... end", "coroutine.create(function() end)", "coroutine.wrap(error)", "redis.call",
    "redis", "_G", "string", "getmetatable('')", "getmetatable(_G)", "tostring", "string.gsub", "pcall", "coroutine.yield", "(function() local t = {} t[1] = t return t end)()",
    "(function() local t = {} for i = 1, 5000 do t = {t} end return t end)()", "(function() local t = {} for i = 1, 9000 do t[i] = i end return t end)()", "KEYS", "ARGV",
    "'\\27Lua'", "'\\27LJ\\2'", "'collect'", "'stop'", "'step'", "'setpause'", "'__index'", "'=penstock'", "'@user_script'",
)  # fmt: skip
FUNCTIONS: Final = tuple(
    sorted({name for name, _, _ in vocabulary.SIGNATURES} | {"gcinfo", "string.dump", "table.sort", "cjson.new", "cjson.decode_max_depth",
        "cjson.decode_array_with_array_mt", "math.random", "math.randomseed", "os.clock", "redis.call", "redis.pcall", "redis.debug", "rawset", "setfenv", "module", "require",
        "coroutine.resume", "coroutine.yield", "string.gmatch", "__redis__err__handler", "redis.setresp", "table.unpack", "table.pack", "load", "loadfile", "table.move", "rawequal"})
)  # fmt: skip
# How C calls back into Lua: {f} is called with no more than what C gives it.
CALLBACKS: Final = (
    "string.gsub('a', 'a', {f})", "string.gsub('a', 'a', setmetatable({{}}, {{__index={f}}}))", "table.sort({{2, 1}}, {f})",
    "table.sort({{setmetatable({{}}, {{__lt={f}}}), setmetatable({{}}, {{__lt={f}}})}})", "tostring(setmetatable({{}}, {{__tostring={f}}}))",
    "string.format('%s', setmetatable({{}}, {{__tostring={f}}}))", "load({f})", "table.foreach({{1}}, {f})", "table.foreachi({{1}}, {f})", "coroutine.wrap({f})()",
    "coroutine.resume(coroutine.create({f}))", "xpcall(error, {f})", "xpcall({f}, {f})", "pcall({f})", "pcall(pcall, {f})", "(1 .. setmetatable({{}}, {{__concat={f}}}))",
    "(setmetatable({{}}, {{__add={f}}}) + 1)", "(setmetatable({{}}, {{__eq={f}}}) == setmetatable({{}}, {{__eq={f}}}))", "setmetatable({{}}, {{__index={f}}}).x", "{f}()",
    "table.concat({{'x', setmetatable({{}}, {{__tostring={f}}})}})", "cjson.encode(setmetatable({{}}, {{__index={f}}}))", "setmetatable({{}}, {{__call={f}}})()",
    "loadstring('return ...')({f})()", "(-setmetatable({{}}, {{__unm={f}}}))", "(function(...) return {f}(...) end)()", "error(setmetatable({{}}, {{__tostring={f}}}))",
    "print({f})", "string.rep(setmetatable({{}}, {{__tostring={f}}}), 2)", "unpack(setmetatable({{}}, {{__index={f}}}), 1, 3)", "select('#', {f}())", "next({{}}, {f}())",
    "redis.log(1, setmetatable({{}}, {{__tostring={f}}}))", "coroutine.wrap(function() coroutine.wrap({f})() end)()", "for _ in {f} do break end",
)  # fmt: skip
SHARED: Final = ("string", "table", "math", "coroutine", "cjson", "cmsgpack", "struct", "bit", "redis", "_G", "getmetatable('')", "getmetatable(_G)", "getmetatable(string)", "os",
    "getmetatable(redis)", "select(2, pairs(string))", "select(2, pairs(_G))", "select(2, ipairs(table))", "select(2, pairs(getmetatable('')))", "getmetatable('').__index",
    "getmetatable(_G).__index", "select(2, pairs(redis))", "getmetatable(select(2, pairs(_G)))", "rawget(_G, '_G')", "_G._G", "cjson.new()", "getmetatable(cjson.null)",
    "select(2, pcall(redis.call, 'NOSUCH'))", "getmetatable(cjson.decode('[]'))", "getfenv(0)", "getfenv(pcall)", "debug.getregistry()", "package.loaded")  # fmt: skip
ATTACKS: Final = (
    "t.upper = 1", "t.call = function() return 'X' end", "rawset(t, 'evil', 1)", "t[1] = 'evil'", "table.insert(t, 'evil')", "table.insert(t, 1, 'evil')", "setmetatable(t, nil)",
    "setmetatable(t, {__index=function() return 'evil' end})", "for k in pairs(t) do t[k] = nil end", "for k in pairs(t) do rawset(t, k, nil) end", "table.sort(t)", "table.remove(t)",
    "for k, v in next, t do t[k] = 'evil' end", "t.__index = function() return 'evil' end", "t.__call = error", "t.__len = function() return 7 end", "t.__metatable = 'x'", "t.__gc = error",
    "getmetatable(t).__newindex = nil t.evil = 1", "getmetatable(t).__index = nil", "table.foreach(t, function(k) t[k] = 1 end)", "setfenv(t.upper or error, {})", "t._G = {}", "t.encode = 'evil'",
    "setmetatable(getmetatable(t), {__index=error})", "table.setn(t, 5)", "local m = getmetatable(t) for k in pairs(m) do m[k] = nil end", "t.KEYS = 'evil'", "t.__tostring = error", "t.pcall = error",
)  # fmt: skip
ENDLESS: Final = ("while true do {b} end", "repeat {b} until false", "for i = 1, 1/0 do {b} end", "for i = 1, 2^53 do {b} end", "local function f() {b} return f() end f()",
    "for i = 1, 10, 0 do {b} end", "local function f() while true do {b} end end while true do pcall(f) end", "while true do xpcall(function() while true do {b} end end, function() while true do end end) end",
    "local a = coroutine.wrap(function() while true do {b} coroutine.yield() end end) while true do a() end", "while true do coroutine.wrap(function() {b} end)() end",
    "loadstring('while true do end', '{n}')()", "while true do loadstring('return 1', '{n}')() {b} end", "for w in function() return 1 end do {b} end", "load(function() {b} return ' ' end)",
    "string.gsub(string.rep('x', 100000), '.', function() while true do {b} end end)", "table.sort({{3, 1, 2}}, function() while true do {b} end end)", "local t = {{}} while true do t[#t + 1] = #t {b} end",
    "local t = setmetatable({{}}, {{__index=function(t, k) return t[k + 1] end}}) return t[1]", "while true do pcall(coroutine.wrap(function() while true do {b} end end)) end",
    "local x = 1 while x do x = x + 1 {b} end", "while true do redis.pcall('PING') {b} end", "while true do cjson.encode({{1}}) {b} end", "while true do string.find(string.rep('a', 1000), '.-.-b') end")  # fmt: skip
LOOP_BODIES: Final = (
    "",
    "",
    "local x = 1",
    "pcall(error)",
    "pcall(error, {})",
    "tostring(1)",
    "redis.pcall('NOSUCH')",
    "local t = {1}",
    "string.rep('x', 1000)",
    "pcall(pcall, error)",
    "collectgarbage()",
)
CHUNK_NAMES: Final = (
    "=penstock",
    "@penstock",
    "penstock",
    "=[C]",
    "@user_script",
    "=user_script",
    "@user_function",
    "=(load)",
    "=?",
    "",
    "=",
    "@",
    "x\\0y",
    "\\27",
    "=(tail call)",
    "=stdin",
    "=penstock:1:",
    "@sandbox.lua",
)
PATTERN_PIECES: Final = (
    ".-",
    ".*",
    "(.-)",
    "a?",
    "a*",
    "a-",
    "[ab]-",
    "(a*)",
    "%w+",
    "%b()",
    "%f[a]",
    "%1",
    "()",
    "[^b]*",
    ".",
    "a",
    "b",
    "%z",
    "$",
    "^",
    "(",
    ")",
    "[",
    "%",
    "[%a-%z]*",
)
CANARY: Final = (
    b"local t = {string.upper('abc'), #'x', ('x'):rep(3), cjson.encode({1, 2.5, 'x'}), cjson.decode('[7]')[1], table.concat({1, 2}, '-'), math.floor(1.5), tostring(1.5), "
    b"redis.sha1hex('x'), bit.band(7, 3), cmsgpack.unpack(cmsgpack.pack('m')), struct.unpack('>I2', struct.pack('>I2', 258)), tostring(pcall(error)), select('#', 1, nil), type(cjson.null), "
    b"('a,b'):gsub(',', ';'), string.format('%d %s', 3, 'z'), tonumber('0x10'), unpack({9}), rawget({a = 4}, 'a'), coroutine.wrap(function() return 6 end)(), loadstring('return 8')(), "
    b"redis.call('ECHO', 'e'), redis.pcall('NOSUCH').err, #KEYS, #ARGV, ARGV[1]} local u = {3, 1, 2} table.sort(u) table.insert(u, 5) t[#t + 1] = table.concat(u, ',') "
    b"for _, name in ipairs({'string', 'table', 'math', 'cjson', 'cmsgpack', 'struct', 'bit', 'redis', 'coroutine', 'os', '_G'}) do local names = {} "
    b"for key, held in pairs(rawget(_G, name)) do names[#names + 1] = tostring(key) .. ':' .. type(held) end table.sort(names) "
    b"for at, one in ipairs(names) do if one == 'KEYS:table' or one == 'ARGV:table' then names[at] = '' end end t[#t + 1] = name .. '=' .. table.concat(names, ' ') end "
    b"local metas = {} for key, held in pairs(getmetatable('') or {}) do metas[#metas + 1] = tostring(key) .. type(held) end table.sort(metas) t[#t + 1] = table.concat(metas) "
    b"t[#t + 1] = tostring(pcall(function() return undefined_global end)) t[#t + 1] = tostring(rawget(_G, 'evil')) t[#t + 1] = tostring(string.evil) return t"
)
WATCHED_VALUES: Final = (  # a value that no script may hold is answered as LEAK
    "local function leaked(...) for i = 1, select('#', ...) do local v = select(i, ...) local t = type(v) "
    "if (t == 'userdata' and v ~= cjson.null) or t == 'cdata' then error('LE' .. 'AK ' .. t) end "
    "if t == 'table' then for k, x in next, v do if type(x) == 'userdata' and x ~= cjson.null then error('LE' .. 'AK in a table') end end end "
    "local m = t ~= 'string' and getmetatable(v) if type(m) == 'userdata' then error('LE' .. 'AK in a metatable') end end return ... end "
)
