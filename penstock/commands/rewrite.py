"""A fresh base for the log: the shortest requests that give the keyspace as it is.

A real Redis loads what is written here. A pending entry whose entry is gone (a *ghost*) needs its id in the stream
while it is claimed: a placeholder is added in its place, and taken away by a trim or a deletion afterwards. So does
an idempotent id whose entry is gone.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final

from penstock.commands import dialect, group_effects, value_lines
from penstock.commands.dialect import Dialect
from penstock.commands.effects import pack
from penstock.commands.progress import Progress
from penstock.protocol import reply
from penstock.settings import Settings
from penstock.storage import ids
from penstock.storage.groups import Group
from penstock.storage.ids import StreamId
from penstock.storage.keyspace import Keyspace
from penstock.storage.pendinglist import Held
from penstock.storage.streams import Stream

CHUNK_BYTES: Final = 64 * 1024
USUAL_IDMP: Final = (100, 100)  # the defaults of stream-idmp-duration and -maxsize
MOST_IDS: Final = 1000  # in one XCLAIM, XNACK or XDEL


def base_lines(
    keyspace: Keyspace,
    settings: Settings,
    now_ms: int,
    written_in: Dialect | None = None,
    progress: Progress | None = None,
) -> Iterator[bytes]:
    """The base as chunks of whole requests, in the settings' dialect. A key whose time has passed is left out.

    `progress` counts what is done meanwhile.
    """
    return in_chunks(_lines(keyspace, settings, now_ms, written_in or dialect.of(settings), progress or Progress()))


def in_chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines joined to pieces that are worth a write."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _lines(
    keyspace: Keyspace, settings: Settings, now_ms: int, written_in: Dialect, progress: Progress
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
            if when_ms is not None and when_ms < now_ms:
                continue
            if isinstance(value, Stream):
                yield from StreamLines(key, value, written_in, progress).all(settings)
            else:
                progress.steps += 1
                yield from value_lines.lines(key, value, written_in.field_expiry)
            if when_ms is not None:
                yield pack((b"PEXPIREAT", key, b"%d" % when_ms))


class StreamLines:
    """The lines of one stream.

    Pending entries above the last id (*strays*, where XSETID went back) need ids that no entry may have any more: then
    everything pending is claimed from placeholders first, which are trimmed away, and the last id is set back.
    """

    __slots__ = ("_dialect", "_groups", "_key", "_progress", "_stream")

    def __init__(self, key: bytes, stream: Stream, written_in: Dialect, progress: Progress) -> None:
        self._key = key
        self._stream = stream
        self._groups = stream.groups_by_name()
        self._dialect = written_in
        self._progress = progress

    def all(self, settings: Settings) -> Iterator[bytes]:
        """Every line, but for the key's expiry."""
        stream, key = self._stream, self._key
        has_strays = any(group.strays for group in self._groups)
        if has_strays:
            yield from self._add_placeholders(_ascending(self._pending_ids(ghosts_only=False)))
            yield from self._pending()
            yield pack((b"XTRIM", key, b"MAXLEN", b"0"))
            absent = _ascending(self._recorded_ids())
            first_ids = [stream.first_id] if stream.length else []
            yield pack((b"XSETID", key, ids.text(min([stream.last_id + 1, *first_ids, *absent[:1]]) - 1)))
        else:
            absent = _ascending([*self._pending_ids(ghosts_only=True), *self._recorded_ids()])
            if not stream.length and not absent:
                yield pack((b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"))
        yield from self._entries(absent)
        if not has_strays:
            yield from self._pending()
        if self._dialect.idempotence:
            yield from self._producers(settings)
        yield from self._take_away(absent)
        counters = (b"ENTRIESADDED", b"%d" % stream.entries_added, b"MAXDELETEDID", ids.text(stream.max_deleted_id))
        yield pack((b"XSETID", key, ids.text(stream.last_id), *counters))
        for words in group_effects.position_words(key, stream, self._groups):
            yield pack(words)

    # -- entries ----------------------------------------------------------------------------------------------------

    def _pending_ids(self, ghosts_only: bool) -> list[StreamId]:
        """The ids of what is pending, in no order; of ghosts only, which need a placeholder in any case."""
        return [
            block.id_at(slot)
            for group in self._groups
            for block, slot in group.walk(0)
            if not ghosts_only or not block.segment.is_live(slot)
        ]

    def _recorded_ids(self) -> list[StreamId]:
        """The ids of absent entries that producers' iids stand for."""
        if not self._dialect.idempotence:
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
            for _, line in self._live():
                yield line
            return
        placeholders = zip(absent, self._add_placeholders(absent), strict=True)
        for _, line in merge(self._live(), placeholders):
            yield line

    def _live(self) -> Iterator[tuple[StreamId, bytes]]:
        """The live entries as XADD lines: an entry is kept as `*2 $id *2n $field ...`, so that slicing is enough."""
        name = b"$4\r\nXADD\r\n" + reply.bulk(self._key)
        for run in self._stream.runs(0, ids.MAX, self._stream.length):
            segment = run.segment
            self._progress.steps += run.stop - run.start
            for slot in range(run.start, run.stop):
                entry = segment.entry(slot)
                star = entry.index(b"*", 4)  # an id has none
                end = entry.index(b"\r\n", star)
                count = int(entry[star + 1 : end]) + 3
                yield segment.id_at(slot), b"*%d\r\n%b%b%b" % (count, name, entry[4:star], entry[end + 2 :])

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
        """The groups, and what is pending in each: in time order over all consumers, then the zone.

        Where nothing can be released, the zone comes first, claimed at time 0.
        """
        for group in self._groups:
            yield pack((b"XGROUP", b"CREATE", self._key, group.name, ids.text(group.last_id)))
        for group in self._groups:
            if not self._dialect.releases:
                yield from self._release_lines(group, group.zone())
            yield from self._claim_lines(group, group.in_time_order())
            yield from self._idle_consumers(group)
            if self._dialect.releases:
                yield from self._release_lines(group, group.zone())

    def _claim_lines(self, group: Group, owned: list[Held]) -> Iterator[bytes]:
        """One XCLAIM for each run of equal consumer, time and count: their order is CLAIM's order."""
        last = ids.text(group.last_id)
        run: list[bytes] = []
        alike = (0, 0, 0)
        for block, slot in owned:
            this = (block.owners[slot], block.times[slot], block.counts[slot])
            if run and (this != alike or len(run) == MOST_IDS):
                yield self._claim(group, run, alike, last)
                run = []
            alike = this
            run.append(ids.text(block.id_at(slot)))
        if run:
            yield self._claim(group, run, alike, last)

    def _claim(self, group: Group, run: list[bytes], alike: tuple[int, int, int], last: bytes) -> bytes:
        self._progress.steps += len(run)
        owner, time_ms, count = alike
        consumer = group.numbers[owner]
        assert consumer is not None, "time order holds what has an owner"
        options = (b"TIME", b"%d" % time_ms, b"RETRYCOUNT", b"%d" % count, b"FORCE", b"JUSTID", b"LASTID", last)
        return pack((b"XCLAIM", self._key, group.name, consumer.name, b"0", *run, *options))

    def _idle_consumers(self, group: Group) -> Iterator[bytes]:
        for consumer in group.consumers_by_name():
            if not consumer.pending:
                yield pack((b"XGROUP", b"CREATECONSUMER", self._key, group.name, consumer.name))

    def _release_lines(self, group: Group, released: list[Held]) -> Iterator[bytes]:
        """One line for each run of equal count, in order of release."""
        run: list[bytes] = []
        alike = 0
        for block, slot in released:
            if run and (block.counts[slot] != alike or len(run) == MOST_IDS):
                yield self._release(group, run, alike)
                run = []
            alike = block.counts[slot]
            run.append(ids.text(block.id_at(slot)))
        if run:
            yield self._release(group, run, alike)

    def _release(self, group: Group, run: list[bytes], count: int) -> bytes:
        self._progress.steps += len(run)
        return pack(group_effects.release_words(self._dialect, self._key, group, run, count))

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


def _ascending(entry_ids: list[StreamId]) -> list[StreamId]:
    """Each id once, in order."""
    entry_ids.sort()
    return [entry_id for place, entry_id in enumerate(entry_ids) if not place or entry_ids[place - 1] != entry_id]
