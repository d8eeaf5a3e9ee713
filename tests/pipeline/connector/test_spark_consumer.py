"""A consumer's name in Spark: a query that runs keeps it, and one that is stopped gives it up."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.errors import StreamingQueryException

from tests.support.deployments import until


def started(spark: Any, endpoint: str, folder: Path) -> Any:
    options = {"endpoints": endpoint, "stream": "s", "group": "g", "groupMode": "shared", "consumer": "spark"}
    reader = spark.readStream.format("redis_streams").options(**options, startingId="earliest", retryTimeout="5s")
    writer = reader.load().writeStream.format("parquet").option("path", str(folder / "rows"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def test_a_second_query_of_a_consumers_name_ends_and_the_first_may_start_again(
    spark: Any, server: redis.Redis, endpoint: str, tmp_path: Path
) -> None:
    server.xadd("s", {"n": 1})
    first = started(spark, endpoint, tmp_path / "first")
    until(lambda: server.xlen("s") and server.pubsub_channels("__spark:consumer:g:spark"), "the query does not begin")
    second = started(spark, endpoint, tmp_path / "second")
    with pytest.raises(StreamingQueryException, match="another query reads group 'g' as 'spark'"):
        second.awaitTermination(60)
    first.stop()
    server.xadd("s", {"n": 2})  # the first query may have read the entry before
    again = started(spark, endpoint, tmp_path / "first")
    until(lambda: again.exception() or any(row["numInputRows"] for row in again.recentProgress), "no rows are read")

    assert again.exception() is None
    again.stop()
