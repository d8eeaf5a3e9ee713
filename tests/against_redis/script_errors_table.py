"""Scripts that fail: how their errors name functions and lines. Replies must be those of a real Redis."""

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

ERRORS: Final[tuple[tuple[str, ...], ...]] = tuple(("EVAL", code, "0") for code in _NAMES)
