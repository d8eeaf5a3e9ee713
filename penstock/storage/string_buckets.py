"""Short strings under short keys, packed: some of them, one behind the other, are one bytes object, a bucket.

Each has a head, its key's hash and the lengths of its key and its text; then these two. A bucket is gone through from
its start, so it may have few strings only. Which bucket a key is in, key_table.py knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_le, write_i32_le

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

LONGEST_PACKED: Final = 64  # bytes of a key, and of a text
HEAD: Final = 6  # bytes: four of the hash, then the two lengths
KEY_LENGTH: Final = 4  # where they are in a head
TEXT_LENGTH: Final = 5
NOWHERE: Final = -1
TOGETHER: Final = 16  # buckets that are gone through at a time
LARGEST_BUCKET: Final = 32  # strings; one bucket in a thousand billion has more
_LENGTHS: Final = [bytes((length,)) for length in range(LONGEST_PACKED + 1)]


def place_of(bucket: bytes, hashed: i64, key: bytes) -> i64:
    """Where the head of a key with a hash is in a bucket; NOWHERE if the key is not there. O(bytes)."""
    end: i64 = len(bucket)
    at: i64 = 0
    while at < end:
        if hashed == hash_at(bucket, at):
            start: i64 = at + HEAD
            stop: i64 = start + bucket[at + KEY_LENGTH]
            if bucket[start:stop] == key:
                return at
        at = end_of(bucket, at)
    return NOWHERE


def hash_at(bucket: bytes, at: i64) -> i64:
    """The hash in the head at a place."""
    return int(read_i32_le(bucket, at))


def end_of(bucket: bytes, at: i64) -> i64:
    """Where the string ends whose head is at a place."""
    end: i64 = at + HEAD
    end += bucket[at + KEY_LENGTH]
    end += bucket[at + TEXT_LENGTH]
    return end


def text_at(bucket: bytes, at: i64) -> bytes:
    """The text of the string whose head is at a place."""
    start: i64 = at + HEAD + bucket[at + KEY_LENGTH]
    return bucket[start : end_of(bucket, at)]


def with_string(bucket: bytes, hashed: i64, key: bytes, text: bytes) -> bytes:
    """With one more, whose key must be new. O(bytes)."""
    writer = BytesWriter()
    writer.write(bucket)
    write_i32_le(writer, int(hashed))
    writer.append(len(key))
    writer.append(len(text))
    writer.write(key)
    writer.write(text)
    return writer.getvalue()


def with_text(bucket: bytes, at: i64, key: bytes, text: bytes) -> bytes:
    """With another text of the key whose head is at a place. O(bytes)."""
    stop: i64 = end_of(bucket, at)
    return b"%b%b%b%b%b" % (bucket[: at + TEXT_LENGTH], _LENGTHS[len(text)], key, text, bucket[stop:])


def without(bucket: bytes, at: i64) -> bytes:
    """Without the string whose head is at a place. O(bytes)."""
    return bucket[:at] + bucket[end_of(bucket, at) :]


def divided(bucket: bytes, mask: i64, index: i64) -> tuple[bytes, bytes]:
    """The strings whose hashes do not have certain lower bits, and those whose hashes do. O(bytes)."""
    kept: list[bytes] = []
    moved: list[bytes] = []
    at: i64 = 0
    end: i64 = len(bucket)
    while at < end:
        stop: i64 = end_of(bucket, at)
        if hash_at(bucket, at) & mask == index:
            moved.append(bucket[at:stop])
        else:
            kept.append(bucket[at:stop])
        at = stop
    return b"".join(kept), b"".join(moved)


def pairs_of(buckets: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The keys and texts of some buckets. O(bytes)."""
    found: list[tuple[bytes, bytes]] = []
    for bucket in buckets:
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            start: i64 = at + HEAD
            middle: i64 = start + bucket[at + KEY_LENGTH]
            at = end_of(bucket, at)
            found.append((bucket[start:middle], bucket[middle:at]))
    return found


def keys_of(buckets: list[bytes]) -> list[bytes]:
    """The keys of some buckets. O(bytes)."""
    found: list[bytes] = []
    for bucket in buckets:
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            start: i64 = at + HEAD
            found.append(bucket[start : start + bucket[at + KEY_LENGTH]])
            at = end_of(bucket, at)
    return found


class KeySnapshot:
    """The keys that a table had at one moment, taken out piece by piece, the last first."""

    __slots__ = ("_buckets", "_keys", "_packed")

    def __init__(self, keys: list[bytes], buckets: list[bytes], packed: int) -> None:
        """Takes over both lists. packed: how many keys the buckets have."""
        self._keys = keys
        self._buckets = buckets
        self._packed = packed

    def __len__(self) -> int:
        return len(self._keys) + self._packed

    def __iter__(self) -> Iterator[bytes]:
        """All that were not taken out. O(n)."""
        return chain(self._keys, keys_of(self._buckets))

    def take(self, most: int) -> list[bytes]:
        """Take out so many keys, or a few more; all, if there are no more. O(most)."""
        taken = self._keys[-most:]
        del self._keys[-most:]
        while self._packed and len(taken) < most:
            found = keys_of(self._buckets[-TOGETHER:])
            del self._buckets[-TOGETHER:]
            self._packed -= len(found)
            taken += found
        return taken

    def any_of(self, chance: Random) -> bytes:
        """A key by chance, each as likely as another; there must be one. O(1)."""
        place = int(chance.random() * len(self))
        if place < len(self._keys):
            return self._keys[place]
        while True:
            found = keys_of([self._buckets[int(chance.random() * len(self._buckets))]])
            place = int(chance.random() * LARGEST_BUCKET)
            if place < len(found):
                return found[place]
