"""Requests of every command in the table, with arguments that are meant to harm: what all fuzzers send.

The form comes from the table (tests/support/table_requests.py), the words from here: limits of integers and floats,
lengths that lie, patterns that backtrack, keys of every type. Left out is what only an administrator may do and what
ends or silences the server by design.
"""

import random
from typing import Final

from penstock.engine.table.row import Row
from tests.support.table_requests import TableRequests, Vocabulary, rows_by_name
from tests.support.wire import pack

Request = list[bytes]

LEFT_OUT: Final = {
    "SHUTDOWN", "REPLICAOF", "SLAVEOF", "CONFIG|SET", "CONFIG|REWRITE", "DEBUG", "CLIENT|KILL", "CLIENT|PAUSE",
    "ACL|SETUSER", "ACL|DELUSER", "ACL|LOAD", "MIGRATE", "FAILOVER", "CLUSTER|RESET", "MODULE|LOAD", "MODULE|LOADEX",
    "PENSTOCK|CLOCK", "SCRIPT|KILL",
}  # fmt: skip
KEYS: Final = ("str", "num", "list", "set", "zset", "hash", "stream", "hll", "geo", "bits", "array", "none", "new")
NUMBERS: Final = (
    "0", "1", "2", "-1", "-2", "10", "100", "1000", "65535", "65536", "16777216", "2147483647", "2147483648",
    "4294967295", "4294967296", "9007199254740993", "4611686018427387904", "9223372036854775806",
    "9223372036854775807", "9223372036854775808", "-9223372036854775807", "-9223372036854775808",
    "18446744073709551615", "18446744073709551616", "1" * 400, "+1", " 1", "1 ", "0x10", "1_0", "\xd9\xa1", "", "x",
)  # fmt: skip
DOUBLES: Final = (
    *NUMBERS, "1.5", "-0", "1e308", "-1e308", "1e309", "inf", "-inf", "+inf", "nan", "1e-320", "1e400", "0x1p3", "1e",
    "." + "0" * 5000 + "1",
)  # fmt: skip
IDS: Final = (
    "0", "0-0", "0-1", "-", "+", "$", ">", "*", "1-*", "(1", "(0-0", "18446744073709551615-18446744073709551615",
    "(18446744073709551615-18446744073709551615", "18446744073709551616-0", "1-18446744073709551616", "1-1-1", "x", "",
)  # fmt: skip
PATTERNS: Final = ("*", "a*" * 40 + "b", "[" * 50, "[^", "\\", "?" * 5000, "[a-" + "z" * 3000, "*" * 9000, "")
TEXTS: Final = (
    "", "a", "a" * 100, "a" * 20_000, "\x00", "\r\n", "*3\r\n$3\r\n", "\xff\xfe", "%s%n{0}", "{}", "[" * 3000, "a b",
    "return 1", "return redis.call('get','str')", "#!lua name=x\nredis.register_function('f',function() return 1 end)",
)  # fmt: skip

HOSTILE_WORDS: Final = Vocabulary(
    {
        "key": KEYS, "newkey": KEYS, "destination": KEYS, "source": KEYS, "integer": NUMBERS, "double": DOUBLES,
        "unix-time": NUMBERS, "pattern": PATTERNS, "string": (*TEXTS, *NUMBERS), "id": IDS, "start": (*IDS, *NUMBERS),
        "end": (*IDS, *NUMBERS), "min": (*DOUBLES, "(1", "[a", "-", "+"), "max": (*DOUBLES, "(1", "[a", "-", "+"),
        "group": ("g", "g", "nog", ""), "consumer": ("alice", "bob", "", "x" * 5000), "cursor": NUMBERS,
        "timeout": ("0", "0.001", "-1", "1e308", "nan", "x"), "milliseconds": ("0", "1", "-1", "x"),
        "numreplicas": ("0", "-1", "x"), "numlocal": ("0", "1", "2"), "index": ("0", "1", "16", "-1", "x"),
        "encoding": ("u8", "i64", "u63", "u64", "i0", "i65", "x"),
        "offset": (*NUMBERS, "#0", "#-1", "#1152921504606846976"),
    },
    repeated=6,
)  # fmt: skip


def opening() -> list[Request]:
    """A key of each type, large enough that quadratic work on it shows."""
    many = [b"%d" % number for number in range(2000)]
    twice = [word for number in many for word in (number, b"v%b" % number)]
    return [
        [b"FLUSHALL"],
        [b"SET", b"str", b"a" * 100_000],
        [b"SET", b"num", b"9223372036854775800"],
        [b"RPUSH", b"list", *many],
        [b"SADD", b"set", *many],
        [b"ZADD", b"zset", *[word for number in many for word in (number, b"m%b" % number)]],
        [b"HSET", b"hash", *twice],
        *[[b"XADD", b"stream", b"%b-1" % number, b"f", number] for number in many[1:300]],
        [b"XGROUP", b"CREATE", b"stream", b"g", b"0"],
        [b"XREADGROUP", b"GROUP", b"g", b"alice", b"COUNT", b"200", b"STREAMS", b"stream", b">"],
        [b"PFADD", b"hll", *many],
        [b"GEOADD", b"geo", b"13.3", b"38.1", b"a", b"15.0", b"37.5", b"b", b"-179.9", b"85", b"c"],
        [b"SETBIT", b"bits", b"800000", b"1"],
        [b"ARSET", b"array", b"5", b"v"],
    ]


class HostileRequests:
    """One source of requests: the same seed gives the same ones again."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._made = TableRequests(chance, HOSTILE_WORDS)
        self._rows: list[Row] = [row for name, row in rows_by_name().items() if not is_left_out(name)]

    def request(self) -> Request:
        row = self.chance.choice(self._rows)
        if self.chance.random() < 0.25:
            return self._made.broken_of(row)
        return self._made.valid(row)

    def requests(self, most: int) -> list[Request]:
        return [self.request() for _ in range(self.chance.randint(1, most))]


def is_left_out(name: str) -> bool:
    return name in LEFT_OUT or name.partition("|")[0] in LEFT_OUT


def packed(requests: list[Request]) -> bytes:
    """The requests as they are sent."""
    return b"".join(pack(*request) for request in requests)
