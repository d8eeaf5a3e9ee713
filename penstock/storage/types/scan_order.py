"""Keys in the order of their hashes: SCAN walks along it, RANDOMKEY picks from it."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from sortedcontainers import SortedList
from xxhash import xxh64_digest

DIGEST: Final = 8  # bytes of a hash; big-endian, so that they sort as numbers do


def _hashed(key: bytes) -> bytes:
    digest: bytes = xxh64_digest(key)
    return digest + key


class HashOrder:
    """A set of keys in the order of their hashes (0 to 2^64 - 1), which depend on the key alone.

    A cursor is a hash. So a scan returns every key that exists from its first step to its last, whatever is added and
    removed meanwhile, even if the order is dropped and built again between two steps.

    Invariant: `_hashed_keys` has each key once, as its hash and then the key, ascending. n keys: building costs
    O(n log n).
    """

    __slots__ = ("_hashed_keys", "used_ms")

    def __init__(self, keys: Iterable[bytes], now_ms: int) -> None:
        self._hashed_keys: SortedList[bytes] = SortedList([_hashed(key) for key in keys])
        self.used_ms = now_ms

    def __len__(self) -> int:
        return len(self._hashed_keys)

    def add(self, key: bytes) -> None:
        """Add a key, which must be new. O(log n)."""
        self._hashed_keys.add(_hashed(key))

    def remove(self, key: bytes) -> None:
        """Remove a key, which must be there. O(log n)."""
        self._hashed_keys.remove(_hashed(key))

    def at(self, index: int) -> bytes:
        """The key at an index from 0 to len - 1. O(log n)."""
        return self._hashed_keys[index][DIGEST:]

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """`count` keys from a cursor on, and the cursor of the next step: 0 if there are no more. O(log n + count).

        Keys with equal hashes come in one step, if need be more than `count`: the next step starts after them.
        """
        following = self._hashed_keys.irange(cursor.to_bytes(DIGEST))
        found = list(islice(following, count))
        for hashed in following:
            if hashed[:DIGEST] != found[-1][:DIGEST]:
                return [one[DIGEST:] for one in found], int.from_bytes(hashed[:DIGEST])
            found.append(hashed)
        return [one[DIGEST:] for one in found], 0

    def check(self, keys: Iterable[bytes]) -> None:
        """Assert the invariant, and that exactly `keys` are there."""
        assert list(self._hashed_keys) == sorted(map(_hashed, keys)), "the order has other keys than the database"
