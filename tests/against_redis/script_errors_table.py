"""Scripts that fail: how their errors name functions and lines. Replies must be those of a real Redis."""

# ruff: noqa: E501  (scripts as they were asked)
from typing import Final

# Called under another name, as a method, by an operator, and out of a table.
_NAMES: Final = (
    "local e=cjson.encode e()", "local e=cjson.decode e(1,2)", "local e=cjson.decode e({})",
    "local e=cjson.encode_max_depth e(0)", "local e=cmsgpack.pack e()", "local e=cmsgpack.unpack e({})",
    "local e=cmsgpack.unpack_limit e('a')", "local e=struct.pack e('t')", "local e=struct.pack e()",
    "local e=struct.pack e('i','x')", "local e=struct.pack e('s',{})", "local e=struct.unpack e('t','a')",
    "local e=struct.unpack e('i',{})", "local e=struct.size e('s')", "local e=string.format e('%d')",
    "local e=string.format e('%d','x')", "local e=string.format e('%s',{})", "local e=string.format e('%5.1s')",
    "local e=table.insert e()", "local e=table.insert e(1)", "local e=table.getn e()", "local e=math.random e(0)",
    "local e=math.random e(0,-1)", "local e=rawset e({},1)", "local e=rawget e({})", "local e=setmetatable e({})",
    "local e=getmetatable e()", "local e=coroutine.wrap e()", "local e=coroutine.create e(1)",
    "local e=coroutine.resume e(1)", "local e=xpcall e(1)", "local e=string.gsub e('a','a')",
    "local e=string.gsub e('a','a',true)", "local e=cjson.encode local function f() e() end f()",
    "local t={} t.enc=cjson.encode t.enc()", "local t={} t.enc=cjson.encode t:enc(1)",
    "local t={} t.enc=struct.pack t:enc(1)", "local t={} t.enc=setmetatable t:enc(1)",
    "local t={} t.enc=rawset t:enc()", "local t={} t.enc=string.len t:enc()", "local x=('%d'):format('x')",
    "return ('%d'):format()", "local x=('%s'):format({})", "local x=('a'):gsub('a',true)", "local x=('a'):dump()",
    "local x=({cjson.encode})[1]()", "local x=({string.format})[1]()", "local x=({math.random})[1](0)",
    "for a in cjson.encode do end", "for a in table.insert do end",
    "return setmetatable({},{__index=cjson.encode}).x", "return setmetatable({},{__add=cjson.encode})+1",
    "return {pcall(cjson.encode)}", "return {pcall(table.insert)}", "return {pcall(string.format,'%d')}",
    "coroutine.wrap(function() table.foreachi({{}},cjson.encode) end)()",
)  # fmt: skip

# Raised where functions of the libraries stand between a function and its caller.
_RAISING: Final = (
    "pcall(function() error('x',i) end)", "pcall(function() local function g() error('x',i) end g() end)",
    "pcall(error,'x',i)", "select(2,pcall(pcall,error,'x',i))", "select(2,pcall(pcall,pcall,error,'x',i))",
    "xpcall(function() error('x',i) end,function(m) return m end)",
    "xpcall(function() local x=nil+1 end,function(m) local ok,e=pcall(error,'y',i) return e end)",
    "xpcall(function() error('z') end,function(m) local ok,e=pcall(error,'y',i) return e end)",
    "coroutine.resume(coroutine.create(function() error('x',i) end))",
    "pcall(coroutine.wrap(function() error('x',i) end))",
    "pcall(function() string.gsub('a','a',function() error('x',i) end) end)",
    "pcall(function() table.sort({1,2,3},function() error('x',i) end) end)",
    "pcall(function() table.foreach({1},function() error('x',i) end) end)",
    "pcall(function() table.foreachi({1},function() error('x',i) end) end)",
    "pcall(function() return setmetatable({},{__index=function() error('x',i) end}).a end)",
    "pcall(function() for k in function() error('x',i) end do end end)",
    "pcall(loadstring(\"error('x',\"..i..\")\",'=abc'))", "pcall(load,function() error('x',i) end)",
)  # fmt: skip
_LEVELS: Final = (
    *(f"error('x',{level})" for level in (-1, 0, 1, 1.9, 2, 2.5, 3, 4, 5, 6, 7, 8, 1e10, "'2'", "'y'", "{}", "0/0")),
    *(f"local function f() error('x',{level}) end f()" for level in range(1, 7)),
    *(f"local t={{}} for i=0,8 do local _,e={way} t[#t+1]=tostring(e) end return t" for way in _RAISING),
    "error(1.5,2)", "error({},2)", "error(nil,2)", "error()", "v1=error(string.format('%q','q\\'),4)",
)  # fmt: skip

# A function that ends with a call of a library's function, in line 2, called in line 3.
_ENDING: Final = (
    "unpack()", "select(0)", "string.gsub('abc','[','%1')", "string.match('true','%1')", "string.find('true','[')",
    "cmsgpack.unpack('\\193')", "struct.unpack('y','b')", "math.modf('y')", "table.insert(1)", "coroutine.resume(1)",
    "coroutine.yield(1)", "ipairs(1)", "next({},1)", "pcall(error,'x',3)", "pcall(error,'x',2)", "assert(nil,'abc')",
    "assert(false)", "assert()", "unpack({1,2,3})", "unpack({})", "string.match('abc','(a)(b)')", "redis.log(1,'x')",
    "redis.setresp(2)", "redis.setresp(5)", "redis.set_repl(3)", "table.sort({})", "select('#',1,nil)", "math.modf(1.5)",
    "cmsgpack.unpack(cmsgpack.pack(1,2))", "table.foreach({1},function() error('x',2) end)",
    "string.byte('abc',1,3)", "string.byte()", "error('x',2)", "redis.call('NONE')", "collectgarbage('x')",
)  # fmt: skip
_TAIL_CALLS: Final = (
    *(f"local function f()\nreturn {call} end\nreturn {{select('#',f()),f()}}" for call in _ENDING),
    *(f"local c=coroutine.wrap(function()\nreturn {call} end)\nreturn {{c()}}" for call in _ENDING),
    "local function select(n) if n==0 then return 'deep' end return select(n-1) end return select(100000)",
    "local string={} function string.f(n) if n==0 then return 1 end return string.f(n-1) end return string.f(100000)",
)

ERRORS: Final[tuple[tuple[str, ...], ...]] = tuple(("EVAL", code, "0") for code in (*_NAMES, *_LEVELS, *_TAIL_CALLS))
