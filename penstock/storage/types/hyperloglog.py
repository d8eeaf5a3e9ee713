"""A HyperLogLog as the string that keeps it: a header and registers, dense or sparse, byte for byte as Redis's.

    bytes 0-3    `HYLL`
    byte 4       the form: 0 dense (hll_registers.py), 1 sparse (hll_sparse.py)
    bytes 5-7    0
    bytes 8-15   the last estimate, little endian; the highest bit of byte 15: it is out of date
    from 16 on   the registers

An element is hashed by MurmurHash64A. The low 14 bits choose its register, which counts the trailing noughts of the
others, plus one, and keeps the largest count.
"""

from __future__ import annotations

import re
from struct import unpack
from typing import TYPE_CHECKING, Final

from librt.strings import read_i64_le

from penstock.native.build import IS_COMPILED
from penstock.storage.types import hll_registers as registers
from penstock.storage.types import hll_sparse as sparse
from penstock.storage.types.hll_registers import HEADER, PACKED
from penstock.storage.types.hll_sparse import Outcome, SparseRuns

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

MAGIC: Final = b"HYLL"
DENSE: Final = 0
SPARSE: Final = 1
DENSE_SIZE: Final = HEADER + PACKED
EMPTY: Final = MAGIC + bytes([SPARSE]) + bytes(11) + sparse.ALL_ZERO
FORM_AT: Final = 4
ESTIMATE_AT: Final = 8
OUT_OF_DATE_AT: Final = 15
OUT_OF_DATE: Final = 0x80

SEED: Final = 0xADC83B19
MULTIPLIER: Final = 0xC6A4A7935BD1E995
BITS_64: Final = (1 << 64) - 1
INDEX_BITS: Final = 14
COUNTED_BITS: Final = 50
LOW_17: Final = (1 << 17) - 1
NOT_ZERO: Final = re.compile(rb"[^\x00]")


def is_valid(value: bytes) -> bool:
    """Whether a string looks like a HyperLogLog; the runs of the sparse form are not looked at."""
    if len(value) < HEADER or not value.startswith(MAGIC):
        return False
    return value[FORM_AT] == SPARSE or (value[FORM_AT] == DENSE and len(value) == DENSE_SIZE)


def is_dense(value: bytes | bytearray) -> bool:
    """Of a valid one."""
    return value[FORM_AT] == DENSE


def registers_of(value: bytes) -> bytes:
    """All registers, a byte each. CorruptHyperLogLog if the runs of a sparse value are invalid."""
    return registers.unpacked(value[HEADER:]) if is_dense(value) else sparse.registers_of(value)


def estimate(value: bytes) -> int | None:
    """The estimate that is kept; None where it is out of date."""
    if value[OUT_OF_DATE_AT] & OUT_OF_DATE:
        return None
    return int.from_bytes(value[ESTIMATE_AT:HEADER], "little")


def with_estimate(value: bytes, cardinality: int) -> bytes:
    return value[:ESTIMATE_AT] + cardinality.to_bytes(8, "little") + value[HEADER:]


def hashed(element: bytes) -> int:
    """MurmurHash64A.  O(n) in the element's length."""
    size = len(element)
    found = SEED ^ (size * MULTIPLIER & BITS_64)
    blocks = size // 8
    for block in unpack(f"<{blocks}Q", element[: 8 * blocks]):
        mixed = block * MULTIPLIER & BITS_64
        mixed = (mixed ^ mixed >> 47) * MULTIPLIER & BITS_64
        found = (found ^ mixed) * MULTIPLIER & BITS_64
    if size & 7:
        found = (found ^ int.from_bytes(element[8 * blocks :], "little")) * MULTIPLIER & BITS_64
    found = (found ^ found >> 47) * MULTIPLIER & BITS_64
    return found ^ found >> 47


def register_of(element: bytes) -> tuple[int, int]:
    """The register of an element, and the count that it has to keep.

    >>> register_of(b"a")
    (12711, 2)
    """
    if IS_COMPILED:
        index, count = _register_by_words(element)
        return index, count
    return register_by_numbers(element)


def register_by_numbers(element: bytes) -> tuple[int, int]:
    """As `register_of`, by Python's numbers: the uncompiled build's way, and the oracle of the other."""
    bits = hashed(element)
    counted = bits >> INDEX_BITS | 1 << COUNTED_BITS
    return bits & (1 << INDEX_BITS) - 1, (counted & -counted).bit_length()


def _register_by_words(element: bytes) -> tuple[i64, i64]:
    """As `register_of`. Only compiled: multiplication wraps around, and the highest bit is a sign.

    `>> 47 & LOW_17` shifts a word without its sign.
    """
    size: i64 = len(element)
    times: i64 = MULTIPLIER - (1 << 64)
    found: i64 = SEED ^ (size * times)
    at: i64 = 0
    mixed: i64 = 0
    while at + 8 <= size:
        mixed = read_i64_le(element, at) * times
        mixed = (mixed ^ (mixed >> 47 & LOW_17)) * times
        found = (found ^ mixed) * times
        at += 8
    if at < size:
        mixed = 0
        shift: i64 = 0
        while at < size:
            byte: i64 = element[at]
            mixed |= byte << shift
            shift += 8
            at += 1
        found = (found ^ mixed) * times
    found = (found ^ (found >> 47 & LOW_17)) * times
    found = found ^ (found >> 47 & LOW_17)
    index: i64 = found & (1 << INDEX_BITS) - 1
    counted: i64 = found >> INDEX_BITS & (1 << COUNTED_BITS) - 1
    count: i64 = 1
    while counted & 1 == 0 and count <= COUNTED_BITS:
        counted >>= 1
        count += 1
    return index, count


class HyperLogLog:
    """A valid one that is about to be changed; `value` gives it back.

    Invariants: `_runs` is there while the form is sparse; `_copied` is there once something was changed, and while
    the form is sparse. The kept estimate only is marked as out of date.
    """

    __slots__ = ("_copied", "_most_bytes", "_runs", "_value")

    def __init__(self, value: bytes, most_bytes: int) -> None:
        """most_bytes: the length up to which the sparse form is kept, where it grows."""
        self._value = value
        self._copied: bytearray | None = None
        self._most_bytes = most_bytes
        self._runs: SparseRuns | None = None if is_dense(value) else SparseRuns(self._held())

    def value(self) -> bytes:
        return self._value if self._copied is None else bytes(self._copied)

    def mark_out_of_date(self) -> None:
        self._held()[OUT_OF_DATE_AT] |= OUT_OF_DATE

    def _held(self) -> bytearray:
        """The bytes that are changed: a copy of the value, made when first asked for."""
        if self._copied is None:
            self._copied = bytearray(self._value)
        return self._copied

    def add(self, element: bytes) -> bool:
        """Count an element; whether a register changed. CorruptHyperLogLog where runs are missing."""
        index, count = register_of(element)
        return self.raise_register(index, count)

    def raise_register(self, index: int, count: int) -> bool:
        """Let a register be at least `count`; whether it changed. Dense: O(1), sparse: as `SparseRuns`."""
        if self._runs is not None:
            outcome = self._runs.raise_register(index, count, self._most_bytes)
            if outcome is not Outcome.NO_ROOM:
                return outcome is Outcome.CHANGED
            self.to_dense()
        if self._copied is None and registers.register_at(self._value, index) >= count:
            return False
        held = self._held()
        place, shift = HEADER + (6 * index >> 3), 6 * index & 7
        spills = shift > 2  # into the next byte
        pair = held[place] | (held[place + 1] << 8 if spills else 0)
        if (pair >> shift & 63) >= count:
            return False
        pair = pair & ~(63 << shift) | count << shift
        held[place] = pair & 255
        if spills:
            held[place + 1] = pair >> 8
        return True

    def to_dense(self) -> None:
        """Change to the dense form. CorruptHyperLogLog if the runs of the sparse one are invalid."""
        if self._runs is None:
            return
        held = self._held()
        held[HEADER:] = registers.packed(sparse.registers_of(held))
        held[FORM_AT] = DENSE
        self._runs = None

    def unite(self, others: bytes) -> None:
        """Raise all registers to those of others, a byte each. CorruptHyperLogLog as `to_dense`, and as `add`."""
        held = self._held()
        if not is_dense(held):  # not asked of `_runs`: mypyc would keep the answer, and leave out what follows the loop
            for found in NOT_ZERO.finditer(others):
                index = found.start()
                self.raise_register(index, others[index])
                if is_dense(held):
                    break  # the rest is done at once
        if is_dense(held):
            held[HEADER:] = registers.packed(registers.largest(registers.unpacked(bytes(held[HEADER:])), others))
