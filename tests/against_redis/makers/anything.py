"""Random requests about keys of any type: their names, times of expiry and databases; and the connection."""

from typing import ClassVar

from tests.against_redis.makers.shared import FAR_MS, OWN, SHARED, Maker, Row
from tests.support.random_words import Request

DATABASES = ("0", "0", "0", "0", "1", "1", "2", "16", "x")
MOMENTS = ("1", "1600000000000", str(FAR_MS), str(FAR_MS), str(FAR_MS + 100_000), "0", "-1", "x")


class Anything(Maker):
    """Keys of all types, and two streams."""

    kind = "streams"
    unordered = frozenset(["KEYS"])
    scans: ClassVar[dict[str, bool]] = {"SCAN": False}

    def key(self) -> str:
        return self.of(*SHARED, *OWN[self.of(*OWN)])

    def rows(self) -> list[Row]:
        return [
            (6, "DEL", self.keys), (2, "PEXPIREAT", self.expiry), (2, "SELECT", self.databases),
            (1, "HELLO", self.connection), (2, "XADD", self.streams),
        ]  # fmt: skip

    def keys(self) -> Request:
        key, other = self.key(), self.key()
        return self.chance.choice((
            ["DEL", key], ["UNLINK", key, other], ["COPY", key, other, *self.maybe(0.5, "REPLACE")],
            ["RENAME", key, other], ["RENAMENX", key, other], ["EXISTS", key, other, key], ["TYPE", key],
            ["TOUCH", key, other], ["OBJECT", "ENCODING", key], ["OBJECT", "ENCODING", key],
            ["OBJECT", "ENCODING", other], ["KEYS", self.of("*", "?1", "[a-m]*")], ["DBSIZE"],
            ["SCAN", "0", "COUNT", "1000", "TYPE", self.of("string", "list", "hash", "set", "zset", "stream", "x")],
            ["COPY", key, other, "DB", self.of(*DATABASES), *self.maybe(0.5, "REPLACE")],
        ))  # fmt: skip

    def expiry(self) -> Request:
        key = self.key()
        return self.chance.choice((
            ["PEXPIREAT", key, self.of(*MOMENTS), *self.maybe(0.3, self.of("NX", "XX", "GT", "LT", "FOO"))],
            ["PEXPIREAT", key, str(FAR_MS)], ["PERSIST", key], ["PEXPIRETIME", key], ["EXPIRETIME", key],
            ["EXPIREAT", key, str(FAR_MS // 1000)],
        ))  # fmt: skip

    def databases(self) -> Request:
        return self.chance.choice((
            ["SELECT", self.of(*DATABASES)], ["SELECT", "0"], ["SELECT", "0"], ["SELECT", "0"],
            ["MOVE", self.key(), self.of(*DATABASES)], ["SWAPDB", self.of(*DATABASES), self.of(*DATABASES)],
            ["FLUSHDB"] if self.chance.random() < 0.05 else ["DBSIZE"],
        ))  # fmt: skip

    def connection(self) -> Request:
        return self.chance.choice((["HELLO", "2"], ["HELLO", "3"], ["PING"], ["UNWATCH"]))

    def streams(self) -> Request:
        key = self.of("x1", "x1", *SHARED)
        return self.chance.choice((["XADD", key, f"{FAR_MS}-*", "f", self.value()], ["XLEN", key]))
