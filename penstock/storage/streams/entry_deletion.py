"""Deleting many entries of a stream by their ids: neighbours together."""

from bisect import bisect_right

from penstock.storage.streams.columns import common_length
from penstock.storage.streams.ids import IdColumns, StreamId
from penstock.storage.streams.listpack_nodes import Node
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream


def delete_all(stream: Stream, wanted: IdColumns) -> int:
    """As `Stream.delete` for each, in order; how many were there."""
    deleted = at = 0
    while at < len(wanted):
        first_id = wanted.id_at(at)
        found = stream.find(first_id) if at + 1 < len(wanted) else None
        if found is None:  # nothing to delete, or the last one
            deleted += stream.delete(first_id)
            at += 1
            continue
        segment, slot = found
        most = min(len(wanted) - at, len(segment) - slot)
        length = common_length(segment.ms, segment.seq, slot, wanted.ms, wanted.seq, at, most)
        if length == 1 or not segment.is_live_run(slot, slot + length):
            deleted += stream.delete(first_id)
            at += 1
            continue
        _delete_run(stream, segment, slot, slot + length)
        deleted += length
        at += length
    return deleted


def _delete_run(stream: Stream, segment: Segment, start: int, stop: int) -> None:
    """Delete the slots [start, stop), which are all live."""
    last_id = segment.id_at(stop - 1)
    _count_out(stream, segment, start, stop)
    segment.kill_run(start, stop)
    stream.length -= stop - start
    if not segment.live:
        place = bisect_right(stream.firsts, last_id) - 1
        segment.drop()
        del stream.segments[place]
        del stream.firsts[place]
    stream.max_deleted_id = max(stream.max_deleted_id, last_id)


def _count_out(stream: Stream, segment: Segment, start: int, stop: int) -> None:
    """The nodes of the slots have so many entries less, and go with their last one."""
    nodes = stream.nodes
    place = bisect_right(nodes, segment.id_at(start), key=_first_of) - 1
    while start < stop:
        end = stop
        if place + 1 < len(nodes) and nodes[place + 1].first <= segment.id_at(stop - 1):
            end = segment.lower_bound(nodes[place + 1].first)
        nodes[place].live -= end - start
        if nodes[place].live:
            place += 1
        else:
            del nodes[place]
        start = end


def _first_of(node: Node) -> StreamId:
    return node.first
