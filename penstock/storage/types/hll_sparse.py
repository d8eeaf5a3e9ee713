"""The sparse form of a HyperLogLog: runs of equal registers, from byte 16 of the value on.

    00xxxxxx            ZERO    x + 1 registers (1 to 64) that are 0
    01xxxxxx yyyyyyyy   XZERO   (x << 8 | y) + 1 registers (1 to 16384) that are 0
    1vvvvvxx            VAL     x + 1 registers (1 to 4) that are v + 1 (1 to 32)

The runs cover 16384 registers. Which runs a history of additions leaves is told by GET, so runs are split and merged
exactly as by Redis 8.6.3.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final
from zlib import adler32

from librt.strings import read_i64_le

from penstock.native.build import IS_COMPILED
from penstock.storage.types.hll_registers import HEADER, REGISTERS

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

XZERO: Final = 0x40
VAL: Final = 0x80
MOST_IN_ZERO: Final = 64  # registers of a run
MOST_IN_VAL: Final = 4
NONE: Final = -1
LARGEST_VALUE: Final = 32
MERGE_STEPS: Final = 5  # runs that are looked at after a change
ALL_ZERO: Final = b"\x7f\xff"

_ONE_BYTE_RUNS: Final = re.compile(rb"[^\x40-\x7f]{1,1000}")
_PIECE: Final = re.compile(rb"[^\x40-\x7f]+|[\x40-\x7f].", re.DOTALL)  # runs that take one byte each, or an XZERO
# How many registers a run of one byte covers, and which; 0 for an XZERO.
_LENGTHS: Final = bytes([*range(1, 65), *bytes(64), *[(run & 3) + 1 for run in range(128)]])
_REGISTERS: Final = [bytes([(run >> 2 & 31) + 1 if run & VAL else 0]) * _LENGTHS[run] for run in range(256)]
STEPS: Final = 8  # one-byte runs that are passed one by one; what follows them is halved until it is found
MERGE_WINDOW: Final = 2 * MERGE_STEPS + 1  # bytes of as many runs, and the one that follows them
BYTES: Final = 8  # of a machine word
EACH_1: Final = 0x01_01_01_01_01_01_01_01  # in each byte of a word
EACH_63: Final = 63 * EACH_1
SECOND_BYTES: Final = 0x00_FF_00_FF_00_FF_00_FF
EACH_SECOND: Final = 0x00_01_00_01_00_01_00_01


class CorruptHyperLogLog(Exception):
    """The runs do not cover exactly 16384 registers."""


class Outcome(Enum):
    """The result of an attempt to raise a register."""

    UNCHANGED = 0
    CHANGED = 1
    NO_ROOM = 2  # unchanged, because the value is too large for this form, or the form would become too long


class _Run:
    """A run: where it stands, its first register, how many registers it covers.

    before: where the run before it stands; NONE where it is the first, or not known.
    """

    __slots__ = ("before", "first", "length", "place")

    def __init__(self, place: int, before: int, first: int, length: int) -> None:
        self.place = place
        self.before = before
        self.first = first
        self.length = length


class SparseRuns:
    """The runs of a value, header included, that is changed in place.

    Invariant: at `_known_place` a run begins, with the register `_known_first`. A register behind it is looked for from
    there on, so that registers raised in ascending order cost O(1) each, and a copy of the runs. Any other costs O(n);
    long stretches without an XZERO are not walked through: uncompiled, they are halved, compiled, passed by words.
    """

    __slots__ = ("_known_first", "_known_place", "held")

    def __init__(self, held: bytearray) -> None:
        self.held = held
        self._known_place = HEADER
        self._known_first = 0

    def raise_register(self, index: int, value: int, most_bytes: int) -> Outcome:
        """Let a register be at least `value`, in a value of at most so many bytes (where that needs more of them)."""
        if value > LARGEST_VALUE:
            return Outcome.NO_ROOM
        run = self._run_of(index)
        held = self.held
        code = held[run.place]
        if code & VAL and (code >> 2 & 31) + 1 >= value:
            return Outcome.UNCHANGED
        if run.length == 1 and not is_xzero(code):
            held[run.place] = _val(value)
        else:
            left, right = index - run.first, run.first + run.length - index - 1
            split = _rest(code, left) + bytes([_val(value)]) + _rest(code, right)
            old_end = run.place + (2 if is_xzero(code) else 1)
            grows_by = len(split) - (old_end - run.place)
            if grows_by > 0 and len(held) + grows_by > most_bytes:
                return Outcome.NO_ROOM
            held[run.place : old_end] = split
        _merge(held, run.place if run.before == NONE else run.before)
        return Outcome.CHANGED

    def _run_of(self, index: int) -> _Run:
        """The run that covers a register."""
        if index >= self._known_first:
            run = self._run_from(index, self._known_place, self._known_first)
            if run.before != NONE or run.place == HEADER:
                return run
        self._known_place, self._known_first = HEADER, 0
        return self._run_from(index, HEADER, 0)

    def _run_from(self, index: i64, place: i64, first: i64) -> _Run:
        """As `_run_of`, of a register that is not before `first`, where the run at `place` begins."""
        held, lengths = bytes(self.held), _LENGTHS
        end: i64 = len(held)
        before: i64 = NONE
        before_first: i64 = 0
        known: i64 = NONE  # the run before that
        known_first: i64 = 0
        stepped: i64 = 0  # one-byte runs one after the other
        by_words = IS_COMPILED
        while place < end:
            if by_words and place + BYTES <= end:
                passed, covered, last_at, last_length = _runs_of_word(read_i64_le(held, place))
                if index < first + covered:
                    by_words = False  # it is in one of these
                else:
                    if last_at:
                        known, known_first = place, first
                    else:
                        known, known_first = before, before_first
                    before = place + last_at
                    place += passed
                    first += covered
                    before_first = first - last_length
                    continue
            code: i64 = held[place]
            length: i64 = lengths[code]
            following: i64 = place + 1
            if length:
                stepped += 1
            elif following < end:
                length = held[following]
                length += ((code & 63) << 8) + 1
                following += 1
                stepped = 0
            else:
                break
            if index < first + length:
                if known != NONE:
                    self._known_place, self._known_first = known, known_first
                return _Run(place, before, first, length)
            known, known_first = before, before_first
            before, before_first = place, first
            place = following
            first += length
            if stepped == STEPS and not IS_COMPILED:
                stepped = 0
                skipped, registers = _skip(held, place, index - first)
                if skipped:
                    place += skipped
                    first += registers
                    before, before_first = place - 1, first - _LENGTHS[held[place - 1]]
        raise CorruptHyperLogLog


def _runs_of_word(word: i64) -> tuple[i64, i64, i64, i64]:
    """The runs of eight bytes up to the first XZERO, and with it where it has both of its bytes there. Only compiled.

    How many bytes they take and registers they cover; where the last one stands, and what it covers. The word's lowest
    byte is the first one.
    """
    vals = word >> 7 & EACH_1  # 1 for each VAL
    xzeros = word >> 6 & EACH_1 & ~vals
    count: i64 = BYTES  # of runs of one byte
    lengths = word & (EACH_63 - 60 * vals)  # each less 1: the low 6 bits of a ZERO, the low 2 of a VAL
    if xzeros:
        before = (xzeros & -xzeros) - 1  # all bits of the bytes before the first one
        count = (before & EACH_1) * EACH_1 >> 56
        lengths &= before
    pairs = (lengths & SECOND_BYTES) + (lengths >> 8 & SECOND_BYTES)
    covered = count + (pairs * EACH_SECOND >> 48 & 0xFFFF)
    shift: i64 = 8 * count
    if count > BYTES - 2:
        return count, covered, count - 1, (lengths >> shift - 8 & 0xFF) + 1
    length = ((word >> shift & 0x3F) << 8 | (word >> shift + 8 & 0xFF)) + 1
    return count + 2, covered + length, count, length


def _skip(held: bytes, place: int, before: int) -> tuple[int, int]:
    """How many one-byte runs from a place on cover at most so many registers, and how many they cover; by halving."""
    found = _ONE_BYTE_RUNS.match(held, place)
    if found is None:
        return 0, 0
    lengths = held[place : found.end()].translate(_LENGTHS)
    skipped = registers = 0
    while lengths:
        half = (len(lengths) + 1) // 2
        covered = _sum(lengths[:half])
        if covered <= before - registers:
            skipped += half
            registers += covered
            lengths = lengths[half:]
        elif half == 1:
            break
        else:
            lengths = lengths[:half]
    return skipped, registers


def _sum(lengths: bytes) -> int:
    """The sum of at most 1000 bytes up to 64, which is what Adler's checksum adds up; 30 times quicker than `sum`."""
    return (adler32(lengths) & 0xFFFF) - 1


def is_xzero(code: int) -> bool:
    return code & (XZERO | VAL) == XZERO


def _val(value: int) -> int:
    """A run of one register."""
    return VAL | (value - 1) << 2


def _rest(code: int, length: int) -> bytes:
    """A run with the same value and `length` registers; empty for none."""
    if not length:
        return b""
    if code & VAL:
        return bytes([code & ~3 | (length - 1)])
    return zeros(length)


def zeros(length: int) -> bytes:
    """A run of registers that are 0."""
    if length <= MOST_IN_ZERO:
        return bytes([length - 1])
    return bytes([XZERO | (length - 1) >> 8, (length - 1) & 255])


def _merge(held: bytearray, place: int) -> None:
    """Join neighbouring runs of an equal value, if both have at most 4 registers, among the next five from a place."""
    window = bytes(held[place : place + MERGE_WINDOW])  # compiled, its bytes are read more quickly
    at = 0
    for _ in range(MERGE_STEPS):
        if at + 1 >= len(window):
            return
        code, following = window[at], window[at + 1]
        if is_xzero(code):
            at += 2
            continue
        length = _LENGTHS[code] + _LENGTHS[following]
        if code & VAL and code >> 2 == following >> 2 and length <= MOST_IN_VAL:
            held[place + at : place + at + 2] = bytes([code & ~3 | (length - 1)])
            window = bytes(held[place : place + MERGE_WINDOW])
        else:
            at += 1


# -- the whole -------------------------------------------------------------------------------------------------------


def registers_of(value: bytes | bytearray) -> bytes:
    """One byte a register. CorruptHyperLogLog where the runs cover more or fewer."""
    parts: list[bytes] = []
    covered = 0
    place = HEADER
    while place < len(value):
        found = _PIECE.match(value, place)
        if found is None or covered >= REGISTERS:
            raise CorruptHyperLogLog
        end = found.end()
        if is_xzero(value[place]):
            part = bytes(((value[place] & 63) << 8 | value[place + 1]) + 1)
        else:
            part = b"".join([_REGISTERS[run] for run in value[place:end]])
        parts.append(part)
        covered += len(part)
        place = end
    if covered != REGISTERS:
        raise CorruptHyperLogLog
    return b"".join(parts)


def described(value: bytes) -> bytes:
    """The runs as PFDEBUG DECODE shows them: `Z:12711 v:2,1 Z:3672`. CorruptHyperLogLog where the last is cut."""
    words: list[bytes] = []
    place = HEADER
    while place < len(value):
        code = value[place]
        if is_xzero(code):
            if place + 1 == len(value):
                raise CorruptHyperLogLog
            words.append(b"Z:%d" % (((code & 63) << 8 | value[place + 1]) + 1))
            place += 2
            continue
        words.append(b"v:%d,%d" % ((code >> 2 & 31) + 1, (code & 3) + 1) if code & VAL else b"z:%d" % (code + 1))
        place += 1
    return b" ".join(words)
