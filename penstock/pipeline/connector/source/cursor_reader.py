"""The streaming source that reads ranges of ids, `(start, end]` of each stream, outside any consumer group.

New entries always get ids above the stream's last id, and entries never change. So a batch that is run again has the
same rows, and nothing needs to be acknowledged. If the option `group` is given, that group only shows the progress.
"""

from bisect import bisect
from collections.abc import Set
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.pipeline.connector.connection.client import Request, now_s, pause_s
from penstock.pipeline.connector.connection.stream_info import StreamState, stream_states
from penstock.pipeline.connector.source import group_progress, rate_limit, source_metrics
from penstock.pipeline.connector.source.batch_reader import divide_evenly, place_after
from penstock.pipeline.connector.source.data_loss import (
    beginning,
    count_loss,
    entries_after,
    find_loss,
    is_earlier,
    late_loss,
    uncounted_since,
)
from penstock.pipeline.connector.source.id_ranges import IdRange, cut, how_many, shares
from penstock.pipeline.connector.source.offsets import Places, Position, StreamOf, cursor_json, cursor_of
from penstock.pipeline.connector.source.partition_reader import Task
from penstock.pipeline.connector.source.rate_limit import Counted, Counting
from penstock.pipeline.connector.source.source_metrics import ENTRIES_MISSING, METRICS, STREAMS_MISSING
from penstock.pipeline.connector.source.source_options import EARLIEST, LATEST
from penstock.pipeline.connector.source.stream_reader import StreamReader
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

LOOK_EVERY_S: Final = 2.0  # XREAD BLOCK wakes an idle query for new entries; deletions are seen by polling only


class CursorReader(StreamReader):
    """`groupMode=cursor`, also where no group is given."""

    def _begin(self) -> None:
        super()._begin()
        self._initial: dict[str, Any] | None = None
        self._start: dict[str, Any] = {}  # the offset asked about last, which is the same while the query is idle
        self._places = Places()  # those of `_start`
        self._next: tuple[dict[str, Any], Places, Set[StreamOf]] | None = None  # the newest offset, and its batch
        # Of `_places`: what moved, or changed at the server, since it was checked; where it was found that a stream
        # begins at another place, or that there is a new one; the streams with entries to read.
        self._unchecked: set[StreamOf] = set()
        self._adjusted: dict[StreamOf, Position] = {}
        self._ahead: set[StreamOf] = set()
        self._refreshed_s = 0.0
        self._idle = False
        self._short_since_s: float | None = None  # since when there has been something, but less than a batch
        self._waiting: tuple[Any, dict[str, Request]] | None = None  # the requests that block, and what they depend on
        self._published: dict[StreamOf, StreamId] = {}
        self._served_last: StreamOf = ("", b"")  # where there were more streams than entries in a batch
        self._found: dict[StreamOf, Position] = {}  # where streams begin that were found on the way and not planned yet
        self._seen: dict[StreamOf, StreamState] = {}  # what streams were when they were checked
        self._ends: dict[str, Any] | None = None  # the ends of all streams, for the progress
        self._group_checked = self.options.group is None or self.options.group_force

    # -- where it begins ----------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        if self._initial is None:
            if not self.available_now:
                self.refresh_states()
            places = {}
            for name, keys in self.keys().items():
                for key in keys:
                    places[name, key] = self._initial_place(name, key)
            self._initial = self.names.write(cursor_json(Places(places).after({})))
            self._seen = dict(self.states)
            self._look_for_missing()
        return self._initial

    def _initial_place(self, name: str, key: bytes) -> Position:
        state = self.states.get((name, key))
        if state is None:
            return Position(ids.ZERO, 0)  # whatever comes into it will be new
        start = self.options.start.of(key.decode(errors="surrogateescape"))
        if start == EARLIEST:
            return beginning(state)
        if start == LATEST:
            return rate_limit.end_position(state)
        after = place_after(self.connections.asking[name], key, state, start, self.options.group)
        behind = entries_after(after, state)
        if after > state.last or behind is None:
            return Position(after, None, seen=state)
        return Position(after, state.added - behind, seen=state)

    # -- how far it goes ----------------------------------------------------------------------------------------------

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._refresh()
        self.available_now = True

    def _refresh(self) -> None:
        changed = self.refresh_states()
        self._unchecked |= changed
        self._refreshed_s = now_s()
        if changed:
            self._ends = None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The end of the next batch, or `start` if there is nothing to read.

        Spark calls this only after everything up to `start` is complete; `commit` may come late or never.
        """
        if start != self._start:
            self._move_to(start)
        is_new = self.count_missing(start)
        if self._idle and not is_new and not self._wait() and now_s() - self._refreshed_s < LOOK_EVERY_S:
            return start
        found = self._plan(limit)
        if found is None and is_new:
            found = self._offset({})
        if found is None and not self._idle and not self.available_now and self._short_since_s is None:
            self._idle = True
            if self._wait():
                found = self._plan(limit)
        if found is None:
            self._idle = not self.available_now
            return start
        self._idle = False
        return found

    def _move_to(self, start: dict[str, Any]) -> None:
        """Take over the places of an offset. Those of the newest one need not be read from it."""
        if self._next is not None and start == self._next[0]:
            _, places, moved = self._next
        else:
            places = self._places_in(start)
            moved = places.streams() | self.states.keys()
            self._ahead.clear()
            self._next = None
        self._publish(places, moved)
        self._start, self._places = start, places
        self._unchecked |= moved
        self._adjusted.clear()
        self._waiting = self._ends = None

    def _places_in(self, offset: dict[str, Any]) -> Places:
        return cursor_of(self.names.read(offset), self._places.base)

    def _place(self, stream: StreamOf) -> Position:
        """Where the next batch begins in a stream that was checked."""
        place = self._adjusted.get(stream) or self._places.get(stream)
        assert place is not None, "it was checked"
        return place

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The ends of the streams when they were last looked at, and metrics, for the query's progress."""
        missing = self.missing()
        if not self.states and not missing[ENTRIES_MISSING] and not missing[STREAMS_MISSING]:
            return None
        planned = self._places if self._next is None else self._next[1]
        if self._ends is None:
            # Streams of the base are where the base says, unless they are ahead.
            streams = planned.at.keys() | self._ahead if planned.base.places else self.states.keys()
            states = {stream: self.states[stream] for stream in streams & self.states.keys()}
            ends = {stream: Position(state.last, state.added) for stream, state in states.items()}
            self._ends = self.names.write(cursor_json(Places(ends, planned.base)))
        behind = source_metrics.behind(planned, self.states, self._ahead)
        return self._ends | {METRICS: behind | missing}

    def _plan(self, limit: ReadLimit) -> dict[str, Any] | None:
        """The end of the next batch; None if there are no new entries, or fewer than minEntriesPerTrigger."""
        if not self.available_now:
            self._refresh()
        moved = self._check_changed()
        self._look_for_missing()
        begin = {stream: self._place(stream) for stream in sorted(self._ahead)}
        weights = {stream: rate_limit.backlog(place, self.states[stream]) for stream, place in begin.items()}
        if not moved and (not begin or self._too_few(sum(weights.values()))):
            return None
        granted = self._granted(limit, begin, weights)
        wanted = [stream for stream in begin if granted[stream] or not weights[stream]]
        return self._offset(self._ends_of(wanted, begin, granted, weights))

    def _offset(self, ends: dict[StreamOf, Position]) -> dict[str, Any]:
        """The offset of a batch that ends at these places, and begins elsewhere only where something was adjusted."""
        batch = {stream: place.bare() for stream, place in self._adjusted.items()} | ends
        is_first = self._start == self._initial  # which is another offset when batch 0 is run again
        if is_first:
            batch = {stream: place.bare() for stream, place in self._places.at.items()} | batch
        for stream, end in batch.items():
            known, begin = self._places.get(stream), self._place(stream)
            if is_first or known is None or (begin.id, begin.added) != (known.id, known.added):
                batch[stream] = replace(end, begin=(begin.id, begin.added))
        places = self._places.after(batch)
        offset = self.with_missing(self.names.write(cursor_json(places)))
        self._next = offset, places, batch.keys()
        self._ends = None
        return offset

    def _granted(
        self, limit: ReadLimit, begin: dict[StreamOf, Position], weights: dict[StreamOf, int]
    ) -> dict[StreamOf, int]:
        """How many entries of each stream are in the next batch, by maxEntriesPerTrigger and maxBytesPerTrigger.

        If there are more streams than entries, some get one entry, and the others one of the next batches.
        """
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else sum(weights.values())
        if self.options.max_bytes_per_trigger is not None:
            some: dict[str, list[tuple[bytes, Position, StreamState]]] = {}
            for stream in sorted(begin, key=lambda one: -weights[one]):
                some.setdefault(stream[0], []).append((stream[1], begin[stream], self.states[stream]))
            most = min(most, max(self.options.max_bytes_per_trigger // self.mean_bytes(some), 1))
        turns = [stream for stream in begin if weights[stream]]
        if len(turns) > most:
            at = bisect(turns, self._served_last)
            turns = (turns[at:] + turns[:at])[:most]
            self._served_last = turns[-1]
        granted = shares(most, [weights[stream] for stream in turns])
        return dict.fromkeys(begin, 0) | dict(zip(turns, granted, strict=True))

    def _ends_of(
        self,
        wanted: list[StreamOf],
        begin: dict[StreamOf, Position],
        granted: dict[StreamOf, int],
        weights: dict[StreamOf, int],
    ) -> dict[StreamOf, Position]:
        """Where a batch of about `granted` entries ends in each stream, and how it is split into tasks.

        Where there will be several tasks, none of them could tell how many entries are missing. So they are counted
        here where some may be: some were deleted one by one, there are too few, or the last one that was read is gone.
        """
        total = sum(granted[stream] for stream in wanted)
        share = -(-total // self._tasks(total))
        parts = {stream: -(-granted[stream] // max(share, 1)) for stream in wanted}
        ends: dict[StreamOf, Position] = {}
        to_count: dict[str, list[Counting]] = {}
        for stream in wanted:
            (name, key), state, place = stream, self.states[stream], begin[stream]
            is_limited = granted[stream] < weights[stream]
            if not is_limited and not (parts[stream] > 1 and self._is_doubtful(stream, place)):
                ends[stream] = self._whole(stream, place, granted[stream], parts[stream])
                continue
            most_bytes = self.options.max_bytes_per_trigger if is_limited else None
            if most_bytes is not None:
                most_bytes = most_bytes * granted[stream] // total
            entries = granted[stream] if is_limited else state.length
            to_count.setdefault(name, []).append(Counting(key, place, state, entries, most_bytes))
        for name, some in to_count.items():
            client, sizing = self.connections.asking[name], self.options.sizing
            counted = rate_limit.count_entries(client, some, sizing.fetch, self.options.fetch_bytes)
            # What was removed before it was counted is in no count, and the looks before do not tell of it.
            now = stream_states(client, counted)
            for key, found in counted.items():
                stream = (name, key)
                last = None if self.available_now else now.get(key)  # its states are those of its beginning
                if last is not None and not is_earlier(last, self.states[stream]):
                    self._seen[stream] = last
                if not found.is_end:
                    since = uncounted_since(begin[stream], self.states[stream], now.get(key))
                    found = replace(found, end=replace(found.end, since=since))
                ends[stream] = self._counted_end(stream, begin[stream], found, now.get(key), parts[stream])
        return ends

    def _whole(self, stream: StreamOf, place: Position, entries: int, parts: int) -> Position:
        """The end of a batch that has all there is of a stream."""
        (name, key), state = stream, self.states[stream]
        end = rate_limit.end_position(state)
        cuts = rate_limit.sampled_cuts(self.connections.asking[name], key, place.id, end, entries, parts)
        return replace(end, cuts=cuts, seen=place.seen or state if place.added is None else state)

    def _counted_end(
        self, stream: StreamOf, place: Position, counted: Counted, now: StreamState | None, parts: int
    ) -> Position:
        """The end of a batch with counted entries; what is missing is reported, and it begins behind that.

        `now`: the stream after they were counted, None if it is gone.
        """
        state = self.states[stream]
        lost = count_loss(place, state, counted.entries, now) if counted.is_end else None
        if lost is not None:
            self.report_loss(stream, lost)
            self._adjusted[stream] = begin = lost.resume_at or place
            if begin.id != place.id:  # a stream made anew, from its beginning, which was not counted
                return begin
        cuts, counts = rate_limit.counted_cuts(counted, parts)
        return replace(counted.end, cuts=cuts, counts=counts, seen=state)

    def _is_doubtful(self, stream: StreamOf, place: Position) -> bool:
        """Whether entries may be missing after a position that has others before it."""
        (name, key), state, at = stream, self.states[stream], ids.text(place.id)
        if place.added is None or entries_after(place.id, state) is not None:
            return False
        if (
            place.since is not None
            or place.counted_from <= state.max_deleted
            or state.added - place.added >= state.length
        ):
            return True
        return not self.connections.asking[name].call("XRANGE", key, at, at)

    def _check_changed(self) -> bool:
        """Report losses of streams that changed, and move their positions behind these; whether any has moved.

        Also finds the beginnings of new streams.
        """
        gone = [stream for stream in self._unchecked if stream not in self.states]
        absent = self._absent({stream for stream in gone if self._places.get(stream) is not None})
        moved = False
        for stream in sorted(self._unchecked):
            if stream in self.states or stream in absent:
                moved |= self._check(stream, self.states.get(stream))
            else:
                self._forget(stream)
        self._unchecked = {stream for stream in gone if stream not in absent}
        return moved

    def _check(self, stream: StreamOf, state: StreamState | None) -> bool:
        """Report a loss of a stream, and move its position behind it; returns whether the position has moved."""
        known = place = self._places.get(stream)
        if place is None:
            assert state is not None, "a stream that was not read is not missed"
            if stream not in self._found:
                self._found[stream] = beginning(state)
                late = late_loss(state) if self.options.keys.pattern is not None else None
                if late is not None:
                    self.report_loss(stream, late)
            place = self._found[stream]
        lost = find_loss(place, state, self._seen.get(stream))
        begin = place
        if lost is not None:
            self.report_loss(stream, lost)
            begin = lost.resume_at or place
            if begin.added is not None:
                begin = replace(begin, seen=state)
        moved = begin != place
        self._forget(stream)
        if state is not None:
            behind = entries_after(begin.id, state)
            if begin.added is None and behind is not None and state.last >= begin.id:
                begin = replace(begin, added=state.added - behind)
            if state.last > begin.id:
                self._ahead.add(stream)
            self._seen[stream] = state
        if begin != known:
            self._adjusted[stream] = begin
        return moved

    def _forget(self, stream: StreamOf) -> None:
        """Forget the results of the last check of a stream."""
        self._adjusted.pop(stream, None)
        self._ahead.discard(stream)
        self._seen.pop(stream, None)

    def _absent(self, gone: set[StreamOf]) -> set[StreamOf]:
        """Those of the streams without a state that belong to the query still, and are not there."""
        asking, wanted = self.connections.asking, self.options.keys
        gone = {stream for stream in gone if stream[0] in asking}
        if wanted.pattern is None:
            named = {name.encode() for name in wanted.names}
            return {stream for stream in gone if stream[1] in named}
        # A stream may be there, and the pattern of this run may be another.
        for name, client in asking.items():
            keys = [key for where, key in gone if where == name]
            gone -= {(name, key) for key in stream_states(client, keys)}
        return gone

    def _look_for_missing(self) -> None:
        if self.options.keys.names:
            self.missing_streams.look({key for _, key in self.states})

    def _too_few(self, entries: int) -> bool:
        """Whether to wait for more entries: fewer than minEntriesPerTrigger, and maxTriggerDelay has not passed."""
        least = self.options.min_per_trigger
        if least is None or self.available_now or entries >= least:
            self._short_since_s = None
            return False
        if self._short_since_s is None:
            self._short_since_s = now_s()
        if now_s() - self._short_since_s >= self.options.max_delay_ms / 1000:
            self._short_since_s = None
            return False
        return True

    def _tasks(self, entries: int) -> int:
        sizing = self.options.sizing
        return how_many(entries, sizing.entries_per_partition, sizing.min_partitions, sizing.max_partitions)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self) -> bool:
        """Block, up to `pollTimeout`, until there are new entries; False if there are none."""
        poll_ms = self.options.poll_ms
        about = self.keys(), self._short_since_s is None
        if self._waiting is None or self._waiting[0] != about:
            requests: dict[str, Request] = {}
            for name, keys in about[0].items():
                if keys:
                    after = [ids.text(self._known((name, key))) for key in keys]
                    requests[name] = ["XREAD", "COUNT", 1, "BLOCK", max(poll_ms, 1), "STREAMS", *keys, *after]
            self._waiting = about, requests
        if not self._waiting[1]:
            pause_s(poll_ms / 1000)
            return True  # a pattern that has found nothing yet: look again
        replies = self.connections.wait(self._waiting[1], poll_ms, retry=True)
        return any(reply is not None for reply in replies.values())

    def _known(self, stream: StreamOf) -> StreamId:
        """The id after which to wait: the last one read, or the last one seen while entries are being collected."""
        state, place = self.states.get(stream), self._places.get(stream)
        if self._short_since_s is not None and state is not None:
            return state.last
        if place is None or (state is not None and state.last < place.id):
            return ids.ZERO if state is None else state.last
        return place.id

    # -- the tasks ----------------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        """The tasks of a batch. They depend on the two offsets and the options only, so that a rerun has the same."""
        begin, ends = self._places_in(start), self._places_in(end)  # streams of the base are in no batch
        ranges = []
        for stream, until in sorted(ends.at.items()):
            place = Position(*until.begin) if until.begin is not None else begin.get(stream) or Position(ids.ZERO, None)
            if until.id < place.id:
                place = Position(ids.ZERO, None)  # a checkpoint of before `begin`: the stream was made anew
            ranges += self._ranges(stream, place, until)
        if not ranges:
            return []
        return self.tasks(ranges, self._tasks(sum(one.weight for one in ranges)))

    def _ranges(self, stream: StreamOf, place: Position, until: Position) -> list[IdRange]:
        name, key = stream
        spans = cut(place.id, until.id, until.cuts)
        if not spans:
            return []
        entries = None if place.added is None or until.added is None else until.added - place.added
        if entries is not None and entries < 0:
            entries = None
        if len(until.counts) == len(spans):
            counts: list[int | None] = list(until.counts)
        else:
            counts = [entries] if len(spans) == 1 else [None] * len(spans)
        spare = 0
        if until.seen is not None and entries is not None and until.seen.last == until.id:
            spare = max(until.seen.length - entries, 0)
        share = self.options.sizing.entries_per_partition if entries is None else divide_evenly(entries, len(spans))
        return [
            IdRange(name, key, after, upto, max(share, 1), count, None, until.seen, spare, place.since)
            for (after, upto), count in zip(spans, counts, strict=True)
        ]

    # -- the bookmark -------------------------------------------------------------------------------------------------

    def _publish(self, places: Places, moved: Set[StreamOf]) -> None:
        group = self.options.group
        if group is None:
            return
        for name, client in self.connections.asking.items():
            if not self._group_checked:
                group_progress.refuse_shared_group(client, group, self.keys()[name])
            found = {stream: place for stream in moved if stream[0] == name and (place := places.get(stream))}
            changed = {stream: one for stream, one in found.items() if self._published.get(stream) != one.id}
            if changed:
                group_progress.publish(client, group, {key: place for (_, key), place in changed.items()})
            self._published |= {stream: place.id for stream, place in changed.items()}
        self._group_checked = True
