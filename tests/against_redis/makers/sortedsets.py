"""Random requests about sorted sets."""

from collections.abc import Callable
from typing import ClassVar

from tests.against_redis.makers.shared import OWN, Maker, Row, elements_of
from tests.support.random_words import Request
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

    def rows(self) -> list[Row]:
        return [
            (14, "ZADD", self.zadd), (6, "ZADD", self.even), (8, "ZLEXCOUNT", self.lex_ranges),
            (4, "ZINCRBY", self.zincrby), (4, "ZREM", self.zrem), (6, "ZSCORE", self.asked),
            (3, "ZCOUNT", self.counted), (10, "ZRANGE", self.zrange), (6, "ZRANGEBYSCORE", self.older_ranges),
            (4, "ZRANGESTORE", self.zrangestore), (4, "ZREMRANGEBYRANK", self.removal), (4, "ZPOPMIN", self.pop),
            (3, "ZMPOP", self.zmpop), (3, "BZPOPMIN", self.waiting), (10, "ZUNION", self.combination),
            (4, "ZUNIONSTORE", self.stored),
            (2, "ZINTERCARD", self.zintercard), (3, "ZRANDMEMBER", self.zrandmember), (2, "ZSCAN", self.zscan),
            (1, "OBJECT", self.encoding), (2, "SADD", self.plain_sets),
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

    def zadd(self) -> Request:
        options = [self.maybe(0.1, self.cased(name)) for name in ("NX", "XX", "GT", "LT", "CH", "INCR")]
        pairs = [word for _ in range(self.chance.randrange(1, 6)) for word in (self.score(), self.member())]
        return ["ZADD", self.key(), *self.shuffled(*options), *pairs]

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

    def zincrby(self) -> Request:
        if self.chance.random() < 0.4:
            condition = self.of("NX", "XX", "GT", "LT", "CH")
            return ["ZADD", self.key(), *self.maybe(0.5, condition), "INCR", self.score(), self.member()]
        return ["ZINCRBY", self.key(), self.score(), self.member()]

    def zrem(self) -> Request:
        return ["ZREM", self.key(), *self.some(self.member)]

    def asked(self) -> Request:
        key = self.key()
        with_score = self.maybe(0.3, self.of("WITHSCORE", "withscore", "WITHSCORES"))
        return self.chance.choice((
            ["ZCARD", key], ["ZSCORE", key, self.member()], ["ZMSCORE", key, *self.some(self.member)],
            [self.of("ZRANK", "ZREVRANK"), key, self.member(), *with_score],
        ))  # fmt: skip

    def counted(self) -> Request:
        return ["ZCOUNT", self.key(), self.bound(), self.bound()]

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

    def older_ranges(self) -> Request:
        key = self.key()
        scores, limit = self.maybe(0.4, "WITHSCORES"), self.maybe(0.4, *self.limit())
        return self.chance.choice((
            ["ZREVRANGE", key, self.number(), self.number(), *scores],
            ["ZRANGEBYSCORE", key, self.bound(), self.bound(), *self.shuffled(scores, limit)],
            ["ZREVRANGEBYSCORE", key, self.bound(), self.bound(), *self.shuffled(scores, limit)],
        ))  # fmt: skip

    def removal(self) -> Request:
        key = self.key()
        return self.chance.choice((
            ["ZREMRANGEBYRANK", key, self.number(), self.number()],
            ["ZREMRANGEBYSCORE", key, self.bound(), self.bound()],
        ))  # fmt: skip

    def pop(self) -> Request:
        return [self.of("ZPOPMIN", "ZPOPMAX"), self.key(), *self.maybe(0.5, self.number())]

    def zmpop(self) -> Request:
        return ["ZMPOP", *self._from_several()]

    def _from_several(self) -> Request:
        return [*self._numbered(self.key), self.of("MIN", "MAX", "min"), *self.maybe(0.6, "COUNT", self.number())]

    def waiting(self) -> Request:
        """What would wait: inside MULTI it does not."""
        timeout = self.of(*TIMEOUTS)
        if self.chance.random() < 0.4:
            return ["BZMPOP", timeout, *self._from_several()]
        return [self.of("BZPOPMIN", "BZPOPMAX"), *self.some(self.key, 3), timeout]

    def _numbered(self, key: Callable[[], str]) -> Request:
        keys = self.some(key, 3)
        return [self.of("0", "5", "-1", "x") if self.chance.random() < 0.04 else str(len(keys)), *keys]

    def combination(self) -> Request:
        sources = self._numbered(self.source)
        scores = self.maybe(0.5, "WITHSCORES")
        if self.chance.random() < 0.25:
            return ["ZDIFF", *sources, *scores]
        return [self.of("ZUNION", "ZINTER"), *sources, *self.shuffled(*self._reckoning(len(sources) - 1), scores)]

    def _reckoning(self, count: int) -> list[Request]:
        weights = self.maybe(0.4, "WEIGHTS", *[self.score() for _ in range(count)])
        return [weights, self.maybe(0.4, "AGGREGATE", self.of("SUM", "MIN", "MAX", "max", "FOO"))]

    def stored(self) -> Request:
        sources = self._numbered(self.source)
        if self.chance.random() < 0.25:
            return ["ZDIFFSTORE", self.key(), *sources]
        options = self.shuffled(*self._reckoning(len(sources) - 1))
        return [self.of("ZUNIONSTORE", "ZINTERSTORE"), self.key(), *sources, *options]

    def zintercard(self) -> Request:
        return ["ZINTERCARD", *self._numbered(self.source), *self.maybe(0.5, "LIMIT", self.number())]

    def zscan(self) -> Request:
        pattern = self.maybe(0.4, "MATCH", self.of("*", "a*", "?", "[ab]*"))
        return ["ZSCAN", self.key(), "0", "COUNT", "1000", *pattern]

    def plain_sets(self) -> Request:
        return [self.of("SADD", "SADD", "SREM"), self.of(*OWN["sets"], "any"), *self.some(self.member)]

    def encoding(self) -> Request:
        return ["OBJECT", "ENCODING", self.key()]

    # -- what chance decides ----------------------------------------------------------------------------------------

    def zrandmember(self) -> Request:
        return ["ZRANDMEMBER", self.key(), *self.maybe(0.8, self.number(), *self.maybe(0.5, "WITHSCORES"))]

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
