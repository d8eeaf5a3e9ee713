"""Random requests about strings, their numbers and their bits."""

from typing import ClassVar, Final

from tests.against_redis.makers.shared import FAR_MS, Maker
from tests.support.table_requests import Vocabulary, Words

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


class Strings(Maker):
    """Short strings, of which some are numbers."""

    kind = "strings"

    weights: ClassVar[dict[str, int]] = {
        "SET": 6, "SETNX": 1, "GETSET": 1, "SETEX": 1, "PSETEX": 1, "GETEX": 2, "GETDEL": 1, "GET": 1, "STRLEN": 1,
        "MGET": 1, "APPEND": 4, "MSET": 2, "MSETNX": 1, "MSETEX": 3, "INCR": 1, "DECR": 1, "INCRBY": 1, "DECRBY": 1,
        "INCRBYFLOAT": 4, "GETRANGE": 3, "SUBSTR": 1, "SETRANGE": 4, "LCS": 4, "DELEX": 3, "DIGEST": 1, "SETBIT": 2,
        "GETBIT": 2, "BITCOUNT": 4, "BITPOS": 5, "BITOP": 6, "BITFIELD": 4, "BITFIELD_RO": 2,
    }  # fmt: skip

    def words(self) -> Vocabulary:
        """SET with GET and a digest that is none is left out: Redis answers it twice."""
        key, text, number = self.word(self.key), self.word(self.text), self.word(self.number)
        counted: dict[str, Words] = {
            f"{name} key": self.word(lambda: self.of("n1", "n1", self.key()))
            for name in ("INCR", "DECR", "INCRBY", "DECRBY", "INCRBYFLOAT")
        }
        return Vocabulary(
            counted
            | {
                "key": key, "value": text, "ifeq-value": text, "ifne-value": text, "integer": number,
                "ifdeq-digest": DIGESTS, "ifdne-digest": DIGESTS, "SET ifdeq-digest": DIGESTS[:-2],
                "SET ifdne-digest": DIGESTS[:-2], "INCRBYFLOAT increment": REALS, "seconds": ("0", "-5", "x"),
                "milliseconds": ("0", "-1", "x"), "unix-time-seconds": (str(FAR_MS // 1000),),
                "unix-time-milliseconds": (str(FAR_MS), str(FAR_MS), "0"),
                "SETRANGE offset": ("0", "1", "3", "10", "-1", "x", "536870912"),
                "offset": ("#0", "#1", "#3", *OFFSETS),
                "SETBIT offset": OFFSETS, "GETBIT offset": OFFSETS, "SETBIT value": ("0", "1", "1", "1", "2"),
                "bit": ("0", "1", "1", "0", "2"), "encoding": FIELD_TYPES, "BITFIELD value": FIELD_NUMBERS,
                "BITFIELD increment": FIELD_NUMBERS,
            },
            {"condition": 0.4, "DELEX condition": 0.95, "GET": 0.3, "SET GET": 0.3, "expiration": 0.3, "EX": 0.2,
             "PX": 0.2, "KEEPTTL": 0.5, "range": 0.8, "end-unit-block": 0.7, "unit": 0.6},
        )  # fmt: skip

    def text(self) -> str:
        return self.of(*TEXTS, self.value())
