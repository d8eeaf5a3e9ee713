"""Reads which fields of a hash or members of a set are named, and their time of expiry.

Redis has two forms of it, with different errors (Redis 8.6.3; for members the feature's author's branch of 8.12).
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.errors import ReplyError

MOST_PARTS: Final = 2**31 - 1
LATEST_MS: Final = 2**46 - 1  # Redis stores a part's time of expiry in 46 bits


class PartWords:
    """The words of requests about fields, or about members: `keyword` is FIELDS or MEMBERS, `existence` its conditions.

    revives: HEXPIRE gives an expired field that was not removed yet a new time; for SEXPIRE such a member is missing.
    """

    __slots__ = ("existence", "has_persist", "keyword", "lower", "number", "prefix", "revives")

    def __init__(self, prefix: bytes, keyword: bytes, existence: tuple[bytes, bytes]) -> None:
        self.prefix = prefix  # of commands and events: b"H"
        self.keyword = keyword
        self.lower = keyword.lower()
        self.number = keyword.capitalize()
        self.existence = existence
        self.has_persist = keyword == b"FIELDS"  # HGETEX; sets have nothing like it
        self.revives = self.has_persist

    def name(self, rest: bytes) -> bytes:
        """A command: HPEXPIREAT of PEXPIREAT."""
        return self.prefix + rest

    def event(self, rest: bytes) -> bytes:
        """A keyspace event: hexpire of expire."""
        return self.prefix.lower() + rest

    def syntax(self) -> str:
        """How a request names the parts, as it is declared: `fields:FIELDS (numfields field [field ...])`."""
        parts = self.lower.decode()
        part = parts[:-1]
        return f"{parts}:{self.keyword.decode()} (num{parts} {part} [{part} ...])"

    def complexity(self) -> str:
        return f"O(N) where N is the number of specified {self.lower.decode()}"

    def at_three(self, args: list[bytes]) -> list[bytes]:
        """The parts after the keyword, which must be the third word; nothing may follow them: HTTL, HGETDEL."""
        if args[2].upper() != self.keyword:
            raise ReplyError(b"ERR Mandatory argument %b is missing or not at the right position" % self.keyword)
        count = int(args[3]) if arguments.is_integer(args[3]) else 0
        if count < 1:
            raise ReplyError(b"ERR Number of %b must be a positive integer" % self.lower)
        if count != len(args) - 4:
            raise ReplyError(b"ERR The `num%b` parameter must match the number of arguments" % self.lower)
        return args[4:]

    def repeated(self) -> ReplyError:
        return ReplyError(b"ERR %b keyword specified multiple times" % self.keyword)

    def too_few(self) -> ReplyError:
        wanted = b"num%b and one %b argument" % (self.lower, self.lower[:-1])
        return ReplyError(b"ERR %b requires at least %b" % (self.keyword, wanted))

    def missing(self) -> ReplyError:
        return ReplyError(b"ERR missing %b argument" % self.keyword)


def counted(args: list[bytes], at: int, words_each: int, text: bytes) -> list[bytes]:
    """The words that the number at args[at] counts; others may follow. `text` is the error for a wrong number."""
    count = int(args[at]) if arguments.is_integer(args[at]) else 0
    if not 1 <= count <= MOST_PARTS:
        raise ReplyError(text)
    stop = at + 1 + count * words_each
    if stop > len(args):
        raise ReplyError(b"ERR wrong number of arguments")
    return args[at + 1 : stop]


def moment(word: bytes, base_ms: int, in_seconds: bool, name: bytes) -> int:
    """The time of expiry in unix ms that a word gives, relative to `base_ms`, for the command `name`."""
    number = arguments.integer(word)
    if number < 0:
        raise ReplyError(b"ERR invalid expire time, must be >= 0")
    when_ms = base_ms + (number * 1000 if in_seconds else number)
    if when_ms > LATEST_MS:
        raise ReplyError(b"ERR invalid expire time in '%b' command" % name)
    return when_ms


def unknown(word: bytes) -> ReplyError:
    return ReplyError(b"ERR unknown argument: %b" % refusals.c_string(word))
