"""The log's lines for changes of pending lists: absolute, replayable without a clock (facts, STREAMS 1.10, 1.13).

Redis writes one XCLAIM an entry; ours names all consecutive entries of equal consumer, time and count, which a Redis
loads to the same state. Runs are never regrouped: their order is the order in time.
"""

from typing import Final

from penstock.commands.context import Context
from penstock.storage import ids
from penstock.storage.groups import Group, Held
from penstock.storage.ids import StreamId
from penstock.storage.streams import Run

MOST_IDS: Final = 1000  # of one line


def log_claim(
    ctx: Context,
    key: bytes,
    group: bytes,
    owner: bytes,
    texts: list[bytes],
    time_ms: int,
    count: int,
    last_id: StreamId,
) -> None:
    """Entries that belong to `owner` now, delivered at one time, equally often."""
    tail = (b"TIME", b"%d" % time_ms, b"RETRYCOUNT", b"%d" % count, b"FORCE", b"JUSTID", b"LASTID", ids.text(last_id))
    for at in range(0, len(texts), MOST_IDS):
        ctx.log(b"XCLAIM", key, group, owner, b"0", *texts[at : at + MOST_IDS], *tail)


def log_new(ctx: Context, key: bytes, group: Group, owner: bytes, runs: list[Run], last_id: StreamId) -> None:
    """New entries delivered just now, for the first time; `last_id` is the group's before that."""
    if ctx.effects.log is None:
        return
    texts = [
        ids.text(run.segment.ms[slot] << 64 | run.segment.seq[slot])
        for run in runs
        for slot in range(run.start, run.stop)
    ]
    log_claim(ctx, key, group.name, owner, texts, ctx.now_ms, 1, last_id)


def log_held(ctx: Context, key: bytes, group: Group, claimed: list[Held], last_id: StreamId) -> None:
    """Pending entries as they are now, all with an owner, in the order given: one line for each run of equals."""
    if ctx.effects.log is None:
        return
    texts: list[bytes] = []
    former: tuple[int, int, int] | None = None
    owner = b""
    for block, slot in claimed:
        now = (block.owners[slot], block.times[slot], block.counts[slot])
        if former is not None and now != former:
            log_claim(ctx, key, group.name, owner, texts, former[1], former[2], last_id)
            texts = []
        if now != former:
            owner = group.owner_name((block, slot))
            former = now
        texts.append(ids.text(block.id_at(slot)))
    if former is not None:
        log_claim(ctx, key, group.name, owner, texts, former[1], former[2], last_id)


def log_position(ctx: Context, key: bytes, group: Group) -> None:
    """The group's last-delivered id and entries-read."""
    ctx.log(b"XGROUP", b"SETID", key, group.name, ids.text(group.last_id), b"ENTRIESREAD", b"%d" % group.entries_read)


def log_ghost(ctx: Context, key: bytes, group: Group, held: Held) -> None:
    """A pending entry whose message is gone is about to be dropped.

    With the old owner's XCLAIM a replay finds no entry and drops it as well; an unowned one is acknowledged.
    """
    if ctx.effects.log is None:
        return
    block, slot = held
    text = ids.text(block.id_at(slot))
    owner = group.numbers[block.owners[slot]]
    if owner is None:
        ctx.log(b"XACK", key, group.name, text)
    else:
        log_claim(ctx, key, group.name, owner.name, [text], block.times[slot], block.counts[slot], group.last_id)
