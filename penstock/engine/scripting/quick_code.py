"""Which scripts may begin in place: those of which the text shows that they take little, whatever they are given."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.engine.scripting.script_source import BEFORE_VALUE, KEYWORDS, Change, Malformed, Token, tokens

# What a script may call and still run in place: guard.lua sees to it that none of these holds the server for long.
QUICK: Final = frozenset((
    b"redis.call", b"redis.pcall", b"redis.error_reply", b"redis.status_reply", b"redis.log", b"redis.setresp",
    b"redis.sha1hex", b"tonumber", b"tostring", b"type", b"select", b"unpack", b"error", b"assert", b"rawget",
    b"rawequal", b"math.floor", b"math.ceil", b"math.abs", b"math.max", b"math.min", b"math.fmod", b"math.random",
    b"string.sub", b"string.len", b"string.upper", b"string.lower", b"string.reverse", b"string.byte", b"string.char",
    b"string.rep", b"string.format", b"string.find", b"string.match", b"string.gsub", b"table.concat",
    b"table.insert", b"table.remove", b"table.getn", b"cjson.encode", b"cjson.decode", b"cmsgpack.pack",
    b"cmsgpack.unpack", b"ipairs", b"pairs",
))  # fmt: skip
QUICK_WORDS: Final = frozenset(name.split(b".")[0] for name in QUICK)
LIBRARIES: Final = frozenset(name.split(b".")[0] for name in QUICK if b"." in name)
METHODS: Final = frozenset(name.split(b".")[1] for name in QUICK if name.startswith(b"string."))
FIELDS: Final = frozenset((b"redis.LOG_DEBUG", b"redis.LOG_VERBOSE", b"redis.LOG_NOTICE", b"redis.LOG_WARNING",
    b"cjson.null", b"math.huge", b"math.pi"))  # fmt: skip
MOST_BYTES: Final = 4000  # of a script that runs in place
MOST_STEPS: Final = 20_000  # of 100 ns or so, each as much as a byte that is read: two milliseconds
MANY: Final = 20  # calls that one of a function counts for that may give thousands of values
MOST_JOINS: Final = 64  # more leave no step
FREE_WEIGHT: Final = 200  # texts of MOST_STEPS bytes, made so often: four megabytes
MOST_JOINS_OF_LOOPS: Final = 4  # in a text with loops; how large texts are is looked at in each turn
STEPS_OF_REQUEST: Final = 40
FUNCTION: Final = re.compile(rb"\bfunction\b")
LOOPS: Final = frozenset((b"for", b"while", b"repeat"))
ITERATORS: Final = frozenset((b"ipairs", b"pairs"))
TURN: Final = b"__turn"  # guard.turns, by the name that it has in a text
TURNS: Final = b"__turn_of_a_loop"  # the same, as a global
BEGIN_COUNTING: Final = b"local %b = %b; " % (TURN, TURNS)
A_TURN: Final = b" if %b[1] then %b[2](%d%b); end; "


class Weight(NamedTuple):
    """What a piece of code may do at most: how many calls, how many `..` that may double a text, of how many bytes.

    Each loop is counted once: its turns count themselves (`turns`).
    """

    calls: int
    joins: int
    size: int
    has_loops: bool

    def steps(self) -> int:
        """How many steps it may take in place, and how many bytes it may be given; 0: it never may.

        What is done to texts without calling anything cannot be counted while it runs: each `..` may double one, and
        each call may copy one. So the more of them there are, the fewer are the steps.
        """
        most_joins = MOST_JOINS_OF_LOOPS if self.has_loops else MOST_JOINS
        if self.size > MOST_BYTES or self.joins > most_joins or self.calls > MOST_STEPS:
            return 0
        steps = min(MOST_STEPS, MOST_STEPS * FREE_WEIGHT // (2**self.joins * max(1, self.calls + self.joins)))
        return steps if steps > self.size else 0


def judged(text: bytes) -> tuple[int, list[Change]]:
    """How many steps a script may take in place (guard.lua), and how many bytes it may be given; 0: it never may.

    And what makes its loops count their turns, without which it may not. It has no function of its own.
    """
    try:
        found = tokens(text) if len(text) <= MOST_BYTES and FUNCTION.search(text) is None else None
    except Malformed:  # Lua says why
        found = None
    weight = None if found is None else weight_of(found, 0, len(found), len(text), {})
    if found is None or weight is None or not weight.steps():
        return 0, []
    return weight.steps(), counting(turns(found, 0, len(found), len(text), {}))


def counting(changes: list[Change]) -> list[Change]:
    """The changes of a text's loops, with what they need at its beginning."""
    return [(0, 0, BEGIN_COUNTING), *changes] if changes else []


def turns(found: list[Token], start: int, stop: int, size: int, own: Mapping[bytes, Weight | None]) -> list[Change]:
    """What makes the loops among some tokens, of so many bytes, say how many steps each of their turns takes.

    As many as its text has bytes, and more for requests. own: as in `weight_of`.
    """
    changes: list[Change] = []
    begun: list[tuple[int, int]] = []  # blocks: the place of a loop's change, -1 for another block; its first token
    of_loop = -1  # where the `for` or `while` stands that waits for its `do`
    for index in range(start, stop):
        token = found[index]
        word = token.word if token.kind == "name" else b""
        if word in (b"for", b"while"):
            of_loop = index
        elif word == b"do" and of_loop >= 0:
            begun.append((token.place + len(word), of_loop))
            of_loop = -1
        elif word == b"repeat":
            begun.append((token.place + len(word), index))
        elif word in (b"do", b"if"):
            begun.append((-1, index))
        elif word in (b"end", b"until") and begun:
            place, first = begun.pop()
            if place >= 0:
                steps = size if word == b"until" else token.place - found[first].place
                asks = False
                for at in range(first, index):
                    called = own.get(found[at].word)
                    if called is not None:
                        steps += called.size + STEPS_OF_REQUEST * called.calls
                        asks = True
                    elif found[at].word == b"redis":
                        steps += STEPS_OF_REQUEST
                        asks = True
                changes.append((place, place, A_TURN % (TURN, TURN, steps, b", true" if asks else b"")))
    return changes


def weight_of(
    found: list[Token], start: int, stop: int, size: int, own: Mapping[bytes, Weight | None]
) -> Weight | None:
    """What some tokens of so many bytes may do; None where they call what nobody knows.

    own: functions that they may call, and what these may do; None: nobody knows.

    Every call is looked at: what is called is QUICK or `own`, must be named in full and keep its meaning, so no local
    may bear a name of QUICK_WORDS, and nothing that was read from a variable or a table is ever called, but by the name
    of a method that texts have.
    """
    calls = joins = 0
    has_loops = False
    for index in range(start, stop):
        token = found[index]
        before = found[index - 1] if index > start else None
        if token.kind == "name":
            if token.word in (b"_G", b"arg", TURN, TURNS):
                return None
            if token.word in LOOPS:
                has_loops = True
                if token.word == b"for" and not _counts(found, index, stop):
                    return None
            if token.word in QUICK_WORDS and not _keeps_meaning(found, index):
                return None
        elif token.word == b"..":
            joins += _may_double(found, index)
        if before is None or not (token.word in (b"(", b"{") or token.kind in ("text", "long")):
            continue
        if before.kind in ("text", "long") or before.word in (b")", b"]", b"}"):
            return None  # a call of a value, or of what a call gave
        if before.kind == "name" and before.word not in KEYWORDS:
            if not _is_method(found, index) and (path := _path(found, index)) not in QUICK:
                called = own.get(path)
                if called is None:
                    return None
                calls, joins, size = calls + called.calls, joins + called.joins, size + called.size
                has_loops = has_loops or called.has_loops
            calls += MANY if before.word in (b"unpack", b"byte") else 1
    return Weight(calls, joins, size, has_loops)


def _counts(found: list[Token], index: int, stop: int) -> bool:
    """Whether a `for` goes through numbers, or through a table by `pairs` or `ipairs` alone."""
    at = index + 1
    while at < stop and found[at].word not in (b"=", b"in", b"do"):
        at += 1
    if at + 2 >= stop or found[at].word != b"in":
        return at < stop and found[at].word == b"="
    if found[at + 1].word not in ITERATORS or found[at + 2].word != b"(":
        return False
    depth, at = 1, at + 3
    while at < stop and depth:
        depth += (found[at].word == b"(") - (found[at].word == b")")
        at += 1
    return at < stop and found[at].word == b"do"


def _may_double(found: list[Token], index: int) -> bool:
    """Whether both sides of a `..` may be long: a text that is written there, and begins the expression, is not."""
    after = found[index + 1] if index + 1 < len(found) else None
    if after is None or after.kind != "name":
        return after is not None and after.word in (b"(", b"#", b"-", b"{")
    is_written = index > 0 and found[index - 1].kind in ("text", "long", "number")
    begins = index < 2 or (found[index - 2].word in BEFORE_VALUE and found[index - 2].word != b"..")
    return not (is_written and begins)


def _keeps_meaning(found: list[Token], index: int) -> bool:
    """Whether a name of QUICK_WORDS is called or looked into here, not declared, set or handed on."""
    if index and found[index - 1].word in (b".", b":"):
        return True  # a field of that name: no call of it is quick
    if index and found[index - 1].word in (b"local", b"for"):
        return False
    after = found[index + 1].word if index + 1 < len(found) else b""
    if found[index].word not in LIBRARIES:
        return after == b"("
    if after != b"." or index + 2 >= len(found):
        return False
    path = found[index].word + b"." + found[index + 2].word
    return path in QUICK or path in FIELDS


def _is_method(found: list[Token], index: int) -> bool:
    """Whether what is called is a method that texts have. No table holds another function than a QUICK one."""
    return index >= 2 and found[index - 2].word == b":" and found[index - 1].word in METHODS


def _path(found: list[Token], index: int) -> bytes:
    """The names before a call, `a` or `a.b`; more than two, and methods, are in no list."""
    parts: list[bytes] = []
    at = index - 1
    while at >= 0:
        parts.append(found[at].word)
        if at == 0 or found[at - 1].word not in (b".", b":"):
            break
        parts.append(found[at - 1].word)
        at -= 2
    return b"".join(reversed(parts))
