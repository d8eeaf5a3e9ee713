"""The table `aof` as a stream, driven as Spark drives it, over files that a server writes meanwhile."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import itertools

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types
from pyspark.sql.streaming.datasource import ReadAllAvailable

from penstock.pipeline.aof import log_stream
from penstock.pipeline.aof.log_files import DamagedLog
from penstock.pipeline.connector.connection.client import packed
from penstock.pipeline.connector.datasource import StreamsDataSource
from penstock.pipeline.errors import DataLoss, OptionError, PipelineError
from tests.pipeline.driving import rows_of, to_its_end
from tests.support.reference_server import LOCALHOST
from tests.support.seeds import examples
from tests.support.server_process import running_server

SCHEMA = (
    types.StructType()
    .add("file", types.StringType())
    .add("offset", types.LongType())
    .add("ts", types.TimestampType())
    .add("db", types.IntegerType())
    .add("command", types.StringType())
    .add("key", types.StringType())
    .add("in_multi", types.BooleanType())
)


class Log:
    """A directory with a log: a base, and increments that are appended to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = 1
        self.first = self.last = 1
        self.append(b"", "base")
        self.append(b"")
        self.write_manifest()

    def write_manifest(self) -> None:
        lines = [f"file a.{self.base}.base.aof seq {self.base} type b"]
        lines += [f"file a.{number}.incr.aof seq {number} type i" for number in range(self.first, self.last + 1)]
        (self.folder / "a.manifest").write_text("\n".join(lines) + "\n")

    def append(self, text: bytes, kind: str = "incr") -> None:
        number = self.base if kind == "base" else self.last
        with (self.folder / f"a.{number}.{kind}.aof").open("ab") as file:
            file.write(text)

    def rotate(self) -> None:
        """A rewrite begins: what is written from now on goes into a new increment."""
        self.last += 1
        self.append(b"")
        self.write_manifest()

    def rewrite(self, keeps: bool = False) -> None:
        """The rewrite has ended: a new base instead of all but the last increment."""
        old = [f"a.{self.base}.base.aof", *(f"a.{number}.incr.aof" for number in range(self.first, self.last))]
        self.base += 1
        self.append(line("SET k restated"), "base")
        self.first = self.last
        self.write_manifest()
        for name in [] if keeps else old:
            (self.folder / name).unlink()


class Query:
    """A streaming query over a log; `batch()` is one trigger: what its rows are, None where there was nothing new."""

    def __init__(self, path: Path, **options: str) -> None:
        self.options = {"path": str(path), "pollTimeout": "1ms", "startingOffset": "earliest", **options}
        self.reader = log_stream.create_reader(self.options, SCHEMA)
        self.offset: dict[str, Any] = self.reader.initialOffset()

    def start_driver(self) -> None:
        self.reader = log_stream.create_reader(self.options, SCHEMA)

    def batch(self) -> list[dict[str, Any]] | None:
        end = self.reader.latestOffset(self.offset, ReadAllAvailable())
        if end == self.offset:
            return None
        tasks = self.reader.partitions(self.offset, end)
        self.offset = end
        return rows_of(self.reader, tasks)

    def keys(self) -> list[str] | None:
        found = self.batch()
        return None if found is None else [row["key"] for row in found]

    def rest(self) -> list[dict[str, Any]]:
        """Batch after batch until there is nothing new."""
        rows: list[dict[str, Any]] = []
        while (found := self.batch()) is not None:
            rows += found
        return rows


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def line(text: str) -> bytes:
    return packed(*text.split())


def lines(*texts: str) -> bytes:
    return b"".join(map(line, texts))


def test_what_is_written_comes_batch_by_batch(log: Log) -> None:
    log.append(lines("SELECT 0", "SET a 1"), "base")
    log.append(lines("SET b 1"))
    query = Query(log.folder)

    first = query.batch()
    nothing = query.batch()
    log.append(lines("SET c 1", "SET d 1"))

    assert first is not None
    assert [(row["file"], row["key"]) for row in first] == [
        ("a.1.base.aof", None),
        ("a.1.base.aof", "a"),
        ("a.1.incr.aof", "b"),
    ]
    assert nothing is None
    assert query.keys() == ["c", "d"]


def test_a_new_query_begins_with_what_is_written_next(log: Log) -> None:
    log.append(lines("SELECT 3", "SET a 1") + line("SET torn 1")[:-3])
    query = Query(log.folder, startingOffset="latest")
    nothing = query.batch()
    log.append(line("SET torn 1")[-3:] + line("SET b 1"))

    found = query.batch()

    assert nothing is None
    assert found is not None
    assert [(row["key"], row["db"]) for row in found] == [("torn", 3), ("b", 3)]


def test_database_time_and_transaction_go_on_from_batch_to_batch(log: Log) -> None:
    log.append(lines("SELECT 2") + b"#TS:1795264424\r\n" + lines("SET a 1"))
    query = Query(log.folder)
    query.batch()
    log.append(lines("SET b 1", "MULTI", "SET c 1", "EXEC"))

    found = query.batch()

    assert found is not None
    assert {row["db"] for row in found} == {2}
    assert {row["ts"].timestamp() for row in found} == {1795264424}
    assert [row["in_multi"] for row in found] == [False, True, True, True]


def test_a_transaction_comes_when_it_is_complete(log: Log) -> None:
    log.append(lines("SET a 1", "MULTI", "SET b 1"))
    query = Query(log.folder)
    first, nothing = query.keys(), query.keys()
    log.append(lines("SET c 1", "EXEC", "SET d 1"))

    assert first == ["a"]
    assert nothing is None
    assert query.keys() == [None, "b", "c", None, "d"]


def test_a_batch_is_the_same_for_every_attempt_and_every_driver(log: Log) -> None:
    log.append(lines("SET a 1", "SET b 1"))
    query = Query(log.folder)
    start = query.offset
    query.batch()
    log.append(lines("SET c 1"))
    query.start_driver()

    again = rows_of(query.reader, query.reader.partitions(start, query.offset))

    assert [row["key"] for row in again] == ["a", "b"]
    assert query.keys() == ["c"]


def test_a_rewrite_says_nothing_twice_and_loses_nothing(log: Log) -> None:
    query = Query(log.folder)
    log.append(lines("SET a 1"))
    first = query.keys()
    log.rotate()
    log.append(lines("SET b 1"))
    second = query.keys()
    log.rewrite()
    log.append(lines("SET c 1"))

    assert (first, second, query.keys()) == (["a"], ["b"], ["c"])


def test_a_file_that_was_removed_unread_is_a_loss_or_a_warning(log: Log) -> None:
    strict, lenient = Query(log.folder), Query(log.folder, failOnDataLoss="false")
    log.append(lines("SET a 1"))
    strict.keys()
    lenient.keys()
    log.append(lines("SET b 1"))
    log.rotate()
    log.append(lines("SET c 1"))
    log.rewrite()

    with pytest.raises(DataLoss, match=r"a\.1\.incr\.aof was removed by a rewrite before its last 27 bytes were read"):
        strict.batch()
    with pytest.warns(UserWarning, match="was removed by a rewrite"):
        assert lenient.keys() == ["c"]


def test_a_file_that_was_removed_once_it_was_read_is_no_loss(log: Log) -> None:
    query = Query(log.folder)
    log.append(lines("SET a 1"))
    first = query.keys()
    log.rotate()
    log.append(lines("SET c 1"))
    log.rewrite()

    assert (first, query.keys()) == (["a"], ["c"])


def test_a_new_driver_cannot_tell_how_far_a_removed_file_went(log: Log) -> None:
    query = Query(log.folder)
    log.append(lines("SET a 1"))
    query.keys()
    log.rotate()
    log.rewrite()
    query.start_driver()

    with pytest.raises(DataLoss, match=r"a\.1\.incr\.aof was removed by a rewrite before its end was seen"):
        query.batch()


def test_a_reader_that_stopped_holds_no_file(log: Log) -> None:
    query = Query(log.folder)
    log.append(lines("SET a 1"))
    descriptors = Path("/dev/fd")
    before = len(list(descriptors.iterdir()))
    query.keys()
    reading = len(list(descriptors.iterdir()))
    query.reader.stop()

    assert (reading, len(list(descriptors.iterdir()))) == (before + 1, before)


def test_a_file_that_the_server_keeps_is_read_to_its_end(log: Log) -> None:
    query = Query(log.folder)
    log.append(lines("SET a 1"))
    first = query.keys()
    log.append(lines("SET b 1"))
    log.rotate()
    log.append(lines("SET c 1"))
    log.rewrite(keeps=True)

    assert (first, query.keys()) == (["a"], ["b", "c"])


def test_a_log_that_was_cut_is_a_loss(log: Log) -> None:
    log.append(lines("SET a 1", "SET b 1"))
    query = Query(log.folder)
    query.batch()
    (log.folder / "a.1.incr.aof").write_bytes(lines("SET a 1"))

    with pytest.raises(DataLoss, match="were read: it was cut or replaced"):
        query.batch()


def test_damage_ends_the_query_with_its_place(log: Log) -> None:
    log.append(lines("SET a 1") + b"+OK\r\n")
    query = Query(log.folder)

    with pytest.raises(DamagedLog, match=r"a\.1\.incr\.aof: expected a request .* at byte 27"):
        query.batch()


def test_zeros_at_the_end_are_not_there_yet(log: Log) -> None:
    log.append(lines("SET a 1") + bytes(100))

    assert Query(log.folder).keys() == ["a"]


def test_an_older_file_that_ends_within_a_transaction_is_damaged(log: Log) -> None:
    log.append(lines("MULTI", "SET a 1"))
    log.rotate()

    with pytest.raises(DamagedLog, match="ends within a transaction, and is not the log's last file"):
        Query(log.folder).batch()


def test_what_is_there_now_ends_where_it_began(log: Log) -> None:
    log.append(lines("SET a 1"))
    query = Query(log.folder)
    query.reader.prepareForTriggerAvailableNow()
    log.append(lines("SET b 1"))
    log.rotate()
    log.append(lines("SET c 1"))

    assert [row["key"] for row in query.rest()] == ["a"]


def test_large_batches_are_limited_and_split(log: Log) -> None:
    log.append(line("SET key " + "x" * 1000) * 1000)
    query = Query(log.folder, maxBytesPerTrigger="300000", splitBytes="100000")

    first = query.batch()
    splits = query.offset["splits"]

    assert first is not None
    assert 290 < len(first) < 400
    assert len(splits) == 3
    assert [split[3] for split in splits[:-1]] == [split[2] for split in splits[1:]]
    assert len(first) + len(query.rest()) == 1000


UNITS = st.lists(
    st.one_of(
        st.sampled_from([lines("SET a 1"), lines("SELECT 1"), lines("SELECT 2"), b"#TS:1795264424\r\n"]),
        st.just(lines("MULTI", "SET b 1", "SET c 1", "EXEC")),
        st.just(line("SET k " + "x" * 70_000)),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(40))
@given(UNITS, st.lists(st.integers(0, 300_000), max_size=6), st.sampled_from(["1", "100000"]))
def test_however_it_is_written_the_stream_is_what_one_reading_gives(
    tmp_path_factory: pytest.TempPathFactory, units: list[bytes], cuts: list[int], split_bytes: str
) -> None:
    text = b"".join(units)
    whole = Log(tmp_path_factory.mktemp("whole"))
    whole.append(text)
    expected = Query(whole.folder).rest()
    log = Log(tmp_path_factory.mktemp("log"))
    query = Query(log.folder, splitBytes=split_bytes, maxBytesPerTrigger="80000")
    found = []
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(places):
        log.append(text[begin:end])
        found += query.rest()

    assert found == expected


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs the path of a log"),
        ({"path": "x", "startingOffset": "now"}, "is to be one of earliest, latest"),
        ({"path": "x", "maxBytes": "1"}, "did you mean 'maxBytesPerTrigger'"),
    ],
)
def test_options_are_checked(options: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        log_stream.create_reader(options, SCHEMA)


def test_another_sources_checkpoint_is_refused(log: Log) -> None:
    with pytest.raises(PipelineError, match="was not written by this version"):
        Query(log.folder).reader.latestOffset({"v": 1, "at": {}}, ReadAllAvailable())


def test_a_servers_log_is_followed_over_its_rewrite(tmp_path: Path) -> None:
    with (
        running_server("--appendonly", "yes", dir=tmp_path) as server,
        redis.Redis(LOCALHOST, server.port, decode_responses=True) as client,
    ):
        client.set("a", 1)
        query = Query(tmp_path)
        first = [row["key"] for row in query.rest() if row["key"]]
        client.bgrewriteaof()
        client.set("b", 1)
        found = query.rest()
        while client.info("persistence")["aof_rewrite_in_progress"]:
            found += query.rest()
        client.set("c", 1)
        found += query.rest()

    assert first == ["a"]
    assert [row["key"] for row in found if row["key"] and row["file"].endswith("incr.aof")] == ["b", "c"]
    assert [row for row in found if not row["file"].endswith("incr.aof")] == []


def test_spark_follows_a_log(spark: Any, log: Log, tmp_path: Path, checkpoint: str) -> None:
    assert StreamsDataSource({"table": "aof"}).schema()
    log.append(lines("SELECT 0", "SET a 1"))

    def copy(**trigger: Any) -> Any:
        frame = (
            spark.readStream.format("redis_streams")
            .option("table", "aof")
            .option("startingOffset", "earliest")
            .load(str(log.folder))
        )
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        return writer.option("path", str(tmp_path / "out")).trigger(**trigger).start()

    to_its_end(copy)
    log.rotate()
    log.append(lines("MULTI", "SET b 1", "EXEC"))
    to_its_end(copy)

    rows = spark.read.parquet(str(tmp_path / "out")).where("key IS NOT NULL").orderBy("file_seq", "offset").collect()
    assert [(bytes(row.key), row.in_multi) for row in rows] == [(b"a", False), (b"b", True)]
