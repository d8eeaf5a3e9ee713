"""The streaming source: what the readers of both group modes have in common."""

import json
import secrets
from collections import Counter
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from penstock.errors import ReplyError
from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import Client, now_s
from penstock.pipeline.connector.connection.connection_pool import Connections
from penstock.pipeline.connector.connection.missing_streams import MissingStreams
from penstock.pipeline.connector.connection.stream_info import StreamLooks, StreamState, find_keys
from penstock.pipeline.connector.source import data_loss, rate_limit
from penstock.pipeline.connector.source.data_loss import UNCOUNTED, Loss
from penstock.pipeline.connector.source.id_ranges import IdRange, pack
from penstock.pipeline.connector.source.offsets import EndpointNames, Position, StreamOf
from penstock.pipeline.connector.source.partition_reader import Task, TaskReader
from penstock.pipeline.connector.source.source_metrics import ENTRIES_MISSING, MISSING_BY_CAUSE, STREAMS_MISSING
from penstock.pipeline.connector.source.source_options import Entries
from penstock.pipeline.errors import PipelineError

MISSING: Final = "missing"  # the member of an offset: entries that are missing since the query began, by cause


class StreamReader(TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The driver's reader; the executors' copies have options and schema only.

    Spark calls latestOffset about 90 times a second on an idle query, so it blocks at the server inside.
    """

    def __init__(self, options: Entries, schema: Any) -> None:
        super().__init__(options, schema)
        self._begin()

    def _begin(self) -> None:
        """Set up the state that is not pickled."""
        self._opened: Connections | None = None
        self.names = EndpointNames(self.options.servers.endpoints)
        self._keys: dict[str, list[bytes]] = {}
        self._discovered_s = 0.0
        self._looks: dict[str, StreamLooks] = {}
        self.states: dict[StreamOf, StreamState] = {}  # as of the last refresh
        self.missing_streams = MissingStreams(self.options.keys, self.options.fail_on_missing)
        self._missing: Counter[str] = Counter()  # entries, by cause
        self._counts = False  # the counts of the offsets were taken over
        self._missed_by_tasks: dict[tuple[str, ...], int] = {}  # those that tasks of the newest batch missed, by range
        self._channel = None if self.options.fail_on_loss else f"{schemas.MARKERS}:missing:{secrets.token_hex(8)}"
        self.available_now = False  # states are not refreshed any more: Trigger.AvailableNow

    def __getstate__(self) -> tuple[Entries, Any]:
        return self.options, self.schema

    def __setstate__(self, state: tuple[Entries, Any]) -> None:
        self.options, self.schema = state
        self._begin()

    @property
    def connections(self) -> Connections:
        if self._opened is None:
            self._opened = Connections(self.options.servers)
        return self._opened

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: Spark calls it late or never, and an exception in it ends the query. See `latestOffset`."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self.options.max_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    # -- looking ------------------------------------------------------------------------------------------------------

    def keys(self) -> dict[str, list[bytes]]:
        """The keys at each endpoint. A pattern is scanned for again every `discoveryInterval`."""
        wanted = self.options.keys
        due = wanted.pattern is not None and now_s() - self._discovered_s > wanted.discovery_ms / 1000
        if not self._keys or due:
            self._keys = self.connections.each(lambda client: find_keys(client, wanted))
            self._discovered_s = now_s()
        return self._keys

    def refresh_states(self) -> set[StreamOf]:
        """Ask for the state of every stream, in one round trip to each server; the streams whose state is another."""
        keys = self.keys()

        def ask(client: Client) -> set[bytes]:
            name = client.endpoint.name
            return self._looks.setdefault(name, StreamLooks()).look(client, keys[name])

        changed = {(name, key) for name, some in self.connections.each(ask).items() for key in some}
        for name, key in changed:
            state = self._looks[name].states.get(key)
            if state is None:
                self.states.pop((name, key), None)
            else:
                self.states[name, key] = state
        return changed

    def mean_bytes(self, backlogs: dict[str, list[tuple[bytes, Position, StreamState]]]) -> int:
        """About how many bytes an entry after these positions has, by a few of the first streams of each server."""
        size, entries = 0, 0
        for name, some in backlogs.items():
            more, read = rate_limit.entry_bytes(self.connections.asking[name], some[: rate_limit.SAMPLES])
            size, entries = size + more, entries + read
        return max(size // max(entries, 1), 1)

    # -- what is missing ----------------------------------------------------------------------------------------------

    def report_loss(self, stream: StreamOf, loss: Loss) -> None:
        """Count what is missing; DataLoss, or a warning, by `failOnDataLoss`."""
        self._missing[loss.cause] += loss.missing
        data_loss.warn_or_end(loss, self.where(stream), self.options.on_loss)

    def where(self, stream: StreamOf) -> str:
        """A stream and its server, as errors name them."""
        name, key = stream
        return f"{self.endpoint(name).address}: stream {key.decode(errors='replace')!r}"

    def tasks(self, ranges: list[IdRange], count: int) -> list[Task]:
        """Ranges as at most `count` tasks, which publish what they miss: Spark tells a source nothing of its tasks."""
        self._listen()
        return [Task(some, self._channel) for some in pack(ranges, count)]

    def count_missing(self, start: dict[str, Any]) -> bool:
        """Whether tasks have missed entries that `start`, the offset whose batch is complete, does not have.

        Offsets carry what is missing since the query began. Spark asks for metrics before it runs a batch, so what the
        tasks of a query's last batch missed is told with a batch of its own, which is empty.
        """
        if not self._counts:
            self._counts = True
            self._missing.update(start.get(MISSING, {}))
        self._listen()
        self._missed_by_tasks.clear()
        return self.with_missing({}).get(MISSING) != start.get(MISSING)

    def with_missing(self, offset: dict[str, Any]) -> dict[str, Any]:
        """An offset with what is missing, if anything is."""
        counted = {cause: missing for cause, missing in sorted(self._missing.items()) if missing}
        return offset | {MISSING: counted} if counted else offset

    def missing(self) -> dict[str, Any]:
        """The metrics of what is missing: streams now, entries since the query began."""
        self._listen()
        counted = sum(missing for cause, missing in self._missing.items() if cause != UNCOUNTED)
        return {
            STREAMS_MISSING: self.missing_streams.count,
            ENTRIES_MISSING: counted,
            MISSING_BY_CAUSE: dict(sorted(self._missing.items())),
        }

    def _listen(self) -> None:
        """Count what tasks have published. A range that is read again may miss more, and counts once."""
        if self._channel is None:
            return
        for name, client in self.connections.listening.items():
            try:
                reports = client.messages(self._channel)
            except (ReplyError, PipelineError):
                self._channel = None  # no permission: the tasks' warnings are in their logs
                return
            for report in reports:
                cause, missing, *where = json.loads(report)
                known = self._missed_by_tasks.get((name, *where), 0)
                self._missing[cause] += max(missing - known, 0)
                self._missed_by_tasks[name, *where] = max(missing, known)
