"""Reads timeouts: in milliseconds (CLIENT PAUSE, WAIT, WAITAOF), or in seconds with decimals (BLPOP, BZPOPMIN)."""

from typing import Final

from penstock.engine import arguments, numbers
from penstock.errors import ReplyError

FOR_EVER: Final = 0
FEW_DIGITS: Final = 12  # a number with fewer digits is in range and needs no check


def deadline(word: bytes, now_ms: int) -> int:
    """The unix time in ms at which a timeout in milliseconds ends; FOR_EVER for 0."""
    timeout_ms = arguments.timeout_ms(word, now_ms)
    return now_ms + timeout_ms if timeout_ms else FOR_EVER


def deadline_in_seconds(word: bytes, now_ms: int) -> int:
    """The unix time in ms at which a timeout in seconds ends, rounded up to whole ms; FOR_EVER for 0."""
    if word.isdigit() and len(word) < FEW_DIGITS:
        whole_ms = int(word) * 1000
        return now_ms + whole_ms if whole_ms else FOR_EVER
    seconds = numbers.long_double(word, b"ERR timeout is not a float or out of range")
    waited = None if seconds is None else seconds.times(1000)
    timeout_ms = arguments.MAX_INT64 + 1 if waited is None else waited.ceil()
    if timeout_ms < 0 or (seconds is None and word.startswith(b"-")):
        raise ReplyError(b"ERR timeout is negative")
    if timeout_ms == 0:
        return FOR_EVER
    if timeout_ms > arguments.MAX_INT64 - now_ms:
        raise ReplyError(b"ERR timeout is out of range")
    return now_ms + timeout_ms
