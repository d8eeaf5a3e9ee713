"""Native bitmaps beside a bytearray, under random operations; and as compressed text."""

import random

import pytest

from penstock.storage.rdb import lzf
from penstock.storage.types import bitmaps
from penstock.storage.types.bitmaps import PAGE_BYTES, Bitmap
from tests.support.seeds import seeds

LENGTH = 3 * PAGE_BYTES + 100


def random_part(chance: random.Random, first: int) -> bytes:
    """A few bytes, a page, or more: full of bits, with some, or none."""
    size = min(chance.choice([1, 2, 9, PAGE_BYTES, 2 * PAGE_BYTES]), LENGTH - first)
    part = bytearray(size)
    for _ in range(chance.choice([0, 1, 3, 50])):
        part[chance.randrange(size)] = chance.randrange(256)
    return chance.choice([bytes(part), bytes(part), chance.randbytes(size)])


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_bitmap_has_the_bytes_that_were_written(seed: int) -> None:
    chance = random.Random(seed)
    bitmap, naive = Bitmap(), bytearray(LENGTH)
    bitmap.extend(LENGTH)
    for _ in range(60):
        first = chance.choice([0, PAGE_BYTES - 1, PAGE_BYTES, chance.randrange(LENGTH)])
        part = random_part(chance, first)
        bitmap.write(first, part)
        naive[first : first + len(part)] = part
        bitmap.check()

        first, end = sorted(chance.choices(range(LENGTH + 9), k=2))
        offset = chance.randrange(8 * LENGTH)
        assert bitmap.part(first, end) == naive[first:end]
        assert bitmap.bit(offset) == bool(naive[offset >> 3] & 0x80 >> (offset & 7))
    copy = bitmap.copy()
    bitmap.write(0, b"\xff" * 10)

    assert copy.text() == naive
    assert bitmaps.of_text(naive).parts() == copy.parts() != bitmap.parts()
    assert lzf.expanded(lzf.of_pieces(LENGTH, copy.pieces()), LENGTH) == naive


def test_a_sparse_bitmap_takes_little_memory() -> None:
    bitmap = Bitmap()
    bitmap.extend(1 << 29)
    for page in range(100):
        bitmap.write(page << 22, b"\x01")

    assert bitmap.memory_usage() < 20_000
    assert len(lzf.of_pieces(len(bitmap), bitmap.pieces())) < len(bitmap) // 80
