"""A stream as RDB keeps it (types 15, 19, 21, 26 and 27): nodes, counters, groups, producers.

A node is a listpack: a master entry (counts and the first entry's field names), then each entry with its distance to
the node's id. The groups come behind all nodes; pending entries may be of ids without an entry, so that the stream
is put together when everything has been read (storage/streams/stream_builder.py).

Redis 8.6.3 and Valkey 9.1.2 write nodes with only deleted entries (XDEL of a node's last entry, XTRIM MINID), and
Redis wrote lengths that are not the number of entries (public files of 5.0 to 7.0). Such counters are corrected, and
the source's `corrections` say so. tests/storage/rdb_refusals.py has each refusal with the answers of both servers.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.storage.rdb import listpack
from penstock.storage.rdb.errors import BadRdb
from penstock.storage.rdb.rdb_format import STREAM_2, STREAM_3, STREAM_4, STREAM_5
from penstock.storage.rdb.source import Source
from penstock.storage.streams.entry_run import EntryRun
from penstock.storage.streams.idempotence import LONGEST_S, MOST_IIDS, Producers
from penstock.storage.streams.ids import HALF, ID_BYTES, StreamId
from penstock.storage.streams.listpack_nodes import StreamLimits, node_of_layout
from penstock.storage.streams.pending.consumer import NEVER
from penstock.storage.streams.pending.pending_block import MAX_COUNT
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.stream_builder import LoadedConsumer, LoadedGroup, NotAStream, StreamBuilder, in_ids

DELETED: Final = 1  # an entry's flags
SAME_FIELDS: Final = 2
LARGEST: Final = (1 << 63) - 1

MOST_REPEATED: Final = 1 << 24  # bytes of field names, which a node has once, in the entries that are made at once
PENDING_AT_ONCE: Final = 256
ONE_BYTE: Final = 1 << 6  # lengths below it take one byte

_PENDING: Final = struct.Struct("<16sqB")  # a pending entry with a count below ONE_BYTE

EncodeColumns: TypeAlias = Callable[[list[bytes], list[bytes], list[list[bytes]]], list[bytes]]
ReadNode: TypeAlias = Callable[[bytes, int, int, EntryRun, "NodeHead"], bool]


class NodeHead:
    """The head of a node (see listpack_nodes.Node). `pieces` are for reading a whole node at once."""

    __slots__ = ("deleted", "last_ms", "last_seq", "live", "names", "pieces")

    def __init__(self) -> None:
        self.live = 0
        self.deleted = 0
        self.last_ms = 0
        self.last_seq = 0
        self.names: list[bytes] = []  # of the first entry's fields
        self.pieces: list[bytes] = []


class StreamDefaults:
    """A stream's needs besides its bytes: `encode_columns` makes the bytes of entries of their ids, their fields, and
    the values of each field.

    `read_node`, if there is one, reads an ordinary node at once (engine/rdb/native_nodes.py). A stream that says
    nothing of idempotent producers gets the settings given here.
    """

    __slots__ = ("encode_columns", "idmp_duration_s", "idmp_max_size", "limits", "read_node")

    def __init__(
        self,
        limits: StreamLimits,
        idmp_duration_s: int,
        idmp_max_size: int,
        encode_columns: EncodeColumns,
        read_node: ReadNode | None = None,
    ) -> None:
        self.limits = limits
        self.idmp_duration_s = idmp_duration_s
        self.idmp_max_size = idmp_max_size
        self.encode_columns = encode_columns
        self.read_node = read_node


def entry_id(source: Source) -> StreamId:
    return int.from_bytes(source.take(ID_BYTES), "big")


def id_of_lengths(source: Source) -> StreamId:
    """An id as two lengths."""
    ms = source.length()
    return ms << 64 | source.length()


def shown_id(entry_id: StreamId) -> str:
    return f"{entry_id >> 64}-{entry_id & HALF}"


def counter(source: Source, what: str) -> int:
    """Read a counter; one that is too large for a reply is corrected to 0."""
    number = source.length()
    if number <= LARGEST:
        return number
    source.correct(f"its {what} is {number}, and is taken as 0")
    return 0


def time_ms(source: Source, what: str, least_ms: int = 0) -> int:
    """A unix time in ms, or the least that it can be."""
    return fitting_ms(source, source.signed(8), what, least_ms)


def fitting_ms(source: Source, when_ms: int, what: str, least_ms: int = 0) -> int:
    """A unix time in ms as it was read, or the least that it can be."""
    if when_ms >= least_ms:
        return when_ms
    source.correct(f"{what} at {when_ms} ms, and is taken as {least_ms}")
    return least_ms


def _ids(source: Source) -> list[bytes]:
    """Ids behind their number."""
    return in_ids(source.take(source.count(ID_BYTES) * ID_BYTES))


class StreamReader:
    """One stream being read: `read_node` while there are `nodes_left`, then `finished`."""

    __slots__ = ("_builder", "_defaults", "_empty_nodes", "_head", "_kind", "_last_node", "_source", "nodes_left")

    def __init__(self, source: Source, kind: int, defaults: StreamDefaults) -> None:
        self._source = source
        self._kind = kind
        self._defaults = defaults
        self._head = NodeHead()
        producers = Producers(defaults.idmp_duration_s, defaults.idmp_max_size)
        self._builder = StreamBuilder(Stream(defaults.limits, producers))
        self._last_node = -1  # its id
        self._empty_nodes = 0  # that have no live entry
        self.nodes_left = source.count(ID_BYTES + 2)

    # -- nodes ------------------------------------------------------------------------------------------------------

    def read_node(self) -> None:
        self.nodes_left -= 1
        key = self._source.string()
        if len(key) != ID_BYTES:
            raise BadRdb("a stream's node has an id of another size")
        blob = self._source.string()
        first_id = int.from_bytes(key, "big")
        builder, read_node = self._builder, self._defaults.read_node
        if read_node is not None and read_node(blob, first_id >> 64, first_id & HALF, builder.run, self._head):
            builder.take_full_run()
        else:
            self._read_elements(blob, first_id)
        if first_id <= self._last_node:
            raise BadRdb("a stream's nodes are not in the order of their ids")
        self._last_node = first_id
        head = self._head
        if not head.live:
            self._empty_nodes += 1
            return
        last_id = head.last_ms << 64 | head.last_seq
        builder.nodes.append(node_of_layout(first_id, last_id, head.live, head.deleted, len(blob), head.names))

    def _read_elements(self, blob: bytes, first_id: StreamId) -> None:
        """Read a node element by element."""
        found = listpack.elements(blob)
        if len(found) < 4:
            raise _damaged()
        live, deleted, width, end = _number(found[0]), _number(found[1]), _number(found[2]), 3
        if width < 1 or len(found) < width + 4 or live < 0 or deleted < 0:
            raise _damaged()
        names = listpack.texts_of(found[3 : 3 + width])
        end = 3 + width
        if found[end] != 0:
            raise _damaged()
        head = self._head = NodeHead()
        head.names = names
        if not self._read_columns(found, end + 1, first_id, head):
            self._read_entries(found, end + 1, first_id, head)
        if head.live + head.deleted != live + deleted:
            raise BadRdb("a stream's node has another number of entries than it says")
        if head.live != live:
            self._source.correct(
                f"the node {shown_id(first_id)} says that it has {live} live entries, and has {head.live}"
            )

    def _read_columns(self, found: list[bytes | int], at: int, first_id: StreamId, head: NodeHead) -> bool:
        """As `_read_entries`, if all entries are live and have the node's fields; else False, and nothing is done."""
        first_ms, first_seq = first_id >> 64, first_id & HALF
        width = len(head.names)
        size = width + 4  # elements of an entry
        flags, sizes = found[at::size], found[at + size - 1 :: size]
        count = len(flags)
        if (
            not count
            or count != flags.count(SAME_FIELDS)
            or count != sizes.count(width + 3)
            or len(found) != at + count * size
        ):
            return False
        ms = [
            first_ms + more & HALF for more in found[at + 1 :: size] if isinstance(more, int)
        ]  # Redis's overflow, too
        seq = [first_seq + more & HALF for more in found[at + 2 :: size] if isinstance(more, int)]
        if len(ms) != count or len(seq) != count or count * sum(map(len, head.names)) > MOST_REPEATED:
            return False
        columns = [listpack.texts_of(found[place::size]) for place in range(at + 3, at + 3 + width)]
        entry_ids = [b"%d-%d" % pair for pair in zip(ms, seq, strict=True)]
        if not self._builder.add_all(ms, seq, self._defaults.encode_columns(entry_ids, head.names, columns)):
            raise _wrong_order()
        head.live = count
        head.last_ms, head.last_seq = ms[-1], seq[-1]
        return True

    def _read_entries(self, found: list[bytes | int], at: int, first_id: StreamId, head: NodeHead) -> None:
        """Give the builder a node's live entries, which begin at an element; count them, and find the highest id.

        A deleted entry may have a higher id than those behind it (XSETID of Redis 5.0 to 6.2, after XDEL).
        """
        first_ms, first_seq = first_id >> 64, first_id & HALF
        names = head.names
        width = len(names)
        encode_columns, builder = self._defaults.encode_columns, self._builder
        same_size = width + 4  # elements of an entry with the node's field names
        end = len(found)
        last_id = -1
        while at < end:
            if at + 5 > end:
                raise _damaged()
            flags = found[at]
            ms_more, seq_more = found[at + 1], found[at + 2]
            if not isinstance(flags, int) or not isinstance(ms_more, int) or not isinstance(seq_more, int):
                raise _damaged()
            ms, seq = first_ms + ms_more & HALF, first_seq + seq_more & HALF  # Redis's overflow, too
            if not 0 <= flags <= DELETED | SAME_FIELDS:
                raise _damaged()
            if flags & SAME_FIELDS:
                values, stop = at + 3, at + same_size - 1
            else:
                count = _number(found[at + 3])
                if count < 1:
                    raise _damaged()
                values, stop = at + 4, at + 4 + 2 * count
            if stop >= end or found[stop] != stop - at:
                raise _damaged()
            last_id = max(last_id, ms << 64 | seq)
            if flags & DELETED:
                head.deleted += 1
            else:
                head.live += 1
                words = listpack.texts_of(found[values:stop])
                if flags & SAME_FIELDS:
                    fields = names
                else:
                    fields, words = words[::2], words[1::2]
                if not builder.add_all(
                    [ms], [seq], encode_columns([b"%d-%d" % (ms, seq)], fields, [[one] for one in words])
                ):
                    raise _wrong_order()
            at = stop + 1
        head.last_ms, head.last_seq = max(last_id, 0) >> 64, max(last_id, 0) & HALF

    # -- the rest ---------------------------------------------------------------------------------------------------

    def finished(self) -> Stream:
        """Read what follows the nodes, and put the stream together."""
        source, builder = self._source, self._builder
        stream = builder.stream
        self._read_counters(stream)
        groups = [self._group() for _ in range(source.count(5))]
        if self._kind >= STREAM_4:
            self._read_producers(stream.producers)
        try:
            return builder.finished(groups, estimates_reads=self._kind < STREAM_2)
        except NotAStream as problem:
            raise BadRdb(str(problem)) from None

    def _read_counters(self, stream: Stream) -> None:
        """The length, the last id and what else counts the entries; the entries themselves are right."""
        source, builder = self._source, self._builder
        count = len(builder)
        if self._empty_nodes:
            source.correct(f"{self._empty_nodes} of its nodes have no live entries, and are left out")
        length = source.length()
        if length and self._last_node < 0:
            raise BadRdb(f"a stream says that it has {length} entries, and has no nodes")
        if length != count:
            source.correct(f"it says that it has {length} entries, and has {count}")
        stream.last_id = id_of_lengths(source)
        if stream.last_id < builder.run.last_id:
            entry = shown_id(builder.run.last_id)
            source.correct(f"its last id is {shown_id(stream.last_id)}, and its last entry has {entry}")
            stream.last_id = builder.run.last_id
        stream.entries_added = count
        if self._kind >= STREAM_2:
            id_of_lengths(source)  # of the first entry
            stream.max_deleted_id = id_of_lengths(source)
            if stream.max_deleted_id > stream.last_id:  # no XSETID could say so, in a log
                source.correct(f"the highest id that was deleted is {shown_id(stream.max_deleted_id)}, above its last")
                stream.max_deleted_id = stream.last_id
            added = source.length()
            if count <= added <= LARGEST:
                stream.entries_added = added
            else:
                source.correct(f"it says that {added} entries were added, and has {count}")

    def _group(self) -> LoadedGroup:
        source = self._source
        group = LoadedGroup(source.string(), id_of_lengths(source))
        if self._kind >= STREAM_2:
            entries_read = source.length()
            if entries_read <= LARGEST:
                group.entries_read = entries_read
            elif entries_read != HALF:
                source.correct(f"a group has read {entries_read} entries, and is taken to have read an unknown number")
        self._read_pending(group, source.count(_PENDING.size))
        for _ in range(source.count(10)):
            consumer = LoadedConsumer(source.string(), time_ms(source, "a consumer was seen"))
            consumer.active_ms = consumer.seen_ms
            if self._kind >= STREAM_3:
                consumer.active_ms = time_ms(source, "a consumer was active", NEVER)
            group.consumers.append(consumer)
            if not group.own(_ids(source), len(group.consumers)):
                raise BadRdb("a consumer has a pending entry that its group has not, or that another one has")
        if self._kind >= STREAM_5 and not group.release(_ids(source)):
            raise BadRdb("a released entry is not in its group's list, or is owned")
        return group

    def _read_pending(self, group: LoadedGroup, count: int) -> None:
        """So many pending entries: at once those with counts of one byte, and the next one by itself."""
        source = self._source
        while count:
            many = min(count, PENDING_AT_ONCE, source.left() // _PENDING.size)
            source.need(many * _PENDING.size)
            columns = source.block[source.at : source.at + many * _PENDING.size]
            counts = columns[_PENDING.size - 1 :: _PENDING.size]
            if max(counts, default=0) >= ONE_BYTE:
                many = next(place for place, one in enumerate(counts) if one >= ONE_BYTE)
            records: list[tuple[bytes, int, int]] = list(_PENDING.iter_unpack(source.take(many * _PENDING.size)))
            if not records:
                records = [(source.take(ID_BYTES), source.signed(8), min(source.length(), MAX_COUNT))]
            count -= len(records)
            ids = [entry for entry, _, _ in records]
            times_ms = [fitting_ms(source, when_ms, "an entry was delivered") for _, when_ms, _ in records]
            if not group.add_pending(ids, times_ms, [one for _, _, one in records]):
                raise BadRdb("a group has a pending entry twice")

    def _read_producers(self, producers: Producers) -> None:
        source = self._source
        producers.duration_s, producers.max_size = source.length(), source.length()
        if not (1 <= producers.duration_s <= LONGEST_S and 1 <= producers.max_size <= MOST_IIDS):
            raise BadRdb("a stream's limits of idempotent ids are out of range")
        for _ in range(source.count(2)):
            pid = source.string()
            if pid in producers.pids:
                raise BadRdb("a stream has a producer twice")
            iids = producers.pids[pid] = OrderedDict()
            for _ in range(source.count(3)):
                iid = source.string()
                if iid in iids:
                    raise BadRdb("a stream's producer has an id twice")
                iids[iid] = id_of_lengths(source)
            while len(iids) > producers.max_size:
                iids.popitem(last=False)
        producers.added = counter(source, "count of idempotent ids")
        producers.duplicates = counter(source, "count of duplicates")


def _wrong_order() -> BadRdb:
    return BadRdb("a stream's entries are not in the order of their ids")


def _damaged() -> BadRdb:
    return BadRdb("a stream's node is damaged")


def _number(element: bytes | int) -> int:
    if isinstance(element, bytes):
        raise _damaged()
    return element
