"""Real bytecode of Lua 5.1 and of LuaJIT, and what chance makes of it."""

import random
from functools import cache
from importlib import import_module
from typing import Final

INTERPRETERS: Final = ("lua51", "luajit20", "luajit21")
SOURCES: Final = (
    b"return 42",
    b"local a, b = ... return a + b, 'text', {1, 2, x = a}",
    b"local t = {} for i = 1, 10 do t[i] = function() return i end end return t",
    b"while true do if not x then break end x = x .. 1.5 end return (function(...) return select('#', ...) end)(1)",
)


@cache
def dumps() -> tuple[bytes, ...]:
    """Chunks as string.dump makes them, with debug information and without; a plain header where there is no lupa."""
    made = [b"\x1bLua", b"\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00", b"\x1bLJ\x02", b"\x1bLJ\x01\x02\x00"]
    for name in INTERPRETERS:
        try:
            runtime = import_module(f"lupa.{name}").LuaRuntime(encoding=None)
        except ImportError:
            continue
        dump = runtime.eval(b"function(code, strip) return string.dump(loadstring(code), strip) end")
        made += [bytes(dump(code, strip)) for code in SOURCES for strip in (False, True)]
    return tuple(made)


def mutated(chunk: bytes, chance: random.Random) -> bytes:
    """A chunk with some of its bytes changed, doubled, cut or put in front of it."""
    held = bytearray(chunk)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(held)) if held else 0
        change = chance.randrange(5)
        if change == 0 and held:
            held[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif change == 1 and held:
            held[at] ^= 1 << chance.randrange(8)
        elif change == 2:
            del held[at : at + chance.randrange(1, 9)]
        elif change == 3:
            held[at:at] = held[at : at + chance.randrange(1, 9)]
        else:
            held[at:at] = chance.choice((b"\x1b", b"\xef\xbb\xbf", b"#\n", b" ", b"\xff\xff\xff\x7f", b"\0" * 8))
    return bytes(held)
