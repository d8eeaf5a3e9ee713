"""Listpack nodes: the boundaries at which an approximate trim may stop (Redis stores entries in such nodes).

A trim with `~` removes whole nodes, and an ACKED trim stops at the end of one, so clients can observe the boundaries.
Penstock stores entries in segments of another size; beside them it keeps, for each node that Redis would have, a range
of ids and some counts. (Sizes as verified on Redis 8.6.3.)

Example. With stream-node-max-entries 100, 250 small entries make three nodes of 100, 100 and 50 entries, and two
segments of 128 and 122. `XTRIM s MAXLEN ~ 120` removes the first node, after which 150 entries are left; removing the
second as well would leave fewer than 120.
"""

from bisect import bisect_right
from itertools import accumulate
from operator import add
from typing import Final

from penstock.native.build import IS_COMPILED
from penstock.native.class_marks import mypyc_attr
from penstock.native.listpack_sizes import LONGEST_INTEGER, LONGEST_SHORT, integer_size, surplus_of, texts_size
from penstock.storage.compression import Compressor, Packing
from penstock.storage.streams.ids import StreamId, halves
from penstock.storage.streams.segment import MOST_SLOTS

NO_LIMIT_BYTES: Final = 1 << 30  # used for 0 and for any larger setting

_LARGEST_COUNTS: Final = 20  # maximum size in bytes of the two counts
_TEXT_SURPLUS: Final = bytes(64) + b"\1" * 62 + b"\2" * (LONGEST_SHORT - 125)  # by length; see surplus_of


class StreamLimits:
    """The size at which a node is full, and which entries are compressed: one object for all streams (CONFIG SET).

    ready_segments: so many of a stream, the newest, are kept as they are sent, and older ones compressed; 0: none is.
    """

    __slots__ = ("compressor", "max_bytes", "max_entries", "packing", "ready_segments")

    def __init__(self, max_bytes: int, max_entries: int, ready_entries: int = 0) -> None:
        self.max_bytes = 0
        self.max_entries = 0
        self.ready_segments = 0
        self.compressor = Compressor()
        self.packing = Packing()
        self.set(max_bytes, max_entries, ready_entries)

    def set(self, max_bytes: int, max_entries: int, ready_entries: int = 0) -> None:
        """Set the limits: bytes (0: NO_LIMIT_BYTES) and entries (0: no limit) of a node.

        ready_entries: so many of a stream are not compressed, rounded up to whole segments; 0: none is.
        """
        self.max_bytes = max_bytes if 0 < max_bytes < NO_LIMIT_BYTES else NO_LIMIT_BYTES
        self.max_entries = max_entries  # 0: no limit
        self.ready_segments = -(-ready_entries // MOST_SLOTS)


@mypyc_attr(acyclic=True)
class Node:
    """A range of entries, [first, last] by id, of which `live` are not deleted.

    `entries_size` is the node's size in Redis's layout, without the two leading counts; deleted entries are included.
    """

    __slots__ = (
        "_names", "_same_fields_size", "entries_size", "first", "first_ms", "first_seq", "last_ms", "last_seq", "live",
        "total",
    )  # fmt: skip

    def __init__(self, ms: int, seq: int) -> None:
        self.first: StreamId = ms << 64 | seq
        self.first_ms = self.last_ms = ms
        self.first_seq = self.last_seq = seq
        self.live = 0
        self.total = 0  # all entries, deleted ones included
        self.entries_size = 0
        self._names: list[bytes] = []  # the first entry's field names
        # Size of an entry with the same names, without its values and ids, minus the names, which are not repeated.
        self._same_fields_size = 0

    @property
    def last(self) -> StreamId:
        """The id of the last entry, deleted or not. O(1)."""
        return self.last_ms << 64 | self.last_seq

    def has_room(self, size: int, limits: StreamLimits) -> bool:
        """Whether one more entry fits; `size` is the total size in bytes of its fields and values. O(1)."""
        if 0 < limits.max_entries <= self.total:
            return False
        max_size = limits.max_bytes - size
        return self.entries_size + _LARGEST_COUNTS < max_size or self.size < max_size

    def add(self, ms: int, seq: int, fields: list[bytes], size: int) -> None:
        """Add an entry, given as its id, and fields and values in turn. O(fields).

        size: bytes of the fields and values together.
        """
        if not self.total:
            names = fields[::2]
            count = len(names)
            self._names = names
            self._same_fields_size = 2 + 2 * count + integer_size(count + 3) - sum(map(len, names))
            self.entries_size = 7 + integer_size(count) + texts_size(names) + 2
        self.last_ms, self.last_seq = ms, seq
        self.live += 1
        self.total += 1
        ms -= self.first_ms
        seq -= self.first_seq
        distance = (2 if 0 <= ms <= 127 else integer_size(ms)) + (2 if 0 <= seq <= 127 else integer_size(seq))
        if fields[::2] == self._names:
            self.entries_size += self._same_fields_size + distance + size
            for at in range(1, len(fields), 2):
                value = fields[at]
                if not LONGEST_INTEGER < len(value) < 64:
                    self.entries_size += surplus_of(value)
        else:
            count = len(fields) // 2
            self.entries_size += 2 + integer_size(count) + texts_size(fields) + integer_size(2 * count + 4) + distance

    def add_run(self, ms: int, seq: int, run: "SameFieldEntries", start: int, stop: int, limits: StreamLimits) -> int:
        """Add as many of the entries [start, stop) of `run` as certainly fit; returns how many.

        Their ids are consecutive from this one on. Stops before the first entry for which only `has_room` can decide,
        or one with a sequence number of another size, which the caller adds by `add`. O(1) while all are known to fit
        by the largest size in the run, else O(entries added); compiled O(words added).
        """
        first_ms, first_seq = ms, seq
        ms -= self.first_ms
        seq -= self.first_seq
        if run.names != self._names or not -4096 <= seq <= 4095:
            return 0
        seq_limit = 0 if seq < 0 else 128 if seq < 128 else 4096  # sequence numbers below this have equal size
        stop = min(stop, start + seq_limit - seq)
        if limits.max_entries:
            stop = min(stop, start + limits.max_entries - self.total)
        fixed = self._same_fields_size + integer_size(ms) + integer_size(seq)
        max_size = limits.max_bytes - _LARGEST_COUNTS
        at, size = start, self.entries_size
        sure = min(stop - at, (max_size - size - run.largest) // (run.largest + fixed))  # this many fit in any case
        if sure > 0:
            size += run.total_size(at, at + sure) + sure * fixed
            at += sure
        while at < stop and size + run.words_size(at) < max_size:
            size += run.total_size(at, at + 1) + fixed
            at += 1
        if at > start:
            self.entries_size = size
            self.live += at - start
            self.total += at - start
            self.last_ms, self.last_seq = first_ms, first_seq + at - start - 1
        return at - start

    @property
    def size(self) -> int:
        """The node's size in bytes in Redis's layout. O(1)."""
        return self.entries_size + integer_size(self.live) + integer_size(self.total - self.live)

    def copy(self) -> "Node":
        """A copy; the list of field names, which never changes, is shared. O(1)."""
        copied = Node(self.first_ms, self.first_seq)
        copied.last_ms, copied.last_seq = self.last_ms, self.last_seq
        copied.live, copied.total, copied.entries_size = self.live, self.total, self.entries_size
        copied._names, copied._same_fields_size = self._names, self._same_fields_size
        return copied


def node_of_layout(
    first_id: StreamId, last_id: StreamId, live: int, deleted: int, layout_size: int, names: list[bytes]
) -> Node:
    """A node that takes so many bytes as Redis lays it out, its first entry having these field names.  O(names)."""
    ms, seq = halves(first_id)
    node = Node(ms, seq)
    node.last_ms, node.last_seq = halves(last_id)
    node.live, node.total = live, live + deleted
    node._names = names
    count = len(names)
    node._same_fields_size = 2 + 2 * count + integer_size(count + 3) - sum(map(len, names))
    node.entries_size = layout_size - integer_size(live) - integer_size(deleted)
    return node


def last_node_from(nodes: list[Node], entry_id: StreamId, guess: int) -> int:
    """The index of the last node that begins at an id or below. O(1) if that is `guess`; else O(log nodes)."""
    is_begun = 0 <= guess < len(nodes) and nodes[guess].first <= entry_id
    if is_begun and (guess + 1 == len(nodes) or entry_id < nodes[guess + 1].first):
        return guess
    return bisect_right(nodes, entry_id, key=_first_of) - 1


def _first_of(node: Node) -> StreamId:
    return node.first


class SameFieldEntries:
    """Several entries with the same field names, as one column of values for each name.

    An entry has two sizes: that of its fields and values, and the same with the values' surplus (see surplus_of).
    largest: the largest number in both. The compiled build computes a size where it is asked for: a loop over bytes
    takes less than a list of numbers. The uncompiled one has computed all of them by operations on whole lists.
    """

    __slots__ = ("_fixed", "_sums", "_words_sizes", "columns", "largest", "names")

    def __init__(self, names: list[bytes], columns: list[list[bytes]]) -> None:
        self.names = names
        self.columns = columns
        fixed = 0
        for name in names:
            fixed += len(name)
        self._fixed = fixed
        self._words_sizes: list[int] = []  # empty in the compiled build
        self._sums: list[int] = []  # sums of the first n sizes with the surplus; empty in the compiled build
        self.largest = 0
        if IS_COMPILED:
            self._measure_one_by_one()
        else:
            self._measure_together()

    def words_size(self, at: int) -> int:
        """The size in bytes of the fields and values of an entry. O(fields)."""
        if self._words_sizes:
            return self._words_sizes[at]
        size = self._fixed
        for values in self.columns:
            size += len(values[at])
        return size

    def total_size(self, start: int, stop: int) -> int:
        """The sizes of the entries [start, stop) with their surplus, in bytes. O(1), compiled O(words)."""
        if self._sums:
            return self._sums[stop] - self._sums[start]
        size = (stop - start) * self._fixed
        for values in self.columns:
            for at in range(start, stop):
                value = values[at]
                length = len(value)
                size += length if LONGEST_INTEGER < length < 64 else length + surplus_of(value)
        return size

    def _measure_one_by_one(self) -> None:
        largest = 0
        columns = self.columns
        for at in range(len(self)):
            size, surplus = self._fixed, 0
            for values in columns:
                value = values[at]
                length = len(value)
                size += length
                if length <= LONGEST_INTEGER or length >= 64:
                    surplus += surplus_of(value)
            if surplus > 0:
                size += surplus
            if size > largest:
                largest = size
        self.largest = largest

    def _measure_together(self) -> None:
        count, fixed = len(self), self._fixed
        fixed_surplus = 0
        lengths: list[int] = []  # for each entry: total length of the values in columns with unequal lengths
        surplus: list[int] = []
        for values in self.columns:
            own = list(map(len, values))
            shortest, longest = min(own), max(own)
            is_plain = shortest > LONGEST_INTEGER or not (any(map(bytes.isdigit, values)) or b"-" in b"".join(values))
            more: list[int] = []
            if not is_plain or longest > LONGEST_SHORT:
                more = list(map(surplus_of, values))
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
        words_sizes = list(map(fixed.__add__, lengths)) if lengths else [fixed] * count
        sizes = words_sizes
        if fixed_surplus:
            sizes = list(map(fixed_surplus.__add__, sizes))
        if surplus:
            sizes = list(map(add, sizes, surplus))
        self.largest = max(max(sizes), max(words_sizes))
        self._words_sizes, self._sums = words_sizes, list(accumulate(sizes, initial=0))

    def __len__(self) -> int:
        return len(self.columns[0])

    def fields(self, at: int) -> list[bytes]:
        """The fields and values of one entry, in turn. O(fields)."""
        words: list[bytes] = []
        for place, name in enumerate(self.names):
            words.append(name)
            words.append(self.columns[place][at])
        return words


def add_to_nodes(
    nodes: list[Node], ms: int, seq: int, run: SameFieldEntries, start: int, stop: int, limits: StreamLimits
) -> None:
    """Add the entries [start, stop) of `run`, with consecutive ids from this one on, to a stream's last nodes.

    O(entries).
    """
    at = start
    while at < stop:
        taken = nodes[-1].add_run(ms, seq, run, at, stop, limits) if nodes else 0
        if not taken:
            size = run.words_size(at)
            if not nodes or not nodes[-1].has_room(size, limits):
                nodes.append(Node(ms, seq))
            nodes[-1].add(ms, seq, run.fields(at), size)
            taken = 1
        at += taken
        seq += taken


def same_field_entries(run: list[list[bytes]], first: int) -> SameFieldEntries | None:
    """The entries with the words from `first` on as fields and values, in turn; None if their field names differ.

    O(words).
    """
    width = len(run[0])
    names = run[0][first::2]
    columns: list[list[bytes]] = [[] for _ in names]
    for words in run:
        if len(words) != width:
            return None
        at = first
        for place in range(len(names)):
            if words[at] != names[place]:
                return None
            columns[place].append(words[at + 1])
            at += 2
    return SameFieldEntries(names, columns)
