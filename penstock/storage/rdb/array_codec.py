"""Arrays in RDB files: their number of items, whether something was inserted and where, and the items by index."""

from collections.abc import Iterator
from typing import Final

from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.source import Source
from penstock.storage.rdb.string_writer import StringWriter, length
from penstock.storage.types.arrays import MOST_INDEX, NONE, Array

TEXT: Final = 0  # how an item is written
INTEGER: Final = 1  # 64 bits, signed
FLOAT: Final = 2  # a double
SHORT_TEXT: Final = 3
LEAST_ITEM: Final = 3  # bytes: an index, a tag, a text


def array_of(source: Source) -> Array:
    """Read one. BadRdb where it has no items, or one twice."""
    count = source.count(LEAST_ITEM)
    read = Array()
    if source.length():
        read.cursor = _index(source)
    for _ in range(count):
        index = _index(source)
        if not read.put(index, _item(source)):
            raise BadRdb("an array has an item twice")
    if not count:
        raise BadRdb("an array is empty")
    return read


def _index(source: Source) -> int:
    index = source.length()
    if index > MOST_INDEX:
        raise BadRdb("an array has an index beyond its end")
    return index


def _item(source: Source) -> bytes:
    tag = source.length()
    if tag in (TEXT, SHORT_TEXT):
        return source.string()
    if tag == INTEGER:
        return b"%d" % source.signed(8)
    if tag == FLOAT:
        return b"%.17g" % source.double()
    raise BadRdb(f"an item of an array is of the unknown kind {tag}")


def array_parts(strings: StringWriter, value: Array) -> Iterator[bytes]:
    """Write one: all items as texts, which gives back what was set to the letter."""
    yield length(len(value))
    yield length(0) if value.cursor == NONE else length(1) + length(value.cursor)
    for index in value.order:
        yield length(index) + length(TEXT) + strings.string(value.items[index])
