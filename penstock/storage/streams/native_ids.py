"""Ids read digit by digit: what the compiled build does where Python itself is faster with splits and joins.

See protocol/native_parser.py for why. The Python way (ids.py) is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # the compiler's; Python does not look at it

UNREAD: Final = 0
OF_ONE_MS: Final = 1
OF_SEVERAL_MS: Final = 2

_MOST_DIGITS: Final = 18  # more may be too much for 64 bits with a sign
_ZERO: Final = 48
_DASH: Final = 45


def read_ids(texts: list[bytes], ms_column: list[int], seq_column: list[int]) -> int:
    """Fill in the milliseconds and sequence numbers of ids `<ms>-<seq>` in digits.

    UNREAD where one is not of that form, or of longer numbers; OF_ONE_MS where all have the same milliseconds.
    """
    first_ms: i64 = -1
    result = OF_ONE_MS
    for text in texts:
        end: i64 = len(text)
        at: i64 = 0
        ms: i64 = 0
        while at < end and text[at] != _DASH:
            digit: i64 = text[at]
            digit -= _ZERO
            if digit < 0 or digit > 9:
                return UNREAD
            ms = ms * 10 + digit
            at += 1
        if at == 0 or at > _MOST_DIGITS or at + 1 >= end or end - at - 1 > _MOST_DIGITS:
            return UNREAD
        at += 1
        seq: i64 = 0
        while at < end:
            digit = text[at]
            digit -= _ZERO
            if digit < 0 or digit > 9:
                return UNREAD
            seq = seq * 10 + digit
            at += 1
        if first_ms < 0:
            first_ms = ms
        elif ms != first_ms:
            result = OF_SEVERAL_MS
        ms_column.append(ms)
        seq_column.append(seq)
    return result
