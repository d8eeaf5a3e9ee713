"""Reading with Spark itself: what only a JVM, its workers and their retries can show."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.errors import PySparkException

from penstock.pipeline.runner.runner import LATE_WORKER
from tests.pipeline.connector.test_cursor_reader import fill
from tests.pipeline.driving import to_its_end

Load = Callable[..., Any]

PATIENCE_S = 300  # for what a busy machine may take long to do; nothing that goes well waits for it


@pytest.fixture
def load(spark: Any, endpoint: str) -> Load:
    """`load("read" | "readStream", schema, **options)` is a DataFrame of the server."""

    def make(kind: str = "read", ddl: str | None = None, **options: Any) -> Any:
        reader = getattr(spark, kind).format("redis_streams").option("endpoints", endpoint)
        reader = reader.options(**{name: str(value) for name, value in options.items()})
        return (reader if ddl is None else reader.schema(ddl)).load()

    return make


class Batches:
    """What a query handed to `foreachBatch`, batch by batch."""

    def __init__(self, frame: Any, checkpoint: str) -> None:
        self.frame = frame
        self.checkpoint = checkpoint
        self.rows: list[tuple[int, list[str]]] = []
        self.fails_at: int | None = None

    def take(self, frame: Any, number: int) -> None:
        self.rows.append((number, sorted(row._id for row in frame.select("_id").collect())))
        if number == self.fails_at:
            raise RuntimeError("the sink has written, and dies")

    def start(self, **trigger: Any) -> Any:
        writer = self.frame.writeStream.foreachBatch(self.take).option("checkpointLocation", self.checkpoint)
        return writer.trigger(**trigger).start()

    def run(self) -> None:
        """Everything that is there now."""
        to_its_end(self.start)

    def ids(self) -> list[str]:
        return sorted(itertools.chain.from_iterable(ids for _, ids in self.rows))


def crash_once(marker: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A map over rows; its first task dies after some of them, as if the machine had."""

    def ids(rows: Iterator[Any]) -> Iterator[str]:
        for seen, row in enumerate(rows):
            if seen == 100 and not os.path.exists(marker):  # noqa: PTH110 - it runs on an executor
                os.close(os.open(marker, os.O_CREAT))
                os._exit(7)
            yield row._id

    return ids


def test_the_format_is_known_without_registering_it(server: redis.Redis, load: Load) -> None:
    server.xadd("orders", {"sku": "a1", "qty": "7"}, id="1795214535211-0")

    assert [row.asDict() for row in load(stream="orders").collect()] == [
        {
            "_stream": "orders",
            "_id": "1795214535211-0",
            "_timestamp": datetime(2026, 11, 20, 22, 42, 15, 211000, UTC).astimezone().replace(tzinfo=None),
            "fields": {"sku": "a1", "qty": "7"},
        }
    ]


def test_the_schema_says_what_the_columns_are(server: redis.Redis, load: Load) -> None:
    server.xadd("s", {"n": "5", "price": "1.25", "at": "2026-11-20", "raw": b"\xff\r\n"}, id="1-1")
    server.xadd("s", {"n": "many"}, id="1-2")
    ddl = "n int, price decimal(10,2), at date, raw binary, _ms bigint, fields array<struct<name:string,value:binary>>"
    first, second = load(ddl=ddl, stream="s").collect()

    assert (first.n, str(first.price), str(first["at"]), bytes(first.raw), first._ms) == (
        5,
        "1.25",
        "2026-11-20",
        b"\xff\r\n",
        1,
    )
    assert [pair.name for pair in first.fields] == ["n", "price", "at", "raw"]
    assert (second.n, second.price) == (None, None)


def test_a_table_in_sql(server: redis.Redis, spark: Any, endpoint: str) -> None:
    fill(server, "s", 1, 2, 3)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING redis_streams OPTIONS (endpoints '{endpoint}', stream 's')")

    assert spark.sql("SELECT sum(fields['n']) AS n FROM v WHERE _id <> '1-1'").collect()[0].n == 5


def test_a_created_table_says_that_spark_lost_its_options_and_is_read_with_them(
    server: redis.Redis, spark: Any, endpoint: str
) -> None:
    fill(server, "s", 1)
    spark.sql(f"CREATE TABLE lost (_id string) USING redis_streams OPTIONS (endpoints '{endpoint}', stream 's')")
    try:
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW v USING redis_streams OPTIONS"):
            spark.sql("SELECT * FROM lost").collect()
        rows = spark.read.option("endpoints", endpoint).option("stream", "s").table("lost").collect()
    finally:
        spark.sql("DROP TABLE lost")

    assert [row._id for row in rows] == ["1-1"]


def test_conditions_narrow_what_is_read(server: redis.Redis, spark: Any, load: Load) -> None:
    fill(server, "a", 0, 1, ms=1000)
    fill(server, "a", 0, ms=2000)
    fill(server, "b", 0, ms=3000)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load(streamPattern="*", pushFilters="true")
        late = frame.where("_timestamp >= timestamp'1970-01-01 00:00:02' and _stream = 'a'").collect()
        one = frame.where("_id = '1000-1'").collect()
        server.xgroup_create("a", "g", "0")
        server.xreadgroup("g", "alice", {"a": ">"}, count=2)
        server.xreadgroup("g", "bob", {"a": ">"})
        pending = load(table="pending", pushFilters="true").where(
            "consumer = 'alice' AND deliveries < 2 AND idle_ms >= 0"
        )
        held = pending.select("id").collect()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")

    assert [row._id for row in late] == ["2000-0"]
    assert [row._id for row in one] == ["1000-1"]
    assert sorted(row.id for row in held) == ["1000-0", "1000-1"]


def test_a_task_that_dies_is_run_again_with_the_same_rows(server: redis.Redis, load: Load, tmp_path: Path) -> None:
    expected = fill(server, "s", *range(1, 501))
    frame = load(stream="s", minPartitions=2, fetchSize=50)
    marker = str(tmp_path / "crashed")
    rows = frame.rdd.mapPartitions(crash_once(marker)).collect()

    assert Path(marker).exists()
    assert sorted(rows) == sorted(expected)


def test_two_actions_on_one_batch_see_the_same_entries(server: redis.Redis, load: Load) -> None:
    fill(server, "s", 1, 2)
    frame = load(stream="s")

    assert frame.count() == 2
    fill(server, "s", 3)
    assert frame.count() == 2
    assert load(stream="s").count() == 3


def test_a_stream_is_read_once_and_a_restart_goes_on(server: redis.Redis, load: Load, checkpoint: str) -> None:
    expected = fill(server, "s", *range(1, 101))
    batches = Batches(load("readStream", stream="s", startingId="earliest", maxEntriesPerTrigger=40), checkpoint)
    batches.run()
    assert [len(ids) for _, ids in batches.rows] == [40, 40, 20]

    expected += fill(server, "s", *range(101, 121))
    batches.run()
    assert batches.ids() == sorted(expected)
    assert batches.rows[-1][0] == 3


def test_a_batch_is_the_same_again_if_its_driver_died_after_the_sink_wrote(
    server: redis.Redis, load: Load, checkpoint: str
) -> None:
    expected = fill(server, "s", *range(1, 51))
    batches = Batches(load("readStream", stream="s", startingId="earliest", maxEntriesPerTrigger=20), checkpoint)
    batches.fails_at = 1
    with pytest.raises(Exception, match="the sink has written, and dies"):
        batches.run()
    expected += fill(server, "s", *range(51, 61))

    batches.fails_at = None
    batches.run()
    (_, first), (number, again) = batches.rows[1:3]
    assert (number, again) == (1, first)
    assert sorted(set(batches.ids())) == sorted(expected)


def test_available_now_ends_under_constant_writes(server: redis.Redis, load: Load, checkpoint: str) -> None:
    expected = fill(server, "s", *range(1, 31))
    batches = Batches(load("readStream", stream="s", startingId="earliest", maxEntriesPerTrigger=20), checkpoint)
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.02):
            server.xadd("s", {"n": 0})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        batches.run()
    finally:
        done.set()
        writer.join()
    assert set(expected) <= set(batches.ids())


def test_a_shared_group_leaves_nothing_pending(server: redis.Redis, load: Load, checkpoint: str) -> None:
    expected = fill(server, "s", *range(1, 101))
    server.xgroup_create("s", "g", "0")
    theirs = [entry_id.decode() for entry_id, _ in server.xreadgroup("g", "alice", {"s": ">"}, count=30)[0][1]]
    server.xack("s", "g", *theirs)
    frame = load("readStream", stream="s", group="g", groupMode="shared", maxEntriesPerTrigger=40, minPartitions=2)
    batches = Batches(frame, checkpoint)
    batches.run()

    assert batches.ids() == sorted(set(expected) - set(theirs))
    assert server.xpending("s", "g")["pending"] == 0


def test_a_query_that_waits_wakes_at_once_and_stops_at_once(server: redis.Redis, load: Load, checkpoint: str) -> None:
    batches = Batches(load("readStream", stream="s", pollTimeout="10m"), checkpoint)  # how long it would take otherwise
    query = waiting(server, batches)
    query.stop()

    assert query.exception() is None


def waiting(server: redis.Redis, batches: Batches) -> Any:
    """A query that has shown an entry, of those that are added one after the other, and now waits for more."""
    queries = [batches.start(processingTime="0 seconds")]

    def shown() -> bool:
        reason = queries[-1].exception()
        if reason is not None:
            assert LATE_WORKER in str(reason), reason
            queries.append(batches.start(processingTime="0 seconds"))
        server.xadd("s", {"n": 1})
        return bool(batches.rows)

    try:
        until(shown)
        until(lambda: any("b" in client["flags"] for client in server.client_list()))
    except BaseException:
        queries[-1].stop()
        raise
    return queries[-1]


def until(done: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < give_up_s, "it does not happen"
        time.sleep(0.25)


def test_lost_entries_end_a_query_with_their_number(server: redis.Redis, load: Load, checkpoint: str) -> None:
    fill(server, "s", *range(1, 11))
    batches = Batches(load("readStream", stream="s", startingId="earliest"), checkpoint)
    batches.run()
    fill(server, "s", *range(11, 31))
    server.xtrim("s", maxlen=5, approximate=False)

    with pytest.raises(Exception, match="15 entries were trimmed before they were read"):
        batches.run()


def test_a_mistyped_option_is_told_to_the_user(load: Load) -> None:
    with pytest.raises(Exception, match="did you mean 'streamPattern'"):
        load(streamPatern="*").collect()


def test_pending_entries_are_a_table(server: redis.Redis, load: Load) -> None:
    fill(server, "s", 1, 2, 3)
    server.xgroup_create("s", "g", "0")
    server.xreadgroup("g", "alice", {"s": ">"})
    server.execute_command("XCLAIM", "s", "g", "bob", 0, "1-1", "RETRYCOUNT", 9)

    counts = load(table="pending", streamPattern="*").groupBy("stream", "group", "deliveries").count().collect()
    assert sorted((row.stream, row.group, row.deliveries, row["count"]) for row in counts) == [
        ("s", "g", 1, 2),
        ("s", "g", 9, 1),
    ]
    assert [row.lag for row in load(table="groups").collect()] == [0]
