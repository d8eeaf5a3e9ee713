"""Segments: runs of a stream's entries, kept as the bytes in which they will be sent.

An entry is stored as `*2 $id *2n $field $value ...`, encoded once by XADD; every later read is a slice and a join.
To this module the bytes are opaque.
"""

from array import array
from bisect import bisect_left
from itertools import accumulate, pairwise
from typing import Final

from penstock.storage.streams.columns import repeated
from penstock.storage.streams.ids import HALF, StreamId, decimal

MOST_SLOTS: Final = 128
MOST_BYTES: Final = 64 * 1024
_NUMBERS: Final = array("Q", range(1000))  # sequence numbers that a millisecond sees


class Segment:
    """Up to MOST_SLOTS entries, ascending by id, each in a slot that it keeps for good.

    An open segment (the stream's last) holds its entries one by one in `parts`; a sealed one holds one `blob`, the
    entry of slot i being blob[offsets[i]:offsets[i + 1]].

    Invariants: `ms`, `seq` and the entries have one element a slot, ascending; `first` is the first slot that was
    not trimmed away; `dead`, where there is one, marks the deleted slots and is at least as long as the highest of
    them needs; `live` counts the slots from `first` on that are not marked. Ids outlive the entries: pending blocks
    refer to them.
    """

    __slots__ = ("blob", "dead", "first", "live", "ms", "offsets", "parts", "sealed", "seq", "size")

    def __init__(self) -> None:
        self.ms: array[int] = array("Q")
        self.seq: array[int] = array("Q")
        self.parts: list[bytes] = []
        self.blob = b""
        self.offsets: array[int] = array("I")
        self.sealed = False
        self.size = 0  # bytes of all entries, trimmed and deleted ones included
        self.first = 0
        self.live = 0
        self.dead: bytearray | None = None

    def __len__(self) -> int:
        """Slots, live or not."""
        return len(self.ms)

    # -- ids --------------------------------------------------------------------------------------------------------

    def id_at(self, slot: int) -> StreamId:
        return self.ms[slot] << 64 | self.seq[slot]

    def id_texts(self, start: int, stop: int) -> list[bytes]:
        """The ids of the slots [start, stop) as they are printed."""
        ms, seq = self.ms[start:stop], self.seq[start:stop]
        if ms and ms.count(ms[0]) == len(ms):  # a producer's pipeline, mostly
            begin = b"%d-" % ms[0]
            return [begin + decimal(number) for number in seq]
        return [b"%d-%d" % pair for pair in zip(ms, seq, strict=True)]

    @property
    def first_id(self) -> StreamId:
        """The id of slot 0, live or not: what the segment is found by."""
        return self.ms[0] << 64 | self.seq[0]

    @property
    def last_id(self) -> StreamId:
        """The id of the last slot, live or not."""
        return self.ms[-1] << 64 | self.seq[-1]

    def lower_bound(self, entry_id: StreamId) -> int:
        """The first slot whose id is not below `entry_id`; len(self) if there is none."""
        ms = entry_id >> 64
        column = self.ms
        slot = bisect_left(column, ms)
        seq = entry_id & HALF
        if seq and slot < len(column) and column[slot] == ms:
            guess = slot + seq - self.seq[slot]  # mostly a millisecond's numbers have no gaps
            if slot <= guess < len(column) and column[guess] == ms and self.seq[guess] == seq:
                return guess
            return bisect_left(self.seq, seq, slot, bisect_left(column, ms + 1, slot) if ms < HALF else len(column))
        return slot

    def find(self, entry_id: StreamId) -> int:
        """The slot of an id, live or not; -1 if there is none."""
        slot = self.lower_bound(entry_id)
        if slot < len(self.ms) and self.ms[slot] << 64 | self.seq[slot] == entry_id:
            return slot
        return -1

    # -- entries ----------------------------------------------------------------------------------------------------

    def append(self, entry_id: StreamId, entry: bytes) -> None:
        self.ms.append(entry_id >> 64)
        self.seq.append(entry_id & HALF)
        self.parts.append(entry)
        self.size += len(entry)
        self.live += 1

    def append_run(self, first_id: StreamId, entries: list[bytes], start: int) -> int:
        """Append entries from a place in the list on, until the segment is full or they are; how many.

        Ids follow one another from `first_id` on, all of one millisecond.
        """
        taken = entries[start : start + MOST_SLOTS - len(self.parts)]
        size = self.size + sum([len(entry) for entry in taken])
        if size > MOST_BYTES:
            ends = list(accumulate(map(len, taken), initial=self.size))
            del taken[max(bisect_left(ends, MOST_BYTES), 1) :]
            size = ends[len(taken)]
        count = len(taken)
        seq = first_id & HALF
        self.ms.extend(repeated(first_id >> 64, count))
        if seq + count <= len(_NUMBERS):
            self.seq.extend(_NUMBERS[seq : seq + count])
        else:
            self.seq.extend(range(seq, seq + count))
        self.parts += taken
        self.size = size
        self.live += count
        return count

    def is_full(self) -> bool:
        return len(self.parts) >= MOST_SLOTS or self.size >= MOST_BYTES

    def seal(self) -> None:
        """No more entries: fold them into one blob. Ids stay as they are, pending blocks share them."""
        size = 0
        ends = [0]
        for part in self.parts:
            size += len(part)
            ends.append(size)
        self.offsets = array("I", ends)
        self.blob = b"".join(self.parts)
        self.parts = []
        self.sealed = True

    def is_live(self, slot: int) -> bool:
        if slot < self.first or not self.live:
            return False
        dead = self.dead
        return dead is None or slot >= len(dead) or not dead[slot]

    def is_live_run(self, start: int, stop: int) -> bool:
        """Whether all of the slots [start, stop) are live."""
        if start < self.first or not self.live:
            return False
        return self.dead is None or not any(self.dead[start:stop])

    def entry(self, slot: int) -> bytes:
        """The bytes of one slot."""
        if self.sealed:
            return self.blob[self.offsets[slot] : self.offsets[slot + 1]]
        return self.parts[slot]

    def entries(self, start: int, stop: int) -> bytes:
        """The bytes of the slots [start, stop), which must all be live, one after the other."""
        if self.sealed:
            return self.blob[self.offsets[start] : self.offsets[stop]]
        return self.parts[start] if stop - start == 1 else b"".join(self.parts[start:stop])

    def entry_list(self, start: int, stop: int) -> list[bytes]:
        """The bytes of each of the slots [start, stop), which must all be live."""
        if not self.sealed:
            return self.parts[start:stop]
        blob = self.blob
        return [blob[begin:end] for begin, end in pairwise(self.offsets[start : stop + 1])]

    def runs(self, start: int, stop: int, most: int) -> list[tuple[int, int]]:
        """The live slots of [start, stop) as runs [from, to), `most` slots at the most."""
        if start < self.first:
            start = self.first
        dead = self.dead
        if dead is None:
            stop = min(stop, start + most)
            return [(start, stop)] if start < stop else []
        found: list[tuple[int, int]] = []
        while start < stop and most > 0:
            if start < len(dead) and dead[start]:
                start = dead.find(0, start)
                if start < 0:
                    start = len(dead)
                continue
            end = dead.find(1, start)
            end = min(stop if end < 0 else end, stop, start + most)
            if start < end:
                found.append((start, end))
                most -= end - start
            start = end
        return found

    def first_live(self) -> int:
        """The first live slot; the segment must have one."""
        if self.dead is None:
            return self.first
        return self.runs(self.first, len(self.ms), 1)[0][0]

    def last_live(self) -> int:
        """The last live slot; the segment must have one."""
        slot = len(self.ms) - 1
        while not self.is_live(slot):
            slot -= 1
        return slot

    # -- going ------------------------------------------------------------------------------------------------------

    def kill(self, slot: int) -> None:
        """Mark a live slot deleted."""
        if self.dead is None:
            self.dead = bytearray(len(self.ms))
        elif len(self.dead) < len(self.ms):
            self.dead.extend(bytes(len(self.ms) - len(self.dead)))
        self.dead[slot] = 1
        self.live -= 1

    def kill_run(self, start: int, stop: int) -> None:
        """Mark the live slots [start, stop) deleted."""
        self.kill(stop - 1)
        assert self.dead is not None, "kill made it"
        self.dead[start:stop] = b"\1" * (stop - start)
        self.live -= stop - 1 - start

    def trim_to(self, slot: int, gone: int) -> None:
        """Forget everything before `slot`: `gone` live slots go."""
        self.first = slot
        self.live -= gone

    def drop(self) -> None:
        """Nothing is live any more: let the bytes go, keep the ids."""
        self.first = len(self.ms)
        self.live = 0
        self.blob = b""
        self.parts = []
        self.dead = None
        self.offsets = array("I")
        self.sealed = True

    def copy(self) -> "Segment":
        """A segment of equal content; what never changes is shared."""
        twin = Segment()
        twin.sealed, twin.size, twin.first, twin.live = self.sealed, self.size, self.first, self.live
        twin.dead = None if self.dead is None else bytearray(self.dead)
        if self.sealed:
            twin.ms, twin.seq, twin.blob, twin.offsets = self.ms, self.seq, self.blob, self.offsets
        else:
            twin.ms, twin.seq, twin.parts = self.ms[:], self.seq[:], self.parts[:]
        return twin

    def check(self) -> None:
        """Assert the invariants."""
        ids = [self.id_at(slot) for slot in range(len(self.ms))]
        assert ids == sorted(set(ids)), "ids do not ascend"
        assert len(self.ms) == len(self.seq)
        assert self.live == sum(self.is_live(slot) for slot in range(len(self.ms))), "live is miscounted"
        if self.live and self.sealed:
            assert len(self.offsets) == len(self.ms) + 1
            assert self.offsets[-1] == len(self.blob) == self.size
        elif self.live:
            assert len(self.parts) == len(self.ms)


def deleted_entry(entry_id: StreamId) -> Segment:
    """A segment of one id whose entry is gone: where a pending entry outlives the place of its id."""
    segment = Segment()
    segment.append(entry_id, b"")
    segment.drop()
    return segment
