"""Reads that find nothing: no rows, and no failure. Spark then plans one task with a partition that holds None."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline import cli
from tests.pipeline.connector.test_cursor_reader import fill


@pytest.fixture
def healthy(server: redis.Redis) -> redis.Redis:
    """A stream that was trimmed empty, one with a group that is up to date, and a key that is no stream."""
    fill(server, "trimmed", 1, 2)
    server.xtrim("trimmed", maxlen=0, approximate=False)
    fill(server, "s", 1, 2, 3)
    server.xgroup_create("s", "g", "$")
    server.set("text", "no stream")
    return server


@pytest.mark.parametrize(
    "options",
    [
        {"stream": "nowhere"},
        {"stream": "trimmed"},
        {"streamPattern": "nothing:*"},
        {"stream": "s", "startingTimestamp": "2100-01-01"},
        {"stream": "s", "endingTimestamp": "1970-01-01"},
        {"stream": "s", "startingId": "latest"},
        {"table": "pending"},
        {"table": "pending", "stream": "nowhere"},
        {"table": "streams", "stream": "nowhere"},
        {"table": "streams", "streamPattern": "nothing:*"},
        {"table": "groups", "streamPattern": "nothing:*"},
        {"table": "groups", "group": "nobody"},
        {"table": "consumers"},
    ],
    ids=lambda options: " ".join(f"{name}={value}" for name, value in options.items()),
)
def test_a_read_that_finds_nothing_has_no_rows(
    spark: Any, healthy: redis.Redis, endpoint: str, options: dict[str, str]
) -> None:
    found = spark.read.format("redis_streams").option("endpoints", endpoint).options(**options).load()

    assert found.collect() == []
    assert found.count() == 0


def test_a_pushed_condition_without_a_match_has_no_rows(spark: Any, healthy: redis.Redis, endpoint: str) -> None:
    options = {"endpoints": endpoint, "stream": "s", "pushFilters": "true"}
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        found = spark.read.format("redis_streams").options(**options).load()
        assert found.where("_stream = 'other'").collect() == []
        assert found.where("_timestamp > '2100-01-01'").collect() == []
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_log_without_a_line_has_no_rows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.manifest").write_text("file a.base.aof seq 1 type b\nfile a.incr.aof seq 1 type i\n")
    for name in ("a.base.aof", "a.incr.aof"):
        (tmp_path / name).write_bytes(b"")

    assert spark.read.format("redis_streams").option("table", "aof").load(str(tmp_path)).collect() == []


@pytest.mark.parametrize("name", ["delivery-histogram", "poison", "stuck", "oldest-pending", "dead-letters"])
def test_a_job_on_a_healthy_server_finds_nothing(
    spark: Any, healthy: redis.Redis, endpoint: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run_job(spark, cli.parser().parse_args([name, "--endpoint", endpoint])) == 0
    assert capsys.readouterr().out.endswith("\n0 rows\n")
