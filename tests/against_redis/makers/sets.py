"""Random requests about sets."""

from typing import ClassVar

from tests.against_redis.makers.shared import Maker, Row, elements_of
from tests.support.random_words import Request
from tests.support.wire import Array, Bulk, Set, Value

COUNTS = ("0", "1", "2", "3", "30", "-1", "-2", "-30")


class Sets(Maker):
    """Sets of a few dozen members at most, some of integers alone."""

    kind = "sets"
    unordered: ClassVar[frozenset[str]] = frozenset(["SMEMBERS", "SINTER", "SUNION", "SDIFF"])
    scans: ClassVar[dict[str, bool]] = {"SSCAN": False}
    by_chance: ClassVar[frozenset[str]] = frozenset(["SPOP", "SRANDMEMBER"])

    def rows(self) -> list[Row]:
        return [
            (14, "SADD", self.sadd), (6, "SREM", self.srem), (4, "SMOVE", self.smove), (5, "SCARD", self.asked),
            (2, "SSCAN", self.sscan), (2, "SPOP", self.spop), (2, "SRANDMEMBER", self.srandmember),
            (5, "SINTER", self.together), (6, "SINTERSTORE", self.stored), (3, "SINTERCARD", self.sintercard),
        ]  # fmt: skip

    def member(self) -> str:
        return self.of("a", "b", "c", "d", "1", "2", "3", self.value())

    def sadd(self) -> Request:
        return ["SADD", self.key(), *self.some(self.member, 8)]

    def srem(self) -> Request:
        return ["SREM", self.key(), *self.some(self.member)]

    def smove(self) -> Request:
        return ["SMOVE", self.key(), self.key(), self.member()]

    def asked(self) -> Request:
        return self.chance.choice((
            ["SCARD", self.key()], ["SMEMBERS", self.key()], ["SISMEMBER", self.key(), self.member()],
            ["SMISMEMBER", self.key(), *self.some(self.member)],
        ))  # fmt: skip

    def sscan(self) -> Request:
        options = [self.maybe(0.3, "MATCH", self.of("*", "a*", "?", "[1-3]")), self.maybe(0.1, "FOO")]
        return ["SSCAN", self.key(), "0", "COUNT", "1000", *self.shuffled(*options)]

    def together(self) -> Request:
        return [self.of("SINTER", "SUNION", "SDIFF"), *self.some(self.key)]

    def stored(self) -> Request:
        return [self.of("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), self.key(), *self.some(self.key)]

    def sintercard(self) -> Request:
        keys = self.some(self.key)
        count = str(len(keys)) if self.chance.random() < 0.9 else self.number()
        return ["SINTERCARD", count, *keys, *self.maybe(0.4, self.cased("LIMIT"), self.number())]

    # -- chance -----------------------------------------------------------------------------------------------------

    def spop(self) -> Request:
        return ["SPOP", self.key(), *self.maybe(0.6, self.of(*COUNTS))]

    def srandmember(self) -> Request:
        return ["SRANDMEMBER", self.key(), *self.maybe(0.6, self.of(*COUNTS))]

    def look(self, request: Request) -> Request:
        return ["SMEMBERS", request[1]]

    def without_chance(self, request: Request, reply: Value, held: Value) -> Value:
        return chosen(reply, elements_of(held), repeats=len(request) > 2 and request[2].startswith("-"))

    def mended(self, request: Request, theirs: Value, ours: Value) -> list[Request]:
        if request[0] != "SPOP":
            return []
        back, gone = members_of(ours), members_of(theirs)
        made = [["SADD", request[1], *back]] if back else []
        return [*made, ["SREM", request[1], *gone]] if gone else made


def chosen(reply: Value, held: list[Value], repeats: bool) -> Value:
    """How many were chosen; AssertionError where one of them was not there, or was chosen twice."""
    if isinstance(reply, Bulk):
        assert reply in held, "what was chosen is not there"
        return Bulk(b"one of them")
    if not isinstance(reply, Array | Set):
        return reply
    assert all(one in held for one in reply.elements), "what was chosen is not there"
    assert repeats or len(set(reply.elements)) == len(reply.elements), "one was chosen twice"
    return type(reply)(tuple(Bulk(b"one of them") for _ in reply.elements))


def members_of(reply: Value) -> list[str]:
    """The members that a reply of SPOP names."""
    if isinstance(reply, Bulk):
        return [reply.text.decode()]
    return [one.text.decode() for one in elements_of(reply) if isinstance(one, Bulk)]
