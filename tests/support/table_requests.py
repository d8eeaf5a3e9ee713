"""Requests made from the command table: what a row declares decides their form, a vocabulary their words.

    requests = TableRequests(random.Random(1), PLAIN_WORDS)
    requests.of_command("XACK")     ["XACK", "s", "g", "1-0", "5"]
    requests.of_command("XADD")     options in any order, as often as the vocabulary says

A test of requests of another kind (of one type, beside a real Redis, for a moving clock) brings a vocabulary.
"""

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from penstock.commands.registry import table
from penstock.engine.table import command_syntax
from penstock.engine.table.argument_tree import Argument
from penstock.engine.table.client_compat import ONLY_VALKEY
from penstock.engine.table.row import Row
from tests.support.random_words import RandomWords, Request

Words: TypeAlias = Sequence[str] | Callable[[Request], str]
"""Some words to choose from, or what makes one of the request so far."""

COUNTS: Final = ("numkeys", "numids", "numfields")  # each tells how often the argument behind it comes
COUNTED: Final = ("weight",)  # as often as the keys before it
OPTIONAL: Final = 0.4
RIGHT_COUNT: Final = 0.95


@dataclass(slots=True)
class Vocabulary:
    """What arguments are filled with.

    words: by "COMMAND argument", or argument, or the argument's type; the first that is there.
    chances: how likely an optional argument is, by "COMMAND TOKEN" (or its name), or TOKEN alone; else OPTIONAL. Of
    the members of a choice it is the weight; else 1.
    most: how often an argument is repeated at most, by "COMMAND argument"; else `repeated`.
    version: options that came later are left out.
    first: options that stand before all others, as "COMMAND TOKEN".
    """

    words: dict[str, Words]
    chances: dict[str, float | Callable[[Request], float]] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    repeated: int = 3
    version: tuple[int, int, int] = (99, 0, 0)
    first: tuple[str, ...] = ()


PLAIN_WORDS: Final = Vocabulary({
    "key": ("s", "s", "n", "text", "nokey"),
    "group": ("g", "g", "nog"),
    "consumer": ("alice", "bob"),
    "id": ("1-0", "2-0", "5", "0", "$", ">", "zz"),
    "start": ("-", "1-0", "(1-0"),
    "end": ("+", "3-0"),
    "pattern": ("*", "s*", "[", "no"),
    "integer": ("0", "1", "2", "10", "-1", "x", "9223372036854775807"),
    "double": ("1", "1.5", "x"),
    "unix-time": ("1", "1795300001", "1795300100000", "-5"),
    "string": ("a", "1", "", "x y", "\x00\r\n", "v" * 300),
})  # fmt: skip


class TableRequests(RandomWords):
    """Requests of every command."""

    right_count: float = RIGHT_COUNT  # how likely a number of arguments is that of those that follow
    given_twice: float = 0.0  # how likely an option is to come once more, in the same place or another

    def __init__(self, chance: random.Random, vocabulary: Vocabulary = PLAIN_WORDS) -> None:
        super().__init__(chance)
        self.vocabulary = vocabulary
        self._row_name = ""
        self._count = 0  # how often the last counted argument came

    def of_command(self, name: str) -> Request:
        """A request that the table allows, of a command or subcommand ("XGROUP|CREATE")."""
        return self.of_row(rows_by_name()[name])

    def of_row(self, row: Row) -> Request:
        self._row_name = row.name
        request = row.name.split("|")
        self._add_all(request, _arguments(row.syntax))
        return request

    def valid(self, row: Row) -> list[bytes]:
        """As bytes, each character one."""
        return [word.encode("latin-1") for word in self.of_row(row)]

    def broken_of(self, row: Row) -> list[bytes]:
        """A request with a word missing, doubled, moved or replaced, at times with bytes that are no text."""
        words = [word.encode("latin-1") for word in self.broken(self.of_row(row))]
        if self.chance.random() < 0.05:
            words[self.chance.randrange(len(words))] = b"\xff\x00"
        return words

    # -- the form ---------------------------------------------------------------------------------------------------

    def _add_all(self, request: Request, arguments: list[Argument]) -> None:
        """A sequence: options that begin with a token come in any order."""
        count_at = -1
        repeated = 0
        for argument in self._shuffled_options(arguments):
            if argument.optional and not self._is_chosen(argument, request):
                continue
            if argument.name in COUNTS:
                count_at = len(request)
            if not argument.multiple:
                self._add(request, argument)
                continue
            if argument.name not in COUNTED and not (repeated and argument.token is None):
                self._count = self.chance.randrange(1, self._most(argument) + 1)
            repeated = self._count if self.chance.random() < self.right_count else self._count + 1
            for turn in range(repeated):
                self._add(request, argument, has_token=turn == 0 or argument.multiple_token)
            if count_at >= 0:
                if self.chance.random() < self.right_count:
                    request[count_at] = str(repeated)
                count_at = -1

    def _shuffled_options(self, arguments: list[Argument]) -> Iterator[Argument]:
        options: list[Argument] = []
        for argument in arguments:
            if argument.optional and begins_with_token(argument):
                options.append(argument)
                continue
            yield from self._shuffled(options)
            options = []
            yield argument
            if begins_with_token(argument) and not argument.multiple and self._is_given_twice():
                yield argument
        yield from self._shuffled(options)

    def _is_given_twice(self) -> bool:
        return self.given_twice > 0 and self.chance.random() < self.given_twice

    def _shuffled(self, options: list[Argument]) -> list[Argument]:
        if options and self._is_given_twice():
            options.append(self.chance.choice(options))
        self.chance.shuffle(options)
        options.sort(key=lambda one: f"{self._row_name} {one.token}" not in self.vocabulary.first)
        return options

    def _add(self, request: Request, argument: Argument, has_token: bool = True) -> None:
        if argument.token is not None and has_token:
            request.append(self.cased(argument.token.strip('"')))
        if argument.type == "oneof":
            choices = [one for one in argument.arguments if self._is_known(one)]
            weights = [self._chance_of(one, request, 1) for one in choices]
            self._add(request, self.chance.choices(choices, weights)[0])
        elif argument.type == "block":
            self._add_all(request, argument.arguments)
        elif argument.type != "pure-token":
            request.append(self.word_for(argument, request))

    def _is_chosen(self, argument: Argument, request: Request) -> bool:
        if argument.type == "oneof" and not any(map(self._is_known, argument.arguments)):
            return False
        return self._is_known(argument) and self.chance.random() < self._chance_of(argument, request, OPTIONAL)

    def _chance_of(self, argument: Argument, request: Request, otherwise: float) -> float:
        chances = self.vocabulary.chances
        name = argument.token or argument.name
        found = chances.get(f"{self._row_name} {name}", chances.get(name, otherwise))
        return found(request) if callable(found) else found

    def _is_known(self, argument: Argument) -> bool:
        if argument.came.startswith(ONLY_VALKEY):
            return False
        since = argument.since.lstrip("-")
        return not since or tuple(map(int, since.split("."))) <= self.vocabulary.version

    def _most(self, argument: Argument) -> int:
        return self.vocabulary.most.get(f"{self._row_name} {argument.name}", self.vocabulary.repeated)

    # -- the words --------------------------------------------------------------------------------------------------

    def word_for(self, argument: Argument, request: Request) -> str:
        words = self.vocabulary.words
        for name in (f"{self._row_name} {argument.name}", argument.name.lower(), argument.type, "string"):
            found = words.get(name)
            if found is not None:
                return found(request) if callable(found) else self.chance.choice(found)
        raise KeyError(f"no words for {argument.name} of {self._row_name}")


def begins_with_token(argument: Argument) -> bool:
    if argument.token is not None:
        return True
    if argument.type == "oneof":
        return all(map(begins_with_token, argument.arguments))
    return argument.type == "block" and begins_with_token(argument.arguments[0])


def option_names(name: str) -> list[str]:
    """The optional arguments of a command, as the chances of a vocabulary name them."""
    return [one.token or one.name for one in _arguments(rows_by_name()[name].syntax) if one.optional]


@functools.cache
def _arguments(syntax: str) -> list[Argument]:
    return command_syntax.parse(syntax)


@functools.cache
def rows_by_name() -> dict[str, Row]:
    """Every command and subcommand that has a handler."""
    return {
        one.name: one for row in table().values() for one in (row, *row.subcommands.values()) if not one.is_container
    }
