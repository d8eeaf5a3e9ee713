"""Entries that are about to become segments, as columns that compiled loops can append to without making objects."""

from array import array
from bisect import bisect_left
from itertools import accumulate, islice
from operator import lt
from typing import Final

from librt.strings import BytesWriter

from penstock.native.columns import WIDE, from_little_endian, little_endian
from penstock.storage.streams.ids import HALF, StreamId
from penstock.storage.streams.segment import MOST_BYTES, MOST_SLOTS, Segment

ID_BYTES: Final = 8  # of either half
END_BYTES: Final = 4
TOGETHER: Final = 16  # full segments: the rest of a run becomes a small segment


class EntryRun:
    """Entries in ascending order of ids: `ms` and `seq` have 8 bytes an entry, `ends` 4, all little-endian.

    `ends` says where an entry ends in `entries`. Code that appends to the columns counts in `count`, and keeps
    `last_ms` and `last_seq`, which are those of the last entry ever added, and -1 before the first.
    """

    __slots__ = ("count", "ends", "entries", "last_ms", "last_seq", "ms", "seq")

    def __init__(self) -> None:
        self.last_ms = -1
        self.last_seq = -1
        self.ms = BytesWriter()
        self.seq = BytesWriter()
        self.ends = BytesWriter()
        self.entries = BytesWriter()
        self.count = 0

    def add(self, ms: int, seq: int, entry: bytes) -> bool:
        """One entry; False where its id is not above the last one's."""
        if ms < self.last_ms or (ms == self.last_ms and seq <= self.last_seq):
            return False
        self.last_ms, self.last_seq = ms, seq
        self.entries.write(entry)
        self.ms.write(ms.to_bytes(ID_BYTES, "little"))
        self.seq.write(seq.to_bytes(ID_BYTES, "little"))
        self.ends.write(len(self.entries).to_bytes(END_BYTES, "little"))
        self.count += 1
        return True

    def add_all(self, ms: list[int], seq: list[int], entries: list[bytes]) -> bool:
        """As `add`, for entries that there are some of; False, and nothing is added, where ids do not ascend."""
        entry_ids = list(zip(ms, seq, strict=True))
        if entry_ids[0] <= (self.last_ms, self.last_seq) or not all(map(lt, entry_ids, islice(entry_ids, 1, None))):
            return False
        self.last_ms, self.last_seq = entry_ids[-1]
        ends = accumulate(map(len, entries), initial=len(self.entries))
        self.ends.write(little_endian(array("I", islice(ends, 1, None))))
        self.entries.write(b"".join(entries))
        self.ms.write(little_endian(array(WIDE, ms)))
        self.seq.write(little_endian(array(WIDE, seq)))
        self.count += len(entries)
        return True

    def cut_back(self, count: int, size: int, last_id: StreamId) -> None:
        """Drop all but the first `count` entries, which have `size` bytes in all, the last one with `last_id`."""
        self.ms.truncate(count * ID_BYTES)
        self.seq.truncate(count * ID_BYTES)
        self.ends.truncate(count * END_BYTES)
        self.entries.truncate(size)
        self.count = count
        self.last_ms, self.last_seq = (last_id >> 64, last_id & HALF) if last_id >= 0 else (-1, -1)

    @property
    def last_id(self) -> StreamId:
        return self.last_ms << 64 | self.last_seq if self.last_ms >= 0 else -1

    def is_full(self) -> bool:
        return self.count >= TOGETHER * MOST_SLOTS or len(self.entries) >= TOGETHER * MOST_BYTES

    def take_segments(self) -> list[Segment]:
        """All entries as sealed segments; the run is empty then.  O(bytes)."""
        ms = from_little_endian(WIDE, self.ms.getvalue())
        seq = from_little_endian(WIDE, self.seq.getvalue())
        offsets = array("I", (0,)) + from_little_endian("I", self.ends.getvalue())
        blob = self.entries.getvalue()
        self.cut_back(0, 0, self.last_id)  # the columns keep their memory
        found: list[Segment] = []
        at, count = 0, len(ms)
        while at < count:
            stop = min(at + MOST_SLOTS, count)
            begin = offsets[at]
            if offsets[stop] - begin > MOST_BYTES:
                stop = min(bisect_left(offsets, begin + MOST_BYTES, at + 1), stop)
            segment = Segment()
            segment.ms, segment.seq = ms[at:stop], seq[at:stop]
            segment.offsets = offsets[at : stop + 1]
            if begin:
                segment.offsets = array("I", [end - begin for end in segment.offsets])
            segment.blob = blob[begin : offsets[stop]]
            segment.size = len(segment.blob)
            segment.live = stop - at
            segment.sealed = True
            found.append(segment)
            at = stop
        return found
