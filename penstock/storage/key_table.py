"""The keys of a database and their values: a mapping that keeps many short values in few bytes.

A key of 10 bytes and a string of 16 take 154 bytes as objects of a dict. So only the first FEW keys are all kept that
way, which is faster while a processor's caches hold them; further short strings are packed, and take 49. Further small
lists, sets and sorted sets are objects while they are among the RECENT ones that were set or asked for last, since what
asks for one may change it; then they are packed, too.

Packed values lie one behind the other in buckets, bytes objects with four of them on average. Each has a head, its
key's hash and the lengths of its key and text; then these two. The hash tells the bucket (linear hashing: each time a
value too many comes, the next bucket is split in two, so that no request waits until a large table is made anew).

>>> table = KeyTable(few=1)
>>> table[b"key"], table[b"other"] = b"text", b"another"
>>> table[b"other"], table.packed, len(table), dict(table.items())
(b'another', 1, 2, {b'key': b'text', b'other': b'another'})
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter

from penstock.storage import string_buckets
from penstock.storage.size_counts import TypeSizes
from penstock.storage.string_buckets import (
    HASH_BITS,
    LONGEST_KEY,
    NOWHERE,
    TOGETHER,
    KeySnapshot,
    keys_of,
)  # fmt: skip
from penstock.storage.types.sets import Set
from penstock.storage.values_at_rest import RESTING, Resting, text_at_rest, woken

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

    from penstock.storage.keyspace import Value

FEW: Final = 10_000
RECENT: Final = 4096
MOST_A_BUCKET: Final = 4  # values, on average: above, a bucket is split
LEAST_A_BUCKET: Final = 2  # below, two buckets become one
_value_of: Final = itemgetter(1)


class KeyTable:
    """A mapping from keys to values. It may not be changed during an iteration, and `get` of a packed collection is a
    change. Collections that an iteration gives are copies, to be read.

    objects: the keys whose values are objects. packed: how many values are packed. sizes: how many values have which.

    Invariants: no key is in both; a packed string is `bytes`, of no subclass; a packed value is in the bucket of its
    key's hash; `_mask` is the lowest 2**n - 1 that is no less than the last bucket's index.
    """

    __slots__ = (
        "_at", "_buckets", "_few", "_hash", "_index", "_mask", "_most_recent", "_next", "_recent", "_sought", "_writer",
        "objects", "packed", "sizes",
    )  # fmt: skip

    def __init__(self, few: int = FEW, recent: int = RECENT) -> None:
        self.objects: dict[bytes, Value] = {}
        self.packed = 0
        self.sizes = TypeSizes()
        self._few = few
        self._recent: list[bytes] = []  # a ring of keys of collections: `_next` is the one noted longest ago
        self._most_recent = recent
        self._next = 0
        self._buckets = [b""]
        self._mask: i64 = 0
        self._sought: bytes | None = None  # the key that was looked for last, while the buckets are as they were then
        self._hash: i64 = 0
        self._index: i64 = 0
        self._at: i64 = NOWHERE
        self._writer = BytesWriter()  # for one bucket after the other

    def __len__(self) -> int:
        return len(self.objects) + self.packed

    def __contains__(self, key: bytes) -> bool:
        if key in self.objects:
            return True
        if not self.packed:
            return False
        self._find(key)
        return self._at >= 0

    def look(self, key: bytes) -> Value | None:
        """As `get`, for a caller that does not change the value: a collection at rest stays there. O(1)."""
        found = self.objects.get(key)
        if found is None and self.packed:
            self._find(key)
            if self._at >= 0:
                return self._packed_value()
        return found

    def get(self, key: bytes) -> Value | None:
        """The value of a key; None if it is not there. O(1)."""
        found = self.objects.get(key)
        if found is None and self.packed:
            self._find(key)
            at: i64 = self._at
            if at >= 0:
                bucket = self._buckets[self._index]
                if string_buckets.is_at_rest(bucket, at):
                    return self._wake(key)
                return string_buckets.text_at(bucket, at)
        return found

    def __getitem__(self, key: bytes) -> Value:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: bytes, value: Value) -> None:
        """O(1)."""
        objects = self.objects
        before = objects.get(key)
        if before is not None:
            objects[key] = value
            self.sizes.replace(before, value)
            if before is not value and type(value) is not bytes:
                self._note(key, value)
        elif not self.packed and len(objects) < self._few:
            objects[key] = value
            self.sizes.add(value)
        elif type(value) is bytes and string_buckets.fits(key, value):
            self._pack(key, value)
        else:
            if self.packed:
                self._take(key)
            objects[key] = value
            self.sizes.add(value)
            self._note(key, value)

    def pop(self, key: bytes) -> Value | None:
        """Remove a key; its value, None if it was not there. O(1)."""
        found = self.objects.pop(key, None)
        if found is not None:
            self.sizes.drop(found)
            return found
        return self._take(key) if self.packed else None

    # -- all of them ------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[bytes]:
        """The keys. O(n)."""
        return chain(self.objects, chain.from_iterable(map(keys_of, self._parts())))

    def items(self) -> Iterator[tuple[bytes, Value]]:
        """Keys and values, those that are objects first. O(n)."""
        return chain(self.objects.items(), chain.from_iterable(map(_pairs_of, self._parts())))

    def values(self) -> Iterator[Value]:
        """O(n)."""
        return map(_value_of, self.items())

    def starting(self, piece: bytes) -> list[bytes]:
        """The keys that start with a piece. O(n)."""
        found = [key for key in self.objects if key.startswith(piece)]
        return found + keys_of(self._buckets, piece)

    def snapshot(self) -> KeySnapshot:
        """The keys of this moment. O(n), 10 ns for each object and 2 for each packed string."""
        return KeySnapshot([*self.objects], self._buckets[:], self.packed)

    def take_some(self, most: int) -> list[Value]:
        """Forget `most` objects, or as many buckets once there are no objects; the objects. O(most).

        For a table that is not used any more: afterwards it is only good for this, and for its length.
        """
        objects = self.objects
        if objects:
            return [objects.popitem()[1] for _ in range(min(most, len(objects)))]
        forgotten = self._buckets[-most:]
        del self._buckets[-most:]
        self._sought = None
        self.packed -= len(keys_of(forgotten))
        return []

    def _parts(self) -> Iterator[list[bytes]]:
        """The buckets, some at a time."""
        for start in range(0, len(self._buckets), TOGETHER):
            yield self._buckets[start : start + TOGETHER]

    # -- memory -----------------------------------------------------------------------------------------------------

    def table_bytes(self) -> int:
        """The bytes of the tables, without keys, values and buckets."""
        return sys.getsizeof(self.objects) + sys.getsizeof(self._buckets)

    def packed_bytes(self, sampled: int) -> int:
        """The bytes of the packed strings, estimated from `sampled` buckets. O(sampled)."""
        if not self.packed:
            return 0
        sizes = [sys.getsizeof(bucket) for bucket in self._buckets[:: len(self._buckets) // sampled + 1]]
        return sum(sizes) * len(self._buckets) // len(sizes) + sys.getsizeof(self._buckets)

    # -- packed strings ---------------------------------------------------------------------------------------------

    def _find(self, key: bytes) -> None:
        """Look for a key: `_hash`, `_index` and `_at` are its hash, its bucket, and where its head is or NOWHERE.

        A key that is set was asked for before, as a rule: then they are known.
        """
        if key is self._sought:
            return
        hashed: i64 = hash(key)
        hashed &= HASH_BITS
        index: i64 = hashed & self._mask
        if index >= len(self._buckets):  # not split yet
            index = hashed & (self._mask >> 1)
        self._sought, self._hash, self._index = key, hashed, index
        self._at = string_buckets.place_of(self._buckets[index], hashed, key)

    def _replace(self, bucket: bytes) -> None:
        """Change the bucket of the key that was sought."""
        self._buckets[self._index] = bucket
        self._sought = None

    def _pack(self, key: bytes, text: bytes) -> None:
        """Set a key that is not among the objects to a string."""
        self._find(key)
        bucket, at = self._buckets[self._index], self._at
        if at >= 0:
            if not string_buckets.is_at_rest(bucket, at):
                self.sizes.resize_string(string_buckets.text_size_at(bucket, at), len(text))
                self._replace(string_buckets.with_text(bucket, at, key, text))
                return
            self._take(key)
        self._add(key, text, False)
        self.sizes.add(text)

    def _add(self, key: bytes, text: bytes, is_collection: bool) -> None:
        """Pack a value; its key must not be there."""
        self._find(key)
        bucket = self._buckets[self._index]
        self._replace(string_buckets.with_value(bucket, self._hash, key, text, self._writer, is_collection))
        self.packed += 1
        if self.packed > MOST_A_BUCKET * len(self._buckets):
            self._split()

    def _take(self, key: bytes) -> bytes | Resting | None:
        """Remove a key that is not among the objects; its value, None if it was not there."""
        self._find(key)
        if self._at < 0:
            return None
        value = self._packed_value()
        self.sizes.drop(value)
        self._remove()
        return value

    def _packed_value(self) -> bytes | Resting:
        """The value of the packed key that was sought; a collection is a new object."""
        bucket, at = self._buckets[self._index], self._at
        text = string_buckets.text_at(bucket, at)
        return woken(text) if string_buckets.is_at_rest(bucket, at) else text

    def _remove(self) -> None:
        """Remove the packed key that was sought."""
        self._replace(string_buckets.without(self._buckets[self._index], self._at))
        self.packed -= 1
        if self.packed < LEAST_A_BUCKET * len(self._buckets) and len(self._buckets) > 1:
            self._merge()

    # -- collections at rest ------------------------------------------------------------------------------------------

    def _wake(self, key: bytes) -> Value:
        """Make an object of the packed collection that was sought, which the caller may change. O(bytes)."""
        value = self._packed_value()
        self._remove()
        self.objects[key] = value
        self.sizes.know(value)
        self._note(key, value)
        return value

    def _note(self, key: bytes, value: Value) -> None:
        """A collection was set or asked for: the one for which that was longest ago is packed. O(bytes)."""
        if len(self.objects) <= self._few or not isinstance(value, RESTING):
            return
        recent = self._recent
        if len(recent) < self._most_recent:
            recent.append(key)
            return
        former, recent[self._next] = recent[self._next], key
        self._next = (self._next + 1) % self._most_recent
        if _references(self.objects, former) != UNUSED:
            return  # it is gone, or a request has hold of it
        text = text_at_rest(self.objects[former])
        if text and len(former) <= LONGEST_KEY:
            del self.objects[former]
            self._add(former, text, True)

    def _split(self) -> None:
        """Divide the next bucket between it and a new one."""
        new: i64 = len(self._buckets)
        if new > self._mask:
            self._mask = self._mask * 2 + 1
        split: i64 = new & (self._mask >> 1)
        self._buckets[split], moved = string_buckets.divided(self._buckets[split], self._mask, new)
        self._buckets.append(moved)

    def _merge(self) -> None:
        """Join the last bucket to that from which it was split."""
        moved = self._buckets.pop()
        last: i64 = len(self._buckets)
        half: i64 = self._mask >> 1
        index: i64 = last & half
        self._buckets[index] = self._buckets[index] + moved
        if last == half + 1:
            self._mask = half

    def check(self) -> None:
        """Assert the invariants."""
        count: i64 = len(self._buckets)
        assert self._mask >> 1 < count <= self._mask + 1, "buckets that the hashes cannot tell apart"
        found = 0
        for index, bucket in enumerate(self._buckets):
            for key, value in _pairs_of([bucket]):
                assert key not in self.objects, "a packed key is an object, too"
                self._find(key)
                at = self._at
                assert self._index == index and at >= 0, "a key is in another's bucket"
                assert string_buckets.is_at_rest(bucket, at) is not isinstance(value, bytes)
                found += 1
        assert found == self.packed
        self.sizes.check(self.values())
        for value in self.objects.values():
            self.sizes.check_known(value)


def _pairs_of(buckets: list[bytes]) -> list[tuple[bytes, Value]]:
    """Keys and values of some buckets. O(bytes)."""
    return string_buckets.pairs_of(buckets, woken)  # type: ignore[return-value]  # a tuple is not changed


def _references(objects: dict[bytes, Value], key: bytes) -> int:
    """How many references there are to an object; 0 if it is not there."""
    value = objects.get(key)
    return 0 if value is None else sys.getrefcount(value)


UNUSED: Final = _references({b"": Set((b"",))}, b"")  # of an object to which nothing but the dict refers
