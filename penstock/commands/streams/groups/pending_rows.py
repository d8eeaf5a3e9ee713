"""Rows of replies that list pending entries: XPENDING's, and those of XINFO STREAM FULL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le

from penstock.native.build import IS_COMPILED
from penstock.native.columns import little_endian
from penstock.protocol import reply
from penstock.storage.streams.ids import LONGEST_PLAIN, MAX, StreamId, decimal
from penstock.storage.streams.pending.consumer import Consumer
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import NOT_PENDING, RELEASED, PendingBlock

if TYPE_CHECKING:
    from mypy_extensions import i32, i64  # used by mypyc only; Python does not evaluate the annotations

ANY_TIME: Final = -1  # in place of a latest delivery time
ANYBODY: Final = NOT_PENDING  # in place of an owner
NO_NOW: Final = -1  # in place of the present time
LINE_END: Final = b"\r\n"
OVER: Final = 2**64


def _row_heads(columns: int) -> list[bytes]:
    """The beginning of a row of so many columns, by the length of the id that follows."""
    return [b"*%d\r\n$%d\r\n" % (columns, length) for length in range(LONGEST_PLAIN + 1)]


HEADS: Final = _row_heads(4)
OWNERLESS_HEADS: Final = _row_heads(3)


class PendingRows:
    """Rows in order of ids: [id, owner, delivery time, deliveries]. The owner of a released entry is "".

    `left` is how many more rows may be added. Entries above `end_id` are left out, and those with an owner that were
    delivered after `latest_ms`, unless that is ANY_TIME. If `now_ms` is not NO_NOW, a row has the idle time in place of
    the delivery time, -1 for a released entry. `shows_owners`: without it, rows have no owner.
    """

    __slots__ = (
        "_heads", "_named", "_owner_word", "_written", "end_id", "group", "latest_ms", "left", "now_ms", "rows",
        "shows_owners",
    )  # fmt: skip

    def __init__(self, group: Group, max_count: int, now_ms: int, shows_owners: bool) -> None:
        self.group = group
        self.left = max_count
        self.now_ms = now_ms
        self.shows_owners = shows_owners
        self.rows = 0
        self._written = BytesWriter()
        self.end_id: StreamId = MAX
        self.latest_ms = ANY_TIME
        self._heads = HEADS if shows_owners else OWNERLESS_HEADS
        self._named = NOT_PENDING  # the one with its name in `_owner_word`
        self._owner_word = LINE_END

    def owner_word(self, owner: int) -> bytes:
        """The bytes between an id and the delivery time: the end of the line and an owner's name, if shown."""
        if owner != self._named and self.shows_owners:
            self._named, self._owner_word = owner, LINE_END + reply.bulk(self.group.pel.name_of(owner))
        return self._owner_word

    def shown_ms(self, owner: int, time_ms: int) -> int:
        """The delivery time of a row, or its idle time, as the row shows it."""
        if self.now_ms == NO_NOW:
            return time_ms
        return -1 if owner == RELEASED else max(self.now_ms - time_ms, 0)

    def as_array(self) -> bytes:
        """All rows. O(rows)."""
        return reply.array_header(self.rows) + self._written.getvalue() if self.rows else reply.EMPTY_ARRAY

    def add_from(self, start: StreamId, consumer: Consumer | None) -> None:
        """Add the rows of the group's entries from an id on, or only of a consumer's.

        O(log b + slots of the blocks visited + rows); of a consumer, only blocks in which it owns entries are visited.
        While there are rewound pending entries, all entries from `start` on are visited.
        """
        owner = ANYBODY if consumer is None else consumer.number
        if self.group.pel.by_id.rewound:
            for block, slot in self.group.pel.by_id.walk(start):
                if self.left <= 0 or block.id_at(slot) > self.end_id:
                    return
                if owner in (ANYBODY, block.owners[slot]):
                    self._add(block, block.owners[slot], slot)
            return
        visited = self.group.pel.by_id.all_blocks if consumer is None else consumer.owned_blocks
        blocks, is_bounded = visited.blocks, self.end_id != MAX
        is_one_each = consumer is not None and consumer.owns_one_each()
        index = visited.index_from(start)
        first = blocks[index].slot_from(start) if index < len(blocks) else 0
        while self.left > 0 and index < len(blocks):
            block = blocks[index]
            index += 1
            stop = len(block.owners)
            if is_bounded:
                if block.first_id > self.end_id:
                    return
                if block.segment.last_id > self.end_id:
                    stop = min(stop, block.slot_from(self.end_id + 1))
            if is_one_each:
                slot = block.first_of(owner, first)
                if 0 <= slot < stop:
                    self._add(block, owner, slot)
            elif IS_COMPILED:
                self._add_columns(block, owner, first, stop)
            elif owner == ANYBODY:
                self._add_pending(block, first, stop)
            else:
                self._add_owned(block, owner, first, stop)
            first = 0  # further blocks begin behind `start`

    def _add_pending(self, block: PendingBlock, start: int, stop: int) -> None:
        """Add the rows of the pending slots in [start, stop). O(slots)."""
        for from_slot, to_slot in block.runs(start):
            if from_slot >= stop or self.left <= 0:
                return
            most = stop if self.latest_ms != ANY_TIME else min(from_slot + self.left, stop)
            self._add_run(block, from_slot, min(to_slot, most))

    def _add_owned(self, block: PendingBlock, owner: int, start: int, stop: int) -> None:
        """Add the rows of an owner's slots in [start, stop). O(slots)."""
        most = self.left if self.latest_ms == ANY_TIME else stop
        for from_slot, to_slot in block.runs_of(owner, start, most):
            self._add_run(block, from_slot, min(to_slot, stop))

    def _add_run(self, block: PendingBlock, start: int, stop: int) -> None:
        """Add the rows of the pending slots [start, stop), but for those delivered too late. O(slots)."""
        if start >= stop:
            return
        owner, time_ms, latest_ms = block.owners[start], block.times[start], self.latest_ms
        if stop - start == 1 or not block.is_uniform(start, stop):
            for slot in range(start, stop):
                if self.left > 0:
                    self._add(block, block.owners[slot], slot)
        elif latest_ms == ANY_TIME or time_ms <= latest_ms or owner == RELEASED:
            texts = block.segment.id_texts(start, min(stop, start + self.left))
            heads, written, tail = self._heads, self._written, self._tail(owner, time_ms, block.counts[start])
            for text in texts:
                written.write(heads[len(text)])
                written.write(text)
                written.write(tail)
            self.rows += len(texts)
            self.left -= len(texts)

    def _tail(self, owner: int, time_ms: int, count: int) -> bytes:
        """The part of a row after the id: owner, time, delivery count."""
        shown_ms = self.shown_ms(owner, time_ms)
        return b"%b%b%b" % (self.owner_word(owner), reply.integer(shown_ms), reply.integer(count))

    def _add(self, block: PendingBlock, owner: int, slot: int) -> None:
        """Add the row of a pending slot, unless it was delivered too late. O(1)."""
        time_ms = block.times[slot]
        if self.latest_ms != ANY_TIME and time_ms > self.latest_ms and owner != RELEASED:
            return
        self.left -= 1
        self.rows += 1
        written = self._written
        text = block.id_text(slot)
        written.write(self._heads[len(text)])
        written.write(text)
        written.write(self.owner_word(owner))
        written.write(reply.integer(self.shown_ms(owner, time_ms)))
        written.write(reply.integer(block.counts[slot]))

    def _add_columns(self, block: PendingBlock, wanted: int, start: int, stop: int) -> None:
        """As `_add_pending` and `_add_owned`, for the compiled build: from copies of the columns, number by number.

        No number becomes an object: XPENDING of ten from the middle takes 24,900 instructions, slot by slot 40,400; a
        hundred 63,500 and 106,600 (callgrind, November 2026). The tests compare it with the plain build's way.
        """
        heads, written = self._heads, self._written
        owners, times = little_endian(block.owners), little_endian(block.times)
        counts = ms_column = seq_column = b""  # copied for the first row: there may be none
        only: i32 = wanted
        latest_ms: i64 = self.latest_ms
        most = min(self.left, stop - start)  # of XINFO without a limit, `left` has more than 64 bits
        left: i64 = most
        at: i64 = start
        end: i64 = stop
        last_owner: i32 = NOT_PENDING  # what `tail` was made for: nothing yet
        last_ms: i64 = 0
        last_count: i64 = 0
        tail = b""
        begin_ms: i64 = 0  # what `begin` was made for
        begin = b""
        opening, size = b"", 0  # head and `begin`, before so many digits
        while at < end and left > 0:
            slot: i64 = at
            at += 1
            owner: i32 = read_i32_le(owners, slot * 4)
            if owner == NOT_PENDING or (only != ANYBODY and owner != only):
                continue
            time_ms: i64 = read_i64_le(times, slot * 8)
            if latest_ms != ANY_TIME and (time_ms > latest_ms or time_ms < 0) and owner != RELEASED:
                continue
            if last_owner == NOT_PENDING:
                counts = little_endian(block.counts)
                ms_column, seq_column = little_endian(block.segment.ms), little_endian(block.segment.seq)
            count: i64 = read_i64_le(counts, slot * 8)
            if owner != last_owner or time_ms != last_ms or count != last_count:
                last_owner, last_ms, last_count = owner, time_ms, count
                tail = self._tail(owner, _unsigned(time_ms), _unsigned(count))
            ms: i64 = read_i64_le(ms_column, slot * 8)
            if ms != begin_ms or size == 0:
                begin_ms = ms
                begin, size = b"%d-" % _unsigned(ms), 0
            seq: i64 = read_i64_le(seq_column, slot * 8)
            digits = decimal(_unsigned(seq))
            if len(digits) != size:
                size = len(digits)
                opening = heads[len(begin) + size] + begin
            written.write(opening)
            written.write(digits)
            written.write(tail)
            left -= 1
        rows: int = most - left
        self.left -= rows
        self.rows += rows


def _unsigned(number: i64) -> int:
    """A number of 64 bits that was read as if it had a sign."""
    whole: int = number  # 2^64 is no i64
    return whole if whole >= 0 else whole + OVER
