"""The streaming source that is a consumer in a group (`groupMode=shared`), beside ordinary workers.

The driver calls XREADGROUP, and the delivered ids are in Spark's offset log before any executor runs. Executors read
entries by id, so a batch that is run again has the same rows. Entries delivered to a driver that died before the offset
was written are found in the pending entries list. A batch is acknowledged once Spark has completed it.
"""

import secrets
import sys
from dataclasses import replace
from typing import Any, Final

from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, mapping, now_s, pause_s, text_of
from penstock.pipeline.connector.connection.stream_info import ABSENT, StreamState, refused, stream_states
from penstock.pipeline.connector.source.claims import PENDING_PAGE, POLICY, Claims
from penstock.pipeline.connector.source.data_loss import (
    WENT_BACK,
    Loss,
    beginning,
    entries_after,
    find_loss,
    group_loss,
    late_loss,
    pending_loss,
    unknown_deletions,
)
from penstock.pipeline.connector.source.id_ranges import IdRange, how_many
from penstock.pipeline.connector.source.offsets import (
    Delivered,
    DeliveredIds,
    Position,
    StreamOf,
    delivered_json,
    delivered_of,
)
from penstock.pipeline.connector.source.partition_reader import Task
from penstock.pipeline.connector.source.sole_consumer import SoleConsumer
from penstock.pipeline.connector.source.source_metrics import ENTRIES_BEHIND, METRICS, NOWHERE, REDELIVERED, STREAMS
from penstock.pipeline.connector.source.source_options import EARLIEST, LATEST
from penstock.pipeline.connector.source.stream_reader import StreamReader
from penstock.pipeline.errors import PipelineError, ServerGone
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

MOST_A_KEY: Final = 10_000  # entries of a stream in one batch, where no option says how many
ACKED_AT_ONCE: Final = 1_000
METRICS_EVERY_S: Final = 2.0
NO_STREAM: Final = b"ERR The XGROUP subcommand requires the key to exist"
QUEUED: Final = b"QUEUED"  # the reply within a transaction
JOIN_MISSING_S: Final = 1.0  # how often streams are looked for that are named and not there


class SharedReader(StreamReader):
    """One consumer of the group; entries delivered to it are this query's until they are acknowledged."""

    def _begin(self) -> None:
        super()._begin()
        self._name: str | None = None
        self._sole: SoleConsumer | None = None
        self._joined: dict[str, list[bytes]] = {}  # the streams that have the group
        self._join_due_s = 0.0
        self._first_join = True
        self._recover = True  # our pending list may hold what no offset speaks of
        self._acknowledged_up_to = -1
        # The ids of the newest offset, so that they need not be looked up when it is acknowledged.
        self._newest_ids: dict[StreamOf, list[bytes]] = {}
        self._newest_number = -1
        self._idle = False
        self._target: dict[StreamOf, StreamId] = {}
        self._places: dict[StreamOf, Position] = {}  # how far the group had read when we last read
        self._seen: dict[StreamOf, StreamState] = {}  # what streams were at the last look
        self._deleted: dict[StreamOf, StreamId] = {}  # max-deleted-entry-id when all that is missing was told of
        self._with_policy: set[StreamOf] = set()  # Penstock chooses what the group hands out, in any order
        self._moved = False  # a loss was told of: the next offset says so, with or without deliveries
        self._claims = (
            None if self.options.claim_min_idle_ms is None else Claims(self.group, self.options.claim_min_idle_ms)
        )
        self._redelivered = 0
        self._metrics: dict[str, int] | None = None
        self._metrics_due_s = 0.0
        self._reported: dict[str, Any] = {}

    @property
    def group(self) -> str:
        assert self.options.group is not None, "the options were checked"
        return self.options.group

    # -- Spark asks ---------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        self._name = self._name or self.options.consumer or f"spark-{secrets.token_hex(4)}"
        return delivered_json(Delivered(0, self._name))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self.refresh_states()
        self._target = {stream: state.last for stream, state in self.states.items()}
        self.available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The next deliveries, or `start` if there are none. Acknowledges `start`: its batch is complete."""
        done = delivered_of(self.names.read(start))
        self._name = done.consumer
        if self._sole is None:
            self._sole = SoleConsumer(self.group, done.consumer, self.options.servers.access.retry_s)
        self._sole.check(self.connections)
        self._moved |= self.count_missing(start)
        if not done.number and self.options.consumer is None:
            # Until an offset has the name that was made up, a driver that dies takes it along, and nothing delivered
            # to it would be found by the next one.
            self._join_groups(done)
            return self.names.write(delivered_json(Delivered(1, done.consumer)))
        self._acknowledge(done)
        try:
            taken = self._take(done, limit)
        except ServerGone:
            if not self._recover:
                self._recover = True  # entries delivered before the connection broke are pending for us
                return start
            raise
        if not taken and not self._moved:
            self._idle = not self.available_now
            return start
        self._moved = False
        self._idle = False
        found = self.with_missing(self.names.write(delivered_json(self._offset(done, taken))))
        self._reported = {**found, "runs": {}}
        return found

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The newest offset without its ids, and metrics: for the query's progress."""
        if now_s() >= self._metrics_due_s:  # Spark asks up to 90 times a second
            self._metrics = self._group_metrics()
            self._metrics_due_s = now_s() + METRICS_EVERY_S
        return {**self._reported, METRICS: {**(self._metrics or {}), REDELIVERED: self._redelivered, **self.missing()}}

    def _group_metrics(self) -> dict[str, int]:
        """How far the group is behind, by XINFO GROUPS; streams without a known lag count nothing."""
        count, behind = 0, 0
        for name, keys in self._joined.items():
            replies = self.connections.asking[name].pipeline([["XINFO", "GROUPS", key] for key in keys])
            count += len(keys)
            for reply in replies:
                rows = [] if isinstance(reply, ReplyError) else map(mapping, reply)
                behind += sum(row.get(b"lag") or 0 for row in rows if row[b"name"] == self.group.encode())
        return {STREAMS: count, ENTRIES_BEHIND: behind}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        """The tasks of a batch, from its offset alone."""
        ranges = []
        for (name, key), runs in delivered_of(self.names.read(end)).runs.items():
            for run in runs:
                ranges.append(IdRange(name, key, run.first - 1, run.last, max(run.count, 1), run.count, ids=run.ids))
        if not ranges:
            return []
        return self.tasks(ranges, self._tasks(sum(id_range.weight for id_range in ranges)))

    def _tasks(self, entries: int) -> int:
        sizing = self.options.sizing
        return how_many(entries, sizing.entries_per_partition, sizing.min_partitions, sizing.max_partitions)

    # -- taking -------------------------------------------------------------------------------------------------------

    def _take(self, done: Delivered, limit: ReadLimit) -> dict[StreamOf, list[tuple[bool, list[bytes]]]]:
        """The ids delivered to us, by stream, in parts; True if a part is a gapless run of the stream."""
        self._join_groups(done)
        taken: dict[StreamOf, list[tuple[bool, list[bytes]]]] = {}
        per_key = self._per_key(limit)
        if self._recover:
            found, self._recover = self._pending_in_no_offset(per_key, limit)
            self._redelivered += self._add(taken, found, together=False)
            if self._recover:  # the rest are the next batches: until then nothing else may become pending for us
                return taken
        if self._claims is not None:
            for name, client in self.connections.asking.items():
                claimed = self._claims.claim(client, self._joined[name], self._name or "", per_key)
                self._redelivered += self._add(taken, claimed, together=False)
            while self._claims.deleted:
                stream, deleted = self._claims.deleted.popitem()
                self.report_loss(stream, pending_loss(deleted))
                self._moved = True
        wanted = self._behind_target() if self.available_now else self._joined
        found = self._read_new(wanted, per_key, done)
        if self._idle and not taken and not any(found.values()):
            found = self._wait(wanted, per_key, done)
        self._add(taken, found, together=True)
        return taken

    def _add(
        self, taken: dict[StreamOf, list[tuple[bool, list[bytes]]]], found: dict[StreamOf, list[bytes]], together: bool
    ) -> int:
        """Add what was found to what was taken; how many entries that were."""
        for stream, some in found.items():
            has_policy = stream in self._with_policy
            if has_policy and stream in taken:  # what is pending may be handed out again
                known = {one for _, before in taken[stream] for one in before}
                some = [one for one in some if one not in known]
            if some:
                taken.setdefault(stream, []).append((together and not has_policy, some))
        return sum(map(len, found.values()))

    def _per_key(self, limit: ReadLimit) -> int:
        """How many entries of each stream are in a batch, at most; one where there are more streams than entries."""
        keys = max(sum(map(len, self._joined.values())), 1)
        most = limit.max_rows // keys if isinstance(limit, ReadMaxRows) else MOST_A_KEY
        if self.options.max_bytes_per_trigger is not None:
            most = min(most, self.options.max_bytes_per_trigger // (keys * self._sampled_bytes()))
        return max(most, 1)

    def _sampled_bytes(self) -> int:
        """About how many bytes an entry of the group's streams has."""
        states = {name: stream_states(client, self._joined[name]) for name, client in self.connections.asking.items()}
        return self.mean_bytes(
            {name: [(key, NOWHERE, state) for key, state in some.items()] for name, some in states.items()}
        )

    def _read_new(self, wanted: dict[str, list[bytes]], count: int, done: Delivered) -> dict[StreamOf, list[bytes]]:
        """XREADGROUP for new entries; what the group lost before they were delivered is reported first.

        The look at a stream and the read are one transaction: what others added, took or read between them would make
        entries look lost, or hide a loss.
        """
        found: dict[StreamOf, list[bytes]] = {}
        refusals: list[tuple[str, ReplyError]] = []
        for name, keys in wanted.items():
            requests: list[Request] = []
            for key in keys:
                looks: list[Request] = [["XINFO", "GROUPS", key], ["XINFO", "STREAM", key]]
                requests += [["MULTI"], *looks, self._reading([key], count), ["EXEC"]]
            replies = self.connections.asking[name].pipeline(requests, retry=False)
            for number, key in enumerate(keys):
                groups, looked, reply, is_one = _of_transaction(replies[5 * number : 5 * number + 5])
                if isinstance(reply, ReplyError):
                    refusals.append((self.where((name, key)), reply))
                    continue
                entries = reply[0][1] if reply else ()
                row = None if isinstance(groups, ReplyError) else self._row(groups)
                if isinstance(looked, list) and row is not None:
                    if POLICY in row:
                        self._with_policy.add((name, key))
                    is_all = is_one and POLICY not in row and len(entries) < count
                    self._check((name, key), StreamState.of(looked), row, done, len(entries) if is_all else None)
                found.update(self._delivered(name, reply, unsure=not is_one))
        if refusals:
            self._refused(*refusals[0], done)
        return found

    def _wait(self, wanted: dict[str, list[bytes]], count: int, done: Delivered) -> dict[StreamOf, list[bytes]]:
        """XREADGROUP that waits up to `pollTimeout`, for groups that have read all there is."""
        wait_ms = max(self.options.poll_ms, 1)
        requests = {name: self._reading(keys, count, "BLOCK", wait_ms) for name, keys in wanted.items() if keys}
        if not requests:
            pause_s(wait_ms / 1000)
            return {}
        try:
            replies = self.connections.wait(requests, wait_ms, retry=False)
        except ReplyError as refusal:
            streams = [self.where((name, key)) for name, keys in wanted.items() for key in keys]
            self._refused(streams[0] if len(streams) == 1 else f"one of {len(streams)} streams", refusal, done)
            return {}
        found: dict[StreamOf, list[bytes]] = {}
        for name, reply in replies.items():
            found.update(self._delivered(name, reply, unsure=True))
        return found

    def _reading(self, keys: list[bytes], count: int, *block: str | int) -> Request:
        consumer = self._name or ""
        return [
            "XREADGROUP", "GROUP", self.group, consumer, "COUNT", count, *block, "STREAMS", *keys, *[">"] * len(keys)
        ]  # fmt: skip

    def _refused(self, where: str, refusal: ReplyError, done: Delivered) -> None:
        self._recover = True  # another server, or another stream, may have delivered something
        if not refusal.text.startswith(b"NOGROUP"):
            raise PipelineError(f"{where}: the group {self.group!r} cannot be read: {text_of(refusal)}")
        self._on_group_destroyed(done)

    def _delivered(self, name: str, reply: Reply, unsure: bool) -> dict[StreamOf, list[bytes]]:
        """The ids in a reply to XREADGROUP; the group's place moves behind them, except where a policy chose them.

        `unsure`: others may have read since the look at the stream.
        """
        found: dict[StreamOf, list[bytes]] = {}
        for key, entries in reply or ():
            some = found[name, key] = [entry[0] for entry in entries]
            place = self._places.get((name, key))
            if place is not None and some and (name, key) not in self._with_policy:
                added = None if place.added is None else place.added + len(some)
                since = place.counted_from if unsure else place.since_if(self._seen[name, key].max_deleted)
                self._places[name, key] = Position(ids.parse(some[-1]), added, since=since, unsure=unsure)
        return found

    def _row(self, groups: Reply) -> dict[bytes, Reply] | None:
        """What XINFO GROUPS says of our group; None if it is not there."""
        return next((row for row in map(mapping, groups) if row[b"name"] == self.group.encode()), None)

    def _check(
        self, stream: StreamOf, state: StreamState, row: dict[bytes, Reply], done: Delivered, behind: int | None
    ) -> None:
        """Report the entries that the group will never deliver, and note how far it has read.

        `state` and `row`, of the group, are of before the last deliveries, which were `behind`, if they were all.
        """
        last = ids.parse(row[b"last-delivered-id"])
        place = self._places.get(stream) or _place_of(stream, done)
        seen = self._seen.get(stream) or done.seen.get(stream)
        if stream not in self._deleted:
            self._deleted[stream] = done.deleted.get(stream, (seen or state).max_deleted)
        back, passed = group_loss(max(place.id, done.last.get(stream, ids.ZERO)), last), None
        if back is not None:
            done.last[stream] = last
        if _others_read(place, row, state, seen):
            # entries-read is null while an entry after the group's last one is deleted, and counts that one as read
            # afterwards; so it does with entries that were trimmed.
            if back is None and place.added is not None and seen is not None:
                passed = unknown_deletions(place, seen, self._deleted[stream])
            place = Position(last, row[b"entries-read"] if state.last >= last else None, seen=seen)
        elif place.unsure:
            place = replace(place, unsure=False)
        for lost in (find_loss(place, state, seen, behind) or back, passed):
            if lost is not None:
                self.report_loss(stream, lost)
                self._moved = True
                place = Position(last, place.added if lost.resume_at is None else lost.resume_at.added)
                if lost.cause == WENT_BACK:
                    self._deleted[stream] = state.max_deleted
        behind = entries_after(last, state) if behind is None else behind
        if state.last < last:
            place = Position(last, None, seen=state)  # reported once; entries up to there are not delivered
        elif behind is not None:
            self._deleted[stream] = state.max_deleted
        if state.last >= last and behind is not None:
            place = Position(last, state.added - behind)
        self._places[stream], self._seen[stream] = place, state

    def _behind_target(self) -> dict[str, list[bytes]]:
        """The streams with a group that has not reached the last id at the query's start (Trigger.AvailableNow)."""
        behind: dict[str, list[bytes]] = {}
        for name, keys in self._joined.items():
            client = self.connections.asking[name]
            for key, reply in zip(keys, client.pipeline([["XINFO", "GROUPS", key] for key in keys]), strict=True):
                target = self._target.get((name, key), ids.ZERO)
                row = None if isinstance(reply, ReplyError) else self._row(reply)
                last = ids.ZERO if row is None else ids.parse(row[b"last-delivered-id"])
                if isinstance(reply, ReplyError) or last < target:
                    behind.setdefault(name, []).append(key)
        return behind

    def _offset(self, done: Delivered, taken: dict[StreamOf, list[tuple[bool, list[bytes]]]]) -> Delivered:
        """The offset with these deliveries, in runs of at most one task's share."""
        total = sum(len(some) for parts in taken.values() for _, some in parts)
        share = max(-(-total // self._tasks(total)), 1)
        offset = Delivered(done.number + 1, done.consumer, last=dict(done.last), seen=done.seen | self._seen)
        for stream, parts in taken.items():
            runs = []
            for together, some in parts:
                for at in range(0, len(some), share):
                    numbers = tuple(ids.parse(one) for one in some[at : at + share])
                    runs.append(DeliveredIds(numbers[0], numbers[-1], len(numbers), () if together else numbers))
                if together:
                    offset.last[stream] = runs[-1].last
            offset.runs[stream] = tuple(runs)
            if stream in self._with_policy and stream in self._places:
                offset.last[stream] = self._places[stream].id
        for stream, last in offset.last.items():
            for place in (self._places.get(stream), _place_of(stream, done)):
                if place is not None and place.id == last:
                    if place.added is not None:
                        offset.added[stream] = place.added
                    if place.since is not None:
                        offset.since[stream] = place.since
                    if place.unsure:
                        offset.unsure.add(stream)
                    break
        for stream, seen in offset.seen.items():
            deleted = self._deleted.get(stream, done.deleted.get(stream, seen.max_deleted))
            if deleted < seen.max_deleted:
                offset.deleted[stream] = deleted
        self._newest_ids = {stream: [one for _, some in parts for one in some] for stream, parts in taken.items()}
        self._newest_number = offset.number
        return offset

    # -- taking over --------------------------------------------------------------------------------------------------

    def _pending_in_no_offset(self, per_key: int, limit: ReadLimit) -> tuple[dict[StreamOf, list[bytes]], bool]:
        """Entries pending for our consumer: delivered to a driver that died before the offset was written.

        As many as a batch may have, and whether there may be more: what was in the batch before is acknowledged.
        """
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else sys.maxsize
        found: dict[StreamOf, list[bytes]] = {}
        more = False
        for name, keys in self._joined.items():
            client = self.connections.asking[name]
            looks: list[Request] = [["XPENDING", key, self.group, "-", "+", per_key, self._name or ""] for key in keys]
            for key, page in zip(keys, client.pipeline(looks), strict=True):
                if isinstance(page, ReplyError):
                    if not page.text.startswith(b"NOGROUP"):  # which the next read of the stream reports
                        raise refused(client, key, page)
                    continue
                found[name, key] = [row[0] for row in page[:left]]
                more |= len(page) == per_key or len(page) > left
                left -= len(found[name, key])
        return found, more and any(found.values())

    def _pending(self, client: Client, key: bytes, first: bytes, last: bytes) -> list[bytes]:
        """The ids in a range that are pending for us."""
        found: list[bytes] = []
        while True:
            page = client.call("XPENDING", key, self.group, first, last, PENDING_PAGE, self._name or "")
            found += [row[0] for row in page]
            if len(page) < PENDING_PAGE:
                return found
            first = b"(" + page[-1][0]

    # -- being done ---------------------------------------------------------------------------------------------------

    def _acknowledge(self, done: Delivered) -> None:
        """XACK the entries of an offset, except those that another consumer has claimed from us meanwhile.

        PipelineError if the server refuses: the next driver would find them pending, and deliver them again.
        """
        if done.number == self._acknowledged_up_to:
            return
        for (name, key), runs in done.runs.items():
            client = self.connections.asking[name]
            try:
                acked = self._ids_of(client, (name, key), runs, done.number)
            except ReplyError as refusal:
                if refusal.text.startswith(b"NOGROUP"):
                    continue  # the group was destroyed, and its pending entries with it
                raise self._unacknowledged((name, key), refusal) from None
            replies = client.pipeline(
                [
                    ["XACK", key, self.group, *acked[at : at + ACKED_AT_ONCE]]
                    for at in range(0, len(acked), ACKED_AT_ONCE)
                ]
            )
            for reply in replies:
                if isinstance(reply, ReplyError):
                    raise self._unacknowledged((name, key), reply)
        self._acknowledged_up_to = done.number

    def _unacknowledged(self, stream: StreamOf, refusal: ReplyError) -> PipelineError:
        return PipelineError(
            f"{self.where(stream)}: a batch is complete and cannot be acknowledged: {text_of(refusal)}"
        )

    def _ids_of(self, client: Client, stream: StreamOf, runs: tuple[DeliveredIds, ...], number: int) -> list[bytes]:
        if number == self._newest_number:
            return self._newest_ids.get(stream, [])
        found: list[bytes] = []
        for run in runs:
            if run.ids:
                found += [ids.text(one) for one in run.ids]
            else:
                found += self._pending(client, stream[1], ids.text(run.first), ids.text(run.last))
        return found

    # -- the group ----------------------------------------------------------------------------------------------------

    def _join_groups(self, done: Delivered) -> None:
        """Create the group in every stream that lacks it; look for new streams every `discoveryInterval`.

        A stream that is missing is not created, because its name may be mistyped.
        """
        if not self._first_join and now_s() < self._join_due_s:
            return
        for name, keys in self.keys().items():
            client = self.connections.asking[name]
            known = set(self._joined.get(name, ()))
            new = [key for key in keys if key not in known]
            self._report_destroyed(client, [key for key in new if (name, key) in done.last], done)
            places = [self._group_start((name, key), done) for key in new]
            requests: list[Request] = []
            for key, place in zip(new, places, strict=True):  # the look first: nothing is read in a group before it is
                requests += [["XINFO", "STREAM", key], ["XGROUP", "CREATE", key, self.group, place]]
            replies = client.pipeline(requests)
            joined = self._joined.setdefault(name, [])
            for key, looked, reply in zip(new, replies[::2], replies[1::2], strict=True):
                if not isinstance(reply, ReplyError) or reply.text.startswith(b"BUSYGROUP"):
                    joined.append(key)
                    is_new = not isinstance(reply, ReplyError) and (name, key) not in done.last
                    was_absent = not self._first_join or (bool(done.seen) and (name, key) not in done.seen)
                    if is_new and was_absent:
                        self._begin_late((name, key), None if isinstance(looked, ReplyError) else looked)
                elif not reply.text.startswith(NO_STREAM):
                    raise refused(client, key, reply)
        self.missing_streams.look({key for keys in self._joined.values() for key in keys})
        every_s = self.options.keys.discovery_ms / 1000
        self._join_due_s = now_s() + (min(every_s, JOIN_MISSING_S) if self.missing_streams.count else every_s)
        self._first_join = False

    def _begin_late(self, stream: StreamOf, looked: Reply) -> None:
        """Begin with a stream that came later, by its XINFO before the group was created; None if it was not there.

        All that was ever added to a stream that was named is new.
        """
        self._places[stream] = NOWHERE
        if looked is None:
            return
        state = StreamState.of(looked)
        lost = find_loss(NOWHERE, state, None) if self.options.keys.names else late_loss(state)
        if lost is not None:
            self.report_loss(stream, lost)
            self._moved = True
        self._places[stream] = beginning(state)

    def _group_start(self, stream: StreamOf, done: Delivered) -> bytes:
        """The start of a group to be created; a stream that appeared later is read from its first entry."""
        if stream in done.last:
            return ids.text(done.last[stream])
        start = self.options.start.of(stream[1].decode(errors="surrogateescape"))
        if start == EARLIEST or not self._first_join or done.number:
            return b"0"
        if start == LATEST:
            return b"$"
        return ids.text(max(ids.parse(start.encode()) - 1, ids.ZERO))

    def _on_group_destroyed(self, done: Delivered) -> None:
        """Report destroyed groups and streams; a query that goes on creates the group again where it had come to."""
        for name, keys in self._joined.items():
            gone = self._report_destroyed(self.connections.asking[name], keys, done)
            keys[:] = [key for key in keys if key not in gone]
        self._join_due_s = 0.0

    def _report_destroyed(self, client: Client, keys: list[bytes], done: Delivered) -> set[bytes]:
        """Report the streams among these that lack the group, or are not there."""
        gone = set()
        for key, reply in zip(keys, client.pipeline([["XINFO", "GROUPS", key] for key in keys]), strict=True):
            if isinstance(reply, ReplyError) and not reply.text.startswith(ABSENT):
                raise refused(client, key, reply)
            if not isinstance(reply, ReplyError) and self._row(reply) is not None:
                continue
            gone.add(key)
            stream = (client.endpoint.name, key)
            text = f"group {self.group!r} was destroyed, and what was pending in it is unknown"
            self.report_loss(stream, Loss(WENT_BACK, 0, text, True))
            self._places.pop(stream, None)
            if isinstance(reply, ReplyError):  # a new stream of that name is read from its beginning
                for known in (done.last, done.added, done.since, done.seen, done.deleted, self._seen, self._deleted):
                    known.pop(stream, None)
        return gone


def _of_transaction(replies: list[Reply]) -> tuple[Reply, Reply, Reply, bool]:
    """The replies to XINFO GROUPS, XINFO STREAM and XREADGROUP, and whether they are of one moment.

    `replies` begins with that of MULTI, and ends with that of EXEC. Where a user may not use MULTI, or a slot moves,
    each request was executed by itself, or none was: then nothing is delivered, or the reply is the first refusal.
    """
    _, groups, looked, reply, answer = replies
    if isinstance(answer, list):
        groups, looked, reply = answer
        return groups, looked, reply, True
    if reply == QUEUED:
        reply = next((one for one in (groups, looked) if isinstance(one, ReplyError)), None)
    return groups, looked, reply, False


def _others_read(place: Position, row: dict[bytes, Reply], state: StreamState, seen: StreamState | None) -> bool:
    """Whether others have read in a group since it was noted how far it is. `row`: of XINFO GROUPS, now.

    Where `place` is unsure, what its count lacks was read by others, or trimmed. A consumer that is alone has lost it,
    unless nothing was removed since the look before (`seen`): then another one has been there for a while.
    """
    if place.id != ids.parse(row[b"last-delivered-id"]) or place.added is None:
        return True
    read = row[b"entries-read"]
    if not place.unsure or read == place.added:
        return False
    is_whole = seen is not None and read is not None and state.removed == seen.removed
    return is_whole or bool(row[b"consumers"] > 1)


def _place_of(stream: StreamOf, done: Delivered) -> Position:
    """How far the group had read a stream when an offset was made."""
    last, added, since = done.last.get(stream, ids.ZERO), done.added.get(stream), done.since.get(stream)
    return Position(last, added, since=since, unsure=stream in done.unsure)
