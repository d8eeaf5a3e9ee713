"""Random requests about sorted sets."""

from typing import ClassVar

from tests.against_redis.makers.shared import OWN, Maker, Row, elements_of
from tests.support.random_words import Request
from tests.support.table_requests import Vocabulary, Words
from tests.support.wire import Array, Bulk, Integer, Value

SCORES = (
    "0", "0", "0", "1", "1", "2", "2", "3", "-1", "-2", "10", "1.5", "0.1", "-0", "-0.0", "inf",
    "-inf", "+inf", "1e21", "1e-7", "3.14159", "1e308", "-1e308", "5e-324", "0x10", "1057664960376728.8",
    "9007199254740993", "4611686018427387905", ".5", "5.",
)  # fmt: skip
WRONG_SCORES = ("nan", "x", "", " 1", "1e400", "1e-400", "(1", "1_0", "0x", "-nan")
BOUNDS = (
    "-inf",
    "+inf",
    "inf",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "(0",
    "(1",
    "(2",
    "(-1",
    "1.5",
    "(inf",
    "(-inf",
    "1e400",
    "",
    "(",
)
WRONG_BOUNDS = ("x", "nan", "(x", "[1", "0x10", " 1", "((1")
LEX_BOUNDS = ("-", "+", "-", "+", "[a", "(a", "[b", "(b", "[c", "(c", "[", "(", "[aa", "(aa", "[ab", "[zz", "(1", "[2")
WRONG_LEX_BOUNDS = ("a", "", "--", "+a", "*")
EVEN = ("even", "even2")  # keys of sets in which all scores are 0: for others Redis promises no order of bytes
WHOLE = "scan"  # a word that keeps a request from being broken
TIMEOUTS = ("0", "0", "0.1", "1e-3", "-1", "-0.0001", "x", "inf", "nan", "1e30", "")


class SortedSets(Maker):
    """Sorted sets of a few dozen members at most, many of equal scores; plain sets where both may stand."""

    kind = "sortedsets"
    scans: ClassVar[dict[str, bool]] = {"ZSCAN": True}
    by_chance: ClassVar[frozenset[str]] = frozenset(["ZRANDMEMBER"])
    blocking: ClassVar[frozenset[str]] = frozenset(["BZPOPMIN", "BZPOPMAX", "BZMPOP"])

    weights: ClassVar[dict[str, int]] = {
        "ZADD": 16, "ZINCRBY": 2, "ZREM": 4, "ZCARD": 1, "ZSCORE": 2, "ZMSCORE": 2, "ZRANK": 1, "ZREVRANK": 1,
        "ZCOUNT": 3, "ZREVRANGE": 2, "ZRANGEBYSCORE": 2, "ZREVRANGEBYSCORE": 2, "ZREMRANGEBYRANK": 2,
        "ZREMRANGEBYSCORE": 2, "ZPOPMIN": 2, "ZPOPMAX": 2, "ZMPOP": 3, "BZPOPMIN": 1, "BZPOPMAX": 1, "BZMPOP": 1,
        "ZUNION": 4, "ZINTER": 4, "ZDIFF": 2, "ZUNIONSTORE": 2, "ZINTERSTORE": 2, "ZDIFFSTORE": 1, "ZINTERCARD": 2,
        "ZRANDMEMBER": 3, "ZSCAN": 2,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        number = self.word(self.number)
        combined: dict[str, Words] = {
            f"{name} key": self.word(self.source)
            for name in ("ZUNION", "ZINTER", "ZDIFF", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE", "ZINTERCARD")
        }
        return Vocabulary(
            combined
            | {
                "key": self.word(self.key), "destination": self.word(self.key), "member": self.word(self.member),
                "score": self.word(self.score), "increment": self.word(self.score), "weight": self.word(self.score),
                "min": self.word(self.bound), "max": self.word(self.bound), "timeout": TIMEOUTS, "integer": number,
                "cursor": ("0",), "ZSCAN count": ("1000",), "pattern": ("*", "a*", "?", "[ab]*"),
            },
            {"ZSCAN COUNT": 1, "condition": 0.2, "comparison": 0.2, "CH": 0.1, "INCR": 0.15, "count": 0.5,
             "options": 0.8, "WITHSCORE": 0.3},
            {"ZADD data": 5},
        )  # fmt: skip

    def rows(self) -> list[Row]:
        """Beyond the table: ranges with fitting ends and options, and sets of one score, which have an order."""
        return [
            *super().rows(), (6, "ZADD", self.even), (8, "ZLEXCOUNT", self.lex_ranges), (10, "ZRANGE", self.zrange),
            (4, "ZRANGESTORE", self.zrangestore), (1, "OBJECT", self.encoding), (2, "SADD", self.plain_sets),
        ]  # fmt: skip

    # -- words ------------------------------------------------------------------------------------------------------

    def member(self) -> str:
        return self.of("a", "b", "c", "d", "aa", "ab", "1", "2", "3", self.value())

    def score(self) -> str:
        roll = self.chance.random()
        if roll < 0.02:
            return self.of(*WRONG_SCORES)
        if roll < 0.1:
            return repr(self.chance.uniform(-1, 1) * 10.0 ** self.chance.randrange(-12, 25))
        return self.of(*SCORES)

    def bound(self) -> str:
        return self.of(*WRONG_BOUNDS) if self.chance.random() < 0.03 else self.of(*BOUNDS)

    def lex_bound(self) -> str:
        return self.of(*WRONG_LEX_BOUNDS) if self.chance.random() < 0.03 else self.of(*LEX_BOUNDS)

    def source(self) -> str:
        """A key of something that can be combined."""
        return self.of(*OWN["sets"]) if self.chance.random() < 0.2 else self.key()

    def limit(self) -> Request:
        return [self.cased("LIMIT"), self.number(), self.number()]

    # -- requests ---------------------------------------------------------------------------------------------------

    def even(self) -> Request:
        """What is done to sets of equal scores."""
        key, member = self.of(*EVEN), self.of("a", "aa", "ab", "b", "c", "d", "", "B", "x" * 70)
        return self.chance.choice((
            ["ZADD", key, "0", member, "0", self.of("a", "b", "c", "d", "e"), "0", WHOLE],
            ["ZADD", key, "0", member, "0", WHOLE],
            ["ZREM", key, member], [self.of("ZPOPMIN", "ZPOPMAX"), key], ["ZCARD", key], ["COPY", *EVEN, "REPLACE"],
            ["ZREMRANGEBYLEX", key, self.lex_bound(), self.lex_bound()],
        ))  # fmt: skip

    def lex_ranges(self) -> Request:
        key, low, high = self.of(*EVEN, *EVEN, "never"), self.lex_bound(), self.lex_bound()
        options = self.shuffled(self.maybe(0.4, self.cased("REV")), ["BYLEX"], self.maybe(0.5, *self.limit()))
        return self.chance.choice((
            ["ZRANGE", key, low, high, *options, *self.maybe(0.05, "WITHSCORES")],
            ["ZRANGESTORE", self.of(*EVEN, self.key()), key, low, high, *options],
            ["ZRANGEBYLEX", key, low, high, *self.maybe(0.4, *self.limit())],
            ["ZREVRANGEBYLEX", key, low, high, *self.maybe(0.4, *self.limit())],
            ["ZLEXCOUNT", key, low, high],
        ))  # fmt: skip

    def ends(self) -> Request:
        """The ends of a range with the words that say of what kind it is."""
        roll = self.chance.random()
        reverse = self.maybe(0.4, self.cased("REV"))
        if roll < 0.5:
            ends, options = [self.number(), self.number()], [reverse, self.maybe(0.04, *self.limit())]
        else:
            ends, options = [self.bound(), self.bound()], [reverse, ["BYSCORE"], self.maybe(0.5, *self.limit())]
        return [*ends, *self.shuffled(*options)]

    def zrange(self) -> Request:
        return ["ZRANGE", self.key(), *self.ends(), *self.maybe(0.4, self.cased("WITHSCORES"))]

    def zrangestore(self) -> Request:
        return ["ZRANGESTORE", self.key(), self.key(), *self.ends()]

    def plain_sets(self) -> Request:
        return [self.of("SADD", "SADD", "SREM"), self.of(*OWN["sets"], "any"), *self.some(self.member)]

    def encoding(self) -> Request:
        return ["OBJECT", "ENCODING", self.key()]

    # -- what chance decides ----------------------------------------------------------------------------------------

    def look(self, request: Request) -> Request:
        return ["ZRANGE", request[1], "0", "-1", "WITHSCORES"]

    def without_chance(self, request: Request, reply: Value, held: Value) -> Value:
        """How many were drawn, and in which form; each must be there, none twice unless the count is below 0."""
        pairs = _pairs(held)
        if isinstance(reply, Bulk):
            assert reply in [pair[0] for pair in pairs], "no such member"
            return Bulk(b"a member")
        if not isinstance(reply, Array):
            return reply
        drawn = _pairs(reply) if len(request) == 4 else [(member,) for member in reply.elements]
        there = pairs if len(request) == 4 else [pair[:1] for pair in pairs]
        assert all(one in there for one in drawn), "something was drawn that is not there"
        assert request[2].startswith("-") or len(set(drawn)) == len(drawn), "something was drawn twice"
        return Array((Integer(len(drawn)), Integer(len(reply.elements))))


def _pairs(reply: Value) -> list[tuple[Value, ...]]:
    """Members and their scores, flat (RESP2) or nested (RESP3)."""
    elements = elements_of(reply)
    if elements and isinstance(elements[0], Array):
        return [pair.elements for pair in elements if isinstance(pair, Array)]
    return list(zip(elements[::2], elements[1::2], strict=True))


class ManyMembers(SortedSets):
    """The same with sets of up to some hundred members."""

    def rows(self) -> list[Row]:
        return [*super().rows(), (12, "ZADD", self.fill), (2, "ZREMRANGEBYRANK", self.cut)]

    def member(self) -> str:
        return super().member() if self.chance.random() < 0.3 else f"member:{self.chance.randrange(1100)}"

    def fill(self) -> Request:
        first, step = self.chance.randrange(900), self.of("0", "1", "-2.5")
        scores = [repr(number * float(step)) for number in range(self.chance.choice((3, 60, 150)))]
        words = [word for number, score in enumerate(scores, first) for word in (score, f"member:{number}")]
        return ["ZADD", self.of(*EVEN) if step == "0" else self.key(), *words, "0", WHOLE]

    def cut(self) -> Request:
        return ["ZREMRANGEBYRANK", self.key(), "100", "-20"]
