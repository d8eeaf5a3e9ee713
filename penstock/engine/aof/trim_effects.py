"""The log's lines for trims: exact, so that a replay, here or on a Redis, removes the same entries and references."""

from typing import Final

from penstock.engine.aof import group_effects
from penstock.engine.context import Context
from penstock.storage.streams import ids
from penstock.storage.streams.entry_deletion import drop_references_below
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import DELETE_REFERENCES, Trim

LOWEST: Final[StreamId] = 1  # 0-1


def log_acked_trim(ctx: Context, key: bytes, stream: Stream, removed_ids: list[StreamId], takes_all: bool) -> None:
    """Log a trim that kept what groups need, in a form that does not depend on node boundaries.

    takes_all: all unneeded entries up to the last removed one went; then the logged trim removes just these. Otherwise,
    and for an older Redis, if an entry in between stayed, XDEL is logged, then XSETID with the max-deleted id, which a
    trim does not change. XSETID cannot say 0-0: Redis 8.6.3 takes that as not given, keeps what XDEL set, and shows no
    lag. It becomes 0-1 first, in the stream as in the log.
    """
    if not removed_ids:
        return
    kept_some = stream.length > 0 and stream.first_id < removed_ids[-1]
    if removed_ids[-1] < ids.MAX and ((takes_all and ctx.effects.compat.references) or not kept_some):
        ctx.log(b"XTRIM", key, b"MINID", b"=", ids.text(removed_ids[-1] + 1), *([b"ACKED"] if kept_some else []))
        return
    for at in range(0, len(removed_ids), group_effects.MOST_IDS):
        ctx.log(b"XDEL", key, *map(ids.text, removed_ids[at : at + group_effects.MOST_IDS]))
    stream.max_deleted_id = max(stream.max_deleted_id, LOWEST)
    ctx.log(b"XSETID", key, ids.text(stream.last_id), b"MAXDELETEDID", ids.text(stream.max_deleted_id))


def log_head_trim(ctx: Context, key: bytes, stream: Stream, removed_ids: list[StreamId] | None) -> None:
    """Log that the oldest entries went. removed_ids: with their pending entries (DELREF); None: without."""
    trim = (b"XTRIM", key, b"MAXLEN", b"=", b"%d" % stream.length)
    if removed_ids is None:
        ctx.log(*trim)
    elif ctx.effects.compat.references:
        ctx.log(*trim, b"DELREF")
    else:
        ctx.log(*trim)
        group_effects.log_dropped_references(ctx, key, stream, removed_ids)


def drop_deleted_references(ctx: Context, key: bytes, stream: Stream, trim: Trim) -> None:
    """A DELREF trim was made and logged: entries that were deleted before it are not pending any more, either.

    A Redis that makes the same trim keeps their references, so the log has each group's XACK beside it, and a replay
    leaves them to that. O(groups), and O(log b) for each reference.
    """
    if trim.references != DELETE_REFERENCES or ctx.session.privileged:
        return
    cut = trim.cut(stream.length, stream.first_id if stream.length else ids.MAX + 1)
    for group in stream.groups.values():
        dropped = drop_references_below(group, cut)
        ctx.count_group_changes(key, len(dropped))
        group_effects.log_acknowledged(ctx, key, group.name, dropped)
