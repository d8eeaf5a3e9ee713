"""The kinds of values that directives have: how a value is read, shown, and written into a file.

A value is kept as a text. `read` makes it of the words of a file's line, or of the one word of CONFIG SET, or
raises BadValue with Redis's reason; `shown` is how CONFIG GET shows it: the same text, but for keyspace events
(Redis 8.6.3, CONFIG SET).
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.config import quoting

INT: Final = 2**31 - 1
LONG: Final = 2**63 - 1
ULONG: Final = 2**64 - 1

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_MEMORY: Final = re.compile(r"([0-9]*)(|b|k|kb|m|mb|g|gb)", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "k": 1000, "kb": 2**10, "m": 10**6, "mb": 2**20, "g": 10**9, "gb": 2**30}
_BINARY: Final = (("gb", 2**30), ("mb", 2**20), ("kb", 2**10))


class BadValue(Exception):
    """A directive cannot have this value; `text` says why, in Redis's words where it has any."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Kind:
    """What all kinds can do. `several`: the value may be several words; they may also come in one."""

    several = False

    def read(self, words: Sequence[str], before: str) -> str:
        """The value to keep. `before` is the value until now."""
        if self.several:
            return self.many(words[0].split(" ") if len(words) == 1 else list(words), before)
        if len(words) != 1:
            raise BadValue("wrong number of arguments")
        return self.one(words[0])

    def one(self, word: str) -> str:
        """The value of a kind that takes one word."""
        raise NotImplementedError

    def many(self, words: list[str], before: str) -> str:
        """The value of a kind that takes several."""
        raise NotImplementedError

    def shown(self, value: str) -> str:
        return value

    def number(self, value: str) -> int:
        """The value as a number, where it is one; else 0."""
        return 0

    def written(self, value: str) -> list[str]:
        """The value as what follows the directive's name in a file, for each line that it needs."""
        return [value]


class Text(Kind):
    """One word, whatever it says."""

    def one(self, word: str) -> str:
        return word

    def written(self, value: str) -> list[str]:
        return [quoting.quoted(value.encode(errors="surrogateescape"))]


class Number(Kind):
    """A decimal number in a range; one above `cap` is taken as `cap`, one below `least` as `least` (hz)."""

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
    """Permission bits. Shown in octal; `number` gives the bits."""

    def one(self, word: str) -> str:
        if re.fullmatch("[0-7]{1,20}", word) is None:
            raise BadValue("argument couldn't be parsed as an octal number")
        if int(word, 8) > 0o777:
            raise BadValue("argument must be between 0 and 777 inclusive")
        return f"{int(word, 8):o}"

    def number(self, value: str) -> int:
        return int(value, 8)


class Memory(Kind):
    """A number of bytes with a unit: 1k is 1000, 1kb is 1024; no digits at all mean 0."""

    def __init__(self, low: int = 0, high: int = LONG) -> None:
        self.low = low
        self.high = high

    def one(self, word: str) -> str:
        count = bytes_of(word)
        if count is None:
            raise BadValue("argument must be a memory value")
        _within(count, self.low, self.high)
        return str(count)

    def number(self, value: str) -> int:
        return int(value)

    def written(self, value: str) -> list[str]:
        return [with_unit(int(value))]


class MemoryOrPercent(Kind):
    """A number of bytes, or a share of maxmemory (maxmemory-clients)."""

    def one(self, word: str) -> str:
        count = int(word[:-1]) if re.fullmatch("[0-9]{1,19}%", word) else bytes_of(word)
        if count is None:
            raise BadValue("argument must be a memory or percent value")
        if word.endswith("%") and count > 100:
            raise BadValue("percentage argument must be less or equal to 100")
        return f"{count}%" if word.endswith("%") else str(count)


class YesNo(Kind):
    """Yes or no, in any case."""

    def one(self, word: str) -> str:
        if word.lower() not in ("yes", "no"):
            raise BadValue("argument must be 'yes' or 'no'")
        return word.lower()


class Choice(Kind):
    """One of a few words, in any case."""

    def __init__(self, names: str) -> None:
        self.names = names.split()

    def one(self, word: str) -> str:
        for name in self.names:
            if name.lower() == word.lower():
                return name
        raise BadValue("argument(s) must be one of the following: " + ", ".join(self.names))


class ShutdownOptions(Choice):
    """What a signal does: any of the words that go together (shutdown-on-sigterm)."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        chosen = {self.one(word) for word in words}
        if {"save", "nosave"} <= chosen:
            raise BadValue("shutdown options SAVE and NOSAVE can't be used simultaneously")
        return " ".join(name for name in self.names[1:] if name in chosen) or self.names[0]


class FileName(Text):
    """A name in a directory that another directive names: no path."""

    def __init__(self, directive: str, noun: str = "filename") -> None:
        self.directive = directive
        self.noun = noun

    def one(self, word: str) -> str:
        if "/" in word:
            raise BadValue(f"{self.directive} can't be a path, just a {self.noun}")
        if not word and self.directive != "dbfilename":
            raise BadValue(f"{self.directive} can't be empty")
        return word


class Folder(Text):
    """A directory that exists. Shown as an absolute path."""

    def one(self, word: str) -> str:
        try:
            os.scandir(word).close()
        except OSError as error:
            raise BadValue(os.strerror(error.errno or 0)) from None
        return str(Path(word).resolve())


class Words(Kind):
    """Several words that mean something to somebody else (replicaof). `NO ONE` is none."""

    several = True

    def __init__(self, count: int) -> None:
        self.count = count

    def many(self, words: list[str], before: str) -> str:
        if [word.lower() for word in words] in ([""], ["no", "one"]):
            return ""
        if len(words) != self.count:
            raise BadValue("wrong number of arguments")
        return " ".join(words)

    def written(self, value: str) -> list[str]:
        return [value or "no one"]


class Addresses(Kind):
    """Where to listen: at most 16 addresses; none listens nowhere."""

    several = True

    def many(self, words: list[str], before: str) -> str:
        if len(words) > 16:
            raise BadValue("Too many bind addresses specified.")
        return " ".join(words)

    def written(self, value: str) -> list[str]:
        return [value or '""']


class SavePoints(Kind):
    """Pairs of seconds and changes."""

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
    """A hard limit, a soft limit and its seconds for each class of clients; what is not named stays."""

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
        """By class: hard and soft limit in bytes, seconds."""
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
    """Letters of keyspace events, kept with A spelled out and in Redis's order."""

    ALL: Final = "g$lshzxetd"

    def one(self, word: str) -> str:
        if not set(word) <= set(self.ALL + "AKEnocm"):
            raise BadValue("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
        letters = set(word.replace("A", self.ALL))
        return "".join(letter for letter in self.ALL + "nocKEm" if letter in letters)

    def shown(self, value: str) -> str:
        if not value.startswith(self.ALL):
            return value
        # Beside A, Redis 8.6.3 shows no n, o or c, although it heeds them.
        return "A" + "".join(letter for letter in value[len(self.ALL) :] if letter in "KEm")


class Integers(Kind):
    """So many whole numbers in a range (oom-score-adj-values)."""

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
            if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", word) is None:
                raise BadValue("Invalid latency-tracking-info-percentiles parameters")
            if not 0 <= float(word) <= 100:
                raise BadValue("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
        return " ".join(f"{float(word):.9g}" for word in words)

    def written(self, value: str) -> list[str]:
        return [value or '""']


def integer_of(word: str) -> int | None:
    """A whole number of 64 bits, written without sign +, blanks or leading zeros; None where it is no such thing."""
    if len(word) > 20 or _INTEGER.fullmatch(word) is None:
        return None
    return int(word) if -LONG - 1 <= int(word) <= LONG else None


def bytes_of(word: str) -> int | None:
    """`10mb` as a number of bytes; None where it is no such thing.

    >>> bytes_of("1k"), bytes_of("1kb"), bytes_of("1.5gb")
    (1000, 1024, None)
    """
    found = _MEMORY.fullmatch(word)
    if found is None or len(found[1]) > 20:
        return None
    return min(int(found[1] or 0) * _UNITS[found[2].lower()], ULONG)


def with_unit(count: int) -> str:
    """A number of bytes as CONFIG REWRITE writes it, in the largest unit that divides it."""
    for unit, size in _BINARY:
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def _within(number: int, low: int, high: int) -> None:
    if not low <= number <= high:
        raise BadValue(f"argument must be between {low} and {high} inclusive")
