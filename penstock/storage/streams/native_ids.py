"""Reads ids digit by digit, for the compiled build. Without compilation, splits and joins are faster (ids.py).

See protocol/native_parser.py for the reasons. The tests compare this with the Python version in ids.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

NOT_PLAIN: Final = 0
OF_ONE_MS: Final = 1
OF_SEVERAL_MS: Final = 2

_MOST_DIGITS: Final = 18  # numbers with more digits may not fit in a signed 64-bit integer
_ZERO: Final = 48
_DASH: Final = 45


def read_ids(texts: list[bytes], ms_column: list[int], seq_column: list[int]) -> int:
    """Append the milliseconds and sequence numbers of ids `<ms>-<seq>`, both plain digits, to the columns. O(bytes).

    Returns NOT_PLAIN if an id has another form or a number of more than 18 digits; OF_ONE_MS if all have the same
    milliseconds; else OF_SEVERAL_MS.
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
                return NOT_PLAIN
            ms = ms * 10 + digit
            at += 1
        if at == 0 or at > _MOST_DIGITS or at + 1 >= end or end - at - 1 > _MOST_DIGITS:
            return NOT_PLAIN
        at += 1
        seq: i64 = 0
        while at < end:
            digit = text[at]
            digit -= _ZERO
            if digit < 0 or digit > 9:
                return NOT_PLAIN
            seq = seq * 10 + digit
            at += 1
        if first_ms < 0:
            first_ms = ms
        elif ms != first_ms:
            result = OF_SEVERAL_MS
        ms_column.append(ms)
        seq_column.append(seq)
    return result
