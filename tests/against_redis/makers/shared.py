"""What all makers of random requests share: their chance, their keys, and words of every kind.

A maker knows one type of value. It makes requests of every command of the type, with all options; one in twenty is
broken afterwards by the frame (tests/against_redis/typed.py). A seed gives the same requests again.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final, TypeAlias

from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.table_requests import TableRequests, Vocabulary, Words
from tests.support.wire import Array, Map, Set, Value

Row: TypeAlias = tuple[int, str, Callable[[], Request]]  # weight, the command that must be known, its maker

OWN: Final[dict[str, tuple[str, ...]]] = {  # keys by type; nothing but chance keeps another type away from them
    "strings": ("t1", "t2", "t3", "n1"),
    "lists": ("l1", "l2", "l3"),
    "hashes": ("h1", "h2", "h3"),
    "sets": ("s1", "s2", "s3", "s4"),
    "sortedsets": ("z1", "z2", "z3", "z4"),
    "streams": ("x1",),
}
SHARED: Final = ("any", "any2")  # where all types meet
MISSING: Final = "nokey"
FAR_MS: Final = 9_000_000_000_000
VALUES: Final = (
    "a", "b", "c", "d", "e", "f", "g", "aa", "ab", "", "1", "2", "3", "-5", "007", "1.5", "a b", "x" * 70,
    "9223372036854775807", "n\0n", "a\r\nb",
)  # fmt: skip
NUMBERS: Final = ("0", "1", "2", "3", "-1", "-2", "-3", "5", "10", "-100", "100")
WRONG_NUMBERS: Final = ("x", "", "1.5", "9223372036854775808", "-9223372036854775809", " 1", "+1", "01")


class Maker(TableRequests):
    """Requests about one type of value, from one source of chance, for a server of which it is known what it knows.

    kind: the name of its keys in OWN.
    weights: how often each command with a form by the table is asked; `words` fills it. `rows` adds what the table
    does not say.
    unordered: commands with elements of the reply in no order (SMEMBERS, HKEYS).
    pairwise: commands with pairs without an order as their reply: flat in RESP2 (HGETALL).
    scans: commands that answer a cursor and elements without an order; True: in pairs. Send them with COUNT 1000.
    by_chance: commands with a reply, or an effect, by chance. They are sent alone, never inside MULTI.
    blocking: commands that may wait: sent inside MULTI alone, where nothing waits.
    """

    given_twice = 0.03
    kind: ClassVar[str]
    weights: ClassVar[dict[str, int]] = {}
    unordered: ClassVar[frozenset[str]] = frozenset()
    pairwise: ClassVar[frozenset[str]] = frozenset()
    scans: ClassVar[dict[str, bool]] = {}
    by_chance: ClassVar[frozenset[str]] = frozenset()
    blocking: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, chance: random.Random, known: Known) -> None:
        super().__init__(chance)
        self.known = known
        self.vocabulary = self.words()
        self.vocabulary.version = known.version

    def words(self) -> Vocabulary:
        """What fills the requests of `weights`."""
        return Vocabulary({})

    def rows(self) -> list[Row]:
        """What it makes, and how often; commands that the reference does not know are left out by the frame."""
        return [(weight, name, partial(self.of_command, name)) for name, weight in self.weights.items()]

    # -- what chance decides ----------------------------------------------------------------------------------------

    def look(self, request: Request) -> Request:
        """For a request in `by_chance`: one that shows what there is to choose from (["SMEMBERS", key])."""
        raise NotImplementedError

    def without_chance(self, request: Request, reply: Value, held: Value) -> Value:
        """A reply with chance taken out; AssertionError says what is wrong. `held`: what `look` showed just before."""
        raise NotImplementedError

    def mended(self, request: Request, theirs: Value, ours: Value) -> list[Request]:
        """What Penstock is asked after both have answered, so that both hold the same again (SPOP: SADD, SREM)."""
        return []

    # -- words ------------------------------------------------------------------------------------------------------

    def word(self, made: Callable[[], str]) -> Words:
        """Words of a vocabulary that do not depend on the request."""
        return lambda _: made()

    def key(self) -> str:
        """A key of the maker's own, mostly."""
        roll = self.chance.random()
        if roll < 0.88:
            return self.of(*OWN[self.kind])
        if roll < 0.96:
            return self.of(*SHARED)
        return self.of(MISSING, *OWN[self.of(*OWN)])

    def value(self) -> str:
        return self.of(*VALUES)

    def number(self) -> str:
        """A small integer; one in thirty is none."""
        return self.of(*NUMBERS) if self.chance.random() < 0.97 else self.of(*WRONG_NUMBERS)


def elements_of(reply: Value) -> list[Value]:
    """The elements of an array, set or map (a map's: name, value, name, value); none of anything else."""
    if isinstance(reply, Array | Set):
        return list(reply.elements)
    if isinstance(reply, Map):
        return [word for pair in reply.pairs for word in pair]
    return []
