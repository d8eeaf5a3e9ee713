r"""Parses an extended regular expression of POSIX into a tree.

As the library of Redis 8.8 (TRE) also: `\w \W \s \S \d \D`, `\b \B \< \>`, `\t \n \r \f \a \e`, `\x41`, `\x{41}`.
Bytes are compared, and the letters of a class are those of ASCII.
"""

import string
from enum import Enum
from typing import Final

from penstock.errors import ReplyError

UNBOUND: Final = -1
MOST_REPEATED: Final = 255
MOST_NESTED: Final = 50  # groups
DEEPEST: Final = 200  # parts of parts
OPERATORS: Final = frozenset(b"*+?")
REPEATING: Final = frozenset(b"*+?{")
NAMED: Final = frozenset(b":.=")  # what may follow a second opening bracket
WORD: Final = frozenset((string.ascii_letters + string.digits + "_").encode())
DIGITS: Final = frozenset(string.digits.encode())
SPACES: Final = frozenset(b" \t\n\r\f\v")
GRAPHIC: Final = frozenset(range(33, 127))
EVERY: Final = frozenset(range(256))
CLASSES: Final[dict[bytes, frozenset[int]]] = {
    b"alnum": WORD - {ord("_")},
    b"alpha": frozenset(string.ascii_letters.encode()),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset([*range(32), 127]),
    b"digit": DIGITS,
    b"graph": GRAPHIC,
    b"lower": frozenset(string.ascii_lowercase.encode()),
    b"print": GRAPHIC | {32},
    b"punct": GRAPHIC - WORD | {ord("_")},
    b"space": SPACES,
    b"upper": frozenset(string.ascii_uppercase.encode()),
    b"xdigit": frozenset(string.hexdigits.encode()),
}
ESCAPED_CLASSES: Final[dict[int, frozenset[int]]] = {
    ord("w"): WORD, ord("W"): EVERY - WORD, ord("s"): SPACES, ord("S"): EVERY - SPACES,
    ord("d"): DIGITS, ord("D"): EVERY - DIGITS,
}  # fmt: skip
CONTROLS: Final = {ord("t"): 9, ord("n"): 10, ord("r"): 13, ord("f"): 12, ord("a"): 7, ord("e"): 27}


class Kind(Enum):
    """The kind of a part of an expression."""

    ONE_OF = "one of these bytes"
    ALL = "one part behind the other"
    ANY = "any one of the parts"
    REPEATED = "the part, so many times"
    BEGIN = "^"
    END = "$"
    EDGE = r"\b"
    NO_EDGE = r"\B"
    WORD_BEGIN = r"\<"
    WORD_END = r"\>"


PLACES: Final = {  # escapes that ask where in the text it is
    ord("b"): Kind.EDGE, ord("B"): Kind.NO_EDGE, ord("<"): Kind.WORD_BEGIN, ord(">"): Kind.WORD_END,
}  # fmt: skip


class Expression:
    """A part of an expression, with its own parts."""

    __slots__ = ("accepted", "depth", "kind", "least", "most", "parts")

    def __init__(self, kind: Kind, parts: "list[Expression] | None" = None) -> None:
        self.kind = kind
        self.parts: list[Expression] = parts or []
        self.depth: int = max([part.depth for part in self.parts], default=0) + 1
        if self.depth > DEEPEST:
            raise _refusal(b"nested too deeply")
        self.accepted: frozenset[int] = frozenset()  # of ONE_OF
        self.least = self.most = 1  # of REPEATED; most may be UNBOUND


def parsed(pattern: bytes, no_case: bool) -> Expression:
    """ReplyError where a pattern is none. no_case: it is for texts in lower case, and takes those in any case."""
    return _Parser(pattern, no_case).whole()


def _refusal(text: bytes) -> ReplyError:
    return ReplyError(b"ERR invalid regular expression: %b" % text)


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: bytes, no_case: bool) -> None:
        self._pattern = pattern
        self._no_case = no_case
        self._at = 0
        self._nested = 0

    def whole(self) -> Expression:
        found = self._choice()
        if self._at < len(self._pattern):
            raise _refusal(b"Missing '('")
        return found

    def _next(self) -> int:
        """The next byte; -1 at the end."""
        return self._pattern[self._at] if self._at < len(self._pattern) else -1

    def _choice(self) -> Expression:
        parts = [self._sequence()]
        while self._next() == ord("|"):
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Expression(Kind.ANY, parts)

    def _sequence(self) -> Expression:
        parts: list[Expression] = []
        while self._next() not in (-1, ord("|"), ord(")")):
            parts.append(self._repeated(self._atom()))
        return Expression(Kind.ALL, parts)

    def _repeated(self, part: Expression) -> Expression:
        """A part with the operators behind it."""
        while (operator := self._next()) in REPEATING:
            self._at += 1
            found = Expression(Kind.REPEATED, [part])
            if operator == ord("{"):
                found.least, found.most = self._bounds()
            else:
                found.least = 1 if operator == ord("+") else 0
                found.most = 1 if operator == ord("?") else UNBOUND
            part = found
        return part

    def _bounds(self) -> tuple[int, int]:
        """The numbers between braces: {2}, {2,}, {2,5}, {,5}."""
        end = self._pattern.find(b"}", self._at)
        if end < 0:
            raise _refusal(b"Missing '}'")
        first, comma, last = self._pattern[self._at : end].partition(b",")
        self._at = end + 1
        if not all(not word or (word.isdigit() and len(word) < 4) for word in (first, last)) or not (first or last):
            raise _refusal(b"Invalid contents of {}")
        least = int(first or 0)
        most = least if not comma else int(last) if last else UNBOUND
        if max(least, most) > MOST_REPEATED or (most != UNBOUND and most < least):
            raise _refusal(b"Invalid contents of {}")
        return least, most

    def _atom(self) -> Expression:
        byte = self._next()
        if byte in OPERATORS:
            raise _refusal(b"Invalid use of repetition operators")
        self._at += 1
        if byte == ord("("):
            return self._group()
        if byte == ord("["):
            return self._one_of(self._bracket())
        if byte == ord("."):
            return self._one_of(EVERY)
        if byte == ord("^"):
            return Expression(Kind.BEGIN)
        if byte == ord("$"):
            return Expression(Kind.END)
        return self._escaped() if byte == ord("\\") else self._one_of(frozenset((byte,)))

    def _group(self) -> Expression:
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise _refusal(b"nested too deeply")
        found = self._choice()
        if self._next() != ord(")"):
            raise _refusal(b"Missing ')'")
        self._at += 1
        self._nested -= 1
        return found

    def _one_of(self, accepted: frozenset[int]) -> Expression:
        found = Expression(Kind.ONE_OF)
        found.accepted = self._in_any_case(accepted)
        return found

    def _in_any_case(self, accepted: frozenset[int]) -> frozenset[int]:
        return accepted | frozenset(bytes(accepted).swapcase()) if self._no_case else accepted

    # -- escapes ----------------------------------------------------------------------------------------------------

    def _escaped(self) -> Expression:
        byte = self._next()
        if byte < 0:
            raise _refusal(b"Trailing backslash")
        self._at += 1
        if byte in DIGITS and byte != ord("0"):
            raise ReplyError(b"ERR regular expression backreferences are not supported")
        if byte in PLACES:
            return Expression(PLACES[byte])
        if byte == ord("x"):
            return self._one_of(frozenset((self._hexadecimal(),)))
        return self._one_of(ESCAPED_CLASSES.get(byte, frozenset((CONTROLS.get(byte, byte),))))

    def _hexadecimal(self) -> int:
        """Up to two digits, or some in braces."""
        if self._next() == ord("{"):
            end = self._pattern.find(b"}", self._at)
            if end < 0:
                raise _refusal(b"Missing '}'")
            digits = self._pattern[self._at + 1 : end]
            self._at = end + 1
        else:
            digits = b""
            while len(digits) < 2 and self._next() in CLASSES[b"xdigit"]:
                digits += self._pattern[self._at : self._at + 1]
                self._at += 1
        if not set(digits) <= CLASSES[b"xdigit"] or len(digits) > 2:
            raise _refusal(b"Invalid regexp")
        return int(digits or b"0", 16)

    # -- brackets ---------------------------------------------------------------------------------------------------

    def _bracket(self) -> frozenset[int]:
        is_negated = self._next() == ord("^")
        self._at += is_negated
        begin = self._at
        accepted: set[int] = set()
        while self._next() != ord("]") or self._at == begin:
            first = self._element()
            if isinstance(first, frozenset):
                accepted |= first
            elif self._pattern[self._at : self._at + 1] == b"-" and self._pattern[self._at + 1 : self._at + 2] != b"]":
                self._at += 1
                last = self._element()
                if isinstance(last, frozenset) or last < first:
                    raise _refusal(b"Invalid character range")
                accepted.update(range(first, last + 1))
            else:
                accepted.add(first)
        self._at += 1
        found = self._in_any_case(frozenset(accepted))
        return EVERY - found if is_negated else found

    def _element(self) -> int | frozenset[int]:
        """A byte of a bracket, or a class of them."""
        byte = self._next()
        if byte < 0:
            raise _refusal(b"Missing ']'")
        self._at += 1
        kind = self._next()
        if byte != ord("[") or kind not in NAMED:
            return byte
        end = self._pattern.find(bytes((kind, ord("]"))), self._at + 1)
        if end < 0:
            raise _refusal(b"Missing ']'")
        name = self._pattern[self._at + 1 : end]
        self._at = end + 2
        if kind == ord(":"):
            if name not in CLASSES:
                raise _refusal(b"Unknown character class name")
            return CLASSES[name]
        if len(name) != 1:
            raise _refusal(b"Unknown collating element")
        return name[0]
