"""Reads ids digit by digit, for the compiled build. Without compilation, splits and joins are faster (ids.py).

See protocol/native_words.py for the reasons. The tests compare this with the Python version in ids.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i64_le

from penstock.native.digits import NONE, number_at
from penstock.native.text_match import is_at

if TYPE_CHECKING:
    from mypy_extensions import i64  # used by mypyc only; Python does not evaluate the annotations

NOT_PLAIN: Final = 0
OF_ONE_MS: Final = 1
OF_SEVERAL_MS: Final = 2

_ZERO: Final = 48
_DASH: Final = 45


def read_id(text: bytes) -> tuple[i64, i64]:
    """The milliseconds and the sequence number of an id `<ms>-<seq>`, both plain digits. O(bytes).

    (NONE, NONE) if it has another form or a number of more than 18 digits.
    """
    end: i64 = len(text)
    ms, at = number_at(text, 0, end)
    if ms < 0 or at == end or text[at] != _DASH:
        return NONE, NONE
    seq, at = number_at(text, at + 1, end)
    if seq < 0 or at < end:
        return NONE, NONE
    return ms, seq


def read_ids(texts: list[bytes], ms_numbers: BytesWriter, seq_numbers: BytesWriter) -> int:
    """Write what `read_id` reads from each id, as little-endian numbers of eight bytes. O(bytes).

    Returns NOT_PLAIN if one is not plain; OF_ONE_MS if all have the same milliseconds, which are written once; else
    OF_SEVERAL_MS.
    """
    head = b""  # of an id before, up to its dash: neighbours often share it
    shared: i64 = 0  # by how many; once it is by none, no more is made of it
    first_ms: i64 = 0
    ms: i64 = 0
    seq: i64 = 0
    result = OF_ONE_MS
    for text in texts:
        end: i64 = len(text)
        size: i64 = len(head)
        if size > 0 and size < end and is_at(head, text, 0):
            seq, at = number_at(text, size, end)
            if seq < 0 or at < end:
                return NOT_PLAIN
            shared += 1
        else:
            ms, seq = read_id(text)
            if ms < 0:
                return NOT_PLAIN
            head = b""
            if shared > 0 or not len(seq_numbers):
                head = text[: behind_dash(text)]
            shared = 0
        if not len(seq_numbers):
            first_ms = ms
            write_i64_le(ms_numbers, ms)
        elif result == OF_SEVERAL_MS:
            write_i64_le(ms_numbers, ms)
        elif ms != first_ms:
            result = OF_SEVERAL_MS
            while len(ms_numbers) < len(seq_numbers):
                write_i64_le(ms_numbers, first_ms)
            write_i64_le(ms_numbers, ms)
        write_i64_le(seq_numbers, seq)
    return result


def read_run(texts: list[bytes], start: i64) -> tuple[i64, i64, i64]:
    """The id at a place, as `read_id`, and the place behind it and those that follow it one by one in its millisecond.

    (NONE, NONE, start) if it has another form than ids.text gives it; others of another form end the run. O(bytes).
    """
    text = texts[start]
    ms, seq = read_id(text)
    if ms < 0 or not has_plain_number(text, 0):
        return NONE, NONE, start
    seq_at: i64 = behind_dash(text)
    if not has_plain_number(text, seq_at):
        return NONE, NONE, start
    head = text[:seq_at]
    last: i64 = seq
    at: i64 = start + 1
    count: i64 = len(texts)
    while at < count:
        text = texts[at]
        end: i64 = len(text)
        if end <= seq_at or not is_at(head, text, 0) or not has_plain_number(text, seq_at):
            break
        next_seq, stop = number_at(text, seq_at, end)
        if next_seq != last + 1 or stop < end:
            break
        last = next_seq
        at += 1
    return ms, seq, at


def behind_dash(text: bytes) -> i64:
    """The offset behind the dash of an id, which must have one."""
    at: i64 = 1
    while text[at - 1] != _DASH:
        at += 1
    return at


def has_plain_number(text: bytes, at: i64) -> bool:
    """Whether a number that begins at an offset has no leading zero."""
    return at + 1 >= len(text) or text[at] != _ZERO or text[at + 1] == _DASH
