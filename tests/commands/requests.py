"""Random requests for the key, string, database and transaction commands: every option, and broken arguments.

The table gives their form. A seed gives the same requests again. Times are absolute and far away or long past, or
relative and never compared with each other: what they mean does not depend on when they are sent.
"""

import random
import shlex
from typing import Final

from tests.support.random_words import Request
from tests.support.table_requests import TableRequests, Vocabulary

KEYS: Final = ("a", "b", "c", "")
VALUES: Final = ("1", "x", "", "-5", "9223372036854775807", "v1")
NUMBERS: Final = ("0", "-1", "700000", "x", "", "01", "1.5", "9223372036854775807", "-9223372036854775808")
MOMENTS: Final = ("1", "8888888888888", "9999999999999", "0", "x", "9223372036854775807")
DATABASES: Final = ("0", "1", "1", "2", "16", "-1", "x", "", "99999999999")
DIGESTS: Final = ("0000000000000000", "699A96A965CD390D", "699a96a965cd390d")
TYPES: Final = ("string", "STREAM", "list", "foo")

WEIGHTS: Final = {
    "SET": 30, "GETEX": 10, "EXPIRE": 2, "PEXPIRE": 2, "EXPIREAT": 2, "PEXPIREAT": 5, "PERSIST": 3, "PEXPIRETIME": 3,
    "GET": 1, "GETDEL": 1, "MGET": 1, "STRLEN": 1, "APPEND": 1, "INCR": 1, "DECR": 1, "INCRBY": 1, "DECRBY": 1,
    "SETNX": 1, "SETEX": 1, "PSETEX": 1, "MSET": 2, "DEL": 2, "UNLINK": 2, "EXISTS": 2, "TOUCH": 2, "TYPE": 2,
    "RENAME": 2, "RENAMENX": 2, "MOVE": 2, "COPY": 3, "OBJECT|FREQ": 1, "SELECT": 2, "SWAPDB": 2, "DBSIZE": 2,
    "FLUSHDB": 1, "FLUSHALL": 1, "KEYS": 2, "SCAN": 6,
}  # fmt: skip
# WATCH is left out: of an overdue key it lets the log and the events differ from Redis's.
OTHERS: Final[tuple[Request, ...]] = (
    ["MULTI"], ["EXEC"], ["EXEC"], ["DISCARD"], ["UNWATCH"], ["EXEC", "x"], ["FOO"], ["XADD", "a", "1-1", "f", "v"],
    ["SELECT", "0"], ["SELECT", "0"], ["FLUSHDB", "FOO"], ["SET", "a", "1", "NX", "XX"], ["SET", "a", "1", "EX"],
    ["SET", "b", "1", "EX", "700000", "KEEPTTL"], ["GETEX", "a", "PERSIST", "PX", "700000"],
    ["COPY", "a", "b", "DB"], ["SCAN", "0", "MATCH", "a", "FOO"], ["SCAN", "0", "MATCH", "a", "COUNT", "0"],
)  # fmt: skip
# Patterns that one key fits, and all of them at once, so that the order of a reply says nothing.
VOCABULARY: Final = Vocabulary(
    {
        "key": KEYS, "newkey": KEYS, "source": KEYS, "destination": KEYS, "value": VALUES, "seconds": NUMBERS,
        "milliseconds": NUMBERS, "unix-time-seconds": NUMBERS, "unix-time-milliseconds": MOMENTS, "ifeq-value": VALUES,
        "ifne-value": VALUES, "ifdeq-digest": DIGESTS, "ifdne-digest": DIGESTS, "increment": NUMBERS,
        "decrement": NUMBERS, "db": DATABASES, "destination-db": DATABASES, "index": ("0", "0", "1"),
        "index1": DATABASES, "index2": DATABASES, "cursor": ("0", "0", "0", "x", " 0", "-1"), "pattern": KEYS,
        "SCAN count": ("1000",), "type": TYPES,
    },
    {"SCAN MATCH": 1, "SCAN COUNT": 1, "expiration": 0.5, "flush-type": 0.3},
)  # fmt: skip


class Requests(TableRequests):
    """Request lines from one seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed), VOCABULARY)

    def lines(self, count: int) -> list[str]:
        return [shlex.join(self._request()) for _ in range(count)]

    def _request(self) -> Request:
        if self.chance.random() < 0.15:
            return self.chance.choice(OTHERS)
        return self.of_command(self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0])
