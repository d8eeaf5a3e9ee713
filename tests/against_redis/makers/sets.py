"""Random requests about sets."""

from typing import ClassVar

from tests.against_redis.makers.shared import Maker, elements_of
from tests.support.random_words import Request
from tests.support.table_requests import Vocabulary
from tests.support.wire import Array, Bulk, Set, Value

COUNTS = ("0", "1", "2", "3", "30", "-1", "-2", "-30")


class Sets(Maker):
    """Sets of a few dozen members at most, some of integers alone."""

    kind = "sets"
    unordered: ClassVar[frozenset[str]] = frozenset(["SMEMBERS", "SINTER", "SUNION", "SDIFF"])
    scans: ClassVar[dict[str, bool]] = {"SSCAN": False}
    by_chance: ClassVar[frozenset[str]] = frozenset(["SPOP", "SRANDMEMBER"])

    weights: ClassVar[dict[str, int]] = {
        "SADD": 14, "SREM": 6, "SMOVE": 4, "SCARD": 1, "SMEMBERS": 2, "SISMEMBER": 2, "SMISMEMBER": 1, "SSCAN": 2,
        "SPOP": 2, "SRANDMEMBER": 2, "SINTER": 2, "SUNION": 2, "SDIFF": 2, "SINTERSTORE": 2, "SUNIONSTORE": 2,
        "SDIFFSTORE": 2, "SINTERCARD": 3,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        key = self.word(self.key)
        return Vocabulary(
            {
                "key": key, "source": key, "destination": key, "member": self.word(self.member), "cursor": ("0",),
                "SSCAN count": ("1000",), "pattern": ("*", "a*", "?", "[1-3]"), "count": COUNTS,
                "limit": self.word(self.number), "integer": self.word(self.number),
            },
            {"SSCAN COUNT": 1, "count": 0.6},
            {"SADD member": 8},
        )  # fmt: skip

    def member(self) -> str:
        return self.of("a", "b", "c", "d", "1", "2", "3", self.value())

    # -- chance -----------------------------------------------------------------------------------------------------

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
