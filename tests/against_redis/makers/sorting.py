"""Random requests of SORT, over lists, sets and sorted sets, and the keys that they lead to."""

from tests.against_redis.makers.shared import SHARED, Maker, Row
from tests.support.random_words import Request

NUMBERS = ("1", "2", "3", "10", "-1", "-5", "1.5", "0", "-0", "+2", "1e2", ".5", "inf", "-inf", "", "007")
TEXTS = ("a", "b", "ab", "B", "n\0n", "n\0m", "x y", "nan", "0x10", " 1", "1 ")
NUMBERED = ("q1", "q2", "q3")  # lists, sets and sorted sets of numbers
ORDERED = ("q4", "q5")  # lists and sorted sets
WEIGHTS = ("w_1", "w_2", "w_3", "w_10", "w_-1", "w_", "w_a")
RECORDS = ("r_1", "r_2", "r_3", "r_10:x", "r_a")


class Sorting(Maker):
    """Few parts, and few keys that they lead to; of equal weights by ALPHA none: Redis leaves their order open."""

    kind = "lists"

    def rows(self) -> list[Row]:
        return [
            (10, "SORT", self.sort),
            (3, "SORT", self.by_weights),
            (6, "RPUSH", self.parts),
            (4, "SET", self.led_to),
        ]

    def part(self) -> str:
        return self.of(*TEXTS) if self.chance.random() < 0.04 else self.of(*NUMBERS)

    def parts(self) -> Request:
        key = self.of(*NUMBERED)
        return self.chance.choice((
            ["RPUSH", key, *self.some(self.part, 6)], ["SADD", key, *self.some(self.part, 6)],
            ["ZADD", key, "1", self.part(), "2", self.part()], ["DEL", key], ["LPOP", key],
            ["RPUSH", self.of(*ORDERED), *self.some(self.part, 6)], ["ZADD", self.of(*ORDERED), "1", self.part()],
            ["DEL", self.of(*ORDERED)],
        ))  # fmt: skip

    def led_to(self) -> Request:
        return self.chance.choice((
            ["SET", self.of(*WEIGHTS), self.part()], ["HSET", self.of(*RECORDS), self.of("f", "g"), self.part()],
            ["DEL", self.of(*WEIGHTS, *RECORDS)], ["HDEL", self.of(*RECORDS), "f"],
            ["HPEXPIREAT", self.of(*RECORDS), "1", "FIELDS", "1", "f"],
        ))  # fmt: skip

    def sorted_key(self) -> str:
        """Keys of its own alone: of a small sorted set, SORT makes a large one in Redis, which shows elsewhere."""
        return self.of(*NUMBERED, *NUMBERED, *ORDERED, "never", "w_1", "r_1")

    def sort(self) -> Request:
        """In an order that is told in full."""
        options = [
            self.maybe(0.3, self.cased("LIMIT"), self.number(), self.number()),
            self.maybe(0.4, self.of("ASC", "DESC", "desc")),
            self.maybe(0.3, self.cased("ALPHA")),
            self.maybe(0.3, *[word for _ in range(2) for word in self.get()]),
        ]
        if self.chance.random() < 0.25:
            return ["SORT_RO", self.sorted_key(), *self.shuffled(*options)]
        store = self.maybe(0.3, self.cased("STORE"), self.of("l1", "l2", *SHARED))
        return ["SORT", self.sorted_key(), *self.shuffled(*options, store)]

    def get(self) -> Request:
        return ["GET", self.of("#", "w_*", "r_*->f", "r_*:x->g", "r_*->", "*", "w_1", "#*", "r_*->f*")]

    def by_weights(self) -> Request:
        by = self.of("w_*", "r_*->f", "r_*:x->f", "*", "w_**", "#")
        options = [
            ["BY", by],
            self.maybe(0.4, "LIMIT", "0", self.number()),
            self.maybe(0.4, "DESC"),
            self.maybe(0.3, *self.get()),
        ]
        if by == "#" or self.chance.random() < 0.2:  # unsorted, where there is an order to keep
            return ["SORT", self.of(*ORDERED), *self.shuffled(*options)]
        return ["SORT", self.sorted_key(), *self.shuffled(*options)]
