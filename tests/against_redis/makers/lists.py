"""Random requests about lists."""

from typing import ClassVar

from tests.against_redis.makers.shared import Maker
from tests.support.table_requests import Vocabulary

BEYOND = ("9223372036854775807", "-9223372036854775808", "-9223372036854775807")
TIMEOUTS = ("0", "0", "0.1", "1", "1e-3", "0x1p-4", "-1", "-0.0001", "x", "inf", "-inf", "nan", "1e30", "", " 1")


class Lists(Maker):
    """Lists of a few dozen items at most, of which many are equal."""

    kind = "lists"
    blocking: ClassVar[frozenset[str]] = frozenset(["BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP"])

    weights: ClassVar[dict[str, int]] = {
        "LPUSH": 5, "RPUSH": 5, "LPUSHX": 2, "RPUSHX": 1, "LPOP": 4, "RPOP": 4, "LLEN": 2, "LINDEX": 4, "LRANGE": 5,
        "LSET": 4, "LINSERT": 4, "LREM": 5, "LTRIM": 3, "LPOS": 6, "LMOVE": 4, "RPOPLPUSH": 2, "LMPOP": 4, "BLPOP": 2,
        "BRPOP": 1, "BLMOVE": 1, "BRPOPLPUSH": 1, "BLMPOP": 1,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        key, item = self.word(self.key), self.word(self.item)
        return Vocabulary(
            {
                "key": key, "source": key, "destination": key, "element": item, "pivot": item,
                "integer": self.word(self.place), "timeout": TIMEOUTS, "LSET index": self.word(self.number),
                "LTRIM start": self.word(lambda: self.of("0", "0", self.place())),
                "LTRIM stop": self.word(lambda: self.of("-1", "10", self.place())),
            },
            {"count": 0.5, "COUNT": 0.6},
            {"LPUSH element": 6, "RPUSH element": 6},
        )  # fmt: skip

    def place(self) -> str:
        return self.of(*BEYOND) if self.chance.random() < 0.02 else self.number()

    def item(self) -> str:
        return self.of("a", "a", "a", "b", "b", "c", self.value())
