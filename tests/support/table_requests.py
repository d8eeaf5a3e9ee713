"""Requests made from the command table itself: one for every row, valid by its declaration, and broken ones."""

import random

from penstock.engine.table import command_syntax
from penstock.engine.table.argument_tree import Argument
from penstock.engine.table.row import Row

WORDS = {
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
}


class TableRequests:
    """Requests from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def valid(self, row: Row) -> list[bytes]:
        """A request that the row's declaration allows."""
        words = row.name.split("|")
        for argument in command_syntax.parse(row.syntax):
            words += self.words_of(argument)
        return [word.encode("latin-1") for word in words]

    def broken(self, row: Row) -> list[bytes]:
        """A request with a word missing, doubled, moved or replaced."""
        words = self.valid(row)
        at = self.chance.randrange(len(words))
        kind = self.chance.randrange(4)
        if kind == 0:
            return words[:at] or words
        if kind == 1:
            return [*words, words[at]]
        if kind == 2:
            first = len(row.name.split("|"))
            rest = words[first:]
            self.chance.shuffle(rest)
            return [*words[:first], *rest]
        junk = self.chance.choice((b"", b"-1", b"zz", b"\xff\x00", b"99999999999999999999"))
        return [*words[:at], junk, *words[at + 1 :]]

    def words_of(self, argument: Argument) -> list[str]:
        if argument.optional and self.chance.random() < 0.6:
            return []
        words: list[str] = []
        for turn in range(self.chance.randrange(1, 4) if argument.multiple else 1):
            if argument.token is not None and (turn == 0 or argument.multiple_token):
                words.append(argument.token.strip('"'))
            words += self.value_of(argument)
        return words

    def value_of(self, argument: Argument) -> list[str]:
        if argument.type == "pure-token":
            return []
        if argument.type == "oneof":
            return self.words_of(self.chance.choice(argument.arguments))
        if argument.type == "block":
            return [word for inner in argument.arguments for word in self.words_of(inner)]
        words = WORDS.get(argument.name.lower()) or WORDS.get(argument.type) or WORDS["string"]
        return [self.chance.choice(words)]
