"""A mapping from short texts to short texts in few bytes: fields of a hash, members of a set, scores of a sorted set.

An entry is the length of its value, the length of its text (a byte each), the text, and the value: it costs two bytes
beside these, where objects in a dict take 120. Entries lie one behind the other in buckets, bytes objects with sixteen
of them on average. A text's hash tells its bucket (linear hashing: when an entry too many comes, the next bucket is
split in two). An entry is found by a walk through its bucket, and a change makes the bucket anew.

>>> table = PackedTable(True)
>>> table.put(b"field", b"value"), table.put(b"field", b"other"), table.get(b"field"), table.get(b"none")
(True, False, b'other', None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.native.build import IS_COMPILED
from penstock.native.text_match import is_at

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

# Entries of a table. In Python a walk takes some microseconds, where a dict takes one tenth.
MOST_ENTRIES: Final = 1024 if IS_COMPILED else 0
MOST_ORDERED: Final = (
    MOST_ENTRIES // 2
)  # of a table in one bucket: a walk takes 1 us; as many as Redis has in a listpack
LONGEST: Final = 255  # bytes of a text, and of a value
A_BUCKET: Final = 16  # entries, on average: above, a bucket is split
HEAD: Final = 2  # bytes of an entry before its text
NOWHERE: Final = -1
LENGTHS: Final = tuple(bytes([length]) for length in range(LONGEST + 1))


class PackedTable:
    """Some hundred texts and their values. In the costs, n is the number of texts.

    is_scattered: it may have more than one bucket, and its order means nothing; else it has one, and is in the order in
    which texts were added.

    Invariants: an entry is in the bucket of its text's hash; `_mask` is the lowest 2**n - 1 that is no less than the
    last bucket's index.
    """

    __slots__ = ("_buckets", "_count", "_mask", "is_scattered")

    def __init__(self, is_scattered: bool) -> None:
        self.is_scattered = is_scattered
        self._buckets = [b""]
        self._count: i64 = 0
        self._mask: i64 = 0

    def __len__(self) -> int:
        return self._count

    def copy(self) -> PackedTable:
        copied = PackedTable(self.is_scattered)
        copied._buckets, copied._count, copied._mask = self._buckets.copy(), self._count, self._mask
        return copied

    def memory_usage(self) -> int:
        return 150 + sum([len(bucket) + 41 for bucket in self._buckets])

    # -- one of them ------------------------------------------------------------------------------------------------

    def get(self, text: bytes) -> bytes | None:
        """The value of a text; None if it is not there. O(1)."""
        bucket = self._buckets[self._index(text)]
        at: i64 = _place_of(bucket, text)
        if at < 0:
            return None
        start: i64 = at + HEAD + len(text)
        return bucket[start : start + bucket[at]]

    def has(self, text: bytes) -> bool:
        """O(1)."""
        return _place_of(self._buckets[self._index(text)], text) >= 0

    def put(self, text: bytes, value: bytes) -> bool:
        """Set the value of a text; whether the text is new. Both must be short. O(1), O(n) unless scattered."""
        index: i64 = self._index(text)
        bucket = self._buckets[index]
        at: i64 = _place_of(bucket, text)
        if at >= 0:
            start: i64 = at + HEAD + len(text)
            behind = bucket[start + bucket[at] :]
            self._buckets[index] = b"".join((bucket[:at], LENGTHS[len(value)], bucket[at + 1 : start], value, behind))
            return False
        self._buckets[index] = b"".join((bucket, LENGTHS[len(value)], LENGTHS[len(text)], text, value))
        self._count += 1
        if self.is_scattered:
            while self._count > A_BUCKET * len(self._buckets):
                self._split()
        return True

    def take(self, text: bytes) -> bytes | None:
        """Remove a text and return its value; None if it was not there. O(1), O(n) unless scattered."""
        index: i64 = self._index(text)
        bucket = self._buckets[index]
        at: i64 = _place_of(bucket, text)
        if at < 0:
            return None
        start: i64 = at + HEAD + len(text)
        stop: i64 = start + bucket[at]
        self._buckets[index] = bucket[:at] + bucket[stop:]
        self._count -= 1
        return bucket[start:stop]

    def remove(self, text: bytes) -> bool:
        """Remove a text; whether it was there. O(1), O(n) unless scattered."""
        return self.take(text) is not None

    def text_at(self, index: int) -> bytes:
        """The text with an index from 0 to their number - 1. O(n), some ns each."""
        rest: i64 = index
        for bucket in self._buckets:
            at: i64 = 0
            end: i64 = len(bucket)
            while at < end:
                start: i64 = at + HEAD
                if not rest:
                    return bucket[start : start + bucket[at + 1]]
                at = start + bucket[at] + bucket[at + 1]
                rest -= 1
        raise IndexError(index)

    # -- all of them ------------------------------------------------------------------------------------------------

    def texts(self) -> list[bytes]:
        """O(n)."""
        found: list[bytes] = []
        for bucket in self._buckets:
            at: i64 = 0
            end: i64 = len(bucket)
            while at < end:
                start: i64 = at + HEAD
                stop: i64 = start + bucket[at + 1]
                found.append(bucket[start:stop])
                at = stop + bucket[at]
        return found

    def words(self) -> list[bytes]:
        """The texts and their values in turn. O(n)."""
        found: list[bytes] = []
        for bucket in self._buckets:
            at: i64 = 0
            end: i64 = len(bucket)
            while at < end:
                start: i64 = at + HEAD
                middle: i64 = start + bucket[at + 1]
                stop: i64 = middle + bucket[at]
                found.append(bucket[start:middle])
                found.append(bucket[middle:stop])
                at = stop
        return found

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The texts and their values. O(n)."""
        words = self.words()
        return list(zip(words[::2], words[1::2], strict=True))

    # -- buckets ----------------------------------------------------------------------------------------------------

    def _index(self, text: bytes) -> i64:
        """The bucket of a text."""
        mask: i64 = self._mask
        if not mask:
            return 0
        hashed: i64 = hash(text)
        index: i64 = hashed & mask
        return index if index < len(self._buckets) else hashed & (mask >> 1)

    def _split(self) -> None:
        """Divide the next bucket between it and a new one."""
        new: i64 = len(self._buckets)
        if new > self._mask:
            self._mask = self._mask * 2 + 1
        split: i64 = new & (self._mask >> 1)
        bucket = self._buckets[split]
        self._buckets.append(b"")
        kept: list[bytes] = []
        moved: list[bytes] = []
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            middle: i64 = at + HEAD + bucket[at + 1]
            stop: i64 = middle + bucket[at]
            if self._index(bucket[at + HEAD : middle]) == split:
                kept.append(bucket[at:stop])
            else:
                moved.append(bucket[at:stop])
            at = stop
        self._buckets[split], self._buckets[new] = b"".join(kept), b"".join(moved)

    def check(self) -> None:
        """Assert the invariants."""
        buckets = len(self._buckets)
        assert self._mask >> 1 < buckets <= self._mask + 1, "buckets that the hashes cannot tell apart"
        assert buckets == 1 or self.is_scattered, "the order of arrival is lost"
        pairs = self.pairs()
        assert len(pairs) == self._count, "the count of the entries is wrong"
        assert all(self.get(text) == value for text, value in pairs), "a text is in another's bucket, or there twice"


def fits(text: bytes, value: bytes = b"") -> bool:
    """Whether a text and its value are short enough for a table."""
    return len(text) <= LONGEST and len(value) <= LONGEST


def _place_of(bucket: bytes, text: bytes) -> i64:
    """Where the head of the entry with a text is; NOWHERE if it is not there. O(bytes)."""
    length: i64 = len(text)
    end: i64 = len(bucket)
    at: i64 = 0
    while at < end:
        start: i64 = at + HEAD
        size: i64 = bucket[at + 1]
        if size == length and is_at(text, bucket, start):
            return at
        at = start + size + bucket[at]
    return NOWHERE
