"""The types of directives: how a value is read, shown, and written into a file.

A value is kept as text. `read` makes it from the words of a line in a file, or from the one word of CONFIG SET, or
raises BadValue with Redis's reason. `shown` is the text of CONFIG GET: the same, except for keyspace events (Redis
8.6.3, CONFIG SET).
"""

import os
import re
from collections.abc import Sequence
from typing import Final

from penstock.config import quoting

INT: Final = 2**31 - 1
LONG: Final = 2**63 - 1
ULONG: Final = 2**64 - 1

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_REAL: Final = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)
_MEMORY: Final = re.compile(r"([0-9]*)(|b|k|kb|m|mb|g|gb)", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 1000, "kb": 2**10, "m": 10**6, "mb": 2**20, "g": 10**9, "gb": 2**30}
_BINARY: Final = (("gb", 2**30), ("mb", 2**20), ("kb", 2**10))


class BadValue(Exception):
    """A directive cannot have this value. `text` is the reason, with Redis's text if it has one."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Kind:
    """The base class of all types. `several`: the value may have several words; CONFIG SET gives them as one."""

    several = False

    def read(self, words: Sequence[str], before: str) -> str:
        """The value to keep. `before` is the present value. BadValue if the words are not a value."""
        if self.several:
            return self.many(words[0].split(" ") if len(words) == 1 else list(words), before)
        if len(words) != 1:
            raise BadValue("wrong number of arguments")
        return self.one(words[0])

    def one(self, word: str) -> str:
        """The value to keep, for types of one word."""
        raise NotImplementedError

    def many(self, words: list[str], before: str) -> str:
        """The value to keep, for types of several words."""
        raise NotImplementedError

    def shown(self, value: str) -> str:
        """The value as CONFIG GET shows it."""
        return value

    def number(self, value: str) -> int:
        """The value as a number; 0 if it is not one."""
        return 0

    def written(self, value: str) -> list[str]:
        """The value as CONFIG REWRITE writes it: a text behind the name for each line, if there is one."""
        return [value]


class Text(Kind):
    """One word with any contents."""

    def one(self, word: str) -> str:
        return word

    def written(self, value: str) -> list[str]:
        return [quoting.quoted(value.encode(errors="surrogateescape"))]


class FilePath(Text):
    """The path of a file or directory. (Redis cuts it off at a zero byte.)"""

    def one(self, word: str) -> str:
        if "\0" in word:
            raise BadValue("argument can't contain a zero byte")
        return word


class IpAddress(Text):
    """An address of IPv4 or of IPv6; empty for none."""

    def __init__(self, version: int) -> None:
        self.version = version

    def one(self, word: str) -> str:
        from ipaddress import ip_address  # imported late: most servers name none

        try:
            if word and ip_address(word).version != self.version:
                raise ValueError
        except ValueError:
            raise BadValue(f"Invalid IPv{self.version} address") from None
        return word


class Number(Kind):
    """A decimal number in a range. A number above `cap` becomes `cap`, one below `least` becomes `least` (hz)."""

    def __init__(self, low: int, high: int, least: int | None = None, cap: int | None = None) -> None:
        self.low = low
        self.high = high
        self.least = low if least is None else least
        self.cap = high if cap is None else cap

    def one(self, word: str) -> str:
        number = integer_of(word)
        if number is None:
            raise BadValue("argument couldn't be parsed into an integer")
        _within(number, self.low, self.high)
        return str(min(max(number, self.least), self.cap))

    def number(self, value: str) -> int:
        return int(value)


class Octal(Kind):
    """Permission bits, written and shown in octal; `number` gives the bits."""

    def one(self, word: str) -> str:
        if re.fullmatch("[0-7]{1,20}", word) is None:
            raise BadValue("argument couldn't be parsed as an octal number")
        if int(word, 8) > 0o777:
            raise BadValue("argument must be between 0 and 777 inclusive")
        return f"{int(word, 8):o}"

    def number(self, value: str) -> int:
        return int(value, 8)


class Memory(Kind):
    """A number of bytes with a unit: 1k is 1000, 1kb is 1024. A unit without digits means 0.

    A number below `least` becomes `least`.
    """

    def __init__(self, low: int = 0, high: int = LONG, least: int = 0) -> None:
        self.low = low
        self.high = high
        self.least = least

    def one(self, word: str) -> str:
        count = bytes_of(word)
        if count is None:
            raise BadValue("argument must be a memory value")
        _within(count, self.low, self.high)
        return str(max(count, self.least))

    def number(self, value: str) -> int:
        return int(value)

    def written(self, value: str) -> list[str]:
        return [with_unit(int(value))]


class MemoryOrUnlimited(Memory):
    """A number of bytes, or -1 for no limit."""

    def one(self, word: str) -> str:
        number = integer_of(word)
        if number is not None and number < 0:
            _within(number, -1, self.high)
            return word
        if (bytes_of(word) or 0) > self.high:
            raise BadValue("argument must be a memory value")
        return super().one(word)

    def written(self, value: str) -> list[str]:
        return [value] if value == "-1" else super().written(value)


class MemoryOrPercent(Kind):
    """A number of bytes, or a percentage of maxmemory (maxmemory-clients)."""

    def one(self, word: str) -> str:
        count = int(word[:-1]) if re.fullmatch("[0-9]{1,19}%", word) else bytes_of(word)
        if count is None:
            raise BadValue("argument must be a memory or percent value")
        if word.endswith("%") and count > 100:
            raise BadValue("percentage argument must be less or equal to 100")
        return f"{count}%" if word.endswith("%") else str(count)


class YesNo(Kind):
    """Yes or no, in upper or lower case."""

    def one(self, word: str) -> str:
        if word.lower() not in ("yes", "no"):
            raise BadValue("argument must be 'yes' or 'no'")
        return word.lower()


class Choice(Kind):
    """One of several words, in upper or lower case."""

    def __init__(self, names: str) -> None:
        self.names = names.split()

    def one(self, word: str) -> str:
        for name in self.names:
            if name.lower() == word.lower():
                return name
        raise BadValue("argument(s) must be one of the following: " + ", ".join(self.names))


class ShutdownOptions(Choice):
    """The effect of a signal: several words that can be combined (shutdown-on-sigterm)."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        chosen = {self.one(word) for word in words}
        if {"save", "nosave"} <= chosen:
            raise BadValue("shutdown options SAVE and NOSAVE can't be used simultaneously")
        return " ".join(name for name in self.names[1:] if name in chosen) or self.names[0]


class FileName(FilePath):
    """A file name without a path; another directive names its directory."""

    def __init__(self, directive: str, noun: str = "filename") -> None:
        self.directive = directive
        self.noun = noun

    def one(self, word: str) -> str:
        if "/" in word:
            raise BadValue(f"{self.directive} can't be a path, just a {self.noun}")
        if not word and self.directive != "dbfilename":
            raise BadValue(f"{self.directive} can't be empty")
        return super().one(word)


class Folder(FilePath):
    """An existing directory. Shown as an absolute path."""

    def one(self, word: str) -> str:
        try:
            os.scandir(super().one(word)).close()
        except OSError as error:
            raise BadValue(os.strerror(error.errno or 0)) from None
        return os.path.realpath(word)


class MasterAddress(Kind):
    """A host and a port (replicaof). `NO ONE` is the empty value."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        if [word.lower() for word in words] in ([""], ["no", "one"]):
            return ""
        if len(words) != 2:
            raise BadValue("wrong number of arguments")
        port = integer_of(words[1])
        if port is None or not 0 <= port <= 65535:
            raise BadValue("Invalid master port")
        return " ".join(words)

    def written(self, value: str) -> list[str]:
        return [value] if value else []


class Addresses(Kind):
    """The addresses to listen on, at most 16; with none, the server does not listen."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        if len(words) > 16:
            raise BadValue("Too many bind addresses specified.")
        return " ".join(words)

    def written(self, value: str) -> list[str]:
        return [value or '""']


class SavePoints(Kind):
    """Pairs of numbers: seconds and changes."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        if words == [""]:
            return ""
        for at, word in enumerate(words):
            number = integer_of(word)
            if number is None or not 1 - at % 2 <= number <= INT:
                raise BadValue("Invalid save parameters")
        if len(words) % 2:
            raise BadValue("Invalid save parameters")
        return " ".join(words)

    def written(self, value: str) -> list[str]:
        words = value.split()
        return [" ".join(words[at : at + 2]) for at in range(0, len(words), 2)] or ['""']


class BufferLimits(Kind):
    """For each class of clients a hard limit, a soft limit and its seconds. Classes that are not named keep theirs."""

    several = True
    CLASSES: Final = ("normal", "slave", "pubsub")

    def many(self, words: list[str], before: str) -> str:
        if words == [""]:
            return before
        if len(words) % 4:
            raise BadValue("Wrong number of arguments in buffer limit configuration.")
        limits = self.limits(before)
        for at in range(0, len(words), 4):
            name = "slave" if words[at].lower() == "replica" else words[at].lower()
            if name not in self.CLASSES:
                raise BadValue("Invalid client class specified in buffer limit configuration.")
            hard, soft, seconds = bytes_of(words[at + 1]), bytes_of(words[at + 2]), integer_of(words[at + 3])
            if hard is None or soft is None or seconds is None or seconds < 0:
                raise BadValue("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
            limits[name] = (hard, soft, seconds)
        return " ".join("{} {} {} {}".format(name, *limits[name]) for name in self.CLASSES)

    def limits(self, value: str) -> dict[str, tuple[int, int, int]]:
        """By class: hard limit and soft limit in bytes, and seconds."""
        words = value.split()
        return {
            words[at]: (int(words[at + 1]), int(words[at + 2]), int(words[at + 3])) for at in range(0, len(words), 4)
        }

    def written(self, value: str) -> list[str]:
        return [
            f"{name} {with_unit(hard)} {with_unit(soft)} {seconds}"
            for name, (hard, soft, seconds) in self.limits(value).items()
        ]


class EventClasses(Text):
    """Letters of keyspace event classes.

    They are kept in Redis's order, with A replaced by the letters that it stands for.
    """

    ALL: Final = "g$lshzxetda"  # a, for arrays: Redis 8.8
    WAYS: Final = "KEmSTIV"  # the last four, of the parts of values: Redis 8.8

    def one(self, word: str) -> str:
        if not set(word) <= set(self.ALL + "Anoc" + self.WAYS):
            raise BadValue("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
        letters = set(word.replace("A", self.ALL))
        return "".join(letter for letter in self.ALL + "noc" + self.WAYS if letter in letters)

    def shown(self, value: str) -> str:
        if not value.startswith(self.ALL):
            return value
        # Together with A, Redis 8.6.3 does not show n, o and c, although they are in force.
        return "A" + "".join(letter for letter in value[len(self.ALL) :] if letter in self.WAYS)


class Integers(Kind):
    """A fixed number of integers in a range (oom-score-adj-values)."""

    several = True

    def __init__(self, directive: str, count: int, low: int, high: int) -> None:
        self.directive = directive
        self.count = count
        self.low = low
        self.high = high

    def many(self, words: list[str], before: str) -> str:
        if len(words) != self.count:
            raise BadValue("wrong number of arguments")
        for word in words:
            number = integer_of(word)
            if number is None or not self.low <= number <= self.high:
                raise BadValue(f"Invalid {self.directive}, elements must be between {self.low} and {self.high}.")
        return " ".join(words)


class Percentiles(Kind):
    """Numbers from 0 to 100 (latency-tracking-info-percentiles)."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        if words == [""]:
            return ""
        for word in words:
            if _REAL.fullmatch(word) is None:
                raise BadValue("Invalid latency-tracking-info-percentiles parameters")
            if not 0 <= float(word) <= 100:
                raise BadValue("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
        return " ".join(f"{float(word):f}".rstrip("0").rstrip(".") for word in words)

    def written(self, value: str) -> list[str]:
        return [value or '""']


def integer_of(word: str) -> int | None:
    """A 64-bit integer in canonical form (no plus sign, blanks or leading zeros); None if the word is not one."""
    if len(word) > 20 or _INTEGER.fullmatch(word) is None:
        return None
    return int(word) if -LONG - 1 <= int(word) <= LONG else None


def bytes_of(word: str) -> int | None:
    """The number of bytes in a word such as `10mb`; None if it is not one.

    >>> bytes_of("1k"), bytes_of("1kb"), bytes_of("1.5gb")
    (1000, 1024, None)
    """
    found = _MEMORY.fullmatch(word)
    if found is None or len(found[1]) > 20:
        return None
    return min(int(found[1] or 0) * _UNITS[found[2].lower()], ULONG)


def with_unit(count: int) -> str:
    """A number of bytes as CONFIG REWRITE writes it: in the largest unit that divides it."""
    for unit, size in _BINARY:
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def _within(number: int, low: int, high: int) -> None:
    if not low <= number <= high:
        raise BadValue(f"argument must be between {low} and {high} inclusive")
