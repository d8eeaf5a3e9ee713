"""A HyperLogLog as the string that keeps it: a header and registers, dense or sparse, byte for byte as Redis's.

    bytes 0-3    `HYLL`
    byte 4       the form: 0 dense (hll_registers.py), 1 sparse (hll_sparse.py)
    bytes 5-7    0
    bytes 8-15   the last estimate, little endian; the highest bit of byte 15: it is out of date
    from 16 on   the registers

An element is hashed by MurmurHash64A. The low 14 bits choose its register, which counts the trailing noughts of the
others, plus one, and keeps the largest count.
"""

import re
from struct import unpack
from typing import Final

from penstock.storage.types import hll_registers as registers
from penstock.storage.types import hll_sparse as sparse
from penstock.storage.types.hll_registers import PACKED
from penstock.storage.types.hll_sparse import HEADER, Outcome, SparseRuns

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
    """All registers of a valid one, a byte each. CorruptHyperLogLog where a sparse one is none."""
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
    bits = hashed(element)
    counted = bits >> INDEX_BITS | 1 << COUNTED_BITS
    return bits & (1 << INDEX_BITS) - 1, (counted & -counted).bit_length()


class HyperLogLog:
    """A valid one that is about to be changed; `value` gives it back.

    Invariant: `_runs` is there while the form is sparse. The kept estimate only is marked as out of date.
    """

    __slots__ = ("_held", "_most_bytes", "_runs")

    def __init__(self, value: bytes, most_bytes: int) -> None:
        """most_bytes: the length up to which the sparse form is kept, where it grows."""
        self._held = bytearray(value)
        self._most_bytes = most_bytes
        self._runs: SparseRuns | None = None if is_dense(value) else SparseRuns(self._held)

    def value(self) -> bytes:
        return bytes(self._held)

    def mark_out_of_date(self) -> None:
        self._held[OUT_OF_DATE_AT] |= OUT_OF_DATE

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
        held = self._held
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
        """Change the form. CorruptHyperLogLog where the sparse one is none."""
        if self._runs is None:
            return
        held = self._held
        held[HEADER:] = registers.packed(sparse.registers_of(held))
        held[FORM_AT] = DENSE
        self._runs = None

    def unite(self, others: bytes) -> None:
        """Raise all registers to those of others, a byte each. CorruptHyperLogLog as `to_dense`, and as `add`."""
        held = self._held
        if not is_dense(held):  # not asked of `_runs`: mypyc would keep the answer, and leave out what follows the loop
            for found in NOT_ZERO.finditer(others):
                index = found.start()
                self.raise_register(index, others[index])
                if is_dense(held):
                    break  # the rest is done at once
        if is_dense(held):
            held[HEADER:] = registers.packed(registers.largest(registers.unpacked(bytes(held[HEADER:])), others))
