"""Rows of replies that list pending entries: XPENDING's, and those of XINFO STREAM FULL."""

from typing import Final

from librt.strings import BytesWriter

from penstock.protocol import reply
from penstock.storage.streams.block_list import BlockList
from penstock.storage.streams.group import Consumer, Group
from penstock.storage.streams.ids import LONGEST_PLAIN, MAX, StreamId, decimal
from penstock.storage.streams.pending_block import NOT_PENDING, RELEASED, PendingBlock

NO_MS: Final = -1
ANY_TIME: Final = -1  # in place of a latest delivery time
ANYBODY: Final = NOT_PENDING  # in place of an owner
FEW: Final = 3  # slots that are not worth being compared


def row_heads(columns: int) -> list[bytes]:
    """The beginning of a row of so many columns, by the length of the id that follows."""
    return [b"*%d\r\n$%d\r\n" % (columns, length) for length in range(LONGEST_PLAIN + 1)]


class PendingRows:
    """Rows of [id, ...] in order of ids. What follows the id is made once for neighbours of one owner, time and count.

    `left` is how many more rows may be added. Entries above `end_id` are left out, and those with an owner that were
    delivered after `latest_ms`, unless that is ANY_TIME.
    """

    __slots__ = (
        "_begin", "_begin_ms", "_count", "_heads", "_owner", "_tail", "_time_ms",
        "_written", "end_id", "group", "latest_ms", "left", "rows",
    )  # fmt: skip

    def __init__(self, group: Group, heads: list[bytes], max_count: int) -> None:
        self.group = group
        self.left = max_count
        self.rows = 0
        self._written = BytesWriter()
        self.end_id: StreamId = MAX
        self.latest_ms = ANY_TIME
        self._heads = heads
        self._begin, self._begin_ms = b"", NO_MS  # the text of an id up to its sequence number
        self._owner = NOT_PENDING  # what `_tail` was made for
        self._time_ms = self._count = 0
        self._tail = b""

    def tail(self, owner: int, time_ms: int, count: int) -> bytes:
        """What follows the id in the row of an entry of a certain owner, delivery time and count."""
        raise NotImplementedError

    def as_array(self) -> bytes:
        """All rows. O(rows)."""
        return reply.array_header(self.rows) + self._written.getvalue()

    def add_from(self, start: StreamId, consumer: Consumer | None) -> None:
        """Add the rows of the group's entries from an id on, or only of a consumer's.

        O(log b + slots of the blocks visited + rows); of a consumer, only blocks in which it owns entries are visited.
        While there are rewound pending entries, all entries from `start` on are visited.
        """
        owner = ANYBODY if consumer is None else consumer.number
        if self.group.rewound:
            for block, slot in self.group.walk(start):
                if owner in (ANYBODY, block.owners[slot]) and block.id_at(slot) <= self.end_id:
                    self._add(block, slot, slot + 1)
            return
        visited: BlockList = self.group if consumer is None else consumer.owned_blocks
        index = visited.index_from(start)
        while self.left > 0 and index < len(visited.blocks):
            block = visited.blocks[index]
            index += 1
            if block.first_id > self.end_id:
                return
            stop = len(block.owners)
            if self.end_id != MAX and block.segment.last_id > self.end_id:
                stop = min(stop, block.slot_from(self.end_id + 1))
            if owner == ANYBODY:
                self._add_all(block, block.slot_from(start), stop)
            else:
                self._add_owned(block, owner, block.slot_from(start), stop)

    def _add_all(self, block: PendingBlock, start: int, stop: int) -> None:
        while self.left > 0 and start < stop:
            start = block.next_pending(start)
            if start < stop:
                end = block.end_of_pending(start, min(start + self.left, stop))
                self._add(block, start, end)
                start = end

    def _add_owned(self, block: PendingBlock, owner: int, start: int, stop: int) -> None:
        most = self.left if self.latest_ms == ANY_TIME else stop
        for from_slot, to_slot in block.runs_of(owner, start, most):
            self._add(block, from_slot, min(to_slot, stop))

    def _add(self, block: PendingBlock, start: int, stop: int) -> None:
        """Add the rows of the pending slots [start, stop), but for those delivered too late. O(slots)."""
        if stop - start > FEW and block.is_uniform(start, stop):
            self._add_alike(block, start, stop)
            return
        heads, written, latest_ms, left = self._heads, self._written, self.latest_ms, self.left
        begin, begin_ms, tail = self._begin, self._begin_ms, self._tail
        last_owner, last_ms, last_count = self._owner, self._time_ms, self._count
        ms_column, seq_column = block.segment.ms, block.segment.seq
        owners, times, counts = block.owners, block.times, block.counts
        for slot in range(start, stop):
            owner, time_ms, count = owners[slot], times[slot], counts[slot]
            if latest_ms != ANY_TIME and time_ms > latest_ms and owner != RELEASED:
                continue
            if left <= 0:
                break
            left -= 1
            ms = ms_column[slot]
            if ms != begin_ms:
                begin, begin_ms = b"%d-" % ms, ms
            text = begin + decimal(seq_column[slot])
            if owner != last_owner or time_ms != last_ms or count != last_count:
                last_owner, last_ms, last_count = owner, time_ms, count
                tail = b"\r\n" + self.tail(owner, time_ms, count)
            written.write(heads[len(text)])
            written.write(text)
            written.write(tail)
        self.rows += self.left - left
        self.left = left
        self._begin, self._begin_ms, self._tail = begin, begin_ms, tail
        self._owner, self._time_ms, self._count = last_owner, last_ms, last_count

    def _add_alike(self, block: PendingBlock, start: int, stop: int) -> None:
        """As `_add`, for slots of one owner, time and count."""
        owner, time_ms, count = block.owners[start], block.times[start], block.counts[start]
        if self.latest_ms != ANY_TIME and time_ms > self.latest_ms and owner != RELEASED:
            return
        stop = min(stop, start + self.left)
        if start >= stop:
            return
        heads, written, segment = self._heads, self._written, block.segment
        tail = b"\r\n" + self.tail(owner, time_ms, count)
        begin_ms = segment.ms[start]
        is_one_ms = begin_ms == segment.ms[stop - 1]  # usual after a producer's pipeline
        begin, opening, size = b"%d-" % begin_ms, b"", 0  # `opening`: head and `begin`, before so many digits
        slot = start
        for number in segment.seq[start:stop].tolist():
            if not is_one_ms and segment.ms[slot] != begin_ms:
                begin_ms = segment.ms[slot]
                begin, size = b"%d-" % begin_ms, 0
            slot += 1
            digits = decimal(number)
            if len(digits) != size:
                size = len(digits)
                opening = heads[len(begin) + size] + begin
            written.write(opening)
            written.write(digits)
            written.write(tail)
        self.rows += stop - start
        self.left -= stop - start
