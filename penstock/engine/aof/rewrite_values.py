"""A fresh base's lines for every type but streams: few requests, and none of them long."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.effects import newer, pack
from penstock.engine.numbers import double_text
from penstock.storage.types.arrays import NONE, Array
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Set
from penstock.storage.types.sorted_sets import SortedSet

ITEMS_A_LINE: Final = 64  # as many as Redis writes

PlainValue: TypeAlias = bytes | LargeString | List | Hash | Set | SortedSet | Array | Bitmap


def lines(key: bytes, value: PlainValue, written_in: AofCompat) -> Iterator[bytes]:
    """The requests that make a value anew at a key."""
    if isinstance(value, bytes):
        yield pack((b"SET", key, value))
    elif isinstance(value, LargeString):
        yield pack((b"SET", key, value.text()))
    elif isinstance(value, List):
        yield from _in_lines(b"RPUSH", key, value)
    elif isinstance(value, Set):
        yield from _in_lines(b"SADD", key, value.listed())
        yield from member_time_lines(key, value, written_in.has_8_12)
    elif isinstance(value, SortedSet):
        for start in range(0, len(value), ITEMS_A_LINE):
            words: list[bytes] = []
            for score, member in value.pairs_at(start, start + ITEMS_A_LINE):
                words += (double_text(score), member)
            yield pack((b"ZADD", key, *words))
    elif isinstance(value, Array):
        yield from _of_array(key, value)
    elif isinstance(value, Bitmap):
        yield from _of_bitmap(key, value, written_in.has_8_12)
    else:
        yield from _in_pairs(key, value)
        if written_in.field_expiry:
            yield from time_lines(key, value)


def time_lines(key: bytes, value: Hash) -> Iterator[bytes]:
    """The requests that give the fields of a hash their times."""
    for field, when_ms in value.expires.items():
        yield pack((b"HPEXPIREAT", key, b"%d" % when_ms, b"FIELDS", b"1", field))


def member_time_lines(key: bytes, value: Set, is_known: bool) -> Iterator[bytes]:
    """The requests that give the members of a set their times; is_known: to a Redis that loads them."""
    for member, when_ms in value.expires.items():
        yield newer([b"SPEXPIREAT", key, b"%d" % when_ms, b"MEMBERS", b"1", member], is_known)


def blessing_line(key: bytes, is_known: bool) -> bytes:
    """The request that protects a key from eviction; is_known: to a Redis that loads it."""
    return newer([b"BLESS", b"SET", key, b"NO-EVICT"], is_known)


def _of_array(key: bytes, value: Array) -> Iterator[bytes]:
    """The items, and where the next is inserted. A Redis before 8.8 knows none of it."""
    for start in range(0, len(value), ITEMS_A_LINE):
        words: list[bytes] = []
        for index in value.order.islice(start, start + ITEMS_A_LINE):
            words += (b"%d" % index, value.items[index])
        yield pack((b"ARMSET", key, *words))
    if value.cursor != NONE:
        yield pack((b"ARSEEK", key, b"%d" % (value.cursor + 1)))


def _of_bitmap(key: bytes, value: Bitmap, is_known: bool) -> Iterator[bytes]:
    """The bytes that are not zero and the length, as a string that is converted; is_known: to a Redis that loads it."""
    yield pack((b"SET", key, b""))
    for start, piece in value.pieces():
        yield pack((b"SETRANGE", key, b"%d" % start, piece))
    if len(value):
        last = 8 * len(value) - 1
        yield pack((b"SETBIT", key, b"%d" % last, b"%d" % value.bit(last)))
    yield newer([b"BITCONVERT", key], is_known)


def _in_pairs(key: bytes, value: Hash) -> Iterator[bytes]:
    fields = iter(value.pairs())
    while some := list(islice(fields, ITEMS_A_LINE)):
        words: list[bytes] = []
        for field, text in some:
            words += (field, text)
        yield pack((b"HSET", key, *words))


def _in_lines(name: bytes, key: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    rest = iter(items)
    while some := list(islice(rest, ITEMS_A_LINE)):
        yield pack((name, key, *some))
