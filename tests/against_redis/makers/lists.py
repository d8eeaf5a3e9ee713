"""Random requests about lists."""

from typing import ClassVar

from tests.against_redis.makers.shared import Maker, Row
from tests.support.random_words import Request

BEYOND = ("9223372036854775807", "-9223372036854775808", "-9223372036854775807")
TIMEOUTS = ("0", "0", "0.1", "1", "1e-3", "0x1p-4", "-1", "-0.0001", "x", "inf", "-inf", "nan", "1e30", "", " 1")


class Lists(Maker):
    """Lists of a few dozen items at most, of which many are equal."""

    kind = "lists"
    blocking: ClassVar[frozenset[str]] = frozenset(["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP"])

    def rows(self) -> list[Row]:
        return [
            (10, "LPUSH", self.push), (3, "LPUSHX", self.push_if_there), (8, "LPOP", self.pop),
            (2, "LLEN", self.llen), (4, "LINDEX", self.lindex), (5, "LRANGE", self.lrange), (4, "LSET", self.lset),
            (4, "LINSERT", self.linsert), (5, "LREM", self.lrem), (3, "LTRIM", self.ltrim), (6, "LPOS", self.lpos),
            (6, "LMOVE", self.lmove), (4, "LMPOP", self.lmpop), (6, "BLPOP", self.waiting),
        ]  # fmt: skip

    def place(self) -> str:
        return self.of(*BEYOND) if self.chance.random() < 0.02 else self.number()

    def item(self) -> str:
        return self.of("a", "a", "a", "b", "b", "c", self.value())

    def end(self) -> str:
        return self.of("FOO", "") if self.chance.random() < 0.02 else self.cased(self.of("LEFT", "RIGHT"))

    def push(self) -> Request:
        return [self.of("LPUSH", "RPUSH"), self.key(), *self.some(self.item, 6)]

    def push_if_there(self) -> Request:
        return [self.of("LPUSHX", "RPUSHX"), self.key(), *self.some(self.item, 3)]

    def pop(self) -> Request:
        return [self.of("LPOP", "RPOP"), self.key(), *self.maybe(0.5, self.place())]

    def llen(self) -> Request:
        return ["LLEN", self.key()]

    def lindex(self) -> Request:
        return ["LINDEX", self.key(), self.place()]

    def lrange(self) -> Request:
        return ["LRANGE", self.key(), self.place(), self.place()]

    def lset(self) -> Request:
        return ["LSET", self.key(), self.number(), self.item()]

    def linsert(self) -> Request:
        return ["LINSERT", self.key(), self.of("BEFORE", "AFTER", "after", "FOO"), self.item(), self.item()]

    def lrem(self) -> Request:
        return ["LREM", self.key(), self.place(), self.item()]

    def ltrim(self) -> Request:
        return ["LTRIM", self.key(), self.of("0", "0", self.place()), self.of("-1", "10", self.place())]

    def lpos(self) -> Request:
        options = [self.maybe(0.4, self.cased(name), self.place()) for name in ("RANK", "COUNT", "MAXLEN")]
        return ["LPOS", self.key(), self.item(), *self.shuffled(*options)]

    def lmove(self) -> Request:
        if self.chance.random() < 0.4:
            return ["RPOPLPUSH", self.key(), self.key()]
        return ["LMOVE", self.key(), self.key(), self.end(), self.end()]

    def lmpop(self) -> Request:
        return ["LMPOP", *self._from_several()]

    def _from_several(self) -> Request:
        keys = self.some(self.key, 3)
        numkeys = self.of("0", "5", "-1", "x") if self.chance.random() < 0.04 else str(len(keys))
        return [numkeys, *keys, self.end(), *self.maybe(0.6, self.cased("COUNT"), self.place())]

    def waiting(self) -> Request:
        """What would wait: inside MULTI it does not."""
        timeout = self.of(*TIMEOUTS)
        return self.chance.choice((
            [self.of("BLPOP", "BRPOP"), *self.some(self.key, 3), timeout],
            ["BLMOVE", self.key(), self.key(), self.end(), self.end(), timeout],
            ["BRPOPLPUSH", self.key(), self.key(), timeout],
            ["BLMPOP", timeout, *self._from_several()],
        ))  # fmt: skip
