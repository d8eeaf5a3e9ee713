"""Nodes: the marks that say where an approximate trim may cut (Redis's macro nodes).

`~` trims remove whole nodes and ACKED trims stop at one, so a client sees where they lie. Entries live in segments of
our own size; a node is kept beside them as a range of ids and a few counts. (Sizes as verified on Redis 8.6.3.)
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Final

from penstock.storage.streams.ids import HALF, IS_COMPILED, StreamId

NO_LIMIT_BYTES: Final = 1 << 30  # what 0 and anything larger mean
MAX_INT64: Final = 2**63 - 1

_LONGEST_SHORT: Final = 4095  # bytes of an element whose head has two bytes
_LONGEST_INTEGER: Final = 20  # bytes, with a sign
_LARGEST_COUNTS: Final = 20  # bytes of the two counts, at the most
_TEXT_SURPLUS: Final = bytes(64) + b"\1" * 62 + b"\2" * (_LONGEST_SHORT - 125)  # by length; see _surplus


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

    def add_run(self, first_id: StreamId, run: "AlikeEntries", start: int, limits: NodeLimits) -> int:
        """Put in entries from a place in the run on, while it is plain how much they take and that there is room.

        Their ids follow one another from `first_id` on. How many went in; the next one is for `has_room` and `add`.
        """
        ms, seq = (first_id >> 64) - self.first_ms, (first_id & HALF) - self.first_seq
        if run.names != self._names or not -4096 <= seq <= 4095:
            return 0
        alike_until = 0 if seq < 0 else 128 if seq < 128 else 4096  # so far, sequence numbers take equally much
        stop = min(len(run.sizes), start + alike_until - seq)
        if limits.max_entries:
            stop = min(stop, start + limits.max_entries - self.total)
        alike = self._alike_size + _integer_size(ms) + _integer_size(seq)
        most = limits.max_bytes - _LARGEST_COUNTS
        at, size = start, self.entries_size
        sure = min(stop - at, (most - size - run.largest) // (run.largest + alike))
        if sure > 0:
            size += run.sums[at + sure] - run.sums[at] + sure * alike
            at += sure
        while at < stop and size + run.words_sizes[at] < most:
            size += run.sizes[at] + alike
            at += 1
        if at > start:
            self.entries_size = size
            self.live += at - start
            self.total += at - start
            self.last = first_id + at - start - 1
        return at - start

    @property
    def size(self) -> int:
        """Bytes as Redis lays the node out."""
        return self.entries_size + _integer_size(self.live) + _integer_size(self.total - self.live)

    def copy(self) -> "Node":
        twin = Node(self.first)
        twin.last, twin.live, twin.total, twin.entries_size = self.last, self.live, self.total, self.entries_size
        twin._names, twin._alike_size = self._names, self._alike_size
        return twin


class AlikeEntries:
    """Entries of the same field names, several at once: a column of values for each name.

    words_sizes: of each entry, the size of its fields and values together. sizes: the same and its values' surplus;
    `largest` of either; `sums[n]` of the first n of `sizes`.
    """

    __slots__ = ("columns", "largest", "names", "sizes", "sums", "words_sizes")

    def __init__(self, names: list[bytes], columns: list[list[bytes]]) -> None:
        self.names = names
        self.columns = columns
        self.words_sizes: list[int] = []
        self.sizes: list[int] = []
        self.sums: list[int] = []
        self.largest = 0
        if IS_COMPILED:
            self._measure_one_by_one()
        else:
            self._measure_together()

    def _measure_one_by_one(self) -> None:
        """Fill in the sizes, in C's way."""
        columns = self.columns
        fixed = largest = total = 0
        for name in self.names:
            fixed += len(name)
        words_sizes: list[int] = []
        sizes: list[int] = []
        sums = [0]
        for at in range(len(columns[0])):
            words_size = size = fixed
            for values in columns:
                value = values[at]
                length = len(value)
                words_size += length
                size += length if _LONGEST_INTEGER < length < 64 else length + _surplus(value)
            words_sizes.append(words_size)
            sizes.append(size)
            total += size
            sums.append(total)
            if size > largest:
                largest = size
            if words_size > largest:
                largest = words_size
        self.words_sizes, self.sizes, self.sums, self.largest = words_sizes, sizes, sums, largest

    def _measure_together(self) -> None:
        """Fill in the sizes, in Python's way: by operations on lists."""
        names, columns = self.names, self.columns
        count = len(columns[0])
        fixed = sum(map(len, names))
        fixed_surplus = 0
        lengths: list[int] = []  # of the values that are not all equally long, added up
        surplus: list[int] = []
        for values in columns:
            own = list(map(len, values))
            shortest, longest = min(own), max(own)
            is_plain = shortest > _LONGEST_INTEGER or not (any(map(bytes.isdigit, values)) or b"-" in b"".join(values))
            more: list[int] = []
            if not is_plain or longest > _LONGEST_SHORT:
                more = list(map(_surplus, values))
            elif shortest == longest:
                fixed_surplus += _TEXT_SURPLUS[longest]
            elif longest >= 64:
                more = list(map(_TEXT_SURPLUS.__getitem__, own))
            if more:
                surplus = list(map(add, surplus, more)) if surplus else more
            if shortest == longest:
                fixed += longest
            else:
                lengths = list(map(add, lengths, own)) if lengths else own
        self.words_sizes = list(map(fixed.__add__, lengths)) if lengths else [fixed] * count
        self.sizes = self.words_sizes
        if fixed_surplus:
            self.sizes = list(map(fixed_surplus.__add__, self.sizes))
        if surplus:
            self.sizes = list(map(add, self.sizes, surplus))
        self.largest = max(max(self.sizes), max(self.words_sizes))
        self.sums = list(accumulate(self.sizes, initial=0))

    def __len__(self) -> int:
        return len(self.sizes)

    def fields(self, at: int) -> list[bytes]:
        """The fields and values of one entry, in turn."""
        values = [column[at] for column in self.columns]
        return [word for pair in zip(self.names, values, strict=True) for word in pair]


def alike(run: list[list[bytes]]) -> AlikeEntries | None:
    """The entries, given as fields and values in turn, if all have the same field names."""
    width = len(run[0])
    if list(map(len, run)).count(width) != len(run):
        return None
    places = list(map(list, zip(*run, strict=True)))
    names = run[0][::2]
    if any(column.count(name) != len(run) for name, column in zip(names, places[::2], strict=True)):
        return None
    return AlikeEntries(names, places[1::2])


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
    """What an element takes beyond its length and two bytes: long ones more, integers mostly less.

    A signed 64-bit integer in its canonical form is stored as one.
    """
    size = len(text)
    if size <= _LONGEST_INTEGER:
        if not size or not (48 <= text[0] <= 57 or text[0] == 45):
            return 0
        digits = text[1:] if text.startswith(b"-") else text
        if not digits.isdigit() or (size > 1 and digits.startswith(b"0")):
            return 0
        number = int(text)
        return _integer_size(number) - size - 2 if -MAX_INT64 - 1 <= number <= MAX_INT64 else 0
    if size < 64:
        return 0
    if size <= _LONGEST_SHORT:
        return 1 if size <= 125 else 2
    payload = size + (2 if size < 4096 else 5)
    return payload + _back_length(payload) - size - 2
