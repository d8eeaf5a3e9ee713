"""The streaming source that reads ranges of ids, `(start, end]` of each stream, outside any consumer group.

New entries always get ids above the stream's last id, and entries never change. So a batch that is run again has the
same rows, and nothing needs to be acknowledged. If the option `group` is given, that group only shows the progress.
"""

from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.pipeline.connector.connection.client import Request, now_s, pause_s
from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.connector.source import group_progress, rate_limit, source_metrics
from penstock.pipeline.connector.source.batch_reader import divide_evenly, first_ids, place_after
from penstock.pipeline.connector.source.data_loss import find_loss
from penstock.pipeline.connector.source.id_ranges import IdRange, cut, how_many, pack, shares
from penstock.pipeline.connector.source.offsets import Position, StreamOf, cursor_json, cursor_of
from penstock.pipeline.connector.source.partition_reader import Task
from penstock.pipeline.connector.source.source_metrics import METRICS
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
        self._refreshed_s = 0.0
        self._idle = False
        self._short_since_s: float | None = None  # since when there has been something, but less than a batch
        self._published: dict[StreamOf, StreamId] = {}
        self._planned: dict[StreamOf, Position] = {}  # the end of the newest batch
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
            self._initial = cursor_json(places)
        return self._initial

    def _initial_place(self, name: str, key: bytes) -> Position:
        state = self.states.get((name, key))
        if state is None:
            return Position(ids.ZERO, 0)  # whatever comes into it will be new
        start = self.options.start.of(key.decode(errors="surrogateescape"))
        if start == EARLIEST:
            return earliest(state)
        if start == LATEST:
            return Position(state.last, state.added)
        after = place_after(self.connections.asking[name], key, state, start, self.options.group)
        return Position(after, state.added if after == state.last else None)

    # -- how far it goes ----------------------------------------------------------------------------------------------

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self.refresh_states()
        self.available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The end of the next batch, or `start` if there is nothing to read.

        Spark calls this only after everything up to `start` is complete; `commit` may come late or never.
        """
        places = self._planned = cursor_of(start)
        self._publish(places)
        if self._idle and not self._wait(places) and now_s() - self._refreshed_s < LOOK_EVERY_S:
            return start
        found = self._plan(places, limit)
        if found is None and not self._idle and not self.available_now and self._short_since_s is None:
            self._idle = True
            if self._wait(places):
                found = self._plan(places, limit)
        if found is None:
            self._idle = not self.available_now
            return start
        self._idle = False
        return found

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The ends of the streams when they were last looked at, and metrics, for the query's progress."""
        if not self.states:
            return None
        ends = {stream: rate_limit.end_position(state) for stream, state in self.states.items()}
        return cursor_json(ends) | {METRICS: source_metrics.behind(self._planned, self.states)}

    def _plan(self, places: dict[StreamOf, Position], limit: ReadLimit) -> dict[str, Any] | None:
        """The end of the next batch; None if there are no new entries, or fewer than minEntriesPerTrigger."""
        if not self.available_now:
            self.refresh_states()
            self._refreshed_s = now_s()
        begin = self._checked(places)
        weights = {stream: rate_limit.backlog(begin[stream], state) for stream, state in self.states.items()}
        ahead = [stream for stream in sorted(self.states) if self.states[stream].last > begin[stream].id]
        if not ahead or self._too_few(sum(weights.values())):
            return None
        granted = dict(weights)
        if isinstance(limit, ReadMaxRows):
            granted = dict(zip(ahead, shares(limit.max_rows, [weights[stream] for stream in ahead]), strict=True))
        ends = {
            stream: Position(place.id, place.added) for stream, place in begin.items()
        }  # without the last batch's cuts
        marks: dict[StreamOf, list[StreamId]] = {}
        for stream in ahead:
            name, key = stream
            if granted[stream] >= weights[stream]:
                ends[stream], marks[stream] = rate_limit.end_position(self.states[stream]), []
            elif granted[stream]:
                ends[stream], marks[stream] = rate_limit.position_after(
                    self.connections.asking[name],
                    key,
                    begin[stream],
                    self.states[stream],
                    granted[stream],
                    self.options.sizing.fetch,
                )
        self._cut(begin, ends, {stream: granted[stream] for stream in marks}, marks)
        self._planned = ends
        return cursor_json(ends)

    def _checked(self, places: dict[StreamOf, Position]) -> dict[StreamOf, Position]:
        """The start of the next batch: adds new streams, and reports losses and moves behind them."""
        begin = dict(places)
        for stream, state in self.states.items():
            if stream not in begin:
                begin[stream] = earliest(state)
                continue
            lost = find_loss(begin[stream], state)
            if lost is not None:
                self.report_loss(*stream, lost.text)
                begin[stream] = lost.resume_at
        return begin

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

    def _cut(
        self,
        begin: dict[StreamOf, Position],
        ends: dict[StreamOf, Position],
        weights: dict[StreamOf, int],
        marks: dict[StreamOf, list[StreamId]],
    ) -> None:
        """Split streams with more than one task's share of entries; the splits are part of the offset."""
        total = sum(weights.values())
        share = -(-total // self._tasks(total))
        for stream, weight in weights.items():
            name, key = stream
            end = ends[stream]
            cuts = rate_limit.cuts_of(
                self.connections.asking[name],
                key,
                begin[stream].id,
                end,
                marks[stream],
                weight,
                -(-weight // max(share, 1)),
            )
            ends[stream] = Position(end.id, end.added, cuts)

    def _tasks(self, entries: int) -> int:
        sizing = self.options.sizing
        return how_many(entries, sizing.entries_per_partition, sizing.min_partitions, sizing.max_partitions)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self, places: dict[StreamOf, Position]) -> bool:
        """Block, up to `pollTimeout`, until there are new entries; False if there are none."""
        poll_ms = self.options.poll_ms
        requests: dict[str, Request] = {}
        for name, keys in self.keys().items():
            if keys:
                after = [ids.text(self._known(places, name, key)) for key in keys]
                requests[name] = ["XREAD", "COUNT", 1, "BLOCK", max(poll_ms, 1), "STREAMS", *keys, *after]
        if not requests:
            pause_s(poll_ms / 1000)
            return True  # a pattern that has found nothing yet: look again
        replies = self.connections.wait(requests, poll_ms, retry=True)
        return any(reply is not None for reply in replies.values())

    def _known(self, places: dict[StreamOf, Position], name: str, key: bytes) -> StreamId:
        """The id after which to wait: the last one read, or the last one seen while entries are being collected."""
        state = self.states.get((name, key))
        if self._short_since_s is not None and state is not None:
            return state.last
        place = places.get((name, key))
        if place is None or (state is not None and state.last < place.id):
            return ids.ZERO if state is None else state.last
        return place.id

    # -- the tasks ----------------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        """The tasks of a batch. They depend on the two offsets and the options only, so that a rerun has the same."""
        begin, ends = cursor_of(start), cursor_of(end)
        ranges = []
        for stream in sorted(ends):
            until = ends[stream]
            place = begin.get(stream, Position(ids.ZERO, None))
            if until.id < place.id:
                place = Position(ids.ZERO, None)  # the stream was deleted and created again
            ranges += self._ranges(stream, place, until)
        if not ranges:
            return []
        return [Task(some) for some in pack(self._with_firsts(ranges), self._tasks(sum(one.weight for one in ranges)))]

    def _ranges(self, stream: StreamOf, place: Position, until: Position) -> list[IdRange]:
        name, key = stream
        spans = cut(place.id, until.id, until.cuts)
        if not spans:
            return []
        counted = place.added is not None and until.added is not None and until.added >= place.added
        entries = until.added - place.added if counted and until.added is not None and place.added is not None else 0
        if len(spans) == 1:
            return [IdRange(name, key, place.id, until.id, max(entries, 1), exact=counted)]
        weight = divide_evenly(entries, len(spans)) if counted else self.options.sizing.entries_per_partition
        return [IdRange(name, key, after, upto, max(weight, 1)) for after, upto in spans]

    def _with_firsts(self, ranges: list[IdRange]) -> list[IdRange]:
        """The ranges; those without an exact count get their first id, by which a task notices that it was trimmed."""
        if not self.options.fail_on_loss:
            return ranges
        found = []
        for name, client in self.connections.asking.items():
            some = [id_range for id_range in ranges if id_range.endpoint == name]
            firsts = first_ids(client, [id_range for id_range in some if not id_range.exact])
            found += [
                IdRange(name, one.key, one.after, one.upto, one.weight, one.exact, firsts.get((one.key, one.after)))
                for one in some
            ]
        return found

    # -- the bookmark -------------------------------------------------------------------------------------------------

    def _publish(self, places: dict[StreamOf, Position]) -> None:
        group = self.options.group
        if group is None:
            return
        for name, client in self.connections.asking.items():
            if not self._group_checked:
                group_progress.refuse_shared_group(client, group, self.keys()[name])
            moved = {
                key: place
                for (where, key), place in places.items()
                if where == name and self._published.get((where, key)) != place.id
            }
            if moved:
                group_progress.publish(client, group, moved)
        self._group_checked = True
        self._published = {stream: place.id for stream, place in places.items()}


def earliest(state: StreamState) -> Position:
    """The position before a stream's first entry. Entries trimmed earlier count neither as read nor as lost."""
    counted = state.max_deleted < state.first or not state.length
    return Position(ids.ZERO, state.added - state.length if counted else None)
