"""Every difference between random scripts here and in Redis that is known, one line each with its reason."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """Matches where each given pattern is found: in the requests' text, in Redis's reply and in ours.

    in_shortest: only requests of which nothing can be left out are looked at, for the pattern says little of others.
    compared_as: makes of each reply what must be equal.
    """

    reason: str
    requests: str = ""
    theirs: str = ""
    ours: str = ""
    in_shortest: bool = False
    compared_as: Callable[[bytes], object] = bool

    def explains(self, requests: str, theirs: bytes, ours: bytes, is_shortest: bool) -> bool:
        return bool(
            is_shortest >= self.in_shortest
            and self.compared_as(theirs) == self.compared_as(ours)
            and re.search(self.requests, requests)
            and re.search(self.theirs.encode(), theirs)
            and re.search(self.ours.encode(), ours)
        )


def without_sign_of_zero(reply: bytes) -> bytes:
    return re.sub(rb"[$=]\d+\r\n", b"$", re.sub(rb" *-?0(\.0+)?(?![.\d])", b"0", reply))


def without_sign_of_nan(reply: bytes) -> bytes:
    return re.sub(rb"\$\d+\r\n", b"$", re.sub(rb"[-+ ]*nan", b"nan", reply))


def without_chunk_name(reply: bytes) -> bytes:
    """The name is between quotes, which JSON escapes, and behind its length in MessagePack."""
    return re.sub(rb"\$\d+\r\n", b"$", re.sub(rb"[^\n]?\[string \\?\"[^\n]*?\\?\"\]", b"[]", reply))


# An element behind one that is not there: assigned, left out, or a key or argument that was not given.
HOLE: Final = (
    "(v\\d+\\[[^]]+\\] ?= ?|\\{[^{}]*(nil\\b|KEYS\\[|ARGV\\[)[^{}]*(\\}|,)|table.remove|table.insert\\(\\w+,-)"
)

FROM_C_LIBRARY: Final = "math\\.(a?cosh?|a?sinh?|a?tanh?|atan2|exp|log|log10|pow|sqrt)\\("

KNOWN: Final[tuple[KnownDifference, ...]] = (
    KnownDifference(
        "addresses of functions, tables and threads",
        "",
        *["(function|table|thread|userdata)(: |:\\s?builtin: ?)(0x|#?[0-9a-f]+)"] * 2,
    ),
    KnownDifference(
        "LuaJIT's texts do not name a field that is found by a number, and name locals where Lua 5.1 does not",
        "",
        "attempt to [a-z ]+ (field '\\?' \\(a|a) [a-z]+ value",
        "attempt to [a-z ]+ (local '\\w+' \\(a|a) [a-z]+ value",
    ),
    KnownDifference(
        "LuaJIT names a field or a global that is the other side of `and` or `or`, where Lua 5.1 does not",
        "\\b(and|or)\\b[ (]*[\\w.]+",
        "attempt to [a-z ]+ a [a-z]+ value",
        "attempt to [a-z ]+ (field|global) '\\w+' \\(a [a-z]+ value",
        in_shortest=True,
    ),
    KnownDifference(
        "the length of a table with holes is any of its borders, for #, unpack and the library table",
        "^(?=(.|\\n)*" + HOLE + ")(.|\\n)*(#v|#ARGV|#KEYS|table\\.\\w+|unpack|return|cjson|cmsgpack)",
        in_shortest=True,
    ),
    KnownDifference(
        "Lua 5.1 keeps one constant for 0 and -0 in a function, the one that comes first; LuaJIT keeps both apart",
        "-(.|\\n)*0",
        "nan|inf",
        "nan|inf",
        in_shortest=True,
    ),
    KnownDifference(
        "a text whose exponent has seven digits is no number",
        "e[+-]?\\d*'?[ )]*\\.\\.|e[+-]?\\d{7}",
        "",
        "attempt to perform arithmetic on|number expected, got string",
        in_shortest=True,
    ),
    KnownDifference(
        "one constant for 0 and -0, whatever comes of it: nothing else of the requests could be left out",
        "-[ (]*0(?![.\\d])|[/,] ?\\(?-?0\\b(.|\\n)*-[ (]*0\\b",
        in_shortest=True,
    ),
    KnownDifference(
        "one constant for 0 and -0, of which the sign shows; Lua computes some when it compiles (`-1/0^-2`)",
        "-(.|\\n)*0|0(.|\\n)*-",
        compared_as=without_sign_of_zero,
    ),
    KnownDifference(
        "the name of a chunk that is its text is cut two letters later",
        "loadstring|load",
        "\\[string ",
        "\\[string ",
        compared_as=without_chunk_name,
    ),
    KnownDifference(
        "Lua 5.1 does not look behind a zero byte in a text that is taken for a number",
        "struct.pack|cmsgpack.pack|\\\\0|char\\(",
        "",
        "attempt to perform arithmetic on (\\w+ '\\w+' \\()?a string value|number expected, got string",
        in_shortest=True,
    ),
    KnownDifference("an error reply is one line, whatever stands in it", "", "^-[^\\r]*\\n"),
    KnownDifference(
        "of two mistakes in a text, one a break outside of a loop, the break is named",
        "break",
        "Error compiling script|Error registering|expected near",
        "no loop to break near",
    ),
    KnownDifference(
        "of two mistakes in a text, the second a number that is none, the number is named: LuaJIT reads a word ahead",
        "",
        "unexpected symbol near|expected near",
        "malformed number near",
        in_shortest=True,
    ),
    KnownDifference(
        "a zero byte in a pattern ends it in Lua 5.1",
        "(find|match|gsub)\\((.|\\n)*(\\\\0|char\\(|struct.pack|cmsgpack.pack)",
        in_shortest=True,
    ),
    KnownDifference(
        "the last digit of what the C library of the machine computes",
        FROM_C_LIBRARY,
        "\\d\\.\\d{12}",
        "\\d\\.\\d{12}",
        in_shortest=True,
    ),
    KnownDifference(
        "the last bit of what the C library of the machine computes, packed",
        "pack\\((.|\\n)*" + FROM_C_LIBRARY + "|" + FROM_C_LIBRARY + "(.|\\n)*pack\\(",
        in_shortest=True,
        compared_as=len,
    ),
    KnownDifference(
        "numbers from 2^31 on, positions in texts above all, are taken for negative ones",
        "(byte|char|sub|find|match|select)\\((.|\\n)*(\\^|\\de\\d|\\d{10}|'inf'|'nan')",
        in_shortest=True,
    ),
    KnownDifference(
        "math.max and math.min of not a number and another: Lua 5.1 keeps the first, LuaJIT the other",
        "math\\.(max|min)\\(",
        "nan|inf|\\d",
        "nan|inf|\\d",
        in_shortest=True,
    ),
    KnownDifference(
        "the order of pairs", "cjson|cmsgpack|pairs|next|return ?\\{", in_shortest=True, compared_as=sorted
    ),
    KnownDifference(
        "not a number is `nan`, whatever its sign", "", "nan", "nan", in_shortest=True, compared_as=without_sign_of_nan
    ),
    KnownDifference(
        "of several wrong arguments of a function of bit, Redis names the last",
        "bit\\.(band|bor|bxor)\\(",
        "bad argument #\\d+ to 'b",
        "bad argument #\\d+ to 'b",
        in_shortest=True,
    ),
    KnownDifference(
        "the length of a text of not a number, which has a sign in Redis",
        "# ?\\((.|\\n)*(math.mod|[/%]|nan|inf)",
        "\\d",
        "\\d",
        in_shortest=True,
    ),
    KnownDifference("the text for ipairs without an argument", "ipairs\\(\\)", "table expected", "value expected"),
    KnownDifference(
        "an error of the function that load reads from is given as it was raised, not as an error table",
        "load\\(function",
        in_shortest=True,
    ),
    KnownDifference(
        "struct.unpack with an offset between -1 and 1 that is no whole number",
        "struct.unpack",
        "offset must be 1 or greater",
        "bad argument #2 to 'unpack'",
    ),
    KnownDifference(
        "an error of a function in C, called by one in C, is said to come from the script's line, not from `=[C]:-1`",
        "",
        "on =\\[C\\]:-1",
        "on @user_(script|function):",
    ),
    KnownDifference(
        "a value that is no function, called by a library: the text has no line",
        "",
        "user_(script|function):\\d+: attempt to call a [a-z]+ value",
        "-ERR attempt to call a [a-z]+ value",
    ),
)


def reason_of(requests: str, theirs: bytes, ours: bytes, is_shortest: bool = False) -> str:
    """Why the two may differ here; empty where they may not."""
    return next((known.reason for known in KNOWN if known.explains(requests, theirs, ours, is_shortest)), "")
