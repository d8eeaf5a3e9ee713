"""Which functions of a library may begin in place: those that count their steps, as scripts do, and that keep nothing.

What the locals of a library hold is there from one call to the next. A function may use those that are once for all a
number, a text, or a function of the library that may begin in place itself: so nothing can grow
from call to call. Other code that could change what a name stands for is looked for in the whole text.
"""

from typing import Final

from penstock.engine.scripting.quick_code import MOST_STEPS, Counts, readable
from penstock.engine.scripting.script_source import KEYWORDS, OPENS, OPERATORS, Change, Token

PAIRS: Final = {b")": b"(", b"]": b"[", b"}": b"{"}
LITERALS: Final = frozenset((b"nil", b"true", b"false"))
LONGEST: Final = 4000  # bytes of a text that a local holds


def judged(text: bytes) -> tuple[dict[int, int], list[Change]]:
    """How many steps a function of a library may take in place, by the line in which it begins (see quick_code.judged).

    Also the changes of the text that they need for it. Lines without a function are left out; of several functions in
    a line the fewest steps count. A function begins in the lines from its first word to its parameters. If LuaJIT may
    number the lines of the text in another way, no function may run in place. O(length of the text) for each function
    that calls a later one.
    """
    found = readable(text) if b"\r" not in text else None
    places = None if found is None else places_of(found)
    if found is None or places is None:
        return {}, []
    counts = Counts(found)
    if not counts.walk():
        return {}, []
    functions = outermost_functions(found)
    quick = _quick_functions(found, places, functions)
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
        own_steps = MOST_STEPS if index in quick else 0
        for each in range(line, last_line + 1):
            steps[each] = min(own_steps, steps.get(each, own_steps))
    return steps, counts.all_changes()


class _Function:
    """A function that stands in no other one: its name if it is a local's, and its tokens from the parameters on."""

    __slots__ = ("first", "name", "stop")

    def __init__(self, found: list[Token], index: int) -> None:
        self.name = b""
        at = index + 1
        before = [token.word for token in found[max(index - 3, 0) : index]]
        if before[-1:] == [b"local"] and found[at].kind == "name":
            self.name = found[at].word
            at += 1
        elif before[-1:] == [b"="] and before[:1] == [b"local"]:
            self.name = before[1]
        self.first = at
        depth, at = 1, index + 1
        while depth and at < len(found):
            word = found[at].word if found[at].kind == "name" else b""
            depth += (word in OPENS) - (word in (b"end", b"until"))
            at += 1
        self.stop = at - 1  # the place of its `end`


def outermost_functions(found: list[Token]) -> dict[int, _Function]:
    """The functions that stand in no other one, by the place of their first word."""
    functions: dict[int, _Function] = {}
    end = -1
    for index, token in enumerate(found):
        if token.word == b"function" and index > end:
            functions[index] = function = _Function(found, index)
            end = function.stop
    return functions


def places_of(found: list[Token]) -> list[bytes] | None:
    """The innermost open bracket at each token: `(`, `[` or `{`; empty among statements.

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


def _quick_functions(found: list[Token], places: list[bytes], functions: dict[int, _Function]) -> set[int]:
    """The places of the functions that use nothing that may change."""
    names = _Names(found, places, functions)
    quick = set(functions)
    unclear = names.changing | (names.declared - names.fixed - {each.name for each in functions.values()})
    while True:
        for index in [*quick]:
            function = functions[index]
            for at in range(function.first, function.stop):
                token = found[at]
                if token.word in unclear and token.kind == "name" and not _is_field(found, places, at):
                    quick.discard(index)
                    break
        lost = {functions[index].name for index in functions if index not in quick} - {b""} - unclear
        if not lost:
            return quick
        unclear |= lost  # functions that call these are looked at again


class _Names:
    """The locals of a library outside of its functions.

    fixed: those declared as a number, a text, nil, true or false; changing: those that are declared
    twice, set, or perhaps set.
    """

    __slots__ = ("changing", "declared", "fixed")

    def __init__(self, found: list[Token], places: list[bytes], functions: dict[int, _Function]) -> None:
        self.declared: set[bytes] = set()
        self.fixed: set[bytes] = set()
        self.changing: set[bytes] = set()
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
                if token.word == b"local" and len(names) == 1 and _is_fixed(found, index + 2):
                    self.fixed.add(names[0])
        self.changing |= {
            token.word
            for index, token in enumerate(found)
            if token.word in self.declared and token.kind == "name" and not _is_read(found, places, index)
        }

    def _declare(self, name: bytes) -> None:
        if name in self.declared:
            self.changing.add(name)
        self.declared.add(name)


def names_from(found: list[Token], at: int) -> list[bytes]:
    """Names with commas between them, from a place on."""
    names: list[bytes] = []
    while at < len(found) and found[at].kind == "name" and found[at].word not in KEYWORDS:
        names.append(found[at].word)
        if at + 1 >= len(found) or found[at + 1].word != b",":
            break
        at += 2
    return names


def _is_fixed(found: list[Token], at: int) -> bool:
    """Whether `= value` stands there, a literal, and nothing goes on with the value."""
    if at + 1 >= len(found) or found[at].word != b"=":
        return False
    value = found[at + 1]
    after = found[at + 2] if at + 2 < len(found) else None
    ends = after is None or (after.kind == "name" and after.word not in OPERATORS) or after.word == b";"
    is_literal = value.kind in ("number", "text", "long") or value.word in LITERALS
    return ends and is_literal and len(value.word) <= LONGEST


def _is_field(found: list[Token], places: list[bytes], index: int) -> bool:
    """Whether a name is a field's: `x.name`, or `{name = 1}`."""
    return found[index - 1].word in (b".", b":") or (places[index] == b"{" and found[index + 1].word == b"=")


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
