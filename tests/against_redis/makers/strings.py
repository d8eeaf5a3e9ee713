"""Random requests about strings, their numbers and their bits."""

from typing import Final

from tests.against_redis.makers.shared import FAR_MS, Maker, Row
from tests.support.random_words import Request

TEXTS: Final = ("", "a", "ab", "abc", "abcabc", "xaybzc", "ohmytext", "mynewtext", "\x00\x00", "\x7f\x00\x01", "~~~")
REALS: Final = (
    "1", "-1", "0.1", "0.25", "-3.14159", "1e3", "1e-5", "1.5e17", "0x10", "123456789.123456789", "1e-20", "5e-18",
    "inf", "nan", "x", "", " 1", "1e5000",
)  # fmt: skip
OFFSETS: Final = ("0", "1", "2", "7", "8", "9", "15", "16", "23", "40", "100", "-1", "x", "4294967296")
DIGESTS: Final = ("e6c632b61e964e1f", "E6C632B61E964E1F", "78af5f94892f3950", "2d06800538d394c2", "x", "0" * 16)
FIELD_TYPES: Final = ("u1", "u2", "i5", "u8", "u8", "i8", "i16", "u31", "i32", "u63", "i64", "u64", "i0", "x8", "")
FIELD_NUMBERS: Final = (
    "0", "1", "-1", "10", "100", "-100", "200", "255", "256", "-300", "70000", "9223372036854775807",
    "-9223372036854775808", "4611686018427387904", "x", "9223372036854775808",
)  # fmt: skip
BIT_OPERATIONS: Final = ("AND", "OR", "XOR", "NOT", "DIFF", "DIFF1", "ANDOR", "ONE", "and", "FOO")


class Strings(Maker):
    """Short strings, of which some are numbers."""

    kind = "strings"

    def rows(self) -> list[Row]:
        return [
            (6, "SET", self.set), (3, "GETEX", self.getex), (3, "GET", self.read), (4, "APPEND", self.append),
            (3, "MSET", self.several), (3, "MSETEX", self.msetex), (4, "INCRBY", self.count),
            (4, "INCRBYFLOAT", self.incrbyfloat), (4, "GETRANGE", self.getrange), (4, "SETRANGE", self.setrange),
            (4, "LCS", self.lcs), (3, "DELEX", self.delex), (1, "DIGEST", self.digest), (4, "SETBIT", self.bit),
            (4, "BITCOUNT", self.bitcount), (5, "BITPOS", self.bitpos), (6, "BITOP", self.bitop),
            (6, "BITFIELD", self.bitfield),
        ]  # fmt: skip

    def text(self) -> str:
        return self.of(*TEXTS, self.value())

    def expiration(self) -> Request:
        far_s = str(FAR_MS // 1000)
        return self.chance.choice((
            ["EXAT", far_s], ["PXAT", str(FAR_MS)], ["PXAT", str(FAR_MS)], ["PXAT", "0"], ["EX", "x"], ["EX", "-5"],
            ["exat", far_s, "PXAT", str(FAR_MS)],
        ))  # fmt: skip

    def condition(self) -> Request:
        return self.chance.choice((
            ["NX"], ["XX"], ["xx"], ["IFEQ", self.text()], ["IFNE", self.text()], ["IFDEQ", self.of(*DIGESTS)],
            ["IFDNE", self.of(*DIGESTS)],
        ))  # fmt: skip

    def maybe_some(self, probability: float, words: Request) -> Request:
        return words if self.chance.random() < probability else []

    def set(self) -> Request:
        key = self.key()
        if self.chance.random() < 0.2:
            return self.chance.choice((
                ["SETNX", key, self.text()], ["GETSET", key, self.text()], ["SETEX", key, self.of("0", "x"), "v"],
                ["PSETEX", key, "-1", "v"],
            ))  # fmt: skip
        condition = self.maybe_some(0.4, self.condition())
        gets = [] if condition[-1:] == ["x"] else self.maybe(0.3, self.cased("GET"))  # Redis would answer twice
        options = self.shuffled(
            condition,
            gets,
            self.maybe_some(0.2, self.expiration()),
            self.maybe(0.1, "KEEPTTL"),
        )
        return ["SET", key, self.text(), *options]

    def getex(self) -> Request:
        options = self.maybe_some(0.4, self.expiration()) + self.maybe(0.2, "PERSIST")
        return [*self.of("GETEX", "GETEX", "GETDEL").split(), self.key(), *options]

    def read(self) -> Request:
        key = self.key()
        return self.chance.choice((["GET", key], ["STRLEN", key], ["MGET", *self.some(self.key)]))

    def append(self) -> Request:
        return ["APPEND", self.key(), self.text()]

    def pairs(self) -> Request:
        made: Request = []
        for _ in range(self.chance.randrange(1, 4)):
            made += [self.key(), self.text()]
        return made

    def several(self) -> Request:
        return [self.of("MSET", "MSETNX"), *self.pairs()]

    def msetex(self) -> Request:
        pairs = self.pairs()
        numkeys = self.of("0", "4", "x", "-1") if self.chance.random() < 0.05 else str(len(pairs) // 2)
        options = self.shuffled(
            self.maybe(0.4, self.of("NX", "XX", "xx", "FOO")),
            self.maybe_some(0.4, self.expiration()),
            self.maybe(0.2, "KEEPTTL"),
        )
        return ["MSETEX", numkeys, *pairs, *options]

    def count(self) -> Request:
        key = self.of("n1", self.key())
        return self.chance.choice((
            ["INCR", key], ["DECR", key], ["INCRBY", key, self.number()], ["DECRBY", key, self.number()],
        ))  # fmt: skip

    def incrbyfloat(self) -> Request:
        return ["INCRBYFLOAT", self.of("n1", "n1", self.key()), self.of(*REALS)]

    def getrange(self) -> Request:
        return [self.of("GETRANGE", "GETRANGE", "SUBSTR"), self.key(), self.number(), self.number()]

    def setrange(self) -> Request:
        return ["SETRANGE", self.key(), self.of("0", "1", "3", "10", "-1", "x", "536870912"), self.text()]

    def lcs(self) -> Request:
        options = self.shuffled(
            self.maybe(0.2, self.cased("LEN")),
            self.maybe(0.5, self.cased("IDX")),
            self.maybe(0.3, "MINMATCHLEN", self.number()),
            self.maybe(0.3, "WITHMATCHLEN"),
        )
        return ["LCS", self.key(), self.key(), *options]

    def delex(self) -> Request:
        return ["DELEX", self.key(), *self.maybe_some(0.95, [*self.condition()[:1], self.of(self.text(), *DIGESTS)])]

    def digest(self) -> Request:
        return ["DIGEST", self.key()]

    # -- bits -------------------------------------------------------------------------------------------------------

    def bit(self) -> Request:
        if self.chance.random() < 0.4:
            return ["GETBIT", self.key(), self.of(*OFFSETS)]
        return ["SETBIT", self.key(), self.of(*OFFSETS), self.of("0", "1", "1", "2" if self.rarely() else "1")]

    def rarely(self) -> bool:
        return self.chance.random() < 0.1

    def unit(self) -> Request:
        return [self.of("BIT", "BIT", "BYTE", "byte", "FOO" if self.rarely() else "BIT")]

    def bitcount(self) -> Request:
        ends = [self.number(), self.number(), *self.maybe_some(0.6, self.unit())]
        return ["BITCOUNT", self.key(), *self.maybe_some(0.8, ends)]

    def bitpos(self) -> Request:
        end = self.maybe_some(0.7, [self.number(), *self.maybe_some(0.6, self.unit())])
        ends = self.maybe_some(0.8, [self.number(), *end])
        return ["BITPOS", self.key(), self.of("0", "1", "2" if self.rarely() else "1"), *ends]

    def bitop(self) -> Request:
        return ["BITOP", self.of(*BIT_OPERATIONS), self.key(), *self.some(self.key)]

    def bitfield(self) -> Request:
        made: Request = []
        for _ in range(self.chance.randrange(0, 4)):
            field = [self.of(*FIELD_TYPES), self.of("#0", "#1", "#3", *OFFSETS)]
            made += self.chance.choice((
                ["GET", *field], ["SET", *field, self.of(*FIELD_NUMBERS)], ["INCRBY", *field, self.of(*FIELD_NUMBERS)],
                ["OVERFLOW", self.of("WRAP", "SAT", "FAIL", "sat", "FOO" if self.rarely() else "SAT")],
            ))  # fmt: skip
        return [self.of("BITFIELD", "BITFIELD", "BITFIELD_RO"), self.key(), *made]
