"""Random expressions in Lua 5.1, over the locals that a script has declared."""

# ruff: noqa: E501  (scripts as they are written)
import random
from collections.abc import Sequence
from typing import Final, TypeVar

from tests.scripts import vocabulary

T = TypeVar("T")

DEEPEST: Final = 4
WRONG_KINDS: Final = (0.0, 0.0, 0.01, 0.05)  # of expressions that are of another kind than is wanted, by script


class Expressions:
    """Expressions of a kind, as in vocabulary.SIGNATURES, from one source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._kinds: dict[str, str] = {}  # of the locals in reach
        self._made = 0
        self._shows = False
        self._in_loop = False
        self._in_library = False
        self._wrong = chance.choice(WRONG_KINDS)

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind: as in vocabulary.SIGNATURES, and O for a condition."""
        if kind == "G":
            return self._reader()
        if kind in "Kk":  # where a large one would take for ever
            return self._of(vocabulary.SMALL)
        if self._happens(self._wrong):
            kind = self._chance.choice("NSTLFVO")
        if kind in "nsiuvcf":
            kind = kind.upper()
        name = self._local_of(kind)
        if name and self._happens(0.45):
            return name
        if kind == "V":
            return self.expression(self._chance.choice("NNSSSTLLO0F" if self._happens(0.2) else "NNSSSTLLO0"), depth)
        return getattr(self, f"_expression_{kind}")(depth)  # type: ignore[no-any-return]  # one of those below

    def _expression_0(self, depth: int) -> str:
        return self._of(("nil", "true", "false", "cjson.null", "nil"))

    def _expression_N(self, depth: int) -> str:  # noqa: N802  (the kinds are capitals)
        if depth >= DEEPEST or self._happens(0.35):
            return self._of(vocabulary.NUMBERS)
        shape = self._chance.random()
        if shape < 0.35:
            operator = self._of(("+", "-", "*", "/", "%", "^"))
            return f"({self.expression('N', depth + 1)} {operator} {self.expression(self._of(('N', 'S')) if self._wrong else 'N', depth + 1)})"
        if shape < 0.45:
            return (
                f"#{self.expression('S', depth + 1)}" if self._happens(0.5) else f"#({self.expression('L', depth + 1)})"
            )
        if shape < 0.5:
            return f"-({self.expression('N', depth + 1)})"
        if shape < 0.58:
            return f"({self.expression('O', depth + 1)} and {self.expression('N', depth + 1)} or {self.expression('N', depth + 1)})"
        return self._called(depth, "N")

    def _expression_I(self, depth: int) -> str:  # noqa: N802
        return self._of(vocabulary.SMALL) if self._happens(0.85) else self._expression_N(depth)

    def _expression_U(self, depth: int) -> str:  # noqa: N802
        return self._of(("0", "1", "7", "255", "65535", "2^31", "2^32-1", "12345678"))

    def _expression_C(self, depth: int) -> str:  # noqa: N802
        return (
            self._of(("0", "65", "97", "255", "10", "256", "-1"))
            if self._happens(0.3)
            else str(self._chance.randrange(256))
        )

    def _expression_S(self, depth: int) -> str:  # noqa: N802
        if depth >= DEEPEST or self._happens(0.4):
            return self._of(vocabulary.STRINGS) if self._happens(0.85) else self._given()
        shape = self._chance.random()
        if shape < 0.3:
            return f"({self.expression('S', depth + 1)} .. {self.expression(self._of(('S', 'S', 'N')), depth + 1)})"
        if shape < 0.4:
            method = self._of(
                (
                    "upper()",
                    "lower()",
                    "len()",
                    "rep(2)",
                    "reverse()",
                    "sub(2)",
                    "sub(-2)",
                    "byte(1)",
                    "find('a')",
                    "nosuch()",
                )
            )
            return f"({self.expression('S', depth + 1)}):{method}"
        if shape < 0.5:
            layout, wanted = self._of(vocabulary.FORMATS)
            return f"string.format({', '.join([layout, *(self.expression(one, depth + 1) for one in wanted)])})"
        return self._called(depth, "S")

    def _expression_Q(self, depth: int) -> str:  # noqa: N802
        return self._of(("'plain'", r"'q\"q'", r"'back\\slash'"))

    def _given(self) -> str:
        if self._in_library:
            return (
                self._of(("args[1]", "args[2]", "keys[1]", "#args", "keys[5]")) if "args" in self._kinds else "'none'"
            )
        return self._of(("ARGV[1]", "ARGV[2]", "KEYS[1]", "ARGV[9]", "#ARGV", "KEYS[2]"))

    def _expression_P(self, depth: int) -> str:  # noqa: N802
        return self._of(vocabulary.PATTERNS)

    def _expression_R(self, depth: int) -> str:  # noqa: N802
        return self._of(vocabulary.REPLACEMENTS)

    def _expression_B(self, depth: int) -> str:  # noqa: N802
        return self._of(vocabulary.LAYOUTS)

    def _expression_M(self, depth: int) -> str:  # noqa: N802
        return (
            self._of(vocabulary.PACKED) if self._happens(0.7) else f"cmsgpack.pack({self.expression('V', depth + 1)})"
        )

    def _expression_J(self, depth: int) -> str:  # noqa: N802
        return f"'{self._of(vocabulary.JSON)}'"

    def _expression_L(self, depth: int) -> str:  # noqa: N802
        if depth >= DEEPEST:
            return self._of(("{}", "{1, 2, 3}", "{'a'}"))
        kinds = self._of(("N", "S", "NS", "V")) if self._happens(0.85) else "L"
        return (
            "{"
            + ", ".join(
                self.expression(self._chance.choice(kinds), depth + 1) for _ in range(self._chance.randrange(4))
            )
            + "}"
        )

    def _expression_T(self, depth: int) -> str:  # noqa: N802
        """A table with one hash key at most, so that no order of keys is told."""
        if depth >= DEEPEST:
            return self._of(("{}", "{a=1}", "{[1]=1}"))
        shape = self._chance.random()
        if shape < 0.3:
            return self._expression_L(depth)
        if shape < 0.6:
            name = self._of(("a", "b", "x", "['k k']", "[1]", "[0]", "[-1]", "[1.5]", "['1']", "[true]", "[2]"))
            return f"{{{name}={self.expression('V', depth + 1)}}}"
        if shape < 0.8:
            return f"cjson.decode({self._expression_J(depth)})"
        return self._called(depth, "T")

    def _expression_F(self, depth: int) -> str:  # noqa: N802
        return self._of(
            (
                "function() end", "function(a) return a end", "function(...) return ... end", "string.upper", "math.floor", "type", "redis.call",
                "redis.pcall", f"function(a, b) return {self.expression('V', max(depth + 1, 3))} end", "function() error('inner') end", "error", "cjson.encode",
                "coroutine.yield", "pcall", "unpack", "next",
            )
        )  # fmt: skip

    def _reader(self) -> str:
        """A function for load, which must end one day."""
        return self._of(
            (
                "function() end", "function() return '' end", "function() return {} end", "function() error('in reader') end", "function() error({}) end",
                "(function() local piece = 'return 5' return function() local one = piece piece = nil return one end end)()", "'return 1'", "5",
                "(function() local piece = 'x y' return function() local one = piece piece = nil return one end end)()",
                "coroutine.wrap(function() coroutine.yield('return ') coroutine.yield('1, ...') end)",
            )
        )  # fmt: skip

    def _expression_O(self, depth: int) -> str:  # noqa: N802
        if depth >= DEEPEST:
            return self._of(("true", "false", "nil", "1 < 2", "'a' < 'b'"))
        shape = self._chance.random()
        if shape < 0.4:
            kind = self._of(("N", "S", "N", "V"))
            operator = (
                self._of(("==", "~="))
                if kind == "V" and self._happens(0.9)
                else self._of(("==", "~=", "<", "<=", ">", ">="))
            )
            return f"({self.expression(kind, depth + 1)} {operator} {self.expression(kind, depth + 1)})"
        if shape < 0.6:
            return f"(not {self.expression('V', depth + 1)})"
        if shape < 0.8:
            return f"({self.expression('V', depth + 1)} {self._of(('and', 'or'))} {self.expression('V', depth + 1)})"
        return self._of(("true", "false", "nil", "1"))

    def _called(self, depth: int, answers: str = "") -> str:
        """A call of a library's function; `answers`: the kind that it should answer."""
        fitting = [
            one for one in vocabulary.SIGNATURES
            if (not answers or one[2] == answers) and (self._wrong or one[0] not in vocabulary.OFTEN_REFUSED)
        ]  # fmt: skip
        name, takes, _ = self._of(tuple(fitting))
        if takes == "fmt":
            return self._expression_S(min(depth, DEEPEST - 1))
        given = [
            self.expression(kind, depth + 1) for kind in takes if kind.isupper() or self._happens(0.3)
        ]  # an optional one may be left out amid others: then the next takes its place
        if given and self._happens(0.02):
            given.pop()
        return f"{name}({', '.join(given)})"

    # -- chance -------------------------------------------------------------------------------------------------------

    def _fresh(self) -> str:
        self._made += 1
        return f"v{self._made}"

    def _local_of(self, kind: str) -> str:
        fitting = [
            name for name, held in self._kinds.items() if kind == "V" or held == kind or (kind == "T" and held == "L")
        ]
        return self._chance.choice(fitting) if fitting else ""

    def _some_locals(self) -> list[str]:
        return [name for name in self._kinds if self._happens(0.6)][-4:]

    def _happens(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _of(self, choices: Sequence[T]) -> T:
        return self._chance.choice(choices)
