"""Random requests about hashes and the times of expiry of their fields."""

from typing import ClassVar

from tests.against_redis.makers.sets import COUNTS, chosen
from tests.against_redis.makers.shared import FAR_MS, Maker, elements_of
from tests.support.random_words import Request
from tests.support.table_requests import Vocabulary
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

    weights: ClassVar[dict[str, int]] = {
        "HSET": 8, "HMSET": 4, "HSETNX": 2, "HGET": 1, "HMGET": 1, "HGETALL": 1, "HKEYS": 1, "HVALS": 1, "HLEN": 1,
        "HSTRLEN": 1, "HEXISTS": 1, "HDEL": 5, "HINCRBY": 4, "HINCRBYFLOAT": 3, "HSCAN": 2, "HRANDFIELD": 2,
        "HPEXPIREAT": 8, "HEXPIREAT": 1, "HEXPIRE": 1, "HPEXPIRE": 1, "HPEXPIRETIME": 4, "HEXPIRETIME": 2,
        "HPERSIST": 3, "HGETDEL": 3, "HGETEX": 4, "HSETEX": 6,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        return Vocabulary(
            {
                "key": self.word(self.key), "field": self.word(self.field), "value": self.word(self.value),
                "HINCRBY field": self.word(lambda: self.of("n", "n", self.field())),
                "HINCRBYFLOAT field": self.word(lambda: self.of("n", "x", self.field())),
                "HINCRBYFLOAT increment": FLOATS, "HINCRBY increment": self.word(self.increment), "cursor": ("0",),
                "HSCAN count": ("1000",), "pattern": ("*", "f*", "?", "[a-c]"), "count": COUNTS,
                "seconds": ("0", "-1", "x"), "milliseconds": ("0", "-1", "x"), "integer": self.word(self.number),
                "unix-time-seconds": (str(FAR_MS // 1000), str(FAR_MS // 1000), "1", "0", "x"),
                "unix-time-milliseconds": self.word(self.time),
            },
            {"HSCAN COUNT": 1, "NOVALUES": 0, "options": 0.6, "expiration": 0.6, "EX": 0.2, "PX": 0.2, "EXAT": 0.3,
             "PXAT": 3, "condition": 0.4},
            {"HSET data": 5, "HMSET data": 5, "HGETDEL field": 2},
        )  # fmt: skip

    def of_command(self, name: str) -> Request:
        request = super().of_command(name)
        while kills_the_reference(request):
            request = super().of_command(name)
        return request

    def field(self) -> str:
        return self.of("f1", "f2", "f3", "f4", "a", "1", self.value())

    def increment(self) -> str:
        return self.of("9223372036854775807", "-9223372036854775808", *[self.number() for _ in range(8)])

    def time(self) -> str:
        return self.of(*TIMES) if self.chance.random() < 0.93 else self.of(*WRONG_TIMES)

    # -- chance -----------------------------------------------------------------------------------------------------

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


def kills_the_reference(request: Request) -> bool:
    """Whether HSETEX sets a field twice: of that, with a time, Redis 8.6.3 dies where the hash is large."""
    words = [word.upper() for word in request]
    if words[0] != "HSETEX" or "FIELDS" not in words:
        return False
    fields = request[words.index("FIELDS") + 2 :: 2]
    return len(set(fields)) < len(fields)
