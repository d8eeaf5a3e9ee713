"""Which functions of a library may begin in place: those that a script of the same words might, and that keep nothing.

A function may use its own locals, numbers and texts that the library's locals are once for all, and call what scripts
may (quick_code.py) and the library's functions that stand before it. So no call comes back to where it began, and no
value outlives a call: nothing can grow from one to the next. Whoever else could change what a name stands for is looked
for in the whole text.
"""

from typing import Final

from penstock.engine.scripting.quick_code import QUICK_WORDS, Weight, counting, turns, weight_of
from penstock.engine.scripting.script_source import (
    KEYWORDS,
    LARGEST,
    OPENS,
    OPERATORS,
    Change,
    Malformed,
    Token,
    tokens,
)

PAIRS: Final = {b")": b"(", b"]": b"[", b"}": b"{"}
LITERALS: Final = frozenset((b"nil", b"true", b"false"))


def judged(text: bytes) -> tuple[dict[int, int], list[Change]]:
    """How many steps a function of a library may take in place, by the line in which it begins (see quick_code.judged).

    And what makes the loops of such functions count their turns, without which they may not. Lines without a function
    are left out; of several functions in a line the fewest steps count. A function begins in the lines from its first
    word to its parameters. A text in which LuaJIT may count other lines has none that may. O(length of the text).
    """
    try:
        found = tokens(text) if len(text) <= LARGEST and b"\r" not in text else None
    except Malformed:  # Lua says why
        found = None
    places = None if found is None else places_of(found)
    if found is None or places is None:
        return {}, []
    functions = outermost_functions(found, places)
    names = _Names(found, places, functions)
    if not QUICK_WORDS.isdisjoint(names.declared):
        return {}, []
    changes: list[Change] = []
    weights: dict[bytes, Weight | None] = {}  # of functions with a name, in the order of the text
    steps: dict[int, int] = {}
    line, counted = 1, 0
    for index, token in enumerate(found):
        if token.word != b"function":
            continue
        line, counted = line + text.count(b"\n", counted, token.place), token.place
        to_parameters = index + 1
        while found[to_parameters].word != b"(" and to_parameters + 1 < len(found):
            to_parameters += 1
        last_line = line + text.count(b"\n", counted, found[to_parameters].place)
        own_steps = 0
        function = functions.get(index)
        if function is not None:
            weight = function.weight(names, weights)
            if function.name:
                weights[function.name] = weight if names.is_kept(function.name) else None
            if weight is not None and weight.steps():
                own_steps = weight.steps()
                changes += turns(found, function.first, function.stop, weight.size, weights)
        for each in range(line, last_line + 1):
            steps[each] = min(own_steps, steps.get(each, own_steps))
    return steps, counting(changes)


def outermost_functions(found: list[Token], places: list[bytes]) -> "dict[int, _Function]":
    """The functions that stand in no other one, by the place of their first word."""
    functions: dict[int, _Function] = {}
    end = -1
    for index, token in enumerate(found):
        if token.word == b"function" and index > end:
            functions[index] = function = _Function(found, places, index)
            end = function.stop
    return functions


def places_of(found: list[Token]) -> list[bytes] | None:
    """What each token stands in: the bracket `(`, `[` or `{` that is open, or empty among statements.

    None where brackets and blocks do not match.
    """
    places: list[bytes] = []
    open_ones: list[bytes] = []
    for token in found:
        word = token.word
        if token.kind not in ("name", "sign"):
            places.append(open_ones[-1] if open_ones else b"")
            continue
        closes = word in PAIRS or word in (b"end", b"until")
        if closes and (not open_ones or open_ones.pop() != PAIRS.get(word, b"")):
            return None
        places.append(open_ones[-1] if open_ones else b"")
        if word in (b"(", b"[", b"{"):
            open_ones.append(word)
        elif word in OPENS:
            open_ones.append(b"")
    return None if open_ones else places


class _Names:
    """The locals of a library outside of its functions, and which of them stand for the same from first to last."""

    __slots__ = ("_changing", "declared", "literals")

    def __init__(self, found: list[Token], places: list[bytes], functions: "dict[int, _Function]") -> None:
        self.declared: set[bytes] = set()
        self.literals: dict[bytes, int] = {}  # that are a number, a text, nil, true or false: how many bytes
        self._changing: set[bytes] = set()  # set, declared again, or handed on in a way that is not looked into
        end = -1
        for index, token in enumerate(found):
            if index in functions:
                function = functions[index]
                end = function.stop
                if found[index - 1].word == b"local":
                    self._declare(function.name)  # the others are declared by their `local`
            elif token.word in (b"local", b"for") and index > end:
                names = names_from(found, index + 1)
                for name in names:
                    self._declare(name)
                if token.word == b"local" and len(names) == 1 and _is_literal(found, index + 2):
                    self.literals[names[0]] = len(found[index + 3].word)
        for index, token in enumerate(found):
            if token.kind == "name" and token.word in self.declared and not _is_read(found, places, index):
                self._changing.add(token.word)

    def _declare(self, name: bytes) -> None:
        if name in self.declared:
            self._changing.add(name)
        self.declared.add(name)

    def is_kept(self, name: bytes) -> bool:
        """Whether a name stands for what it was declared as, wherever it is read."""
        return name not in self._changing


class _Function:
    """A function that stands in no other one: its name if it is a local's, its parameters, and its body's tokens."""

    __slots__ = ("_found", "_places", "first", "index", "is_clear", "name", "parameters", "stop")

    def __init__(self, found: list[Token], places: list[bytes], index: int) -> None:
        self._found = found
        self._places = places
        self.index = index
        self.name = b""
        at = index + 1
        before = [token.word for token in found[max(index - 3, 0) : index]]
        if before[-1:] == [b"local"] and found[at].kind == "name":
            self.name = found[at].word
            at += 1
        elif before[-1:] == [b"="] and before[:1] == [b"local"]:
            self.name = before[1]
        self.is_clear = found[at].word == b"("  # else it is kept in a table or a global
        self.parameters = names_from(found, at + 1)
        self.first = at + 1 + max(2 * len(self.parameters), 1)
        self.is_clear = self.is_clear and found[min(self.first, len(found)) - 1].word == b")"
        depth, at = 1, index + 1
        while depth and at < len(found):
            word = found[at].word if found[at].kind == "name" else b""
            depth += (word in OPENS) - (word in (b"end", b"until"))
            at += 1
        self.stop = at - 1  # the place of its `end`

    def weight(self, names: _Names, weights: dict[bytes, Weight | None]) -> Weight | None:
        """What a call of it may do; None where nobody knows. weights: of the functions before it."""
        found, first, stop = self._found, self.first, self.stop
        own = {*self.parameters}
        size = found[stop].place - found[self.index].place
        for index in range(first, stop):
            word = found[index].word
            if word == b"function":
                return None
            if word in (b"local", b"for"):
                own.update(names_from(found, index + 1))
        if not self.is_clear or own & names.declared or not QUICK_WORDS.isdisjoint(own):
            return None
        for index in range(first, stop):
            token = found[index]
            if token.kind != "name" or token.word in KEYWORDS or token.word in own or token.word in QUICK_WORDS:
                continue
            if found[index - 1].word in (b".", b":") or self._is_field(index):
                continue
            is_called = found[index + 1].word == b"(" and weights.get(token.word) is not None
            if not names.is_kept(token.word) or not (is_called or token.word in names.literals):
                return None
            size += names.literals.get(token.word, 0)
        return weight_of(found, first, stop, size, weights)

    def _is_field(self, index: int) -> bool:
        """Whether it is a field's name in a table that is written there: `{x = 1}`."""
        return self._places[index] == b"{" and self._found[index + 1].word == b"="


def names_from(found: list[Token], at: int) -> list[bytes]:
    """Names with commas between them, from a place on."""
    names: list[bytes] = []
    while at < len(found) and found[at].kind == "name" and found[at].word not in KEYWORDS:
        names.append(found[at].word)
        if at + 1 >= len(found) or found[at + 1].word != b",":
            break
        at += 2
    return names


def _is_literal(found: list[Token], at: int) -> bool:
    """Whether `= value` stands there and nothing goes on with the value."""
    if at + 1 >= len(found) or found[at].word != b"=":
        return False
    value = found[at + 1]
    after = found[at + 2] if at + 2 < len(found) else None
    ends = after is None or (after.kind == "name" and after.word not in OPERATORS) or after.word == b";"
    return ends and (value.kind in ("number", "text", "long") or value.word in LITERALS)


def _is_read(found: list[Token], places: list[bytes], index: int) -> bool:
    """Whether a name is declared alone, called or read there, or is a field's; not set, or perhaps set."""
    before = found[index - 1].word if index else b""
    after = found[index + 1].word if index + 1 < len(found) else b""
    if before == b"function":
        return index >= 2 and found[index - 2].word == b"local"  # else it is set to that function
    if before in (b".", b":"):
        return True
    if before == b"local":
        return after != b","
    if places[index]:
        return True  # a value among others, a parameter, or a field's name
    return before not in (b",", b"for") and after not in (b"=", b",", b"in")
