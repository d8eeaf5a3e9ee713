"""Keys in the order of their hashes: what SCAN walks along and RANDOMKEY draws from."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from sortedcontainers import SortedList
from xxhash import xxh64_digest

DIGEST: Final = 8  # bytes; big-endian, so that bytes sort as the numbers do


def _placed(key: bytes) -> bytes:
    digest: bytes = xxh64_digest(key)
    return digest + key


class HashOrder:
    """A set of keys, each at a place (0 to 2^64 - 1) that depends on the key alone.

    A walk that remembers only its place therefore meets every key that was there from its first step to its
    last, whatever comes and goes meanwhile, and even if the order is thrown away and made again between two steps.

    Invariant: `_placed` holds each key once, as its digest and then itself, ascending. Adding, removing and drawing
    cost O(log n), making it O(n log n).
    """

    __slots__ = ("_placed", "used_ms")

    def __init__(self, keys: Iterable[bytes], now_ms: int) -> None:
        self._placed: SortedList[bytes] = SortedList([_placed(key) for key in keys])
        self.used_ms = now_ms

    def __len__(self) -> int:
        return len(self._placed)

    def add(self, key: bytes) -> None:
        self._placed.add(_placed(key))

    def remove(self, key: bytes) -> None:
        self._placed.remove(_placed(key))

    def at(self, index: int) -> bytes:
        """The key of an index from 0 to len - 1."""
        return self._placed[index][DIGEST:]

    def walk(self, place: int, count: int) -> tuple[list[bytes], int]:
        """`count` keys from a place on, and the place to go on from; 0 when there are no more.

        Keys that share a place come together, beyond `count` if need be: the next step starts behind them.
        """
        following = self._placed.irange(place.to_bytes(DIGEST))
        met = list(islice(following, count))
        for placed in following:
            if placed[:DIGEST] != met[-1][:DIGEST]:
                return [one[DIGEST:] for one in met], int.from_bytes(placed[:DIGEST])
            met.append(placed)
        return [one[DIGEST:] for one in met], 0

    def check(self, keys: Iterable[bytes]) -> None:
        """Assert the invariant, given the keys that should be there."""
        assert list(self._placed) == sorted(map(_placed, keys)), "the order holds other keys than the database"
