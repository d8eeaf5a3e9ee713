"""Metrics of streaming queries: in the progress, and as a listener's Prometheus text."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline import metrics
from penstock.pipeline.metrics import PrometheusListener, Sample
from tests.pipeline.driving import Query, to_its_end

FORMAT = "redis_streams"
PROGRESS = {
    "id": "5f0e",
    "runId": "77aa",
    "name": 'the "orders"',
    "timestamp": "2026-11-22T10:00:00.500Z",
    "numInputRows": 20,
    "durationMs": {"triggerExecution": 1500},
    "sources": [
        {"numInputRows": 15, "latestOffset": {"v": 1, "metrics": {"streams": 2, "entriesBehind": 7, "msBehind": 2500}}},
        {
            "numInputRows": 5,
            "latestOffset": '{"v": 1, "metrics": {"redelivered": 3, "entriesMissingByCause": {"trimmed": 4}}}',
        },
        {"numInputRows": 0, "latestOffset": "another source's"},
    ],
    "sink": {"description": "a sink", "numOutputRows": 19},
    "observedMetrics": {"redis_streams": {"rows": 20, "corrupt": 1, "first": "a word"}},
}
QUERY = ("query", 'the "orders"')


class Event:
    """What Spark gives a listener."""

    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)


def progress_event(**changes: Any) -> Event:
    return Event(progress=Event(json=json.dumps(PROGRESS | changes)))


def test_a_progress_has_samples_of_every_source_and_of_the_sink() -> None:
    assert list(metrics.of_progress(PROGRESS)) == [
        Sample("last_progress_timestamp_seconds", (QUERY,), 1795341600.5),
        Sample("batches_total", (QUERY,), 1),
        Sample("batch_seconds", (QUERY,), 1.5),
        Sample("rows_read_total", (QUERY, ("source", "0")), 15),
        Sample("streams", (QUERY, ("source", "0")), 2),
        Sample("entries_behind", (QUERY, ("source", "0")), 7),
        Sample("seconds_behind", (QUERY, ("source", "0")), 2.5),
        Sample("rows_read_total", (QUERY, ("source", "1")), 5),
        Sample("redelivered_total", (QUERY, ("source", "1")), 3),
        Sample("entries_missing_total", (QUERY, ("source", "1"), ("cause", "trimmed")), 4),
        Sample("rows_read_total", (QUERY, ("source", "2")), 0),
        Sample("rows_written_total", (QUERY,), 19),
        Sample("observed_total", (QUERY, ("name", "redis_streams"), ("metric", "rows")), 20),
        Sample("observed_total", (QUERY, ("name", "redis_streams"), ("metric", "corrupt")), 1),
    ]


def test_a_sink_that_does_not_count_has_no_sample() -> None:
    assert "rows_written_total" not in [
        sample.name for sample in metrics.of_progress(PROGRESS | {"sink": {"numOutputRows": -1}})
    ]


def test_counters_add_up_and_gauges_are_replaced() -> None:
    listener = PrometheusListener()
    listener.onQueryStarted(Event(id="5f0e", runId="77aa", name='the "orders"'))
    listener.onQueryProgress(progress_event())
    listener.onQueryProgress(progress_event())
    listener.onQueryTerminated(Event(id="5f0e", runId="77aa", exception="it broke"))

    assert [line for line in listener.text().splitlines() if not line.startswith("#")] == [
        r'penstock_pipeline_up{query="the \"orders\""} 0.0',
        r'penstock_pipeline_failures_total{query="the \"orders\""} 1.0',
        r'penstock_pipeline_batches_total{query="the \"orders\""} 2.0',
        r'penstock_pipeline_batch_seconds{query="the \"orders\""} 1.5',
        r'penstock_pipeline_last_progress_timestamp_seconds{query="the \"orders\""} 1.7953416005e+09',
        r'penstock_pipeline_rows_read_total{query="the \"orders\"",source="0"} 30.0',
        r'penstock_pipeline_rows_read_total{query="the \"orders\"",source="1"} 10.0',
        r'penstock_pipeline_rows_read_total{query="the \"orders\"",source="2"} 0.0',
        r'penstock_pipeline_rows_written_total{query="the \"orders\""} 38.0',
        r'penstock_pipeline_streams{query="the \"orders\"",source="0"} 2.0',
        r'penstock_pipeline_entries_behind{query="the \"orders\"",source="0"} 7.0',
        r'penstock_pipeline_seconds_behind{query="the \"orders\"",source="0"} 2.5',
        r'penstock_pipeline_entries_missing_total{cause="trimmed",query="the \"orders\"",source="1"} 4.0',
        r'penstock_pipeline_redelivered_total{query="the \"orders\"",source="1"} 3.0',
        r'penstock_pipeline_observed_total{metric="rows",name="redis_streams",query="the \"orders\""} 40.0',
        r'penstock_pipeline_observed_total{metric="corrupt",name="redis_streams",query="the \"orders\""} 2.0',
    ]
    assert "# TYPE penstock_pipeline_up gauge" in listener.text()


def test_the_text_is_in_a_file_and_at_a_port(tmp_path: Path) -> None:
    listener = PrometheusListener(path=str(tmp_path / "streams.prom"), port=0)
    try:
        listener.onQueryProgress(progress_event())
        with urllib.request.urlopen(f"http://127.0.0.1:{listener.port}/metrics", timeout=30) as answer:
            served = answer.read().decode()
    finally:
        listener.close()

    assert served == listener.text() == (tmp_path / "streams.prom").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["streams.prom"]


def test_a_source_tells_how_far_it_is_behind(server: redis.Redis, endpoint: str) -> None:
    query = Query(endpoints=endpoint, stream="s,t", startingId="earliest", maxEntriesPerTrigger="4")
    for at in range(1, 11):
        server.xadd("s", {"n": at}, f"{at * 1000}-0")
    server.xadd("t", {"n": 1}, "500-0")
    try:
        query.plan()
        first = query.reader.reportLatestOffset()
        query.run_to_end()
        last = query.reader.reportLatestOffset()
    finally:
        query.stop()

    nothing = {"streamsMissing": 0, "entriesMissing": 0, "entriesMissingByCause": {}}
    assert first["metrics"] == {"streams": 2, "entriesBehind": 7, "msBehind": 7000, **nothing}
    assert last["metrics"] == {"streams": 2, "entriesBehind": 0, "msBehind": 0, **nothing}


def test_a_member_of_a_group_tells_what_was_delivered_before(server: redis.Redis, endpoint: str) -> None:
    server.xgroup_create("s", "g", "0", mkstream=True)
    for at in range(1, 11):
        server.xadd("s", {"n": at}, f"{at}-0")
    server.xreadgroup("g", "gone", {"s": ">"}, count=3)
    query = Query(
        endpoints=endpoint, stream="s", group="g", groupMode="shared", consumer="spark", claimMinIdle="0ms",
        maxEntriesPerTrigger="5",
    )  # fmt: skip
    try:
        query.plan()
        told = query.reader.reportLatestOffset()
    finally:
        query.stop()

    nothing = {"streamsMissing": 0, "entriesMissing": 0, "entriesMissingByCause": {}}
    assert told["metrics"] == {"streams": 1, "entriesBehind": 2, "redelivered": 3, **nothing}
    assert told["runs"] == {}


def test_a_query_is_watched(spark: Any, server: redis.Redis, endpoint: str, checkpoint: str) -> None:
    for at in range(30):
        server.xadd("from", {"n": at})
    listener = PrometheusListener()
    spark.streams.addListener(listener)
    source = spark.readStream.format(FORMAT).option("endpoints", endpoint).option("stream", "from")
    frame = metrics.observed(source.option("startingId", "earliest").schema("_id string, n int").load())
    to = frame.writeStream.format(FORMAT).options(endpoints=endpoint, stream="to", checkpointLocation=checkpoint)
    try:
        to_its_end(lambda **trigger: to.queryName("copy").trigger(**trigger).start())
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)

    lines = listener.text().splitlines()
    for sample in (
        'rows_read_total{query="copy",source="0"} 30.0',
        'rows_written_total{query="copy"} 30.0',
        'entries_behind{query="copy",source="0"} 0.0',
        'observed_total{metric="rows",name="redis_streams",query="copy"} 30.0',
        'failures_total{query="copy"} 0.0',
    ):
        assert f"penstock_pipeline_{sample}" in lines
