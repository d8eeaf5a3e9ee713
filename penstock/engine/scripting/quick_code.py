"""Adds code to a script that counts its steps, so that it may begin in place.

Each turn of a loop counts, each call of a function of the script, and each string that is joined by `..`. Anything else
that may take long is a function of ours, which counts its own cost (guard.lua: `spend`, `leave_place`). So nothing has
to be known about the functions that a script calls. The counting code is put into the text; no line moves.
"""

from typing import Final

from penstock.engine.scripting.script_source import KEYWORDS, LARGEST, Change, Malformed, Token, tokens

MOST_STEPS: Final = 20_000  # of 100 ns or so, each as much as a byte that is read: two milliseconds
LEFT: Final = b"__left"  # the steps that a text may take before it asks for more, by the name that it has there
JOINED: Final = b"__joined"  # guard.joined
TURNS: Final = b"__turn_of_a_loop"  # guard.turns, as a global: a local more makes each function of a text dearer
BEGIN_COUNTING: Final = b"local %b, %b = 0, %b; " % (LEFT, JOINED, JOINED)
COUNT: Final = b" %b = %b - %%d; if %b < 0 then %b = %b(%b); end; " % (LEFT, LEFT, LEFT, LEFT, TURNS, LEFT)
UNCOUNTABLE: Final = frozenset((LEFT, TURNS, JOINED, b"_G"))  # names by which a text could find what counts
STEPS_OF: Final = {b"(": 10, b"...": 100}  # what a token takes, in steps: a call, a list of values of any length
VALUE_ENDS: Final = frozenset((b")", b"]", b"}", b"...", b"end", b"nil", b"true", b"false"))
STATEMENTS: Final = frozenset((b"do", b"for", b"function", b"if", b"local", b"repeat", b"return", b"while"))
IN_OPERANDS: Final = frozenset((b"end", b"false", b"function", b"nil", b"not", b"true"))  # keywords
SEPARATORS: Final = frozenset((b",", b";", b"=", b"==", b"~=", b"<", b">", b"<=", b">="))  # that bind less than `..`


def judged(text: bytes) -> tuple[int, list[Change]]:
    """How many steps a script may take in place (guard.lua), and how many bytes it may be given; 0: it never may.

    And the changes of its text without which it may not. O(length of the text).
    """
    found = readable(text)
    counts = None if found is None else Counts(found)
    if counts is None or not counts.walk() or counts.steps > MOST_STEPS:
        return 0, []
    return MOST_STEPS, counts.all_changes()


def readable(text: bytes) -> list[Token] | None:
    """The tokens of a text that may count its steps."""
    try:
        found = tokens(text) if len(text) <= LARGEST else None
    except Malformed:  # Lua says why
        return None
    if found is None or any(token.word in UNCOUNTABLE for token in found):
        return None
    return found


class _Operands:
    """Operands with no operator between them that binds less than `..`. first: the place of the first token.

    begins_statement: they are the beginning of one, where nothing can be joined: Lua refuses that.
    """

    __slots__ = ("begins_statement", "first", "is_joined")

    def __init__(self, first: int, begins_statement: bool) -> None:
        self.first = first
        self.begins_statement = begins_statement
        self.is_joined = False


class _Block:
    """A block that is open. first: the place of its first token; count_at: where its count is put, -1 for none.

    steps: of the text before it; loops: the same of each `for` and `while` that waits for its `do`; operands: what is
    being read, in each bracket that is open.
    """

    __slots__ = ("count_at", "first", "loops", "opening", "operands", "steps")

    def __init__(self, opening: bytes, first: int, count_at: int, steps: int) -> None:
        self.opening = opening
        self.first = first
        self.count_at = count_at
        self.steps = steps
        self.loops: list[int] = []
        self.operands = [_Operands(first, True)]


class Counts:
    """Reads the tokens once. What does not fit together is for Lua to refuse."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self.steps = 0  # that the text takes, read once from first to last
        self._changes: list[Change] = []
        self._blocks = [_Block(b"", 0, -1, 0)]

    def all_changes(self) -> list[Change]:
        return [(0, 0, BEGIN_COUNTING), *self._changes] if self._changes else []

    def walk(self) -> bool:
        """Whether the text could be read to its end."""
        index, size = 0, len(self._tokens)
        while index < size:
            token = self._tokens[index]
            if self._begins_statement(index):
                self._end_operands(index, index, True)
            if token.word == b"function":
                index = self._begin_function(index)
                continue
            if token.kind == "name":
                if token.word in KEYWORDS and not self._read_keyword(index, token):
                    return False
            elif token.kind == "sign" and not self._read_sign(index, token.word):
                return False
            self.steps += STEPS_OF.get(token.word, 1)
            index += 1
        self._end_operands(size, size)
        return len(self._blocks) == 1

    def _read_keyword(self, index: int, token: Token) -> bool:
        word, block = token.word, self._blocks[-1]
        after = token.place + len(word)
        if word not in IN_OPERANDS:
            self._end_operands(index, index + 1, word == b"break")
        if word in (b"for", b"while"):
            block.loops.append(self.steps)
        elif word == b"do" and block.loops:
            self._blocks.append(_Block(b"do", index + 1, after, block.loops.pop()))
        elif word == b"repeat":
            self._blocks.append(_Block(b"repeat", index + 1, after, self.steps))
        elif word in (b"do", b"then"):
            self._blocks.append(_Block(word, index + 1, -1, 0))
        elif word in (b"end", b"until", b"else", b"elseif"):
            self._end_operands(index, index)
            if len(self._blocks) == 1 or (word == b"until") is not (block.opening == b"repeat"):
                return False
            self._blocks.pop()
            if block.count_at >= 0:
                self._changes.append((block.count_at, block.count_at, COUNT % (self.steps - block.steps + 1)))
            if word == b"else":
                self._blocks.append(_Block(b"then", index + 1, -1, 0))
            elif word != b"end":
                self._blocks[-1].operands[-1] = _Operands(index + 1, False)
        return True

    def _begin_function(self, index: int) -> int:
        """Read a function's head; where its body begins."""
        while index < len(self._tokens) and self._tokens[index].word != b")":
            index += 1
        after = self._tokens[min(index, len(self._tokens) - 1)].place + 1
        self._blocks.append(_Block(b"function", index + 1, after, self.steps))
        return index + 1

    def _read_sign(self, index: int, word: bytes) -> bool:
        operands = self._blocks[-1].operands
        if word == b"..":
            operands[-1].is_joined = True
        elif word in (b"(", b"[", b"{"):
            operands.append(_Operands(index + 1, False))
        elif word in (b")", b"]", b"}"):
            self._end_operands(index, index)
            operands.pop()
            return bool(operands)
        elif word in SEPARATORS:
            self._end_operands(index, index + 1, word == b";")
        return True

    def _begins_statement(self, index: int) -> bool:
        """Whether a statement begins here, and the one before it, if any, ended without a word."""
        token = self._tokens[index]
        if token.kind != "name" or index == self._blocks[-1].first:
            return False
        if token.word in KEYWORDS and token.word not in STATEMENTS:
            return False
        if token.word == b"do" and self._blocks[-1].loops:
            return False
        before = self._tokens[index - 1]
        is_value = before.kind in ("number", "text", "long") or before.word in VALUE_ENDS
        return is_value or (before.kind == "name" and before.word not in KEYWORDS)

    def _end_operands(self, stop: int, after: int, is_statement: bool = False) -> None:
        """Have operands that end before a token counted, if they are joined. after: where the next ones may begin.

        is_statement: whether these are the beginning of a statement.
        """
        operands = self._blocks[-1].operands
        ended = operands[-1]
        if ended.is_joined and not ended.begins_statement:
            last = self._tokens[stop - 1]
            begin, end = self._tokens[ended.first].place, last.place + len(last.word)
            self._changes += ((begin, begin, JOINED + b"("), (end, end, b")"))
        operands[-1] = _Operands(after, is_statement)
