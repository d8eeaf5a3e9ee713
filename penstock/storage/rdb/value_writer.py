"""One value as RDB keeps it, in the forms that a Redis of some version reads.

Small collections take the forms that Redis's own limits give them; a server that loads them chooses anew by its
settings.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from math import isinf
from typing import Final

from penstock.storage.keyspace import Value
from penstock.storage.rdb import listpack, old_blobs, rdb_format
from penstock.storage.rdb.array_codec import array_parts
from penstock.storage.rdb.rdb_format import PACKED_NODE, PLAIN_NODE
from penstock.storage.rdb.stream_writer import EntryForms, stream_parts
from penstock.storage.rdb.string_writer import StringWriter, length
from penstock.storage.streams.stream import Stream
from penstock.storage.types.arrays import Array
from penstock.storage.types.bitmaps import Bitmap
from penstock.storage.types.hashes import Hash
from penstock.storage.types.large_strings import LargeString
from penstock.storage.types.lists import List
from penstock.storage.types.sets import Form, Set
from penstock.storage.types.sorted_sets import SortedSet

MOST_INTSET_MEMBERS: Final = 512
MOST_HASH_FIELDS: Final = 512
MOST_SET_MEMBERS: Final = 128
LONGEST_COMPACT: Final = 64  # bytes of a member, field or value of a listpack
NODE_BYTES: Final = 8192  # of a list
ITEM_OVERHEAD: Final = 11  # bytes that an item of a listpack takes beside its text, at the most

NEEDED_FOR_FIELD_TIMES: Final = rdb_format.OF_REDIS["7.4"]
NEEDED_FOR_PRODUCERS: Final = rdb_format.OF_REDIS["8.6"]
NEEDED_FOR_RELEASED: Final = rdb_format.OF_REDIS["8.8"]
NEEDED_FOR_ARRAYS: Final = rdb_format.OF_REDIS["8.8"]
LISTPACKS_SINCE: Final = rdb_format.OF_REDIS["7.0"]
LISTPACK_SETS_SINCE: Final = rdb_format.OF_REDIS["7.2"]
USUAL_IDMP: Final = (100, 100)  # seconds, and iids: what a stream has that was not configured

_DOUBLE: Final = struct.Struct("<d")


def version_needed(value: Value, field_times: bool = True) -> int:
    """The lowest version that has everything of a value; 0 where any has. field_times: those of a hash, too."""
    if isinstance(value, Hash):
        return NEEDED_FOR_FIELD_TIMES if value.expires and field_times else 0
    if isinstance(value, Array):
        return NEEDED_FOR_ARRAYS
    if isinstance(value, Stream):
        if _has_released(value):
            return NEEDED_FOR_RELEASED
        producers = value.producers
        if producers.tracked or (producers.duration_s, producers.max_size) != USUAL_IDMP:
            return NEEDED_FOR_PRODUCERS
    return 0


def _has_released(value: Stream) -> bool:
    return any(group.pel.order.released for group in value.groups.values())


class ValueWriter:
    """Writes values for one version. `forms` knows the bytes of a stream's entries.

    field_times: hashes are written with the times of their fields.
    """

    __slots__ = ("_forms", "field_times", "strings", "version")

    def __init__(self, version: int, most_compressed: int, forms: EntryForms) -> None:
        self.version = version
        self.field_times = True
        self.strings = StringWriter(most_compressed)
        self._forms = forms

    # -- values -----------------------------------------------------------------------------------------------------

    def kind(self, value: Value) -> int:
        """The type in which a value is written."""
        if isinstance(value, (bytes, LargeString, Bitmap)):
            return rdb_format.STRING
        if isinstance(value, Stream):
            return self._stream_kind(value)
        if isinstance(value, List):
            return rdb_format.QUICKLIST_2 if self.version >= LISTPACKS_SINCE else rdb_format.LIST
        if isinstance(value, Set):
            return self._set_kind(value)
        if isinstance(value, SortedSet):
            compact = not value.is_large and self.version >= LISTPACKS_SINCE
            return rdb_format.ZSET_LISTPACK if compact else rdb_format.ZSET
        if isinstance(value, Array):
            return rdb_format.ARRAY
        compact = len(value) <= MOST_HASH_FIELDS and _is_short(chain(value.names(), value.values()))
        if value.expires and self.field_times:
            return rdb_format.HASH_TIMES_LISTPACK if compact else rdb_format.HASH_TIMES
        return rdb_format.HASH_LISTPACK if compact and self.version >= LISTPACKS_SINCE else rdb_format.HASH

    def _stream_kind(self, value: Stream) -> int:
        if self.version >= NEEDED_FOR_RELEASED and _has_released(value):
            return rdb_format.STREAM_5
        if self.version >= NEEDED_FOR_PRODUCERS:
            return rdb_format.STREAM_4
        if self.version >= LISTPACK_SETS_SINCE:
            return rdb_format.STREAM_3
        return rdb_format.STREAM_2 if self.version >= LISTPACKS_SINCE else rdb_format.STREAM

    def _set_kind(self, value: Set) -> int:
        members = value.members()
        small = value.form is not Form.LISTPACK and len(members) <= MOST_INTSET_MEMBERS
        if small and None not in map(listpack.integer_of, members):
            return rdb_format.SET_INTSET
        compact = len(members) <= MOST_SET_MEMBERS and _is_short(members)
        return rdb_format.SET_LISTPACK if compact and self.version >= LISTPACK_SETS_SINCE else rdb_format.SET

    def parts(self, value: Value, kind: int) -> Iterator[bytes]:
        """The value's bytes, in pieces."""
        if isinstance(value, bytes):
            yield self.strings.string(value)
        elif isinstance(value, LargeString):
            yield self.strings.string(value.text())
        elif isinstance(value, Bitmap):
            yield self.strings.bitmap(value)
        elif isinstance(value, Stream):
            yield from stream_parts(self.strings, value, kind, self._forms)
        elif isinstance(value, List):
            yield from self._nodes(value) if kind == rdb_format.QUICKLIST_2 else self._strings(value, len(value))
        elif isinstance(value, Set):
            if kind == rdb_format.SET_INTSET:
                yield self.strings.blob(old_blobs.packed_intset(sorted(map(int, value.members()))))
            elif kind == rdb_format.SET_LISTPACK:
                yield self.strings.blob(listpack.packed([*value.listed()]))
            else:
                yield from self._strings(value.members(), len(value))
        elif isinstance(value, SortedSet):
            yield from self._sorted_set(value, kind)
        elif isinstance(value, Array):
            yield from array_parts(self.strings, value)
        else:
            yield from self._hash(value, kind)

    def _strings(self, texts: Iterable[bytes], count: int) -> Iterator[bytes]:
        yield length(count)
        for text in texts:
            yield self.strings.string(text)

    def _nodes(self, value: List) -> Iterator[bytes]:
        """A list's nodes; an item that fills one has it for itself."""
        nodes: list[bytes | list[bytes | int]] = []
        held: list[bytes | int] = []
        size = 0
        for item in value:
            added = len(item) + ITEM_OVERHEAD
            if size + added > NODE_BYTES and held:
                nodes.append(held)
                held, size = [], 0
            if added > NODE_BYTES:
                nodes.append(item)
                continue
            held.append(item)
            size += added
        if held:
            nodes.append(held)
        yield length(len(nodes))
        for node in nodes:
            if isinstance(node, bytes):
                yield length(PLAIN_NODE) + self.strings.blob(node)
            else:
                yield length(PACKED_NODE) + self.strings.blob(listpack.packed(node))

    def _sorted_set(self, value: SortedSet, kind: int) -> Iterator[bytes]:
        if kind == rdb_format.ZSET_LISTPACK:
            words: list[bytes | int] = []
            for score, member in value.pairs():
                words += (member, _score_element(score))
            yield self.strings.blob(listpack.packed(words))
            return
        yield length(len(value))
        for score, member in value.pairs_backwards():
            yield self.strings.string(member) + _DOUBLE.pack(score)

    def _hash(self, value: Hash, kind: int) -> Iterator[bytes]:
        times = value.expires
        words: list[bytes | int] = []
        if kind == rdb_format.HASH_LISTPACK:
            for pair in value.pairs():
                words += pair
            yield self.strings.blob(listpack.packed(words))
        elif kind == rdb_format.HASH:
            yield length(len(value))
            for field, text in value.pairs():
                yield self.strings.string(field) + self.strings.string(text)
        else:
            earliest_ms = min(times.values())
            yield earliest_ms.to_bytes(8, "little")
            if kind == rdb_format.HASH_TIMES_LISTPACK:
                for field in [
                    *sorted(times, key=times.__getitem__),
                    *[one for one in value.names() if one not in times],
                ]:
                    words += (field, value.value(field), times.get(field, 0))
                yield self.strings.blob(listpack.packed(words))
                return
            yield length(len(value))
            for field, text in value.pairs():
                distance = times[field] - earliest_ms + 1 if field in times else 0
                yield length(distance) + self.strings.string(field) + self.strings.string(text)


def _is_short(texts: Iterable[bytes]) -> bool:
    return all(len(text) <= LONGEST_COMPACT for text in texts)


def _score_element(score: float) -> bytes | int:
    """A score as it stands in a listpack: a whole number as such, another in the fewest digits."""
    if isinf(score):
        return b"inf" if score > 0 else b"-inf"
    if score == int(score) and abs(score) < 1 << 63:
        return int(score)
    return repr(score).encode()
