"""Requests with keys and values spelled like the options of their command, and with options that come twice.

    requests = KeyRequests(random.Random(1), ("k1", "get", "by"))
    made = requests.made_of(row)
    made.words, made.places    [b"SORT", b"by", b"STORE", b"get", b"STORE", b"k1"], [1, 3, 5]

The places are those of the words that the row's syntax calls keys: what a user must have rights on, at most.
"""

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.commands.registry import table
from penstock.engine.table import command_syntax
from penstock.engine.table.argument_tree import Argument, dated_tokens
from penstock.engine.table.row import Row
from tests.support.random_words import Request
from tests.support.table_requests import TableRequests, Vocabulary, begins_with_token

ABSENT: Final = "absent"
PLAIN_KEYS: Final = ("k1", "k2", ABSENT)
FIRST: Final = "GROUP"  # of PENSTOCK.POLICY
MOST_SPELLED: Final = 5  # keys
TWICE: Final = 0.6  # how likely an option comes twice
SPELLED_LIKE_OPTIONS: Final = 0.7
NO_WORDS: Final = ("*", "=", "~", "$", "-", "+", "", '""')  # options, but patterns of keys, too
LAST: Final = "KEYS"  # of MIGRATE: what follows are keys, in place of the empty one before
# An option of one command may be a key of another: these are everywhere.
SPREAD_OPTIONS: Final = ("STORE", "get", "Streams", "FORWARD", "deadletter", "KEYS")

POLICY: Final = "PENSTOCK.POLICY"
OF_STREAMS: Final = ("MAXLEN", "MAXAGE", "condition", "FORWARD", "AT", "AFTER", "EVERY", "MISSED")
OF_GROUPS: Final = ("ACKWAIT", "BACKOFF", "JITTER", "MAXDELIVER", "DEADLETTER", "REAP", "KEY")


def is_of_group(request: Request) -> bool:
    return "GROUP" in [word.upper() for word in request[2:3]]


GROUPS: Final = ("g", "FORWARD", "STREAMS", "count")
NUMBERS: Final = Vocabulary({
    "group": GROUPS, "XREADGROUP id": (">", "0"), "XREAD id": ("0", "1-0"), "GEORADIUSBYMEMBER member": ("m", "store"),
    "longitude": ("13",), "latitude": ("38",), "radius": ("500",), "width": ("500",), "height": ("500",),
    "count": ("1", "2", "10"), "id": ("*", "1-0", "2-0", "0", ">", "7-0"), "start": ("-", "0"), "end": ("+", "-1"),
    "timeout": ("0.001", "1"), "milliseconds": ("1", "5"), "min-idle-time": ("0", "1"), "stop": ("-1", "5"),
    "min": ("0", "-inf"), "max": ("9", "+inf"), "encoding": ("u8", "i5"), "offset": ("0", "1", "#1"),
    "integer": ("1", "0", "2"), "double": ("1", "2.5"), "unix-time": ("1795300100",), "ifdeq-digest": ("get",),
    "seconds": ("100",), "destination-db": ("0",), "db": ("1",), "maxdeliver": ("3",), "threshold": ("1",),
}, {
    LAST: lambda request: 1.0 if "" in request else 0.0,
    **{f"{POLICY} {option}": lambda request: 0.0 if is_of_group(request) else 0.3 for option in OF_STREAMS},
    **{f"{POLICY} {option}": lambda request: 0.3 if is_of_group(request) else 0.0 for option in OF_GROUPS},
    f"{POLICY} RESET": 0.05,
})  # fmt: skip
"""By argument, or type: only what must be a number, an id or the like is in here. Other words are drawn."""


@dataclass(slots=True)
class Made:
    """A request, and where its keys are."""

    words: list[bytes]
    places: list[int]

    @property
    def keys(self) -> set[bytes]:
        return {self.words[at] for at in self.places}

    def varied(self, chance: random.Random, names: tuple[str, ...]) -> "Made":
        """The same request with other keys."""
        words = [chance.choice(names).encode() if at in self.places else word for at, word in enumerate(self.words)]
        return Made(words, self.places)


class KeyRequests(TableRequests):
    """Draws them, with keys of `names`."""

    right_count = 1.0  # else other words than those that the syntax calls keys would be some

    def __init__(self, chance: random.Random, names: tuple[str, ...]) -> None:
        super().__init__(chance, NUMBERS)
        self._names = names
        self._places: list[int] = []
        self._spellings: tuple[str, ...] = ()

    def made_of(self, row: Row) -> Made:
        self._places = []
        self._spellings = spellings(row) or SPREAD_OPTIONS
        request = self.of_row(row)
        return Made([word.encode() for word in request], self._places)

    def word_for(self, argument: Argument, request: Request) -> str:
        if argument.type == "key":
            self._places.append(len(request))
            return self.of(*self._names)
        words = self.vocabulary.words
        if any(name in words for name in (f"{self._row_name} {argument.name}", argument.name, argument.type)):
            return super().word_for(argument, request)
        if self.chance.random() < SPELLED_LIKE_OPTIONS:
            return self.of(*self._spellings)
        return self.of("m", "1", "g", *self._names)

    def _shuffled_options(self, arguments: list[Argument]) -> Iterator[Argument]:
        free: list[Argument] = []
        for argument in arguments:
            if argument.token == FIRST:
                yield from [*free, argument]
                free = []
            elif argument.token != LAST:
                free += [argument] * self._times(argument)
        yield from super()._shuffled_options(free)
        yield from [argument for argument in arguments if argument.token == LAST]

    def _times(self, argument: Argument) -> int:
        is_option = argument.optional and begins_with_token(argument)
        once = self._row_name == POLICY and self.chance.random() < 0.9  # which refuses others
        return 2 if is_option and not once and self.chance.random() < TWICE else 1


@functools.cache
def spellings(row: Row) -> tuple[str, ...]:
    """The row's options, in two spellings each."""
    tokens = [token for token, _ in dated_tokens(command_syntax.parse(row.syntax)) if token not in NO_WORDS]
    return tuple(dict.fromkeys([spelled for token in tokens for spelled in (token, token.lower())]))


def names_for(chance: random.Random, row: Row) -> tuple[str, ...]:
    """Keys for requests of a row: some of them are spelled like options, its own or others."""
    options = sorted({*SPREAD_OPTIONS, *spellings(row)})
    return (*PLAIN_KEYS, *chance.sample(options, MOST_SPELLED))


def rows_with_keys() -> list[Row]:
    """Every command and subcommand that names keys."""
    every = [one for row in table().values() for one in (row, *row.subcommands.values())]
    return [
        row for row in every if row.has_keys and all(spec.is_key for spec in row.key_specs) and not row.is_container
    ]
