"""How many bytes Redis would take for a key and its value, which is what MEMORY USAGE answers.

The sizes are modelled on what Redis 8.6.3 answers, encoding by encoding: its allocator's size classes, a listpack's
elements, a table's slots, a radix tree's nodes. Large values are judged by some of their parts, as in Redis. What a
value takes here is another question (`value_sizes`).
"""

from itertools import islice
from typing import Final

from penstock.engine import arguments
from penstock.engine.numbers import double_text
from penstock.native.listpack_sizes import texts_size
from penstock.storage.keyspace import Value
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream
from penstock.storage.types.arrays import Array
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import LARGEST_NODE, LISTPACK_BYTES, List
from penstock.storage.types.sets import Form, Set
from penstock.storage.types.sorted_sets import SortedSet
from penstock.storage.types.string_forms import LONGEST_EMBEDDED
from penstock.storage.types.string_marks import RawString

SAMPLED: Final = 64  # parts that a large value is judged by

PAGE: Final = 4096
KEY: Final = 20  # bytes beside a key's name
EMBEDDED_STRING: Final = 4  # bytes beside a string that stands behind its key
RAW_STRING: Final = 4
SPARE_ROOM: Final = 1.4  # a string that was appended to has up to twice its length
QUICKLIST: Final = 64
QUICKLIST_NODE: Final = 50
INTSET: Final = 8
TABLE: Final = 100
SET_MEMBER: Final = (3, 16)  # bytes beside a member in its allocation, and outside of it
SKIPLIST: Final = 800
SKIPLIST_MEMBER: Final = (3, 80)
HASH_FIELD: Final = (8, 18)
FIELD_TIME: Final = 24  # in a table
LISTPACK_TIME: Final = 11  # in a listpack, where a time is a number of nine bytes
LISTPACK_NO_TIME: Final = 2
STREAM: Final = 256
STREAM_NODE: Final = 60  # of the tree, for a listpack
STREAM_GROUP: Final = 170
STREAM_CONSUMER: Final = 105
PENDING_ENTRY: Final = 142
PRODUCER: Final = 200
IDEMPOTENT_ID: Final = 100


def usage_in_redis(key: bytes, value: Value, sampled: int) -> int:
    """The bytes that Redis takes for a key and its value. sampled: parts that a large value is judged by.

    O(sampled); a value in a small encoding is measured as a whole.
    """
    size = allocated(KEY + len(key))
    if isinstance(value, bytes):
        return _string(key, value, size)
    if isinstance(value, LargeString):
        return size + int(allocated(RAW_STRING + len(value)) * SPARE_ROOM)
    if isinstance(value, List):
        nodes = value.packed_bytes // LARGEST_NODE + 1 if value.is_quicklist else 0
        return size + value.packed_bytes + nodes * QUICKLIST_NODE + (QUICKLIST if nodes else 0)
    if isinstance(value, Set):
        return size + _set(value, sampled)
    if isinstance(value, Hash):
        return size + _hash(value, sampled)
    if isinstance(value, SortedSet):
        return size + _sorted_set(value, sampled)
    if isinstance(value, (Array, Bitmap)):
        return size + value.memory_usage()
    return size + _stream(value, sampled)


def allocated(size: int) -> int:
    """The size that the allocator gives for so many bytes: multiples of 16, four sizes a power of two, whole pages.

    >>> [allocated(size) for size in (1, 9, 33, 129, 300, 1025, 100_000)]
    [8, 16, 48, 160, 320, 1280, 102400]
    """
    if size <= 8:
        return 8
    step = min(max(1 << max((size - 1).bit_length() - 3, 0), 16), PAGE)
    return -(-size // step) * step


def _string(key: bytes, value: bytes, size: int) -> int:
    is_raw = isinstance(value, RawString) or len(key) + len(value) > LONGEST_EMBEDDED
    if is_raw:
        return size + allocated(RAW_STRING + len(value))
    if arguments.is_integer(value):
        return size
    return allocated(KEY + len(key) + EMBEDDED_STRING + len(value))


def _slots(count: int) -> int:
    """Bytes of a table's slots: a power of two."""
    return TABLE + 8 * (1 << max(count - 1, 3).bit_length())


def _scaled(sizes: list[int], count: int) -> int:
    """The sum of `count` sizes, of which some were measured."""
    return sum(sizes) * count // max(len(sizes), 1)


# -- collections -----------------------------------------------------------------------------------------------------


def _set(value: Set, sampled: int) -> int:
    count, timed = len(value), len(value.expires)
    if value.form is Form.INTSET:
        largest = max(abs(int(member)) for member in value.members())
        return INTSET + count * (2 if largest < 1 << 15 else 4 if largest < 1 << 31 else 8)
    if value.form is Form.LISTPACK:
        size = LISTPACK_BYTES + texts_size(value.members())
        return size if value.due is None else size + timed * LISTPACK_TIME + (count - timed) * LISTPACK_NO_TIME
    inside, outside = SET_MEMBER
    sizes = [allocated(len(member) + inside) + outside for member in islice(value.members(), sampled)]
    return _slots(count) + _scaled(sizes, count) + timed * FIELD_TIME


def _hash(value: Hash, sampled: int) -> int:
    count, timed = len(value), len(value.expires)
    if not value.is_large:
        size = LISTPACK_BYTES + texts_size([*value.names(), *value.values()])
        if value.due is not None:
            size += timed * LISTPACK_TIME + (count - timed) * LISTPACK_NO_TIME
        return size
    inside, outside = HASH_FIELD
    pairs = islice(value.pairs(), sampled)
    sizes = [allocated(len(field) + len(text) + inside) + outside for field, text in pairs]
    return _slots(count) + _scaled(sizes, count) + timed * FIELD_TIME


def _sorted_set(value: SortedSet, sampled: int) -> int:
    count = len(value)
    if not value.is_large:
        scores = value.scores()
        return LISTPACK_BYTES + texts_size([*scores, *map(double_text, scores.values())])
    inside, outside = SKIPLIST_MEMBER
    sizes = [allocated(len(member) + inside) + outside for member in islice(value.members(), sampled)]
    return SKIPLIST + _scaled(sizes, count)


# -- streams ---------------------------------------------------------------------------------------------------------


def _stream(value: Stream, sampled: int) -> int:
    nodes = value.nodes
    some = nodes if len(nodes) <= sampled else [*nodes[: sampled - 1], nodes[-1]]
    size = STREAM + _scaled([node.size + STREAM_NODE for node in some], len(nodes))
    producers = value.producers
    if producers.pids:
        size += len(producers.pids) * PRODUCER + producers.tracked * IDEMPOTENT_ID
    groups = [_group(group) for group in islice(value.groups.values(), sampled)]
    return size + _scaled(groups, len(value.groups))


def _group(group: Group) -> int:
    return STREAM_GROUP + len(group.consumers) * STREAM_CONSUMER + group.pel.count * PENDING_ENTRY
