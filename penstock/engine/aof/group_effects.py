"""The log's lines for changes of pending lists: absolute, replayable without a clock (Redis 8.6.3).

Redis writes one XCLAIM an entry; ours names all consecutive entries of equal consumer, time and count, which a Redis
loads to the same state. Runs are never regrouped: their order is the order in time.
"""

from array import array
from collections.abc import Iterator
from itertools import count as count_from
from typing import Final, TypeAlias

from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.context import Context
from penstock.engine.session import Kept
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import PendingBlock, PendingRun, PendingSlot
from penstock.storage.streams.segment import SegmentRun, id_texts_of
from penstock.storage.streams.stream import Stream

MOST_IDS: Final = 1000  # of one line
LONGEST_KEPT: Final = 1024  # bytes of the beginning of a line that is kept
CLAIM_WORDS: Final = 13  # of an XCLAIM as it is logged, besides the ids

Released: TypeAlias = "tuple[PendingBlock, int, array[int]]"  # released slots from one on, with their counts then


class LineHeads(Kept):
    """The beginnings of the lines of a delivery to a consumer: XCLAIM up to the ids, XGROUP SETID up to the id.

    A worker's session keeps those of its last delivery: it reads by one consumer, over and over.
    """

    __slots__ = ("claim", "group", "key", "owner", "position")

    def __init__(self, key: bytes, group: bytes, owner: bytes) -> None:
        self.key = key
        self.group = group
        self.owner = owner
        self.claim = reply.words([b"XCLAIM", key, group, owner, b"0"])
        self.position = _position_head(key, group)

    def are_of(self, key: bytes, group: bytes) -> bool:
        """Whether they are of a group, whichever consumer."""
        return self.group == group and self.key == key


def _position_head(key: bytes, group: bytes) -> bytes:
    return b"*7\r\n" + reply.words([b"XGROUP", b"SETID", key, group])


def _line_heads(ctx: Context, key: bytes, group: bytes, owner: bytes) -> LineHeads:
    kept = ctx.session.line_heads
    if isinstance(kept, LineHeads) and kept.owner == owner and kept.are_of(key, group):
        return kept
    heads = LineHeads(key, group, owner)
    if len(heads.claim) <= LONGEST_KEPT:
        ctx.session.line_heads = heads
    return heads


def log_claim(
    ctx: Context, key: bytes, group: Group, owner: bytes, texts: list[bytes], time_ms: int, count: int
) -> None:
    """Entries that belong to `owner` now, delivered at one time, equally often."""
    if ctx.effects.log is None:
        return
    head = _line_heads(ctx, key, group.name, owner).claim
    last_text = ids.text_of(group.last_ms, group.last_seq)
    options = [b"TIME", b"%d" % time_ms, b"RETRYCOUNT", b"%d" % count, b"FORCE", b"JUSTID", b"LASTID", last_text]
    for at in range(0, len(texts), MOST_IDS):
        claimed = texts[at : at + MOST_IDS]
        line = b"*%d\r\n%b%b" % (CLAIM_WORDS + len(claimed), head, reply.words(claimed + options))
        ctx.effects.add_packed(ctx.db_index, line)


def log_new(ctx: Context, key: bytes, group: Group, owner: bytes, runs: list[SegmentRun]) -> None:
    """New entries that are delivered now, for the first time; the group's position is still the one before them."""
    if ctx.effects.log is None:
        return
    log_claim(ctx, key, group, owner, id_texts_of(runs), ctx.now_ms, 1)


def log_held(ctx: Context, key: bytes, group: Group, claimed: list[PendingRun]) -> None:
    """Pending entries as they are now, all with an owner, in the order given: one line for each run of equals."""
    if ctx.effects.log is None:
        return
    texts: list[bytes] = []
    former: tuple[int, int, int] | None = None
    owner = b""
    for block, start, stop in _of_equals(claimed):
        now = (block.owners[start], block.times[start], block.counts[start])
        if former is not None and now != former:
            log_claim(ctx, key, group, owner, texts, former[1], former[2])
            texts = []
        if now != former:
            owner = group.pel.owner_name((block, start))
            former = now
        texts += block.segment.id_texts(start, stop)
    if former is not None:
        log_claim(ctx, key, group, owner, texts, former[1], former[2])


def _of_equals(runs: list[PendingRun]) -> Iterator[PendingRun]:
    """The same slots as runs of equal owner, time and count."""
    for run in runs:
        block, start, stop = run
        if stop - start == 1 or block.is_uniform(start, stop):
            yield run
        else:
            for slot in range(start, stop):
                yield block, slot, slot + 1


def log_released(ctx: Context, key: bytes, group: Group, released: list[Released]) -> None:
    """Entries that were released, with their counts from then on, in runs of equals.

    The counts are absolute: a relative SILENT would be counted again at replay. Where the compat version has no XNACK,
    a deleted pending entry keeps the owner that the log knows: an XCLAIM would drop it.
    """
    if ctx.effects.log is None:
        return
    compat = ctx.effects.compat
    texts: list[bytes] = []
    counts: list[int] = []
    for block, first, run_counts in released:
        run_texts = block.segment.id_texts(first, first + len(run_counts))
        if compat.releases or block.segment.is_live_run(first, first + len(run_counts)):
            texts += run_texts
            counts += run_counts
            continue
        for slot, text, count in zip(count_from(first), run_texts, run_counts, strict=False):
            if block.segment.is_live(slot):
                texts.append(text)
                counts.append(count)
    start = 0
    while start < len(texts):
        stop = _end_of_equals(counts, start, min(start + MOST_IDS, len(texts)))
        ctx.log(*release_words(compat, key, group, texts[start:stop], counts[start]))
        start = stop


def _end_of_equals(counts: list[int], start: int, limit: int) -> int:
    """Where the equal counts that begin at `start` end, at `limit` at the latest."""
    first = counts[start]
    if counts[start:limit].count(first) == limit - start:
        return limit
    stop = start + 1
    while counts[stop] == first:
        stop += 1
    return stop


def release_words(compat: AofCompat, key: bytes, group: Group, texts: list[bytes], count: int) -> tuple[bytes, ...]:
    """The request that releases entries, all with one count."""
    if compat.releases:
        numids, tail = b"%d" % len(texts), (b"RETRYCOUNT", b"%d" % count, b"FORCE")
        return (b"XNACK", key, group.name, b"FAIL", b"IDS", numids, *texts, *tail)
    last_text = ids.text_of(group.last_ms, group.last_seq)
    options = (b"TIME", b"0", b"RETRYCOUNT", b"%d" % count, b"FORCE", b"JUSTID", b"LASTID", last_text)
    return (b"XCLAIM", key, group.name, compat.consumer, b"0", *texts, *options)


def log_dropped_references(ctx: Context, key: bytes, stream: Stream, dropped_ids: list[StreamId]) -> None:
    """Entries are pending in no group any more."""
    for name in stream.groups:
        log_acknowledged(ctx, key, name, dropped_ids)


def log_acknowledged(ctx: Context, key: bytes, group: bytes, dropped_ids: list[StreamId]) -> None:
    """Entries are not pending in a group any more."""
    for at in range(0, len(dropped_ids), MOST_IDS):
        ctx.log(b"XACK", key, group, *map(ids.text, dropped_ids[at : at + MOST_IDS]))


def log_position(ctx: Context, key: bytes, stream: Stream, group: Group) -> None:
    """The group's last-delivered id and entries-read."""
    if ctx.effects.log is None:
        return
    if group.entries_read <= stream.entries_added:
        kept = ctx.session.line_heads
        if isinstance(kept, LineHeads) and kept.are_of(key, group.name):
            head = kept.position
        else:
            head = _position_head(key, group.name)
        ctx.effects.add_packed(ctx.db_index, _position(head, group))
        return
    for line in position_lines(key, stream, [group]):
        ctx.effects.add_packed(ctx.db_index, line)


def position_lines(key: bytes, stream: Stream, groups: list[Group]) -> list[bytes]:
    """Packed requests that set where groups are.

    A group that has read more than was ever added (XSETID may say so) would not be believed: it is logged in between
    that more was added.
    """
    lines: list[bytes] = []
    most_read = max([group.entries_read for group in groups], default=0)
    last_id = ids.text(stream.last_id)
    if most_read > stream.entries_added:
        lines.append(reply.bulks([b"XSETID", key, last_id, b"ENTRIESADDED", b"%d" % most_read]))
    lines += [_position(_position_head(key, group.name), group) for group in groups]
    if most_read > stream.entries_added:
        lines.append(reply.bulks([b"XSETID", key, last_id, b"ENTRIESADDED", b"%d" % stream.entries_added]))
    return lines


def _position(head: bytes, group: Group) -> bytes:
    last_text = ids.text_of(group.last_ms, group.last_seq)
    return head + reply.words([last_text, b"ENTRIESREAD", b"%d" % group.entries_read])


def log_deleted_pending(ctx: Context, key: bytes, group: Group, held: PendingSlot) -> None:
    """A deleted pending entry (its entry is not in the stream any more) is about to be dropped.

    With the old owner's XCLAIM a replay finds no entry and drops it as well; an unowned one is acknowledged.
    """
    if ctx.effects.log is None:
        return
    block, slot = held
    text = block.id_text(slot)
    owner = group.pel.owners[block.owners[slot]]
    if owner is None:
        ctx.log(b"XACK", key, group.name, text)
    else:
        log_claim(ctx, key, group, owner.name, [text], block.times[slot], block.counts[slot])
