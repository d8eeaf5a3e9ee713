"""Stream ids: 128 bits, milliseconds above a sequence number, printed as `<ms>-<seq>`.

A `StreamId` is one int, `ms << 64 | seq`, so that comparing ids is comparing ints. Do not use one as the key of a
dict: CPython hashes ints modulo 2**61 - 1, and then (ms, seq) and (ms + 1, seq - 8) have equal hashes.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from operator import neg
from typing import Final, TypeAlias

from librt.strings import BytesWriter

from penstock.native.build import IS_COMPILED
from penstock.native.columns import WIDE, from_little_endian, single
from penstock.native.digits import number_at
from penstock.storage.streams import native_ids

StreamId: TypeAlias = int
IdHalves: TypeAlias = tuple[int, int]
"""Milliseconds and sequence number: cheaper than a StreamId, which is too large to be anything but an object."""
IdRun: TypeAlias = tuple[int, int, int]
"""Consecutive ids in one millisecond: milliseconds, first sequence number, how many."""

HALF: Final = 2**64 - 1
ID_BYTES: Final = 16  # of an id in files: milliseconds and sequence number, both big-endian
ZERO: Final[StreamId] = 0
MAX: Final[StreamId] = 2**128 - 1
LONGEST_TEXT: Final = 127  # bytes; a longer argument is not an id
LONGEST_PLAIN: Final = 41  # bytes: of an id as `text` writes it

_DECIMALS: Final = [b"%d" % number for number in range(1000)]  # texts of the usual sequence numbers
_LENIENT: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)\Z")


def text(entry_id: StreamId) -> bytes:
    """The text of an id: no padding, always both parts.

    >>> text(5 << 64 | 1)
    b'5-1'
    """
    return text_of(entry_id >> 64, entry_id & HALF)


def halves(entry_id: StreamId) -> IdHalves:
    """The milliseconds and the sequence number of an id."""
    return entry_id >> 64, entry_id & HALF


def text_of(ms: int, seq: int) -> bytes:
    """As `text`, for an id in two halves. Cheaper where the milliseconds were among the last two."""
    written = _heads.last
    if ms != written[0]:
        former, _heads.former = _heads.former, written
        written = former if former[0] == ms else (ms, b"%d-" % ms)
        _heads.last = written
    return written[1] + (_DECIMALS[seq] if seq < 1000 else b"%d" % seq)


class _Heads:
    """The milliseconds that were written last, and those before: each in a tuple with their text up to the dash,
    because of other threads. A group's first and last pending id are often asked for in turn.
    """

    __slots__ = ("former", "last")

    def __init__(self) -> None:
        self.last: tuple[int, bytes] = (0, b"0-")
        self.former: tuple[int, bytes] = (0, b"0-")


_heads: Final = _Heads()


def last_at_most(ascending: list[StreamId], entry_id: StreamId, guess: int) -> int:
    """The index of the last of some ids that is at most `entry_id`; -1 if all are above it.

    O(1) if `guess`, any number, is that index; else O(log ids). A caller that asks for ids near to each other gives the
    index found last: a bisect touches many int objects, which are not in the processor's caches if there are many ids.
    """
    count = len(ascending)
    if 0 <= guess < count and ascending[guess] <= entry_id:
        if guess + 1 == count or entry_id < ascending[guess + 1]:
            return guess
        if guess + 2 == count or entry_id < ascending[guess + 2]:
            return guess + 1
    return bisect_right(ascending, entry_id) - 1


def decimal(number: int) -> bytes:
    """The text of a number, as b"%d" makes it: quicker for the usual sequence numbers."""
    return _DECIMALS[number] if 0 <= number < 1000 else b"%d" % number


def decimals(first: int, stop: int) -> list[bytes]:
    """The texts of the numbers [first, stop)."""
    return _DECIMALS[first:stop] if stop <= len(_DECIMALS) else [decimal(number) for number in range(first, stop)]


def parse(word: bytes, missing_seq: int = 0) -> StreamId:
    """Read an id; ValueError if the word is not one. `missing_seq` is the sequence number of a bare `<ms>`.

    >>> text(parse(b"5")), text(parse(b"5", HALF))
    (b'5-0', b'5-18446744073709551615')
    """
    if IS_COMPILED:
        plain = native_ids.read_id(word)
        high: int = plain[0]  # as Python's numbers: an id has 128 bits
        low: int = plain[1]
        if high >= 0:
            return high << 64 | low
        size = len(word)
        alone = number_at(word, 0, size)
        whole: int = alone[0]
        if whole >= 0 and alone[1] == size:
            return whole << 64 | missing_seq
    ms_word, dash, seq_word = word.partition(b"-")
    if ms_word.isdigit() and len(word) <= 40:
        if seq_word.isdigit():
            ms, seq = int(ms_word), int(seq_word)
        elif not dash:
            ms, seq = int(ms_word), missing_seq
        else:
            return _parse_lenient(word, missing_seq)
        if ms <= HALF and seq <= HALF:
            return ms << 64 | seq
        raise ValueError(word)
    return _parse_lenient(word, missing_seq)


def parse_halves(word: bytes) -> IdHalves:
    """As `parse`; cheaper, in the compiled build, where no StreamId is needed."""
    if IS_COMPILED:
        ms, seq = native_ids.read_id(word)
        if ms >= 0:
            return ms, seq
    return halves(parse(word))


def _parse_lenient(word: bytes, missing_seq: int) -> StreamId:
    """Forms that C's strtoull accepts: leading white space, a plus sign, leading zeros, anything after a NUL byte."""
    if len(word) > LONGEST_TEXT:
        raise ValueError(word)
    ms_word, dash, seq_word = word.partition(b"\0")[0].partition(b"-")
    if dash:
        return _half(ms_word) << 64 | _half(seq_word)
    return _half(ms_word) << 64 | missing_seq


def _half(word: bytes) -> int:
    match = _LENIENT.match(word)
    if match is None or word.startswith(b"-"):
        raise ValueError(word)
    number = int(match.group(2))
    if number > HALF:
        raise ValueError(word)
    return -number & HALF if match.group(1) == b"-" else number  # after white space a minus wraps around, as in C


def runs_above(texts: list[bytes], last_ms: int, last_seq: int) -> list[IdRun]:
    """The first of some ids, up to one that is not as `text` writes it or is not above the one before it, in runs.

    The first must be above the id in two halves. O(bytes).

    >>> runs_above([b"5-1", b"5-2", b"7-0", b"7-0"], 5, 0)
    [(5, 1, 2), (7, 0, 1)]
    """
    runs: list[IdRun] = []
    at, count = 0, len(texts)
    while at < count:
        found = native_ids.read_run(texts, at)
        ms: int = found[0]  # as Python's numbers: the last id's may have 64 bits
        seq: int = found[1]
        stop: int = found[2]
        if ms < last_ms or (ms == last_ms and seq <= last_seq):  # below any id if it is NONE
            break
        runs.append((ms, seq, stop - at))
        last_ms, last_seq = ms, seq + stop - at - 1
        at = stop
    return runs


class IdColumns:
    """Several ids, in order, as two columns, so that neighbours can be compared and changed by slices."""

    __slots__ = ("ms", "seq")

    def __init__(self, ms: "array[int]", seq: "array[int]") -> None:
        self.ms = ms
        self.seq = seq

    def __len__(self) -> int:
        return len(self.ms)

    def id_at(self, at: int) -> StreamId:
        """The id at an index. O(1)."""
        return self.ms[at] << 64 | self.seq[at]

    def ascends(self) -> bool:
        """Whether no id is below the one before it. O(ids), for ids that ascend."""
        pairs = list(zip(self.ms, self.seq, strict=True))
        return pairs == sorted(pairs)


def columns(entry_ids: Iterable[StreamId]) -> IdColumns:
    """The same ids as columns. O(ids)."""
    listed = list(entry_ids)
    return IdColumns(array(WIDE, [one >> 64 for one in listed]), array(WIDE, [one & HALF for one in listed]))


def parse_all(texts: list[bytes]) -> IdColumns:
    """Read ids as `parse` does; ValueError if one of the words is not an id."""
    if len(texts) == 1:
        ms, seq = parse_halves(texts[0])
        return IdColumns(single(ms), single(seq))
    found = _read_digits(texts) if IS_COMPILED else _read_joined(texts)
    return columns(map(parse, texts)) if found is None else found


def _read_digits(texts: list[bytes]) -> IdColumns | None:
    """For the compiled build: ids of two plain numbers each, read byte by byte; None if one has another form."""
    ms_numbers, seq_numbers = BytesWriter(), BytesWriter()
    result = native_ids.read_ids(texts, ms_numbers, seq_numbers)
    if result == native_ids.NOT_PLAIN:
        return None
    ms = ms_numbers.getvalue()
    if result == native_ids.OF_ONE_MS:
        ms *= len(texts)
    return IdColumns(from_little_endian(WIDE, ms), from_little_endian(WIDE, seq_numbers.getvalue()))


def _read_joined(texts: list[bytes]) -> IdColumns | None:
    """For the uncompiled build: ids of two plain numbers each, by splits and joins; None if one has another form."""
    # If every word is `<ms>-<seq>`, every second number starts with `-`. In any other word a `-` is misplaced,
    # and isdigit or array() below refuses it.
    joined = b",".join(texts).replace(b"-", b",-")
    numbers = joined.split(b",")
    if len(numbers) == 2 * len(texts) and not joined.translate(None, b"0123456789,-"):
        ms_words = numbers[::2]
        if ms_words.count(ms_words[0]) == len(texts):  # usual in a producer's pipeline: one millisecond
            ms_words = ms_words[:1]
        if all(map(bytes.isdigit, ms_words)):
            try:
                ms = array(WIDE, map(int, ms_words))
                if len(ms) == 1:
                    ms = ms * len(texts)
                return IdColumns(ms, array(WIDE, map(neg, map(int, numbers[1::2]))))
            except (ValueError, OverflowError):
                pass
    return None
