"""Names in the order of their hashes: scans walk along it, and random names are picked from it."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import chain
from random import Random
from typing import Final

from xxhash import xxh64_intdigest

from penstock.native.build import IS_COMPILED
from penstock.storage.string_buckets import KeySnapshot

HASH_BITS: Final = 31  # redis-cli --cluster import holds a cursor in 32 bits with a sign: with more it scans for ever
DROPPED_BITS: Final = 64 - HASH_BITS
MOST_BITS: Final = 24  # of a hash that choose its bucket
A_BUCKET: Final = 32  # keys, as a rule
MISFIT: Final = 4  # so many times as many keys in a bucket, or as few: the buckets are made anew
PIECE: Final = 8192  # keys that a step of a walk puts into buckets: some milliseconds
SMALL_PIECE: Final = 1024  # keys that a pick puts into buckets
START: Final = 1  # a cursor of a walk that has met no key yet
LEAST_HASH: Final = 2


def _hash_of(key: bytes) -> int:
    """Where a key comes in the order: LEAST_HASH to 2^31 - 1, by its bytes alone."""
    digest: int = xxh64_intdigest(key) >> DROPPED_BITS
    return digest if digest > LEAST_HASH else LEAST_HASH


def _place_in(bucket: list[bytes], key: bytes) -> int:
    """Where a key is in a bucket; -1: it is not. O(keys in it)."""
    if IS_COMPILED:  # a loop takes a quarter of the time of list.index
        for place in range(len(bucket)):
            if bucket[place] == key:
                return place
        return -1
    return bucket.index(key) if key in bucket else -1


class HashOrder:
    """A set of keys in the order of their hashes, which depend on the key alone.

    A cursor is a hash. So a scan returns every key that exists from its first step to its last, whatever is added and
    removed meanwhile, even if the order is dropped and built again between two steps.

    Keys are in buckets by the first bits of their hashes, in no order; a walk puts the bucket in order that it comes
    to. Many keys are put into their buckets piece by piece, by walks and picks: until all are, a step of a walk
    gives no keys. `is_picked_from` tells whether a key was asked for by chance. In the costs, n is the number of keys.

    Invariant: each key is in its bucket, or in `_pending` and not in `_removed`, once.
    """

    __slots__ = (
        "_bits", "_buckets", "_longest", "_pending", "_removed", "_size", "_sorted", "_sorted_index",
        "is_picked_from", "used_ms",
    )  # fmt: skip

    def __init__(self, keys: Iterable[bytes] | KeySnapshot, now_ms: int) -> None:
        """Takes different keys. O(n), 10 ns each; a snapshot is taken over."""
        self.used_ms = now_ms
        self.is_picked_from = False
        self._begin(keys if isinstance(keys, KeySnapshot) else KeySnapshot(list(keys), [], 0))

    def _begin(self, keys: KeySnapshot) -> None:
        """Begin to put keys into buckets that fit their number."""
        self._bits = min((len(keys) // A_BUCKET).bit_length(), MOST_BITS)
        self._buckets: list[list[bytes] | None] = [None] * (1 << self._bits)
        self._pending = keys
        self._removed: set[bytes] = set()  # keys of `_pending` that have been removed
        self._size = 0  # keys in buckets
        self._longest = 1  # keys in a bucket, at least as many as in any
        self._sorted_index = -1  # the bucket that was put in order last, and its keys behind their hashes
        self._sorted: list[tuple[int, bytes]] = []

    def __len__(self) -> int:
        return self._size + len(self._pending) - len(self._removed)

    def add(self, key: bytes) -> None:
        """Add a key, which must be new. O(1); O(n), 10 ns each, where there are four times as many as fit."""
        self._put([key])
        if self._size > MISFIT * A_BUCKET * len(self._buckets):
            self._begin_anew()

    def _put(self, keys: list[bytes]) -> None:
        """Put keys into their buckets."""
        buckets, shift = self._buckets, HASH_BITS - self._bits
        longest = self._longest
        for key in keys:
            index = _hash_of(key) >> shift
            bucket = buckets[index]
            if bucket is None:
                buckets[index] = [key]
                continue
            bucket.append(key)
            if len(bucket) > longest:
                longest = len(bucket)
        self._longest = longest
        self._size += len(keys)
        self._sorted_index = -1

    def remove(self, key: bytes) -> None:
        """Remove a key, which must be there. O(1)."""
        index = self._index(key)
        bucket = self._buckets[index]
        place = -1 if bucket is None else _place_in(bucket, key)
        if bucket is None or place < 0:
            assert len(self._pending), "the key is in its bucket, or waits"
            self._removed.add(key)
            return
        bucket[place] = bucket[-1]
        bucket.pop()
        self._size -= 1
        if index == self._sorted_index:
            self._sorted_index = -1

    def any_of(self, chance: Random) -> bytes:
        """A key by chance, each as likely as another; there must be one. O(1), as a rule."""
        self.is_picked_from = True
        self._place_pending(SMALL_PIECE)
        while True:
            if not len(self._pending) or int(chance.random() * (self._size + len(self._pending))) < self._size:
                return self._any_in_buckets(chance)
            key = self._pending.any_of(chance)
            if key not in self._removed:
                return key

    def _any_in_buckets(self, chance: Random) -> bytes:
        longest = self._longest
        places = len(self._buckets) * longest
        while True:
            place = int(chance.random() * places)
            bucket = self._buckets[place // longest]
            place %= longest
            if bucket is not None and place < len(bucket):
                return bucket[place]

    def walk(self, cursor: int, count: int) -> tuple[list[bytes], int]:
        """`count` keys from a cursor on, and the cursor of the next step: 0 if there are no more. O(count).

        Keys with equal hashes come in one step, if need be more than `count`: the next step starts after them. No keys
        while many are still to be put into buckets.
        """
        self._place_pending(max(PIECE, count))
        if len(self._pending):
            return [], cursor or START
        first = 0 if cursor == START else cursor
        found: list[tuple[int, bytes]] = []
        for index in range(first >> HASH_BITS - self._bits, len(self._buckets)):
            if self._buckets[index]:
                in_order = self._in_order(index)
                if found and len(found) + len(in_order) <= count:
                    found += in_order
                    continue
                for at in range(bisect_left(in_order, (first, b"")) if not found else 0, len(in_order)):
                    hashed = in_order[at]
                    if len(found) >= count and hashed[0] != found[-1][0]:
                        return [key for _, key in found], hashed[0]
                    found.append(hashed)
        return [key for _, key in found], 0

    def _index(self, key: bytes) -> int:
        """Which bucket a key belongs to."""
        return _hash_of(key) >> HASH_BITS - self._bits

    def _in_order(self, index: int) -> list[tuple[int, bytes]]:
        """The keys of a bucket behind their hashes, in order."""
        if index != self._sorted_index:
            self._sorted_index = index
            self._sorted = sorted([(_hash_of(key), key) for key in self._buckets[index] or ()])
        return self._sorted

    def _begin_anew(self) -> None:
        """There are far more keys than fit into the buckets, or far fewer."""
        waiting = [key for key in self._pending if key not in self._removed]
        self._begin(
            KeySnapshot([*chain.from_iterable([bucket for bucket in self._buckets if bucket]), *waiting], [], 0)
        )

    def _place_pending(self, most: int) -> None:
        """Put keys that wait into their buckets, about so many; if none wait, see whether the buckets fit."""
        if not len(self._pending):
            fitting = A_BUCKET * len(self._buckets)
            if not MISFIT * self._size < fitting > SMALL_PIECE:
                return
            self._begin_anew()
        taken, removed = self._pending.take(most), self._removed
        if removed:
            passed = removed.intersection(taken)
            removed -= passed
            taken = [key for key in taken if key not in passed]
        self._put(taken)

    def check(self, keys: Iterable[bytes]) -> None:
        """Assert the invariant, and that exactly `keys` are there."""
        held = [key for key in self._pending if key not in self._removed]
        for index, bucket in enumerate(self._buckets):
            for key in bucket or ():
                assert self._index(key) == index, "a key is in another's bucket"
                held.append(key)
            assert len(bucket or ()) <= self._longest
        assert sorted(held) == sorted(keys), "the order has other keys than the database"
        assert len(self) == len(held)
        assert self._removed <= set(self._pending), "a removed key did not wait"
