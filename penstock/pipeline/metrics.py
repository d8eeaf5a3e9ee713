"""Metrics of streaming queries: as columns to observe, as samples of a progress, as Prometheus text.

    from penstock.pipeline import metrics

    listener = metrics.PrometheusListener(port=9400)    # or path="/var/lib/node_exporter/streams.prom"
    spark.streams.addListener(listener)

A sample's labels are the query's name (its id if it has none) and the source's place in the query, from 0. Counters
count from the start of the listener, `redelivered` from the start of the query's driver, `entries_missing` from the
start of the query. Sources of other formats have the samples that Spark knows of.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQueryListener

from penstock.pipeline.connector.schemas import CORRUPT
from penstock.pipeline.connector.source.source_metrics import (
    ENTRIES_BEHIND,
    METRICS,
    MISSING_BY_CAUSE,
    MS_BEHIND,
    REDELIVERED,
    STREAMS,
    STREAMS_MISSING,
)

if TYPE_CHECKING:
    from prometheus_client import Metric

PREFIX: Final = "penstock_pipeline_"
GAUGE, COUNTER = "gauge", "counter"
OBSERVED: Final = "redis_streams"  # the name in the progress's observedMetrics
DELIVERIES: Final = "_deliveries"
LOCALHOST: Final = "127.0.0.1"

# name -> kind, help; the order of the text
KNOWN: Final = {
    "up": (GAUGE, "1 while the query runs, 0 once it has ended."),
    "failures_total": (COUNTER, "Queries that ended with an error."),
    "batches_total": (COUNTER, "Micro-batches that had data."),
    "batch_seconds": (GAUGE, "How long the last micro-batch took."),
    "last_progress_timestamp_seconds": (GAUGE, "Unix time at which the last micro-batch began."),
    "rows_read_total": (COUNTER, "Rows read from the source."),
    "rows_written_total": (COUNTER, "Rows given to the sink."),
    "streams": (GAUGE, "Streams that the source reads."),
    "streams_missing": (GAUGE, "Streams that the source names and that are not there."),
    "entries_behind": (GAUGE, "Entries after the end of the last batch; in a shared group those not delivered."),
    "seconds_behind": (GAUGE, "Between the last entry of the last batch and that of its stream, at most."),
    "entries_missing_total": (COUNTER, "Entries that could not be read, by cause; of the cause uncounted, at most."),
    "redelivered_total": (COUNTER, "Entries taken that had been delivered before."),
    "observed_total": (COUNTER, "What the query's observe() counted."),
}
COUNTED_BY_SOURCES: Final = ("redelivered_total", "entries_missing_total")


def observed(frame: DataFrame, name: str = OBSERVED) -> DataFrame:
    """The frame, watched: its progress has `rows`, and `redelivered` and `corrupt` if it has the columns for them.

    `redelivered` counts rows with `_deliveries` above 1; `corrupt` those with a `_corrupt` that is not null. A frame of
    poison entries that goes to `operation=deadletter` counts its dead letters in `rows`: give it a name of its own.
    """
    counts = [f.count(f.lit(1)).alias("rows")]
    if DELIVERIES in frame.columns:
        counts.append(f.count_if(f.col(DELIVERIES) > 1).alias("redelivered"))
    if CORRUPT in frame.columns:
        counts.append(f.count(f.col(CORRUPT)).alias("corrupt"))
    return frame.observe(name, *counts)


@dataclass(frozen=True, slots=True)
class Sample:
    """A number with its labels; of a counter, what one progress adds."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


def of_progress(progress: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of one `lastProgress` (or of the JSON that `progress.json` holds)."""
    query = (("query", progress.get("name") or str(progress["id"])),)
    yield Sample("last_progress_timestamp_seconds", query, datetime.fromisoformat(progress["timestamp"]).timestamp())
    yield Sample("batches_total", query, 1 if progress["numInputRows"] else 0)
    yield Sample("batch_seconds", query, progress["durationMs"].get("triggerExecution", 0) / 1000)
    for at, source in enumerate(progress["sources"]):
        labels = (*query, ("source", str(at)))
        yield Sample("rows_read_total", labels, source["numInputRows"])
        latest = _latest_offset(source.get("latestOffset"))
        for member, name, unit in (
            (STREAMS, "streams", 1),
            (STREAMS_MISSING, "streams_missing", 1),
            (ENTRIES_BEHIND, "entries_behind", 1),
            (MS_BEHIND, "seconds_behind", 1000),
            (REDELIVERED, "redelivered_total", 1),
        ):
            if member in latest:
                yield Sample(name, labels, latest[member] / unit)
        for cause, missing in latest.get(MISSING_BY_CAUSE, {}).items():
            yield Sample("entries_missing_total", (*labels, ("cause", cause)), missing)
    written = progress["sink"].get("numOutputRows", -1)
    if written >= 0:  # -1: the sink does not count
        yield Sample("rows_written_total", query, written)
    for name, row in (progress.get("observedMetrics") or {}).items():
        for metric, value in row.items():
            if isinstance(value, int | float):
                yield Sample("observed_total", (*query, ("name", name), ("metric", metric)), value)


def _latest_offset(offset: Any) -> dict[str, Any]:
    """The metrics in a source's latestOffset, which is JSON or its text; none in another source's."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    found = offset.get(METRICS) if isinstance(offset, dict) else None
    return found if isinstance(found, dict) else {}


class PrometheusListener(StreamingQueryListener):
    """Keeps the samples of all queries of a session, and shows them to Prometheus (extra `metrics`).

    `path`: a file that is replaced as a whole with each progress (for the node exporter's textfile collector).
    `port`: answers `GET /metrics` there, at `host`, until `close`; 0 takes a free one, which `self.port` tells.
    """

    def __init__(self, path: str | None = None, port: int | None = None, host: str = LOCALHOST) -> None:
        from prometheus_client import CollectorRegistry, start_http_server  # an extra, which executors do not need

        self._lock = threading.Lock()
        self._samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._names: dict[str, str] = {}  # run id -> the query's label
        self._path = path
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._server = None if port is None else start_http_server(port, host, self._registry)[0]
        self.port = None if self._server is None else self._server.server_port

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._names[str(event.runId)] = event.name or str(event.id)
        self.add([Sample("up", self._query(event), 1), Sample("failures_total", self._query(event), 0)])

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        progress = json.loads(event.progress.json)
        self.add(list(of_progress(progress)))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        failed = event.exception is not None
        self.add([Sample("up", self._query(event), 0), Sample("failures_total", self._query(event), int(failed))])

    def _query(self, event: Any) -> tuple[tuple[str, str], ...]:
        return (("query", self._names.get(str(event.runId), str(event.id))),)

    def add(self, samples: list[Sample]) -> None:
        """Set gauges, and add to counters; then write the file, if there is one."""
        from prometheus_client import write_to_textfile

        with self._lock:
            for sample in samples:
                key = (sample.name, sample.labels)
                adds = KNOWN[sample.name][0] == COUNTER and sample.name not in COUNTED_BY_SOURCES
                self._samples[key] = sample.value + (self._samples.get(key, 0) if adds else 0)
        if self._path is not None:
            write_to_textfile(self._path, self._registry)

    def collect(self) -> "Iterator[Metric]":
        """What prometheus_client asks for: one family for each name that has samples."""
        from prometheus_client import Metric

        with self._lock:
            samples = dict(self._samples)
        for name, (kind, about) in KNOWN.items():
            family = Metric(PREFIX + name.removesuffix("_total"), about, kind)
            for (known, labels), value in samples.items():
                if known == name:
                    family.add_sample(PREFIX + name, dict(labels), value)
            if family.samples:
                yield family

    def text(self) -> str:
        """All samples in Prometheus's text format."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode()

    def close(self) -> None:
        """Stop answering."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
