"""History from Parquet and live entries as one stream."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis

from penstock.pipeline.connector.connection.stream_info import StreamState
from penstock.pipeline.errors import DataLoss, OptionError
from penstock.pipeline.jobs import jobs
from penstock.pipeline.jobs.backfill import has_gap
from penstock.storage.streams import ids
from tests.pipeline.driving import to_its_end

SCHEMA = "_stream string, _id string, n int"


def state(length: int, first: int, last: int, added: int) -> StreamState:
    return StreamState(length, first, last, added, ids.ZERO)


@pytest.mark.parametrize(
    ("end", "entries", "stream", "expected"),
    [
        pytest.param(10, 10, state(5, 8, 12, 12), False, id="the stream holds some of the history"),
        pytest.param(12, 3, state(5, 8, 12, 12), False, id="the history has all"),
        pytest.param(10, 10, state(2, 11, 12, 12), False, id="together they are all there ever were"),
        pytest.param(10, 9, state(2, 11, 12, 12), True, id="one may be missing"),
        pytest.param(0, 0, state(2, 1, 2, 2), False, id="no history, nothing trimmed"),
        pytest.param(0, 0, state(2, 3, 4, 4), True, id="no history, and some trimmed"),
        pytest.param(10, 10, state(0, 0, 15, 15), True, id="all trimmed, and more than the history has"),
    ],
)
def test_a_gap_is_where_entries_may_be_in_neither(end: int, entries: int, stream: StreamState, expected: bool) -> None:
    assert has_gap(end, entries, stream) is expected


def archive(spark: Any, folder: Path, rows: list[tuple[str, str, int]]) -> None:
    spark.createDataFrame(rows, SCHEMA).coalesce(1).write.mode("append").parquet(str(folder))


def test_every_row_comes_once_from_history_or_stream(
    spark: Any, server: redis.Redis, endpoint: str, tmp_path: Path, checkpoint: str
) -> None:
    for at in range(1, 13):
        server.xadd("s", {"n": at}, f"{at}-0")
    server.xadd("new", {"n": 100}, "5-5")
    archive(spark, tmp_path / "old", [("s", f"{at}-0", at) for at in range(1, 11)])
    server.xtrim("s", maxlen=4, approximate=False)  # from 9 on: 9 and 10 are in both

    def copy(**trigger: Any) -> Any:
        frame = jobs.backfill(
            spark, str(tmp_path / "old"), SCHEMA, checkpoint, {"endpoints": endpoint, "streamPattern": "*"}
        )
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        return writer.option("path", str(tmp_path / "all")).trigger(**trigger).start()

    to_its_end(copy)
    first = sorted(row.n for row in spark.read.parquet(str(tmp_path / "all")).collect())
    archive(spark, tmp_path / "old", [("s", f"{at}-0", at) for at in range(11, 15)])  # the archive goes on
    server.xadd("s", {"n": 13}, "13-0")
    server.xadd("s", {"n": 14}, "14-0")
    to_its_end(copy)
    second = sorted(row.n for row in spark.read.parquet(str(tmp_path / "all")).collect())

    assert first == [*range(1, 13), 100]
    assert second == [*range(1, 15), 100]


def test_a_gap_ends_the_query_before_it_begins(
    spark: Any, server: redis.Redis, endpoint: str, tmp_path: Path, checkpoint: str
) -> None:
    archive(spark, tmp_path / "old", [("s", f"{at}-0", at) for at in (2, 10)])  # by text, 2-0 is the last
    for at in range(1, 16):
        server.xadd("s", {"n": at}, f"{at}-0")
    server.xtrim("s", maxlen=4, approximate=False)
    options = {"endpoints": endpoint, "stream": "s"}

    with pytest.raises(DataLoss, match="the history ends at 10-0, the first entry left is 12-0"):
        jobs.backfill(spark, str(tmp_path / "old"), SCHEMA, checkpoint, options)
    with pytest.warns(UserWarning, match="cannot be known"):
        jobs.backfill(spark, str(tmp_path / "old"), SCHEMA, checkpoint, {**options, "failOnDataLoss": "false"})


def test_a_gap_that_comes_before_the_query_has_begun_is_noticed_at_its_next_start(
    spark: Any, server: redis.Redis, endpoint: str, tmp_path: Path, checkpoint: str
) -> None:
    archive(spark, tmp_path / "old", [("s", f"{at}-0", at) for at in range(1, 11)])
    for at in range(1, 16):
        server.xadd("s", {"n": at}, f"{at}-0")
    options = {"endpoints": endpoint, "stream": "s"}
    jobs.backfill(spark, str(tmp_path / "old"), SCHEMA, checkpoint, options)
    server.xtrim("s", maxlen=4, approximate=False)

    with pytest.raises(DataLoss, match="the history ends at 10-0, the first entry left is 12-0"):
        jobs.backfill(spark, str(tmp_path / "old"), SCHEMA, checkpoint, options)


def test_a_backfill_takes_no_other_start() -> None:
    with pytest.raises(OptionError, match="begins where the history ends: it takes no option 'startingid'"):
        jobs.backfill(None, "old", SCHEMA, "checkpoint", {"stream": "s", "startingId": "latest"})
