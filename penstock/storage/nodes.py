"""Nodes: the marks that say where an approximate trim may cut (Redis's macro nodes).

`~` trims remove whole nodes and ACKED trims stop at one, so a client sees where they lie. Entries live in segments of
our own size; a node is kept beside them as a range of ids and a few counts. (Sizes as verified on Redis 8.6.3.)
"""

from collections.abc import Sequence
from typing import Final

from penstock.storage.ids import HALF, StreamId

NO_LIMIT_BYTES: Final = 1 << 30  # what 0 and anything larger mean
MAX_INT64: Final = 2**63 - 1

_LARGEST_COUNTS: Final = 20  # bytes of the two counts, at the most


class NodeLimits:
    """When a node is full. One object is shared by all streams, so that CONFIG SET reaches them."""

    __slots__ = ("max_bytes", "max_entries")

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self.max_bytes = 0
        self.max_entries = 0
        self.set(max_bytes, max_entries)

    def set(self, max_bytes: int, max_entries: int) -> None:
        self.max_bytes = max_bytes if 0 < max_bytes < NO_LIMIT_BYTES else NO_LIMIT_BYTES
        self.max_entries = max_entries  # 0: no limit


class Node:
    """A range of entries, [first, last] by id, of which `live` are left.

    `entries_size` is what Redis's layout of the node takes, without its two leading counts: deleted entries stay in it.
    """

    __slots__ = ("_alike_size", "_names", "entries_size", "first", "first_ms", "first_seq", "last", "live", "total")

    def __init__(self, entry_id: StreamId) -> None:
        self.first = entry_id
        self.first_ms = entry_id >> 64
        self.first_seq = entry_id & HALF
        self.last = entry_id
        self.live = 0
        self.total = 0  # entries ever put here, deleted ones included
        self.entries_size = 0
        self._names: list[bytes] = []  # the first entry's field names
        self._alike_size = 0  # of an entry with the same names: its fixed parts, less the names that it does not repeat

    def has_room(self, size: int, limits: NodeLimits) -> bool:
        """Whether one more entry goes in here; `size` is that of its fields and values together."""
        if 0 < limits.max_entries <= self.total:
            return False
        most = limits.max_bytes - size
        return self.entries_size + _LARGEST_COUNTS < most or self.size < most

    def add(self, entry_id: StreamId, fields: list[bytes], size: int) -> None:
        """Put an entry in: its fields and values in turn, and their size together."""
        names = fields[::2]
        if not self.total:
            count = len(names)
            self._names = names
            self._alike_size = 2 + 2 * count + _integer_size(count + 3) - sum(map(len, names))
            self.entries_size = 7 + _integer_size(count) + _texts_size(names) + 2
        self.last = entry_id
        self.live += 1
        self.total += 1
        ms, seq = (entry_id >> 64) - self.first_ms, (entry_id & HALF) - self.first_seq
        distance = 4 if 0 <= ms <= 127 and 0 <= seq <= 127 else _integer_size(ms) + _integer_size(seq)
        if names == self._names:
            self.entries_size += self._alike_size + distance + size
            for at in range(1, len(fields), 2):
                value = fields[at]
                if len(value) >= 64 or value.isdigit() or value[:1] == b"-":
                    self.entries_size += _surplus(value)
        else:
            count = len(names)
            self.entries_size += (
                2 + _integer_size(count) + _texts_size(fields) + _integer_size(2 * count + 4) + distance
            )

    @property
    def size(self) -> int:
        """Bytes as Redis lays the node out."""
        return self.entries_size + _integer_size(self.live) + _integer_size(self.total - self.live)

    def copy(self) -> "Node":
        twin = Node(self.first)
        twin.last, twin.live, twin.total, twin.entries_size = self.last, self.live, self.total, self.entries_size
        twin._names, twin._alike_size = self._names, self._alike_size
        return twin


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
    """The elements' sizes, added up: each its length and two bytes, and its surplus."""
    return sum(map(len, texts)) + 2 * len(texts) + sum(map(_surplus, texts))


def _surplus(text: bytes) -> int:
    """What an element takes beyond its length and two bytes: long ones more, integers mostly less."""
    if (text.isdigit() or text[:1] == b"-") and len(text) <= 20 and _is_integer(text):
        return _integer_size(int(text)) - len(text) - 2
    if len(text) < 64:
        return 0
    payload = len(text) + (2 if len(text) < 4096 else 5)
    return payload + _back_length(payload) - len(text) - 2


def _is_integer(text: bytes) -> bool:
    """Whether a text is a signed 64-bit integer in its canonical form, which is then stored as one."""
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or (digits[0] == 48 and len(text) > 1):
        return False
    return -MAX_INT64 - 1 <= int(text) <= MAX_INT64
