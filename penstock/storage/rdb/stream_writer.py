"""A stream as RDB keeps it: see stream_reader.py.

Nodes are written as they are divided here, without the entries that were deleted from them.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import TypeAlias

from penstock.storage.rdb import listpack
from penstock.storage.rdb.rdb_format import STREAM_2, STREAM_3, STREAM_4, STREAM_5
from penstock.storage.rdb.stream_reader import ID_BYTES, SAME_FIELDS
from penstock.storage.rdb.string_writer import StringWriter, length
from penstock.storage.streams.group import Group
from penstock.storage.streams.ids import HALF, MAX, StreamId
from penstock.storage.streams.pending_list import PendingRun
from penstock.storage.streams.stream import Stream

FieldsOf: TypeAlias = Callable[[bytes], list[bytes]]  # the fields and values of an entry's bytes


def stream_parts(strings: StringWriter, stream: Stream, kind: int, fields_of: FieldsOf) -> Iterator[bytes]:
    """The stream's bytes, in pieces: a node each, and a group each."""
    yield length(sum([node.live > 0 for node in stream.nodes]))
    for ms, seq, entries in _nodes(stream):
        blob = node_blob(ms, seq, [fields_of(entry) for entry in entries])
        yield length(ID_BYTES) + ms[0].to_bytes(8, "big") + seq[0].to_bytes(8, "big") + strings.blob(blob)
    yield length(stream.length) + _id_as_lengths(stream.last_id)
    if kind >= STREAM_2:
        yield _id_as_lengths(stream.first_id) + _id_as_lengths(stream.max_deleted_id) + length(stream.entries_added)
    yield length(len(stream.groups))
    for group in stream.groups_by_name():
        yield _group(strings, group, kind)
    if kind >= STREAM_4:
        yield _producers(strings, stream)


def _id_as_lengths(entry_id: StreamId) -> bytes:
    return length(entry_id >> 64) + length(entry_id & HALF)


def _nodes(stream: Stream) -> "Iterator[tuple[array[int], array[int], list[bytes]]]":
    """The live entries node by node: columns of their ids, and their bytes."""
    nodes = iter(stream.nodes)
    wanted = 0  # entries that the node in hand still lacks
    ms: array[int] = array("Q")
    seq: array[int] = array("Q")
    entries: list[bytes] = []
    for segment, start, stop in stream.runs(0, MAX, stream.length):
        while start < stop:
            while not wanted:
                wanted = next(nodes).live
            end = min(start + wanted, stop)
            ms += segment.ms[start:end]
            seq += segment.seq[start:end]
            entries += segment.entry_list(start, end)
            wanted -= end - start
            start = end
            if not wanted:
                yield ms, seq, entries
                ms, seq, entries = array("Q"), array("Q"), []


def node_blob(ms: "array[int]", seq: "array[int]", entries: list[list[bytes]]) -> bytes:
    """A node's listpack: entries by their ids, and their fields and values in turn."""
    names = entries[0][::2]
    width = len(names)
    first_ms, first_seq = ms[0], seq[0]
    elements: list[bytes | int] = [len(entries), 0, width, *names, 0]
    for at, words in enumerate(entries):
        ms_more, seq_more = ms[at] - first_ms, seq[at] - first_seq
        if words[::2] == names:
            elements += (SAME_FIELDS, ms_more, seq_more, *words[1::2], width + 3)
        else:
            elements += (0, ms_more, seq_more, len(words) // 2, *words, len(words) + 4)
    return listpack.packed(elements)


def _group(strings: StringWriter, group: Group, kind: int) -> bytes:
    parts = [strings.string(group.name), _id_as_lengths(group.last_id)]
    if kind >= STREAM_2:
        parts.append(length(group.entries_read & HALF))
    parts.append(length(group.pending))
    for block, slot in group.walk(0):
        parts.append(block.id_at(slot).to_bytes(ID_BYTES, "big"))
        parts.append(block.times[slot].to_bytes(8, "little"))
        parts.append(length(block.counts[slot]))
    parts.append(length(len(group.consumers)))
    for consumer in group.consumers_by_name():
        parts.append(strings.string(consumer.name))
        parts.append(consumer.seen_ms.to_bytes(8, "little"))
        if kind >= STREAM_3:
            parts.append(consumer.active_ms.to_bytes(8, "little", signed=True))
        parts.append(length(consumer.pending))
        parts += _ids_of(group.owned(consumer, 0, consumer.pending))
    if kind >= STREAM_5:
        parts.append(length(group.released))
        parts += [block.id_at(slot).to_bytes(ID_BYTES, "big") for block, slot in group.nack_zone()]
    return b"".join(parts)


def _ids_of(runs: list[PendingRun]) -> list[bytes]:
    return [block.id_at(slot).to_bytes(ID_BYTES, "big") for block, start, stop in runs for slot in range(start, stop)]


def _producers(strings: StringWriter, stream: Stream) -> bytes:
    producers = stream.producers
    parts = [length(producers.duration_s), length(producers.max_size), length(len(producers.pids))]
    for pid, iids in producers.pids.items():
        parts += (strings.string(pid), length(len(iids)))
        for iid, entry_id in iids.items():
            parts += (strings.string(iid), _id_as_lengths(entry_id))
    parts += (length(producers.added), length(producers.duplicates))
    return b"".join(parts)
