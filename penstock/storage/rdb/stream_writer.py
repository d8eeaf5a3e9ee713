"""A stream as RDB keeps it: see stream_reader.py.

Nodes are written as they are divided here, without the entries that were deleted from them.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import TypeAlias

from penstock.native.columns import WIDE, little_endian
from penstock.storage.rdb import listpack
from penstock.storage.rdb.rdb_format import STREAM_2, STREAM_3, STREAM_4, STREAM_5
from penstock.storage.rdb.stream_reader import SAME_FIELDS
from penstock.storage.rdb.string_writer import StringWriter, length
from penstock.storage.streams.ids import HALF, ID_BYTES, MAX, StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.pending.pending_block import PendingRun
from penstock.storage.streams.segment import Segment
from penstock.storage.streams.stream import Stream

FieldsOf: TypeAlias = Callable[[bytes], list[bytes]]
Slots: TypeAlias = tuple[Segment, int, int]  # from one slot up to another, all live
WriteNode: TypeAlias = Callable[[bytes, bytes, bytes], bytes | None]


class EntryForms:
    """How entries look: `fields_of` gives the fields and values of an entry's bytes.

    `write_node`, if there is one, makes a node's listpack of ordinary entries at once, or None of others
    (engine/rdb/native_node_writer.py). It gets their bytes, and both halves of their ids as little-endian columns.
    """

    __slots__ = ("fields_of", "write_node")

    def __init__(self, fields_of: FieldsOf, write_node: WriteNode | None = None) -> None:
        self.fields_of = fields_of
        self.write_node = write_node


def stream_parts(strings: StringWriter, stream: Stream, kind: int, forms: EntryForms) -> Iterator[bytes]:
    """The stream's bytes, in pieces: a node each, and a group each."""
    yield length(sum([node.live > 0 for node in stream.nodes]))
    for slots in _nodes(stream):
        segment, start, _ = slots[0]
        first_id = segment.id_at(start).to_bytes(ID_BYTES, "big")
        yield length(ID_BYTES) + first_id + strings.blob(_node_blob(slots, forms))
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


def _nodes(stream: Stream) -> Iterator[list[Slots]]:
    """The live entries node by node."""
    nodes = iter(stream.nodes)
    wanted = 0  # entries that the node in hand still lacks
    held: list[Slots] = []
    for segment, start, stop in stream.runs(0, MAX, stream.length):
        while start < stop:
            while not wanted:
                wanted = next(nodes).live
            end = min(start + wanted, stop)
            held.append((segment, start, end))
            wanted -= end - start
            start = end
            if not wanted:
                yield held
                held = []


def _node_blob(slots: list[Slots], forms: EntryForms) -> bytes:
    ms: array[int] = array(WIDE)
    seq: array[int] = array(WIDE)
    for segment, start, stop in slots:
        ms += segment.ms[start:stop]
        seq += segment.seq[start:stop]
    if forms.write_node is not None:
        encoded = b"".join([segment.entries(start, stop) for segment, start, stop in slots])
        blob = forms.write_node(encoded, little_endian(ms), little_endian(seq))
        if blob is not None:
            return blob
    entries: list[list[bytes]] = []
    for segment, start, stop in slots:
        entries += map(forms.fields_of, segment.entry_list(start, stop))
    return node_blob(ms, seq, entries)


def node_blob(ms: "array[int]", seq: "array[int]", entries: list[list[bytes]]) -> bytes:
    """A node's listpack: entries by their ids, and their fields and values in turn."""
    names = entries[0][::2]
    width = len(names)
    all_ms, all_seq = _distances(ms), _distances(seq)
    elements: list[bytes | int] = [len(entries), 0, width, *names, 0]
    for at, words in enumerate(entries):
        ms_more, seq_more = all_ms[at], all_seq[at]
        if words[::2] == names:
            elements += (SAME_FIELDS, ms_more, seq_more, *words[1::2], width + 3)
        else:
            elements += (0, ms_more, seq_more, len(words) // 2, *words, len(words) + 4)
    return listpack.packed(elements)


def _distances(column: "array[int]") -> list[int]:
    """How much more than the first one the numbers of a column are."""
    first = column[0]
    found = [number - first for number in column]
    return found if max(found) <= HALF >> 1 and min(found) >= -(HALF >> 1) else list(map(_wrapped, found))


def _wrapped(distance: int) -> int:
    """A distance as a signed number of 64 bits: Redis lets it overflow, and overflow again when it reads (8.6.3)."""
    return (distance + (HALF >> 1) + 1 & HALF) - (HALF >> 1) - 1


def _group(strings: StringWriter, group: Group, kind: int) -> bytes:
    parts = [strings.string(group.name), _id_as_lengths(group.last_id)]
    if kind >= STREAM_2:
        parts.append(length(group.entries_read & HALF))
    parts.append(length(group.pel.count))
    tail, tail_ms, tail_count = b"", -1, -1  # what stands behind the id: of neighbours it is mostly the same
    for block, start, stop in group.pel.by_id.walk_runs(0):
        ids = block.segment.id_bytes(start, stop)
        times, counts = block.times[start:stop].tolist(), block.counts[start:stop].tolist()
        for at, (time_ms, count) in enumerate(zip(times, counts, strict=True)):
            if time_ms != tail_ms or count != tail_count:
                tail_ms, tail_count = time_ms, count
                tail = time_ms.to_bytes(8, "little") + length(count)
            parts += (ids[ID_BYTES * at : ID_BYTES * at + ID_BYTES], tail)
    parts.append(length(len(group.consumers)))
    for consumer in group.consumers_by_name():
        parts.append(strings.string(consumer.name))
        parts.append(consumer.seen_ms.to_bytes(8, "little"))
        if kind >= STREAM_3:
            parts.append(consumer.active_ms.to_bytes(8, "little", signed=True))
        parts.append(length(consumer.pending))
        parts += _ids_of(group.pel.owned(consumer, 0, consumer.pending))
    if kind >= STREAM_5:
        parts.append(length(group.pel.order.released))
        parts += [block.id_at(slot).to_bytes(ID_BYTES, "big") for block, slot in group.pel.order.in_nack_zone()]
    return b"".join(parts)


def _ids_of(runs: list[PendingRun]) -> list[bytes]:
    return [block.segment.id_bytes(start, stop) for block, start, stop in runs]


def _producers(strings: StringWriter, stream: Stream) -> bytes:
    producers = stream.producers
    parts = [length(producers.duration_s), length(producers.max_size), length(len(producers.pids))]
    for pid, iids in producers.pids.items():
        parts += (strings.string(pid), length(len(iids)))
        for iid, entry_id in iids.items():
            parts += (strings.string(iid), _id_as_lengths(entry_id))
    parts += (length(producers.added), length(producers.duplicates))
    return b"".join(parts)
