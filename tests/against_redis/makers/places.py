"""Random requests about places: added, measured, and searched for in circles and boxes."""

from typing import ClassVar, Final

from tests.against_redis.makers.shared import Maker
from tests.support.table_requests import Vocabulary

EDGES: Final = ("180", "-180", "85.05112878", "-85.05112878", "0", "179.9999", "-179.9999", "85", "-85", "1e-7")
WRONG: Final = ("x", "", "nan", "inf", "181", "-86", "1e400")
SIZES: Final = (
    "0", "0.001", "1", "10", "50", "100", "300", "1000", "3000", "5000", "7000", "12000", "20037726", "1e9", "-1", "x",
    "inf",
)  # fmt: skip
SCORES: Final = ("1.5", "-1", "inf", "-inf", "1e300", "4503599627370496", "9007199254740993", "1e19", "-1e19")


class Places(Maker):
    """Places all over the world and some near one another, no two at the same distance from a third.

    Redis says nothing of the order of equal distances. Sorted sets of other scores have many: no part of the mixture.
    """

    kind = "sortedsets"
    weights: ClassVar[dict[str, int]] = {
        "GEOADD": 12, "GEOPOS": 1, "GEOHASH": 1, "GEODIST": 3, "GEOSEARCH": 12, "GEOSEARCHSTORE": 4, "GEORADIUS": 4,
        "GEORADIUS_RO": 2, "GEORADIUSBYMEMBER": 4, "GEORADIUSBYMEMBER_RO": 2, "ZADD": 1, "ZREM": 1,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        member = self.word(lambda: f"p{self.chance.randrange(60)}")
        return Vocabulary(
            {
                "key": self.word(self.key), "string": member, "count": self.word(self.number), "score": SCORES,
                "longitude": self.word(lambda: self.coordinate(180)), "radius": SIZES, "width": SIZES, "height": SIZES,
                "latitude": self.word(lambda: self.coordinate(85.05112878)),
            },
            {"store": 0.15, "condition": 0.1, "WITHDIST": 0.3, "WITHCOORD": 0.3, "WITHHASH": 0.3,
             "GEOSEARCHSTORE STOREDIST": 0.5},
            {"GEOADD data": 30},
        )  # fmt: skip

    def coordinate(self, limit: float) -> str:
        roll = self.chance.random()
        if roll < 0.002:
            return self.of(*WRONG)
        if roll < 0.05:
            return self.of(*EDGES)
        if roll < 0.5:
            return f"{self.chance.gauss(13, 5):.6f}"
        return repr(self.chance.uniform(-limit, limit))
