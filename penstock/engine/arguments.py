"""Reading a request's words: integers, flags, times (Redis 8.6.3)."""

from typing import Final

from penstock.engine import refusals
from penstock.errors import ReplyError
from penstock.native.build import IS_COMPILED
from penstock.native.digits import integer_of

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)


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


def positive(word: bytes, text: bytes) -> int:
    """A number of at least 1; `text` is the refusal of anything else."""
    number = integer_or(word, text)
    if number < 1:
        raise ReplyError(text)
    return number


def count(word: bytes) -> int:
    """The number behind COUNT of what pops or moves several elements: ZMPOP, LMPOP, LMOVEM, ZMOVE."""
    return positive(word, b"ERR count should be greater than 0")
