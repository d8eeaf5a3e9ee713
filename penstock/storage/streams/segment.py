"""Segments: consecutive entries of a stream, stored as the bytes in which they are sent.

An entry is stored as `*2 $id *2n $field $value ...`, encoded once by XADD; every later read is a slice and a join.
This module does not look into the bytes.
"""

from array import array
from bisect import bisect_left
from itertools import accumulate, pairwise
from operator import sub
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.native.class_marks import mypyc_attr
from penstock.native.columns import (
    WIDE,
    append_both,
    big_endian,
    ends_of,
    first_at_least,
    little_endian,
    offsets_of,
    repeated,
)
from penstock.storage.streams.ids import HALF, ID_BYTES, StreamId, decimal, decimals, text_of

if TYPE_CHECKING:
    from penstock.storage.compression import Compressor

MOST_SLOTS: Final = 128
LEAST_SEALED: Final = 16  # slots; the entries of fewer stay one by one while their stream rests
MOST_BYTES: Final = 64 * 1024
LARGEST_AT_REST: Final = 1 << 20  # bytes (of one long entry): compressing more would make clients wait
SEGMENTS_SAMPLED: Final = 64  # from which the memory of a stream's segments is estimated
NO_SLOT: Final = -1
_NUMBERS: Final = array(WIDE, range(1000))  # the usual sequence numbers, ready to be sliced
_NO_OFFSETS: Final = array("I")
_SAVES_AT_LEAST: Final = 8  # an eighth, or a segment stays as it is

SegmentRun: TypeAlias = "tuple[Segment, int, int]"  # the live slots [start, stop) of a segment


@mypyc_attr(acyclic=True)
class Segment:
    """Up to MOST_SLOTS entries, ascending by id, each in a slot with a number that never changes.

    An open segment (the stream's last) has its entries one by one in `parts`. A sealed one has one `blob`: the entry of
    slot i is blob[offsets[i]:offsets[i + 1]]. One that is compressed has both only after it was read, for a while, and
    more bytes in the blob behind its entries.

    Invariants: `ms`, `seq` and the entries have one element for each slot, ascending; `first` is the first slot that
    was not trimmed; `deleted`, if there is one, marks the deleted slots and is long enough for the highest of them;
    `live` counts the slots from `first` on that are not marked. Ids stay after their entries are deleted: pending
    blocks refer to them.

    Example. After XADD of 5-0, 5-1, 6-0 and 7-0, then XTRIM MINID 5-1 and XDEL 6-0:

        slot      0     1     2     3
        ms        5     5     6     7
        seq       0     1     0     0
        deleted   0     0     1     0
        first = 1, live = 2 (slots 1 and 3); parts or blob still has all four entries

    Costs: a segment has at most 128 slots, so O(slots) is bounded.
    """

    __slots__ = (
        "_compressor", "_found_at", "blob", "compressed", "deleted", "first", "live", "ms", "offsets", "parts",
        "sealed", "seq", "size", "stop",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ms: array[int] = array(WIDE)
        self.seq: array[int] = array(WIDE)
        self.parts: list[bytes] = []
        self.blob = b""
        self.offsets: array[int] = _NO_OFFSETS
        self.compressed = b""  # the entries and their sizes, four bytes each; empty: it is not compressed
        self._compressor: Compressor | None = None  # once it was to be compressed, whether that saved enough or not
        self._found_at = NO_SLOT  # a slot that was looked for, the last one
        self.sealed = False
        self.stop = LEAST_SEALED  # slots at which it is due; then MOST_SLOTS
        self.size = 0  # bytes of all entries, trimmed and deleted ones included
        self.first = 0
        self.live = 0
        self.deleted: bytearray | None = None

    def __len__(self) -> int:
        """The number of slots, live or not."""
        return len(self.ms)

    # -- ids --------------------------------------------------------------------------------------------------------

    def id_at(self, slot: int) -> StreamId:
        """The id of a slot. O(1)."""
        return self.ms[slot] << 64 | self.seq[slot]

    def id_texts(self, start: int, stop: int) -> list[bytes]:
        """The texts of the ids of the slots [start, stop). O(slots)."""
        if start >= stop:
            return []
        if stop - start == 1:
            return [text_of(self.ms[start], self.seq[start])]
        first_ms, first_seq, last_seq = self.ms[start], self.seq[start], self.seq[stop - 1]
        begin = b"%d-" % first_ms
        if first_ms == self.ms[stop - 1] and last_seq - first_seq == stop - 1 - start:
            return [begin + number for number in decimals(first_seq, last_seq + 1)]  # usual: a producer's pipeline
        begin_ms = first_ms
        texts: list[bytes] = []
        for ms, number in zip(self.ms[start:stop].tolist(), self.seq[start:stop].tolist(), strict=True):
            if ms != begin_ms:
                begin, begin_ms = b"%d-" % ms, ms
            texts.append(begin + decimal(number))
        return texts

    def id_bytes(self, start: int, stop: int) -> bytes:
        """The ids of the slots [start, stop), each as ID_BYTES. O(slots)."""
        if stop - start == 1:
            return self.id_at(start).to_bytes(ID_BYTES, "big")
        column = array(WIDE, bytes(ID_BYTES * (stop - start)))
        column[::2], column[1::2] = self.ms[start:stop], self.seq[start:stop]
        return big_endian(column)

    @property
    def first_id(self) -> StreamId:
        """The id of slot 0, live or not; a stream finds a segment by it."""
        return self.ms[0] << 64 | self.seq[0]

    @property
    def last_id(self) -> StreamId:
        """The id of the last slot, live or not."""
        return self.ms[-1] << 64 | self.seq[-1]

    def lower_bound(self, entry_id: StreamId) -> int:
        """The first slot with an id of at least `entry_id`; len(self) if there is none. O(log slots)."""
        return self._lower_bound(entry_id >> 64, entry_id & HALF)

    def _lower_bound(self, ms: int, seq: int) -> int:
        column = self.ms
        slot = first_at_least(column, ms)
        if seq and slot < len(column) and column[slot] == ms:
            guess = slot + seq - self.seq[slot]  # right if the sequence numbers of this millisecond have no gaps
            if slot <= guess < len(column) and column[guess] == ms and self.seq[guess] == seq:
                return guess
            return bisect_left(self.seq, seq, slot, bisect_left(column, ms + 1, slot) if ms < HALF else len(column))
        return slot

    def find(self, entry_id: StreamId) -> int:
        """The slot of an id, live or not; NO_SLOT if there is none. O(log slots)."""
        return self.slot_of(entry_id >> 64, entry_id & HALF)

    def slot_of(self, ms: int, seq: int) -> int:
        """As `find`, for an id in two halves. O(1) for one or two slots behind the one found last: the usual ones."""
        column = self.ms
        slot, count = self._found_at + 1, len(column)
        if slot < count and (column[slot] != ms or self.seq[slot] != seq):
            slot += 1
        if slot >= count or column[slot] != ms or self.seq[slot] != seq:
            slot = self._lower_bound(ms, seq)
            if slot >= count or column[slot] != ms or self.seq[slot] != seq:
                return NO_SLOT
        self._found_at = slot
        return slot

    # -- entries ----------------------------------------------------------------------------------------------------

    def append(self, ms: int, seq: int, entry: bytes) -> bool:
        """Add one entry; its id must be above all others. The segment must not be sealed. Amortized O(1).

        Returns whether the segment `is_due`.
        """
        append_both(self.ms, self.seq, ms, seq)
        self.parts.append(entry)
        self.size += len(entry)
        self.live += 1
        return len(self.parts) >= self.stop or self.size >= MOST_BYTES

    def append_run(self, ms: int, seq: int, entries: list[bytes], start: int, stop: int) -> int:
        """Append entries[start:stop], until the segment is full; returns how many were appended. O(entries appended).

        Their ids are consecutive from this one on, all in one millisecond.
        """
        taken = entries[start : min(stop, start + MOST_SLOTS - len(self.parts))]
        size = self.size
        for entry in taken:
            size += len(entry)
        if size > MOST_BYTES:
            ends = list(accumulate(map(len, taken), initial=self.size))
            del taken[max(bisect_left(ends, MOST_BYTES), 1) :]
            size = ends[len(taken)]
        count = len(taken)
        self.ms.extend(repeated(ms, count))
        if seq + count <= len(_NUMBERS):
            self.seq.extend(_NUMBERS[seq : seq + count])
        else:
            self.seq.extend(range(seq, seq + count))
        self.parts += taken
        self.size = size
        self.live += count
        return count

    def is_due(self) -> bool:
        """Whether its stream is to look at it: it is full, or it has LEAST_SEALED entries now. O(1)."""
        return len(self.parts) >= self.stop or self.size >= MOST_BYTES

    def goes_on(self) -> bool:
        """The segment is due: whether it takes more entries, and is due again when it is full. O(1)."""
        self.stop = MOST_SLOTS
        return not self.is_due()

    def seal(self) -> None:
        """Take no more entries: join them into one blob. Ids stay as they are: pending blocks share them. O(bytes)."""
        self.offsets = offsets_of(self.parts)
        self.blob = b"".join(self.parts)
        self.parts = []
        self.sealed = True

    def reopen(self) -> None:
        """Take entries again, unless the segment, which is sealed, is full. O(slots)."""
        if len(self.ms) < MOST_SLOTS and self.size < MOST_BYTES:
            self.parts = self.entry_list(0, len(self.ms))
            self.forget_ready()
            self.compressed, self._compressor = b"", None
            self.sealed = False

    # -- compression ------------------------------------------------------------------------------------------------

    def compress(self, compressor: "Compressor") -> None:
        """Keep the entries of a sealed segment compressed, if that saves enough. O(bytes), once."""
        if self.is_settled() or not self.blob:
            return
        self._compressor = compressor
        sizes = array("I", map(sub, self.offsets[1:], self.offsets))
        packed = compressor.compressed(self.blob[: self.size] + little_endian(sizes))
        if len(packed) * _SAVES_AT_LEAST <= self.size * (_SAVES_AT_LEAST - 1):
            self.compressed = packed
            self.forget_ready()

    def is_settled(self) -> bool:
        """Whether it was compressed, or that would not have saved enough. O(1)."""
        return self._compressor is not None

    def forget_ready(self) -> None:
        """Let the entries go as they are sent: they are kept in another form. O(1), but for freeing the bytes."""
        self.blob, self.offsets = b"", _NO_OFFSETS

    def make_ready(self) -> None:
        """Decompress the entries, if they are not there as they are sent. O(bytes)."""
        compressor = self._compressor
        if self.blob or not self.compressed or compressor is None:
            return
        self.blob = compressor.expanded(self.compressed)  # its sizes are not cut off
        self.offsets = ends_of(self.blob[self.size :])
        compressor.keep_ready(self)

    # -- live entries -----------------------------------------------------------------------------------------------

    def is_live(self, slot: int) -> bool:
        """Whether the entry of a slot is neither trimmed nor deleted. O(1)."""
        if slot < self.first or not self.live:
            return False
        deleted = self.deleted
        return deleted is None or slot >= len(deleted) or not deleted[slot]

    def is_live_run(self, start: int, stop: int) -> bool:
        """Whether all of the slots [start, stop) are live. O(slots)."""
        if start < self.first or not self.live:
            return False
        return self.deleted is None or not any(self.deleted[start:stop])

    def entry(self, slot: int) -> bytes:
        """The bytes of the entry in one slot, which must be live. O(bytes)."""
        if self.sealed:
            if not self.blob:
                self.make_ready()
            return self.blob[self.offsets[slot] : self.offsets[slot + 1]]
        return self.parts[slot]

    def entries(self, start: int, stop: int) -> bytes:
        """The bytes of the slots [start, stop), which must all be live, joined. O(bytes)."""
        if self.sealed:
            if not self.blob:
                self.make_ready()
            return self.blob[self.offsets[start] : self.offsets[stop]]
        return self.parts[start] if stop - start == 1 else b"".join(self.parts[start:stop])

    def entry_list(self, start: int, stop: int) -> list[bytes]:
        """The bytes of each of the slots [start, stop), which must all be live. O(bytes)."""
        if not self.sealed:
            return self.parts[start:stop]
        if not self.blob:
            self.make_ready()
        blob = self.blob
        return [blob[begin:end] for begin, end in pairwise(self.offsets[start : stop + 1])]

    def runs(self, start: int, stop: int, max_count: int) -> list[tuple[int, int]]:
        """The live slots of [start, stop) as runs [from, to), at most `max_count` slots.

        O(1) without deleted slots, else O(slots).
        """
        if start < self.first:
            start = self.first
        deleted = self.deleted
        if deleted is None:
            stop = min(stop, start + max_count)
            return [(start, stop)] if start < stop else []
        found: list[tuple[int, int]] = []
        while start < stop and max_count > 0:
            if start < len(deleted) and deleted[start]:
                start = deleted.find(0, start)
                if start < 0:
                    start = len(deleted)
                continue
            end = deleted.find(1, start)
            end = min(stop if end < 0 else end, stop, start + max_count)
            if start < end:
                found.append((start, end))
                max_count -= end - start
            start = end
        return found

    def first_live(self) -> int:
        """The first live slot; there must be one. O(1) without deleted slots, else O(slots)."""
        if self.deleted is None:
            return self.first
        return self.runs(self.first, len(self.ms), 1)[0][0]

    def last_live(self) -> int:
        """The last live slot; there must be one. O(slots)."""
        slot = len(self.ms) - 1
        while not self.is_live(slot):
            slot -= 1
        return slot

    # -- removing ---------------------------------------------------------------------------------------------------

    def delete(self, slot: int) -> None:
        """Mark a live slot deleted. O(1); O(slots) for the first one."""
        if self.deleted is None:
            self.deleted = bytearray(len(self.ms))
        elif len(self.deleted) < len(self.ms):
            self.deleted.extend(bytes(len(self.ms) - len(self.deleted)))
        self.deleted[slot] = 1
        self.live -= 1

    def delete_run(self, start: int, stop: int) -> None:
        """Mark the live slots [start, stop) deleted. O(slots)."""
        self.delete(stop - 1)
        assert self.deleted is not None, "delete created it"
        self.deleted[start:stop] = b"\1" * (stop - start)
        self.live -= stop - 1 - start

    def trim_to(self, slot: int, removed: int) -> None:
        """Remove all entries before `slot`; `removed` of them are live. O(1)."""
        self.first = slot
        self.live -= removed

    def drop(self) -> None:
        """No entry is live any more: free the bytes, keep the ids. O(1), but for freeing the bytes."""
        self.first = len(self.ms)
        self.live = 0
        self.forget_ready()
        self.compressed = b""
        self.parts = []
        self.deleted = None
        self.sealed = True

    def memory_usage(self) -> int:
        """An estimate in bytes: entries, ids, objects. O(1)."""
        entries = len(self.compressed) if self.compressed else self.size + 4 * len(self.ms)
        return entries + 16 * len(self.ms) + 600 + 34 * len(self.parts)

    def copy(self) -> "Segment":
        """A copy; data that never changes is shared. O(slots)."""
        copied = Segment()
        copied.sealed, copied.size, copied.first, copied.live = self.sealed, self.size, self.first, self.live
        copied.deleted = None if self.deleted is None else bytearray(self.deleted)
        if self.sealed:
            copied.ms, copied.seq = self.ms, self.seq
            copied.compressed, copied._compressor = self.compressed, self._compressor
            if not self.compressed:
                copied.blob, copied.offsets = self.blob, self.offsets
        else:
            copied.ms, copied.seq, copied.parts = self.ms[:], self.seq[:], self.parts[:]
        return copied

    def check(self) -> None:
        """Assert the invariants."""
        ids = [self.id_at(slot) for slot in range(len(self.ms))]
        assert ids == sorted(set(ids)), "ids do not ascend"
        assert len(self.ms) == len(self.seq)
        assert self.live == sum(self.is_live(slot) for slot in range(len(self.ms))), "live is miscounted"
        if self.live and self.sealed:
            if self.compressed:
                self.make_ready()
            assert len(self.offsets) == len(self.ms) + 1
            assert self.offsets[-1] == self.size <= len(self.blob)
        elif self.live:
            assert len(self.parts) == len(self.ms)


def deleted_entry(entry_id: StreamId) -> Segment:
    """A segment with one id and no entry: what the block of a rewound pending entry refers to."""
    segment = Segment()
    segment.append(entry_id >> 64, entry_id & HALF, b"")
    segment.drop()
    return segment


def settle(segment: Segment, compressor: "Compressor") -> bool:
    """Compress a segment of a stream that gets few entries, if that saves enough; False if it stays as it is for now.

    The last segment takes no more entries then; if it has few, it stays open. O(bytes).
    """
    if not segment.sealed:
        if len(segment) < LEAST_SEALED:
            return False
        segment.seal()
    if segment.size <= LARGEST_AT_REST:
        segment.compress(compressor)
    return True


def memory_of_segments(segments: list[Segment]) -> int:
    """An estimate in bytes, from some of them. O(1)."""
    count, size = len(segments), 0
    sampled = segments if count <= SEGMENTS_SAMPLED else segments[:: count // SEGMENTS_SAMPLED]
    for segment in sampled:
        size += segment.memory_usage()
    return size if count == len(sampled) else size * count // len(sampled)


def count_of(runs: list[SegmentRun]) -> int:
    """The number of entries in runs. O(runs)."""
    count = 0
    for _, start, stop in runs:
        count += stop - start
    return count


def id_texts_of(runs: list[SegmentRun]) -> list[bytes]:
    """The texts of the ids of runs. O(entries)."""
    texts: list[bytes] = []
    for segment, start, stop in runs:
        texts += segment.id_texts(start, stop)
    return texts
