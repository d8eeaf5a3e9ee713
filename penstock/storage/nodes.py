"""Nodes: the marks that say where an approximate trim may cut (Redis's macro nodes).

`~` trims remove whole nodes and ACKED trims stop at one, so a client sees where they lie. Entries live in segments of
our own size; a node is kept beside them as a range of ids and a few counts. (Sizes as verified on Redis 8.6.3.)
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from penstock.storage.ids import HALF, StreamId

NO_LIMIT_BYTES: Final = 1 << 30  # what 0 and anything larger mean
MAX_INT64: Final = 2**63 - 1


class NodeLimits:
    """When a node is full. One object is shared by all streams, so that CONFIG SET reaches them.

    `fields_of` gives the fields and values, in turn, of each of several entries, from their stored bytes.
    """

    __slots__ = ("fields_of", "max_bytes", "max_entries")

    def __init__(self, max_bytes: int, max_entries: int, fields_of: Callable[[bytes], list[list[bytes]]]) -> None:
        self.fields_of = fields_of
        self.max_bytes = 0
        self.max_entries = 0
        self.set(max_bytes, max_entries)

    def set(self, max_bytes: int, max_entries: int) -> None:
        self.max_bytes = max_bytes if 0 < max_bytes < NO_LIMIT_BYTES else NO_LIMIT_BYTES
        self.max_entries = max_entries  # 0: no limit


class Node:
    """A range of entries, [first, last] by id, of which `live` are left.

    `bound` is an upper bound of the node's size as Redis lays it out: an entry's bytes on the wire have at least four
    bytes a field more than its elements there (unless the field is a long one), but ids that lie far apart may need
    sixteen more. `exact` is that size without the two leading counts, -1 while nobody needed it. Only
    the newest node's sizes are ever asked for.
    """

    __slots__ = ("bound", "exact", "first", "last", "live", "names", "total")

    def __init__(self, entry_id: StreamId) -> None:
        self.first = entry_id
        self.last = entry_id
        self.live = 0
        self.total = 0  # entries ever put here, deleted ones included
        self.bound = 64
        self.exact = -1
        self.names: list[bytes] = []  # the first entry's field names, once `exact` is known

    def measure(self, entries: Iterable[tuple[StreamId, list[bytes]]]) -> None:
        """Learn the exact size from all entries that were put here, deleted ones included."""
        self.exact = 0
        for entry_id, fields in entries:
            self.add_exactly(entry_id, fields)

    def add_exactly(self, entry_id: StreamId, fields: list[bytes]) -> None:
        names = fields[::2]
        count = len(names)
        if not self.exact:
            self.names = names
            self.exact = 7 + _integer_size(count) + _texts_size(names) + 2
        ms, seq = (entry_id >> 64) - (self.first >> 64), (entry_id & HALF) - (self.first & HALF)
        size = 2 + (2 if 0 <= ms <= 127 else _integer_size(ms)) + (2 if 0 <= seq <= 127 else _integer_size(seq))
        if names == self.names:
            size += _texts_size(fields[1::2]) + _integer_size(count + 3)
        else:
            size += _integer_size(count) + _texts_size(fields) + _integer_size(2 * count + 4)
        self.exact += size

    @property
    def size(self) -> int:
        """Bytes as Redis lays the node out; `exact` must be known."""
        return self.exact + _integer_size(self.live) + _integer_size(self.total - self.live)


def _back_length(payload: int) -> int:
    if payload <= 127:
        return 1
    if payload < 16383:
        return 2
    if payload < 2097151:
        return 3
    return 4 if payload < 268435455 else 5


def _integer_size(number: int) -> int:
    if 0 <= number <= 127:
        return 2
    if -4096 <= number <= 4095:
        return 3
    if -(1 << 15) <= number < 1 << 15:
        return 4
    if -(1 << 23) <= number < 1 << 23:
        return 5
    return 6 if -(1 << 31) <= number < 1 << 31 else 10


def _texts_size(texts: Sequence[bytes]) -> int:
    """The elements' sizes, added up: each its length and two bytes, but for long ones and integers."""
    size = sum(map(len, texts)) + 2 * len(texts)
    for text in texts:
        if (text.isdigit() or text[:1] == b"-") and len(text) <= 20 and _is_integer(text):
            size += _integer_size(int(text)) - len(text) - 2
        elif len(text) >= 64:
            payload = len(text) + (2 if len(text) < 4096 else 5)
            size += payload + _back_length(payload) - len(text) - 2
    return size


def _is_integer(text: bytes) -> bool:
    """Whether a text is a signed 64-bit integer in its canonical form, which is then stored as one."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or (digits[0] == 48 and len(text) > 1):
        return False
    return -MAX_INT64 - 1 <= int(text) <= MAX_INT64
