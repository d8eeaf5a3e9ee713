"""Deletes many entries of a stream by their ids, neighbours together; and references to entries that are gone."""

from bisect import bisect_right

from penstock.native.columns import common_length
from penstock.storage.streams.ids import ZERO, IdColumns, StreamId, halves
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import id_of
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream


def delete_all(stream: Stream, wanted: IdColumns) -> int:
    """As `Stream.delete` for each id, in order; returns how many were live.

    O(log s + log m) for each run of neighbours (s segments, m nodes) and O(1) for each id; O(s) or O(m) more for each
    segment or node that empties.
    """
    deleted = at = 0
    while at < len(wanted):
        first_id = wanted.id_at(at)
        found = stream.find(first_id) if at + 1 < len(wanted) else None
        if found is None:  # nothing to delete, or the last id
            deleted += stream.delete(first_id)
            at += 1
            continue
        segment, slot = found
        max_count = min(len(wanted) - at, len(segment) - slot)
        length = common_length(segment.ms, segment.seq, slot, wanted.ms, wanted.seq, at, max_count)
        if length == 1 or not segment.is_live_run(slot, slot + length):
            deleted += stream.delete(first_id)
            at += 1
            continue
        _delete_run(stream, segment, slot, slot + length)
        deleted += length
        at += length
    return deleted


def _delete_run(stream: Stream, segment: Segment, start: int, stop: int) -> None:
    """Delete the slots [start, stop), which must all be live."""
    last_id = segment.id_at(stop - 1)
    stream.forget_bytes([(segment, start, stop)])
    _remove_run_from_nodes(stream, segment, start, stop)
    segment.delete_run(start, stop)
    stream.length -= stop - start
    if not segment.live:
        stream.drop_segment(bisect_right(stream.firsts, last_id) - 1)
    stream.max_deleted_id = max(stream.max_deleted_id, last_id)


def _remove_run_from_nodes(stream: Stream, segment: Segment, start: int, stop: int) -> None:
    """Subtract live slots from the counts of their nodes. A node without live entries is deleted."""
    nodes = stream.nodes
    index = stream.node_index(segment.id_at(start))
    while start < stop:
        end = stop
        if index + 1 < len(nodes) and nodes[index + 1].first <= segment.id_at(stop - 1):
            end = segment.lower_bound(nodes[index + 1].first)
        nodes[index].live -= end - start
        if nodes[index].live:
            index += 1
        else:
            del nodes[index]
        start = end


def deleted_below(stream: Stream) -> StreamId:
    """No entry below this id is live: that of the oldest one, or the one behind the last id. O(1)."""
    return stream.first_id if stream.length else stream.last_id + 1


def drop_references_below(group: Group, limit: StreamId) -> list[StreamId]:
    """Remove a group's pending entries below an id, which must be deleted ones; returns their ids, ascending.

    O(slots of a block) where there are none; else O(log b) for each.
    """
    dropped = list(map(id_of, group.pel.by_id.between(ZERO, limit)))
    for entry_id in dropped:
        group.pel.acknowledge(*halves(entry_id))
    return dropped
