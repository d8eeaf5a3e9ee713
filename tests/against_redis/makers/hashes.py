"""Random requests about hashes and the times of expiry of their fields."""

from typing import ClassVar

from tests.against_redis.makers.sets import COUNTS, chosen
from tests.against_redis.makers.shared import FAR_MS, Maker, Row, elements_of
from tests.support.random_words import Request
from tests.support.wire import Array, Value

TIMES = (str(FAR_MS), str(FAR_MS), str(FAR_MS), str(FAR_MS + 100_000), "1", "0", "1600000000000")
WRONG_TIMES = ("-1", "x", "", "70368744177664", "70368744177663", "9223372036854775807")
FLOATS = ("1", "0.1", "-2.5", "3e2", "1e17", "1e-17", "0x10", "inf", "nan", "x", "", "-0.0", "1e400")


class Hashes(Maker):
    """Hashes of a dozen fields, some of which expire: long before or long after the comparison."""

    kind = "hashes"
    unordered: ClassVar[frozenset[str]] = frozenset(["HKEYS", "HVALS"])
    pairwise: ClassVar[frozenset[str]] = frozenset(["HGETALL"])
    scans: ClassVar[dict[str, bool]] = {"HSCAN": True}
    by_chance: ClassVar[frozenset[str]] = frozenset(["HRANDFIELD"])

    def rows(self) -> list[Row]:
        return [
            (12, "HSET", self.hset), (2, "HSETNX", self.hsetnx), (8, "HGET", self.asked), (5, "HDEL", self.hdel),
            (4, "HINCRBY", self.hincrby), (3, "HINCRBYFLOAT", self.hincrbyfloat), (2, "HSCAN", self.hscan),
            (2, "HRANDFIELD", self.hrandfield), (9, "HPEXPIREAT", self.expire), (5, "HPEXPIRETIME", self.times),
            (3, "HPERSIST", self.hpersist), (3, "HGETDEL", self.hgetdel), (4, "HGETEX", self.hgetex),
            (6, "HSETEX", self.hsetex),
        ]  # fmt: skip

    def field(self) -> str:
        return self.of("f1", "f2", "f3", "f4", "a", "1", self.value())

    def pair(self) -> Request:
        return [self.field(), self.value()]

    def pairs(self, most: int = 5) -> Request:
        return [word for _ in range(self.chance.randrange(1, most + 1)) for word in self.pair()]

    def hset(self) -> Request:
        return [self.of("HSET", "HSET", "HMSET"), self.key(), *self.pairs()]

    def hsetnx(self) -> Request:
        return ["HSETNX", self.key(), *self.pair()]

    def asked(self) -> Request:
        key = self.key()
        return self.chance.choice((
            ["HGET", key, self.field()], ["HMGET", key, *self.some(self.field)], ["HGETALL", key], ["HKEYS", key],
            ["HVALS", key], ["HLEN", key], ["HSTRLEN", key, self.field()], ["HEXISTS", key, self.field()],
        ))  # fmt: skip

    def hdel(self) -> Request:
        return ["HDEL", self.key(), *self.some(self.field)]

    def hincrby(self) -> Request:
        increment = self.of("9223372036854775807", "-9223372036854775808", *[self.number() for _ in range(8)])
        return ["HINCRBY", self.key(), self.of("n", "n", self.field()), increment]

    def hincrbyfloat(self) -> Request:
        return ["HINCRBYFLOAT", self.key(), self.of("n", "x", self.field()), self.of(*FLOATS)]

    def hscan(self) -> Request:
        match = self.maybe(0.3, "MATCH", self.of("*", "f*", "?", "[a-c]"))
        return ["HSCAN", self.key(), "0", "COUNT", "1000", *match]

    # -- times ------------------------------------------------------------------------------------------------------

    def time(self) -> str:
        return self.of(*TIMES) if self.chance.random() < 0.93 else self.of(*WRONG_TIMES)

    def fields(self, most: int = 4) -> Request:
        fields = self.some(self.field, most)
        return [self.cased("FIELDS"), self.counted(len(fields)), *fields]

    def counted(self, count: int) -> str:
        return str(count) if self.chance.random() < 0.95 else self.number()

    def expiration(self, keeping: str) -> Request:
        roll = self.chance.random()
        if roll < 0.4:
            return []
        if roll < 0.55:
            return [keeping]
        if roll < 0.6:
            return [self.of("EX", "PX", "EXAT"), self.of("0", "-1", "x")]
        if roll < 0.63:
            return ["EXAT", str(FAR_MS // 1000)]
        return [self.cased("PXAT"), self.time(), *self.maybe(0.05, keeping)]

    def expire(self) -> Request:
        condition = self.maybe(0.5, self.cased(self.of("NX", "XX", "GT", "LT", "GT", "LT", "FOO")))
        options = self.shuffled(condition, self.fields(), self.maybe(0.03, "LT"))
        if self.chance.random() < 0.1:
            return ["HEXPIREAT", self.key(), self.of(str(FAR_MS // 1000), "1", "0", "x"), *options]
        if self.chance.random() < 0.05:
            return [self.of("HEXPIRE", "HPEXPIRE"), self.key(), self.of("0", "-1", "x"), *options]
        return ["HPEXPIREAT", self.key(), self.time(), *options]

    def times(self) -> Request:
        return [self.of("HPEXPIRETIME", "HPEXPIRETIME", "HEXPIRETIME"), self.key(), *self.fields()]

    def hpersist(self) -> Request:
        return ["HPERSIST", self.key(), *self.fields()]

    def hgetdel(self) -> Request:
        return ["HGETDEL", self.key(), *self.fields(2)]

    def hgetex(self) -> Request:
        return ["HGETEX", self.key(), *self.shuffled(self.expiration("PERSIST"), self.fields())]

    def hsetex(self) -> Request:
        """No field twice: of that, with a time, Redis 8.6.3 dies where the hash is large."""
        given = {self.field(): self.value() for _ in range(self.chance.randrange(1, 4))}
        pairs = [word for pair in given.items() for word in pair]
        fields = [self.cased("FIELDS"), self.counted(len(pairs) // 2), *pairs]
        existence = self.maybe(0.4, self.cased(self.of("FNX", "FXX")))
        return ["HSETEX", self.key(), *self.shuffled(existence, self.expiration("KEEPTTL"), fields)]

    # -- chance -----------------------------------------------------------------------------------------------------

    def hrandfield(self) -> Request:
        return ["HRANDFIELD", self.key(), *self.maybe(0.6, self.of(*COUNTS), *self.maybe(0.5, "WITHVALUES"))]

    def look(self, request: Request) -> Request:
        return ["HGETALL", request[1]]

    def without_chance(self, request: Request, reply: Value, held: Value) -> Value:
        known = elements_of(held)
        pairs = [Array((field, value)) for field, value in zip(known[::2], known[1::2], strict=True)]
        repeats = len(request) > 2 and request[2].startswith("-")
        if len(request) < 4 or not isinstance(reply, Array):
            return chosen(reply, known[::2], repeats)
        if not any(isinstance(one, Array) for one in reply.elements):  # RESP2: flat
            flat = reply.elements
            reply = Array(tuple(Array((field, value)) for field, value in zip(flat[::2], flat[1::2], strict=True)))
        return chosen(reply, list(pairs), repeats)
