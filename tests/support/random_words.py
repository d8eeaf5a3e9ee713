"""Words of random requests, from one source of chance: what all generators of requests share."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

Request: TypeAlias = list[str]

JUNK: Final = (
    "", "x", "-1", "0", "1", "+5", "05", "9223372036854775808", "-", "+", "*", "$", ">", "(", "1-1-1", "LIMIT", "COUNT",
    "STREAMS", "~", "=", "a\r\nb", "n\0n", "18446744073709551615", "x" * 130,
)  # fmt: skip


class RandomWords:
    """Draws words. A seeded `chance` gives the same words again; Hypothesis's own makes them as plain as it can."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.junk: Sequence[str] = JUNK

    def of(self, *words: str) -> str:
        return self.chance.choice(words)

    def maybe(self, probability: float, *words: str) -> Request:
        return list(words) if self.chance.random() < probability else []

    def some(self, word: Callable[[], str], most: int = 4) -> Request:
        """From one to so many words."""
        return [word() for _ in range(self.chance.randrange(1, most + 1))]

    def shuffled(self, *options: Request) -> Request:
        """The options' words, the options in any order."""
        order = list(options)
        self.chance.shuffle(order)
        return [word for option in order for word in option]

    def cased(self, word: str) -> str:
        """A token in one of its spellings."""
        return self.of(word, word, word, word.lower())

    def broken(self, request: Request, whole: Iterable[str] = ()) -> Request:
        """A request with a word too few, too many, or wrong. One with a word of `whole` stays as it is."""
        if not {word.upper() for word in request}.isdisjoint(whole):
            return request
        at = self.chance.randrange(1, len(request) + 1)
        kind = self.chance.randrange(6)
        if kind == 0 and len(request) > 1:
            return request[:-1]
        if kind == 1:
            return [*request[:at], self.of(*self.junk), *request[at:]]
        if kind == 2 and at < len(request):
            return [*request[:at], self.of(*self.junk), *request[at + 1 :]]
        if kind == 3 and at < len(request):
            return [*request[:at], *request[at + 1 :]]
        if kind == 4:
            rest = request[1:]
            self.chance.shuffle(rest)
            return [request[0], *rest]
        return [*request[:at], request[at - 1], *request[at:]]
