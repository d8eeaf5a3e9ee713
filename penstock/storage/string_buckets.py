"""Short values under short keys, packed: some of them, one behind the other, are one bytes object, a bucket.

Each has a head, its key's hash and the lengths of its key and its text; then these two. The text is a string, or a
small collection at rest (values_at_rest.py), which a bit of the head tells. A bucket is gone through from its start, so
it may have few values only. Which bucket a key is in, key_table.py knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from librt.strings import BytesWriter, read_i64_le, write_i64_le

from penstock.native.text_match import is_at

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

V = TypeVar("V")

LONGEST_KEY: Final = 64  # bytes
LONGEST_TEXT: Final = 128  # bytes of a string
SHORTEST_PACKED: Final = 1  # bytes of both together: so a head and what is behind it can be read as one number
HEAD: Final = 7  # bytes: four of the hash, one of the key's length, two of the text's and of what it is
HASH_BITS: Final = 0x7FFF_FFFF
NOWHERE: Final = -1
TOGETHER: Final = 16  # buckets that are gone through at a time
LARGEST_BUCKET: Final = 32  # strings; one bucket in a thousand billion has more
_KEY_LENGTH: Final = 32  # bits before it in a head that was read as a number
_TEXT_LENGTH: Final = 40
_KEY_LENGTH_BITS: Final = 0xFF
_TEXT_LENGTH_BITS: Final = 0x7FFF
_HASH_AND_KEY_LENGTH: Final = 0xFF_FFFF_FFFF
_TEXT_LENGTH_AT: Final = 5  # bytes before it in a head
_AT_REST: Final = 1 << 55  # in a head: the text is a collection
_AT_REST_AT: Final = 6  # bytes before the one with that bit
_AT_REST_IN_BYTE: Final = 0x80
_LENGTHS: Final = [bytes((length, 0)) for length in range(LONGEST_TEXT + 1)]


def fits(key: bytes, text: bytes) -> bool:
    """Whether a key and its text may be in a bucket."""
    length: i64 = len(key)
    text_length: i64 = len(text)
    return length <= LONGEST_KEY and text_length <= LONGEST_TEXT and length + text_length >= SHORTEST_PACKED


def place_of(bucket: bytes, hashed: i64, key: bytes) -> i64:
    """Where the head of a key with a hash is in a bucket; NOWHERE if the key is not there. O(bytes)."""
    length: i64 = len(key)
    wanted: i64 = hashed | length << _KEY_LENGTH
    end: i64 = len(bucket)
    at: i64 = 0
    while at < end:
        head: i64 = read_i64_le(bucket, at)
        if head & _HASH_AND_KEY_LENGTH == wanted and is_at(key, bucket, at + HEAD):
            return at
        # size_of, in place
        at += HEAD + (head >> _KEY_LENGTH & _KEY_LENGTH_BITS) + (head >> _TEXT_LENGTH & _TEXT_LENGTH_BITS)
    return NOWHERE


def size_of(head: i64) -> i64:
    """The bytes of a string with its head, which was read as a number."""
    return HEAD + key_size_of(head) + (head >> _TEXT_LENGTH & _TEXT_LENGTH_BITS)


def key_size_of(head: i64) -> i64:
    """The bytes of its key."""
    return head >> _KEY_LENGTH & _KEY_LENGTH_BITS


def text_size_at(bucket: bytes, at: i64) -> i64:
    """The bytes of the text of the string whose head is at a place."""
    return bucket[at + _TEXT_LENGTH_AT]  # of a string, the other byte is 0


def is_at_rest(bucket: bytes, at: i64) -> bool:
    """Whether the text with its head at a place is a collection, not a string."""
    return bucket[at + _AT_REST_AT] >= _AT_REST_IN_BYTE


def text_at(bucket: bytes, at: i64) -> bytes:
    """The text of the string with its head at a place."""
    head: i64 = read_i64_le(bucket, at)
    start: i64 = at + HEAD + key_size_of(head)
    return bucket[start : at + size_of(head)]


def with_value(
    bucket: bytes, hashed: i64, key: bytes, text: bytes, writer: BytesWriter, is_collection: bool = False
) -> bytes:
    """With one more; its key must be new. O(bytes).

    writer: any; what it has is lost. To make one takes as long as all the rest.
    """
    length: i64 = len(key)
    text_length: i64 = len(text)
    head: i64 = hashed | length << _KEY_LENGTH | text_length << _TEXT_LENGTH
    if is_collection:
        head |= _AT_REST
    writer.truncate(0)
    writer.write(bucket)
    write_i64_le(writer, head)
    writer.truncate(len(bucket) + HEAD)
    writer.write(key)
    writer.write(text)
    return writer.getvalue()


def with_text(bucket: bytes, at: i64, key: bytes, text: bytes) -> bytes:
    """With another string under the key of the string with its head at a place. O(bytes)."""
    stop: i64 = at + size_of(read_i64_le(bucket, at))
    return b"%b%b%b%b%b" % (bucket[: at + _TEXT_LENGTH_AT], _LENGTHS[len(text)], key, text, bucket[stop:])


def without(bucket: bytes, at: i64) -> bytes:
    """Without the string with its head at a place. O(bytes)."""
    stop: i64 = at + size_of(read_i64_le(bucket, at))
    return bucket[:at] + bucket[stop:]


def divided(bucket: bytes, mask: i64, index: i64) -> tuple[bytes, bytes]:
    """The strings with hashes that do not have certain lower bits, and those with hashes that do. O(bytes)."""
    kept: list[bytes] = []
    moved: list[bytes] = []
    at: i64 = 0
    end: i64 = len(bucket)
    while at < end:
        head: i64 = read_i64_le(bucket, at)
        stop: i64 = at + size_of(head)
        if head & mask == index:
            moved.append(bucket[at:stop])
        else:
            kept.append(bucket[at:stop])
        at = stop
    return b"".join(kept), b"".join(moved)


def pairs_of(buckets: list[bytes], woken: Callable[[bytes], V]) -> list[tuple[bytes, bytes | V]]:
    """The keys and values of some buckets. O(bytes). woken: makes the value of a collection's text."""
    found: list[tuple[bytes, bytes | V]] = []
    for bucket in buckets:
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            head: i64 = read_i64_le(bucket, at)
            start: i64 = at + HEAD
            middle: i64 = start + key_size_of(head)
            at += size_of(head)
            text = bucket[middle:at]
            found.append((bucket[start:middle], woken(text) if head & _AT_REST else text))
    return found


def keys_of(buckets: list[bytes], piece: bytes = b"") -> list[bytes]:
    """The keys of some buckets that start with a piece. O(bytes); the others do not become objects."""
    found: list[bytes] = []
    least: i64 = len(piece)
    for bucket in buckets:
        at: i64 = 0
        end: i64 = len(bucket)
        while at < end:
            head: i64 = read_i64_le(bucket, at)
            start: i64 = at + HEAD
            length: i64 = key_size_of(head)
            if least == 0 or (length >= least and is_at(piece, bucket, start)):
                found.append(bucket[start : start + length])
            at += size_of(head)
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
