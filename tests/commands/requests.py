"""Random requests for the key, string, database and transaction commands: every option, and broken arguments.

A seed gives the same requests again. Times are absolute and far away or long past, or relative and never compared with
each other: what they mean does not depend on when they are sent.
"""

import random
from collections.abc import Callable, Sequence

KEYS = ("a", "b", "c", "''")
VALUES = ("1", "x", "''", "-5", "9223372036854775807", "v1")
NUMBERS = ("0", "-1", "700000", "x", "''", "01", "1.5", "9223372036854775807", "-9223372036854775808")
MOMENTS = ("1", "8888888888888", "9999999999999", "0", "x", "9223372036854775807")
DATABASES = ("0", "1", "1", "2", "16", "-1", "x", "''", "99999999999")

Words = Sequence[str | Sequence[str]]


class Requests:
    """Request lines from one seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._makers: list[Callable[[], list[str]]] = [
            self.set, self.set, self.set, self.getex, self.expiry, self.expiry, self.string, self.string, self.keys,
            self.keys, self.databases, self.scan, self.transaction,
        ]  # fmt: skip

    def lines(self, count: int) -> list[str]:
        return [" ".join(self._chance.choice(self._makers)()) for _ in range(count)]

    def _of(self, words: Sequence[str]) -> str:
        return self._chance.choice(words)

    def _some(self, *options: str | tuple[str, Sequence[str]]) -> list[str]:
        """Up to three options, each a word, or a word and one of its values."""
        words: list[str] = []
        for option in self._chance.choices(options, k=self._chance.choice((0, 1, 1, 2, 3))):
            words += [option] if isinstance(option, str) else [option[0], self._of(option[1])]
        return words

    def set(self) -> list[str]:
        digests = ("0000000000000000", "699A96A965CD390D", "699a96a965cd390d")
        times = (("EX", NUMBERS), ("px", NUMBERS), ("EXAT", NUMBERS), ("PXAT", MOMENTS), ("PXAT", MOMENTS), "EX")
        compared = (("IFEQ", VALUES), ("IFNE", VALUES), ("IFDEQ", digests), ("IFDNE", digests), "IFEQ")
        options = self._some("NX", "XX", "GET", "get", "KEEPTTL", "FOO", *times, *compared)
        return ["SET", self._of(KEYS), self._of(VALUES), *options]

    def getex(self) -> list[str]:
        times = (("EX", NUMBERS), ("PX", NUMBERS), ("exat", NUMBERS), ("PXAT", MOMENTS), ("PXAT", MOMENTS), "PX")
        return ["GETEX", self._of(KEYS), *self._some("PERSIST", "persist", "FOO", *times)]

    def expiry(self) -> list[str]:
        key = self._of(KEYS)
        if self._chance.random() < 0.3:
            return [self._of(("EXPIRE", "PEXPIRE", "EXPIREAT")), key, self._of(NUMBERS), *self._some("NX", "XX", "FOO")]
        if self._chance.random() < 0.5:
            return ["PEXPIREAT", key, self._of(MOMENTS), *self._some("NX", "xx", "GT", "LT")]
        return [self._of(("PERSIST", "PEXPIRETIME")), key]

    def string(self) -> list[str]:
        key, value, number = self._of(KEYS), self._of(VALUES), self._of(NUMBERS)
        made: list[list[str]] = [
            ["GET", key], ["GETDEL", key], ["MGET", key, self._of(KEYS), key], ["STRLEN", key], ["APPEND", key, value],
            ["INCR", key], ["DECR", key], ["INCRBY", key, number], ["DECRBY", key, number], ["SETNX", key, value],
            ["SETEX", key, number, value], ["PSETEX", key, number, value], ["MSET", key, value, self._of(KEYS), value],
            ["MSET", key, value, key], ["XADD", key, "1-1", "f", "v"],
        ]  # fmt: skip
        return self._chance.choice(made)

    def keys(self) -> list[str]:
        key, other = self._of(KEYS), self._of(KEYS)
        made: list[list[str]] = [
            ["DEL", key, other], ["UNLINK", key, key], ["EXISTS", key, other], ["TOUCH", key], ["TYPE", key],
            ["RENAME", key, other], ["RENAMENX", key, other], ["MOVE", key, self._of(DATABASES)],
            ["COPY", key, other, *self._some("REPLACE", "replace", ("DB", DATABASES), "DB", "FOO")],
            ["OBJECT", self._of(("FREQ", "FOO")), key],
        ]  # fmt: skip
        return self._chance.choice(made)

    def databases(self) -> list[str]:
        made: list[list[str]] = [
            ["SELECT", self._of(("0", "0", "1"))], ["SWAPDB", self._of(DATABASES), self._of(DATABASES)], ["DBSIZE"],
            ["FLUSHDB", *self._some("SYNC", "async", "FOO")], ["FLUSHALL", *self._some("SYNC", "FOO")],
        ]  # fmt: skip
        return self._chance.choice(made)

    def scan(self) -> list[str]:
        """Patterns that one key fits, so that the order of a reply says nothing."""
        if self._chance.random() < 0.3:
            return ["KEYS", self._of(KEYS)]
        cursor = self._of(("0", "0", "0", "x", "' 0'", "-1"))
        kinds = ("string", "STREAM", "list", "foo")
        options = self._some(("TYPE", kinds), ("COUNT", ("1000", "0", "x")), "COUNT", "FOO", "NOVALUES")
        return ["SCAN", cursor, "MATCH", self._of(KEYS), "COUNT", "1000", *options]

    def transaction(self) -> list[str]:
        """WATCH is left out: of an overdue key it lets the log and the events differ from Redis's."""
        return [self._of(("MULTI", "EXEC", "EXEC", "DISCARD", "UNWATCH", "EXEC x", "FOO"))]
