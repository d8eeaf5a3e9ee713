"""Hashes: fields and their values; a field may have a time of expiry."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from penstock.storage.collection import PART_OVERHEAD, Collection

SAMPLED: Final = 64  # fields that are measured for an estimate


class Hash(Collection):
    """Fields and values, in the order in which the fields came.

    Invariant: every field of `expires` is a field of `fields`.
    """

    __slots__ = ("expires", "fields")

    def __init__(self) -> None:
        self.fields: dict[bytes, bytes] = {}
        self.expires: dict[bytes, int] = {}  # unix time in ms

    def __len__(self) -> int:
        return len(self.fields)

    def copy(self) -> "Hash":
        copied = Hash()
        copied.fields = dict(self.fields)
        copied.expires = dict(self.expires)
        return copied

    def memory_usage(self) -> int:
        count = len(self.fields)
        sampled = [len(field) + len(value) for field, value in islice(self.fields.items(), SAMPLED)]
        return 250 + count * (2 * PART_OVERHEAD + 92) + sum(sampled) * count // max(len(sampled), 1)

    def parts(self) -> Iterator[bytes]:
        for field in sorted(self.fields):
            yield field
            yield self.fields[field]
            yield b"%d" % self.expires.get(field, 0)
