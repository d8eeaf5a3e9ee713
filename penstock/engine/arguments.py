"""Reading a request's words: integers, flags, times (Redis 8.6.3)."""

from typing import Final

from penstock.engine import refusals
from penstock.engine.cluster.hash_slots import SLOTS
from penstock.errors import ReplyError
from penstock.native.build import IS_COMPILED
from penstock.native.digits import integer_of

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)
MAX_INT32: Final = 2**31 - 1
MIN_INT32: Final = -(2**31)


def is_integer(word: bytes) -> bool:
    """Whether a word is a canonical signed 64-bit integer: no sign +, no leading zeros, no blanks."""
    if word.isdigit():
        if len(word) < 19:
            return word[0] != 48 or len(word) == 1
        return len(word) == 19 and word[0] != 48 and int(word) <= MAX_INT64
    digits = word[1:]
    if not word.startswith(b"-") or not digits.isdigit() or digits[0] == 48 or len(digits) > 19:
        return False
    return int(word) >= MIN_INT64


def integer(word: bytes) -> int:
    """A canonical signed 64-bit integer, else `ERR value is not an integer or out of range`."""
    if IS_COMPILED:
        number, is_one = integer_of(word)
        if is_one:  # most are
            return number
    elif word.isdigit() and len(word) < 19 and word[0] != 48:
        return int(word)
    if not is_integer(word):
        raise refusals.not_an_integer()
    return int(word)


def integer_or(word: bytes, text: bytes) -> int:
    """As `integer`, with another text for the refusal."""
    try:
        return integer(word)
    except ReplyError:
        raise ReplyError(text) from None


def at_least(least: int, word: bytes, text: bytes) -> int:
    """An integer from `least` on; `text` is the refusal of anything else."""
    number = integer_or(word, text)
    if number < least:
        raise ReplyError(text)
    return number


def within(least: int, most: int, word: bytes, text: bytes) -> int:
    """As `at_least`, up to `most`."""
    number = at_least(least, word, text)
    if number > most:
        raise ReplyError(text)
    return number


def slot(word: bytes) -> int:
    """The number of a hash slot, else `ERR Invalid or out of range slot`."""
    return within(0, SLOTS - 1, word, b"ERR Invalid or out of range slot")


def not_negative(word: bytes) -> int:
    """An integer from 0 on, else `ERR value is out of range, must be positive`."""
    return at_least(0, word, b"ERR value is out of range, must be positive")


def timeout_ms(word: bytes, now_ms: int) -> int:
    """A timeout in whole milliseconds, 0 for ever: BLOCK, WAIT."""
    milliseconds = integer_or(word, b"ERR timeout is not an integer or out of range")
    if milliseconds < 0:
        raise ReplyError(b"ERR timeout is negative")
    if milliseconds > MAX_INT64 - now_ms:
        raise ReplyError(b"ERR timeout is out of range")
    return milliseconds


def count(word: bytes) -> int:
    """The number behind COUNT of what pops or moves several elements: ZMPOP, LMPOP, LMOVEM, ZMOVE."""
    return at_least(1, word, b"ERR count should be greater than 0")
