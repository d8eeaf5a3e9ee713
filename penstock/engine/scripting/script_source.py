"""Prepares the text of a script for LuaJIT: refuses what Lua 5.1 refuses, rewrites what it reads in another way.

LuaJIT's grammar is larger than Lua 5.1's: numbers with suffixes (`1LL` makes a C value), `goto`, labels, and it refuses
escapes that 5.1 takes as they are. Tail calls of the server's functions become ordinary calls: in Redis these are C
functions, which leave their caller on the stack, so that errors name its line.  O(length of the text).
"""

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

TOKEN: Final = re.compile(
    rb"(?P<space>[ \t\r\n\f\v]+|--(?!\[=*\[)[^\r\n]*)"
    rb"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    rb"|(?P<number>(?:[0-9]|\.[0-9])[0-9.]*(?:[eE][+-]?)?[A-Za-z0-9_]*)"
    rb"|(?P<text>\"(?:[^\"\\\r\n]++|\\(?:\r\n|\n\r|[\s\S]))*+\"|'(?:[^'\\\r\n]++|\\(?:\r\n|\n\r|[\s\S]))*+')"
    rb"|(?P<long>(?:--)?\[(?P<level>=*)\[)"
    rb"|(?P<sign>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}\[\];:,.])"
)
NUMBER: Final = re.compile(rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX][0-9a-fA-F]+(?:[pP][0-9]+)?")
ESCAPE: Final = re.compile(rb"\\([^abfnrtv\\\"'\r\n0-9])")
ESCAPES: Final = re.compile(rb"\\([\s\S])")
# A text with words and numbers that Lua 5.1 reads as LuaJIT does, in one pass of C.
PLAIN: Final = re.compile(
    rb"(?:[ \t\r\n\f\v]++|--(?!\[=*\[)[^\r\n]*+|[A-Za-z_][A-Za-z0-9_]*+"
    rb"|(?:(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|0[xX][0-9a-fA-F]++)(?![A-Za-z0-9_.])"
    rb"|\"(?:[^\"\\\r\n]++|\\[\s\S])*+\"|'(?:[^'\\\r\n]++|\\[\s\S])*+'"
    rb"|(?:--)?\[(=*+)\[[\s\S]*?\]\1\]|\.{1,3}(?![0-9])|\[(?!=*+\[)|[-+*/%^#<>=(){}\];:,~])*+"
)
SUFFIXED: Final = re.compile(rb"[0-9a-fA-F.](?:[uU]?[lL][lL]|[iI])(?![A-Za-z0-9_])")  # a C value, where it is a number
LARGEST: Final = 64 * 1024  # bytes of a text that is read token by token, which takes a tenth of a second
MOST_RETURNED: Final = 200  # tokens of an expression that is looked at
DECIMAL: Final = re.compile(rb"\\(?:([0-9]{1,3})|[\s\S])")
DEEPEST: Final = 200  # blocks in blocks that are compiled
OPENS: Final = frozenset((b"function", b"do", b"if", b"repeat"))  # `while` and `for` go on with `do`
CLOSES: Final = frozenset((b"end", b"until"))
DECLARING: Final = frozenset((b"local", b"function"))
BLOCK_ENDS: Final = frozenset((b"end", b"until", b"else", b"elseif"))
OPERATORS: Final = frozenset(b"+ - * / % ^ .. == ~= < > <= >= and or not #".split())
BEFORE_VALUE: Final = OPERATORS | frozenset(
    b"= , ( { [ . : return local in function until if while elseif".split()
)  # what an expression or a name follows
KEYWORDS: Final = frozenset(
    b"and break do else elseif end false for function if in local nil not or repeat return then true until"
    b" while".split()
)
# Functions of one result. Their tail calls can be made ordinary by parentheses.
SINGLE: Final = frozenset((
    b"server.call", b"server.pcall", b"server.error_reply", b"server.status_reply", b"server.sha1hex",
    b"server.acl_check_cmd",
    b"redis.call", b"redis.pcall", b"redis.error_reply", b"redis.status_reply", b"redis.sha1hex",
    b"redis.acl_check_cmd", b"cjson.encode", b"cjson.decode", b"cmsgpack.pack",
    b"struct.pack", b"struct.size", b"string.format", b"string.rep", b"string.sub", b"string.upper", b"string.lower",
    b"string.len", b"string.reverse", b"string.char", b"table.concat", b"math.random", b"math.floor", b"math.ceil",
    b"math.abs", b"math.max", b"math.min", b"error", b"tonumber", b"tostring", b"type", b"setmetatable",
    b"getmetatable", b"rawget", b"rawset", b"bit.band", b"bit.bor", b"bit.bxor", b"bit.bnot", b"bit.tohex",
))  # fmt: skip
# Those of any other number of results are wrapped: by name, and all that stand in a library. Methods, and functions
# under another name, are not: tail calls of the script's own functions may go as deep as they like.
SEVERAL: Final = frozenset(
    b"assert collectgarbage gcinfo ipairs load loadstring next pairs pcall rawequal select unpack xpcall".split()
)
HOLD_SEVERAL: Final = re.compile(
    rb"(?:redis|server|cjson|cmsgpack|struct|string|table|math|coroutine|bit|os)\.[A-Za-z0-9_]+"
)


Change: TypeAlias = tuple[int, int, bytes]  # of a text: from, to, instead


class Malformed(Exception):
    """A script that Lua 5.1 does not compile, with its message: `line: text`."""

    def __init__(self, text: bytes) -> None:
        self.text = text


class Token:
    """`place` is where it begins in the text."""

    __slots__ = ("kind", "place", "word")

    def __init__(self, kind: str, word: bytes, place: int) -> None:
        self.kind = kind
        self.word = word
        self.place = place


def tokens(text: bytes) -> list[Token] | None:
    """The tokens without space and comments; None where the text cannot be cut: LuaJIT says why.

    Letters are those of ASCII, as in Lua 5.1; LuaJIT takes any byte from 128 on for one.
    """
    found: list[Token] = []
    at, end = 0, len(text)
    while at < end:
        match = TOKEN.match(text, at)
        if match is None and text[at] >= 0x80:
            raise Malformed(b"%d: unexpected symbol near '%c'" % (_line(text, at), text[at]))
        if match is None:
            return None
        kind = match.lastgroup or ""
        stop = match.end()
        if kind in ("long", "level"):
            close = text.find(b"]" + match["level"] + b"]", stop)
            if close < 0:
                return None
            stop = close + 2 + len(match["level"])
            kind = "space" if text.startswith(b"--", at) else "long"
        if kind != "space":
            found.append(Token(kind, text[at:stop], at))
        at = stop
    return found


def prepared(text: bytes, is_script: bool, changes: Iterable[Change] = ()) -> bytes:
    """The text as LuaJIT is to read it, with the same lines. is_script: only its first result counts.

    changes: what else is to be changed.

    A text above LARGEST is looked through for numbers alone: 30 ns a token instead of 5 us.
    """
    if len(text) > LARGEST:
        return _large(text)
    found = tokens(text)
    if found is None:
        return b" " + text  # a space: the first line is not to be skipped for its `#` or byte order mark
    all_changes = [*changes, *_spellings(text, found)]
    _Calls(text, found, all_changes, is_script).walk()
    return b" " + _changed(text, all_changes)


def spelt(text: bytes) -> bytes:
    """The same without the changes of calls and functions, for LuaJIT to say what is wrong with the text."""
    found = tokens(text) if len(text) <= LARGEST else None
    return b" " + (text if found is None else _changed(text, _spellings(text, found)))


def _spellings(text: bytes, found: list[Token]) -> list[Change]:
    """A change of the text: from, to, replacement."""
    changes: list[Change] = []
    for index, token in enumerate(found):
        changes += _spelling(text, found, index, token)
    return changes


def _large(text: bytes) -> bytes:
    if SUFFIXED.search(text) is None:
        return b" " + text
    match = PLAIN.match(text)
    assert match is not None, "it matches the empty text, too"
    token = TOKEN.match(text, match.end())
    if token is not None and token.lastgroup == "number":
        raise Malformed(b"%d: malformed number near '%b'" % (_line(text, match.end()), token[0]))
    return b" " + text


def _changed(text: bytes, changes: list[Change]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for start, stop, instead in sorted(changes, key=lambda change: change[:2]):
        parts += (text[at:start], instead)
        at = stop
    return b"".join(parts) + text[at:]


def _line(text: bytes, place: int) -> int:
    return text.count(b"\n", 0, place) + 1


def _spelling(text: bytes, found: list[Token], index: int, token: Token) -> list[Change]:
    """The changes to one token that has to be spelt otherwise."""
    if token.kind == "number":
        if NUMBER.fullmatch(token.word) is None:
            raise Malformed(b"%d: malformed number near '%b'" % (_line(text, token.place), token.word))
        if index and found[index - 1].kind == "number":
            return [(token.place, token.place, b" ")]  # `0x1.8` is two numbers
    elif token.kind == "text" and b"\\" in token.word:
        start, stop = token.place, token.place + len(token.word)
        for escape in DECIMAL.finditer(token.word):
            if escape[1] is not None and int(escape[1]) > 255:
                near = token.word[: escape.start()]
                raise Malformed(b"%d: escape sequence too large near '%b'" % (_line(text, start), near))
        return [(start, stop, ESCAPES.sub(_escape, token.word))]
    elif token.word == b"goto" and index + 1 < len(found):
        after = found[index + 1]
        is_value = index > 0 and found[index - 1].word in BEFORE_VALUE
        if not is_value and after.kind == "name" and after.word not in KEYWORDS:
            raise Malformed(b"%d: '=' expected near '%b'" % (_line(text, after.place), after.word))
    elif token.word == b":" and index and found[index - 1].word == b":":
        return [(token.place, token.place, b" ")]  # `::` would be a label
    return []


def _escape(match: re.Match[bytes]) -> bytes:
    return match[1] if ESCAPE.match(match[0]) else match[0]


class _Function:
    """A function while its text is read. body_at: where its body begins."""

    __slots__ = ("body_at", "in_loop_head", "is_vararg", "uses_arg", "uses_dots")

    def __init__(self) -> None:
        self.is_vararg = False
        self.body_at = 0
        self.in_loop_head = False
        self.uses_dots = False
        self.uses_arg = False


class _Calls:
    """Walks the tokens block by block: tail calls that become ordinary, and the table `arg` of functions with `...`."""

    def __init__(self, text: bytes, found: list[Token], changes: list[Change], is_script: bool) -> None:
        self._text = text
        self._tokens = found
        self._changes = changes
        self._is_script = is_script
        self._open: list[_Function | None] = []  # functions, and other blocks
        self._loops: list[bool] = []  # of the same, whether it is a loop
        self._is_loop = False  # the next `do` begins one
        self._functions: list[_Function] = []  # of these
        self._own = {found[index + 1].word for index in range(len(found) - 1) if found[index].word in DECLARING}

    def walk(self) -> None:
        index = 0
        while index < len(self._tokens):
            token = self._tokens[index]
            word = token.word
            if token.kind == "name":
                if word == b"function":
                    index = self._begin_function(index)
                    continue
                if word in (b"for", b"while"):
                    self._is_loop = True
                elif word in OPENS:
                    self._open.append(None)
                    self._loops.append(word == b"repeat" or (word == b"do" and self._is_loop))
                    self._is_loop = self._is_loop and word != b"do"
                elif word in CLOSES:
                    if not self._open:
                        return  # one too many: nothing behind it is looked at
                    self._loops.pop()
                    self._end(self._open.pop())
                elif word == b"break":
                    self._break(index)
                elif word == b"return":
                    self._return(index)
                elif word == b"arg" and self._functions:
                    self._functions[-1].uses_arg = True
            elif word == b"..." and self._functions:
                self._functions[-1].uses_dots = True
            index += 1

    def _begin_function(self, index: int) -> int:
        """Read a function's head; where its body begins."""
        function = _Function()
        function.in_loop_head, self._is_loop = self._is_loop, False
        while index < len(self._tokens) and self._tokens[index].word != b"(":
            index += 1
        while index < len(self._tokens) and self._tokens[index].word != b")":
            function.is_vararg = function.is_vararg or self._tokens[index].word == b"..."
            index += 1
        if index < len(self._tokens):
            function.body_at = self._tokens[index].place + 1
        self._open.append(function)
        self._loops.append(False)
        self._functions.append(function)
        return index + 1

    def _break(self, index: int) -> None:
        """Refuse it outside of a loop, at the token behind, as Lua 5.1 does."""
        if len(self._open) > DEEPEST:
            return
        for block, is_loop in zip(reversed(self._open), reversed(self._loops), strict=True):
            if is_loop:
                return
            if block is not None:
                break
        after = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
        place = len(self._text) if after is None else after.place
        near = b"<eof>" if after is None else after.word
        raise Malformed(b"%d: no loop to break near '%b'" % (_line(self._text, place), near))

    def _end(self, block: _Function | None) -> None:
        if block is None:
            return
        self._functions.pop()
        self._is_loop = block.in_loop_head
        if block.uses_arg and self._functions:
            self._functions[-1].uses_arg = True
        if block.is_vararg and block.uses_arg:
            made = b" local arg " if block.uses_dots else b" local arg=__packed_arguments(...) "
            self._changes.append((block.body_at, block.body_at, made))

    def _return(self, index: int) -> None:
        """Make a call of a library's function, if nothing else is returned, one that is no tail call."""
        first = index + 1
        stop = self._end_of_expression(first)
        if stop is None or stop - first < 3:
            return
        callee = self._callee(first, stop)
        is_outermost = self._is_script and not self._functions
        if callee is None or (callee.partition(b".")[0] in self._own and not is_outermost):
            return
        if is_outermost or callee in SINGLE:
            opening = b"("
        elif callee in SEVERAL or HOLD_SEVERAL.fullmatch(callee):
            opening = b"__all_results("
        else:
            return
        last = self._tokens[stop - 1]
        begin, end = self._tokens[first].place, last.place + len(last.word)
        self._changes += ((begin, begin, opening), (end, end, b")"))

    def _end_of_expression(self, first: int) -> int | None:
        """Behind the last token of the expression that `return` has; None where there are several, or many tokens."""
        depth = 0
        blocks = 0
        index = first
        while index < len(self._tokens):
            word, kind = self._tokens[index].word, self._tokens[index].kind
            if index - first > MOST_RETURNED:
                return None
            if kind == "name":
                if blocks == 0 and word in BLOCK_ENDS:
                    return index
                if blocks == 0 and word in (b"return", b"local"):
                    return None  # wrong, as LuaJIT will say
                if word in OPENS:
                    blocks += 1
                elif word in CLOSES:
                    blocks -= 1
            elif kind == "sign" and blocks == 0:
                if depth == 0 and word == b",":
                    return None
                if depth == 0 and word == b";":
                    return index
                depth += (word in (b"(", b"{", b"[")) - (word in (b")", b"}", b"]"))
            index += 1
        return index

    def _callee(self, first: int, stop: int) -> bytes | None:
        """The called expression, `a.b` for example, if the whole expression is one call."""
        depth = blocks = 0
        last_call = -1
        for index in range(first, stop):
            token = self._tokens[index]
            word = token.word
            if token.kind == "name" and word in OPENS:
                blocks += 1
            elif token.kind == "name" and word in CLOSES:
                blocks -= 1
            if blocks:
                continue
            if depth == 0 and word in OPERATORS:
                return None
            if word in (b"(", b"{", b"["):
                if depth == 0 and word != b"[" and index > first:
                    last_call = index
                depth += 1
            elif word in (b")", b"}", b"]"):
                depth -= 1
            elif depth == 0 and token.kind in ("text", "long") and index > first:
                last_call = index
        if last_call < 0 or self._tokens[stop - 1].word == b"]" or self._tokens[stop - 1].kind == "name":
            return None
        return b"".join([token.word for token in self._tokens[first:last_call]])
