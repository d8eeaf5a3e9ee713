"""A fresh base for the log: the shortest requests that give the keyspace as it is.

A real Redis loads what is written here. A pending entry without an entry (a *deleted pending entry*) needs its id in
the stream while it is claimed: a placeholder is added in its place, and taken away by a trim or a deletion afterwards.
So does an idempotent id without an entry.
"""

from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import Final

from penstock.config.settings import Settings
from penstock.engine.aof import aof_compat, group_effects, rewrite_values
from penstock.engine.aof.aof_compat import AofCompat
from penstock.engine.aof.rewrite_groups import GroupLines
from penstock.engine.aof.rewrite_progress import Progress
from penstock.engine.effects import pack
from penstock.engine.policies import policy_lines
from penstock.protocol import reply
from penstock.storage.chunks import in_chunks
from penstock.storage.keyspace import Keyspace, Value
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.segment import SegmentRun
from penstock.storage.streams.stream import Stream

USUAL_IDMP: Final = (100, 100)  # the defaults of stream-idmp-duration and -maxsize
MOST_IDS: Final = 1000  # in one XDEL


def base_lines(
    keyspace: Keyspace,
    settings: Settings,
    now_ms: int,
    written_in: AofCompat | None = None,
    progress: Progress | None = None,
) -> Iterator[bytes]:
    """The base as chunks of whole requests, in words that the settings allow.

    A key past its time is in it as long as it is in memory: of a replica's the master has not said the end yet, and may
    still give it another time; and a clock may be set back.

    `progress` counts what is done meanwhile.
    """
    return in_chunks(_lines(keyspace, settings, now_ms, written_in or aof_compat.of(settings), progress or Progress()))


def _lines(
    keyspace: Keyspace, settings: Settings, now_ms: int, written_in: AofCompat, progress: Progress
) -> Iterator[bytes]:
    if settings.yes("aof-timestamp-enabled"):
        yield b"#TS:%d\r\n" % (now_ms // 1000)
    for code in keyspace.libraries.values():
        yield pack((b"FUNCTION", b"LOAD", code))
    for index, db in enumerate(keyspace.databases):
        if not db.values:
            continue
        yield pack((b"SELECT", b"%d" % index))
        for key, value in db.values.items():
            progress.keys += 1
            when_ms = db.expires.get(key)
            yield from value_lines(key, value, settings, written_in, progress)
            if isinstance(value, Stream):
                yield from policy_lines.base_lines(key, value, now_ms)
            if when_ms is not None:
                yield pack((b"PEXPIREAT", key, b"%d" % when_ms))
            if key in db.blessed:
                yield rewrite_values.blessing_line(key, written_in.has_8_12)


def value_lines(
    key: bytes, value: Value, settings: Settings, written_in: AofCompat, progress: Progress
) -> Iterator[bytes]:
    """The requests that make a value anew at a key, without the key's time of expiry."""
    if isinstance(value, Stream):
        yield from StreamLines(key, value, written_in, progress).all(settings)
    else:
        progress.steps += 1
        yield from rewrite_values.lines(key, value, written_in)


class StreamLines:
    """The lines of one stream.

    Pending entries above the last id (*rewound pending entries*, where XSETID went back) need ids that no entry may
    have any more: then
    everything pending is claimed from placeholders first, which are trimmed away, and the last id is set back.
    """

    __slots__ = ("_compat", "_groups", "_key", "_progress", "_stream")

    def __init__(self, key: bytes, stream: Stream, written_in: AofCompat, progress: Progress) -> None:
        self._key = key
        self._stream = stream
        self._groups = stream.groups_by_name()
        self._compat = written_in
        self._progress = progress

    def all(self, settings: Settings) -> Iterator[bytes]:
        """Every line, but for the key's expiry."""
        stream, key = self._stream, self._key
        has_strays = any(group.pel.by_id.rewound for group in self._groups)
        if has_strays:
            pending_ids = [block.id_at(slot) for group in self._groups for block, slot in group.pel.by_id.walk(0)]
            yield from self._add_placeholders(_ascending(pending_ids))
            yield from self._pending()
            yield pack((b"XTRIM", key, b"MAXLEN", b"0"))
            absent = _ascending(self._recorded_ids())
            first_ids = [stream.first_id] if stream.length else []
            yield pack((b"XSETID", key, ids.text(min([stream.last_id + 1, *first_ids, *absent[:1]]) - 1)))
        else:
            absent = _ascending([*self._deleted_pending_ids(), *self._recorded_ids()])
            if not stream.length and not absent:
                yield pack((b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"))
        yield from self._entries(absent)
        if not has_strays:
            yield from self._pending()
        if self._compat.idempotence:
            yield from self._producers(settings)
        yield from self._take_away(absent)
        counters = (b"ENTRIESADDED", b"%d" % stream.entries_added, b"MAXDELETEDID", ids.text(stream.max_deleted_id))
        yield pack((b"XSETID", key, ids.text(stream.last_id), *counters))
        yield from group_effects.position_lines(key, stream, self._groups)

    # -- entries ----------------------------------------------------------------------------------------------------

    def _deleted_pending_ids(self) -> list[StreamId]:
        """The ids of deleted pending entries, in no order; there are no rewound pending entries."""
        return [
            block.id_at(slot)
            for group in self._groups
            for block in group.pel.by_id.all_blocks.blocks
            if block.segment.live < len(block.segment)
            for slot in block.slots()
            if not block.segment.is_live(slot)
        ]

    def _recorded_ids(self) -> list[StreamId]:
        """The ids of absent entries that producers' iids stand for."""
        if not self._compat.idempotence:
            return []
        return [
            entry_id
            for iids in self._stream.producers.pids.values()
            for entry_id in iids.values()
            if entry_id <= self._stream.last_id and self._stream.find(entry_id) is None
        ]

    def _entries(self, absent: list[StreamId]) -> Iterator[bytes]:
        """XADD of the live entries and of placeholders, ascending."""
        if not absent:
            for _, lines in self._live():
                yield b"".join(lines)
            return
        live = chain.from_iterable(zip(_ids_of(run), lines, strict=True) for run, lines in self._live())
        placeholders = zip(absent, self._add_placeholders(absent), strict=True)
        for _, line in merge(live, placeholders):
            yield line

    def _live(self) -> Iterator[tuple[SegmentRun, list[bytes]]]:
        """The live entries as XADD lines: an entry is kept as `*2 $id *2n $field ...`, so that slicing is enough."""
        name = b"$4\r\nXADD\r\n" + reply.bulk(self._key)[:-2]
        heads: dict[bytes, bytes] = {}  # by what comes before the fields
        for run in self._stream.runs(0, ids.MAX, self._stream.length):
            segment, start, stop = run
            self._progress.steps += stop - start
            lines = []
            for entry in segment.entry_list(start, stop):
                _, length, entry_id, count, fields = entry.split(b"\r\n", 4)
                head = heads.get(count)
                if head is None:
                    head = heads[count] = b"*%d\r\n%b" % (int(count[1:]) + 3, name)
                lines.append(b"\r\n".join((head, length, entry_id, fields)))
            yield run, lines

    def _add_placeholders(self, absent: list[StreamId]) -> Iterator[bytes]:
        for entry_id in absent:
            yield pack((b"XADD", self._key, ids.text(entry_id), b"x", b"y"))

    def _take_away(self, absent: list[StreamId]) -> Iterator[bytes]:
        """Remove the placeholders: what is below the first live entry by a trim, which leaves no trace."""
        if not absent:
            return
        first = self._stream.first_id
        if not self._stream.length:
            yield pack((b"XTRIM", self._key, b"MAXLEN", b"0"))
            return
        if absent[0] < first:
            yield pack((b"XTRIM", self._key, b"MINID", ids.text(first)))
        between = [ids.text(entry_id) for entry_id in absent if entry_id > first]
        for place in range(0, len(between), MOST_IDS):
            yield pack((b"XDEL", self._key, *between[place : place + MOST_IDS]))

    # -- groups -----------------------------------------------------------------------------------------------------

    def _pending(self) -> Iterator[bytes]:
        """The groups, and what is pending in each."""
        for group in self._groups:
            yield pack((b"XGROUP", b"CREATE", self._key, group.name, ids.text(group.last_id)))
        for group in self._groups:
            yield from GroupLines(self._key, group, self._compat, self._progress).all()

    # -- idempotence ------------------------------------------------------------------------------------------------

    def _producers(self, settings: Settings) -> Iterator[bytes]:
        """Settings are left out only where they are the usual ones, now as at the next start: CONFIG SET may end."""
        producers = self._stream.producers
        usual = settings.number("stream-idmp-duration"), settings.number("stream-idmp-maxsize")
        if {usual, (producers.duration_s, producers.max_size)} != {USUAL_IDMP}:
            duration, size = b"%d" % producers.duration_s, b"%d" % producers.max_size
            yield pack((b"XCFGSET", self._key, b"IDMP-DURATION", duration, b"IDMP-MAXSIZE", size))
        for pid, iids in producers.pids.items():
            for iid, entry_id in iids.items():
                if entry_id <= self._stream.last_id:
                    yield pack((b"XIDMPRECORD", self._key, pid, iid, ids.text(entry_id)))


def _ids_of(run: SegmentRun) -> list[StreamId]:
    segment, start, stop = run
    return [segment.id_at(slot) for slot in range(start, stop)]


def _ascending(entry_ids: list[StreamId]) -> list[StreamId]:
    """Each id once, in order."""
    entry_ids.sort()
    return [entry_id for place, entry_id in enumerate(entry_ids) if not place or entry_ids[place - 1] != entry_id]
