"""The sink and the log table as Spark calls them: tasks that die, queries that are killed, what their users see."""

import os
import random
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import redis
from pyspark.errors import PySparkException

from penstock.pipeline.aof import log_table
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.jobs import pending_jobs as jobs
from penstock.pipeline.session import register
from tests.pipeline.driving import in_a_new_thread, to_its_end
from tests.support.reference_server import LOCALHOST
from tests.support.server_process import running_server

FORMAT = "redis_streams"


def dying(marker, port, at=2_500):
    """For mapPartitions: the first try's process dies at a row, once the sink has written some before it."""

    def passed_on(rows):
        for number, row in enumerate(rows):
            if number == at and not Path(marker).exists():
                with redis.Redis(LOCALHOST, port, socket_timeout=60) as client:
                    assert client.xread({"s": "0"}, count=1, block=30_000), "the sink has written nothing"
                Path(marker).touch()
                os._exit(1)
            yield row

    return passed_on


@pytest.fixture
def small_batches(spark):
    """Few rows of `rows_of` fill the buffers between Spark's processes, 64 KB each: the sink is given some early."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def rows_of(spark, count, through):
    """A frame of one partition with a column n, made by Python processes; a row is 200 bytes and more."""
    numbers = spark.sparkContext.parallelize(range(count), 1).mapPartitions(through)
    return spark.createDataFrame(numbers.map(lambda number: (number, f"{number:200}")), "n bigint, payload string")


def saved(frame, endpoint, **options):
    writer = frame.write.format(FORMAT).option("endpoints", endpoint).option("stream", "s").mode("append")
    writer.options(**options).save()


def streamed(frame, endpoint, checkpoint, **options):
    """A query over all that is there, to its end."""
    writer = frame.writeStream.format(FORMAT).option("endpoints", endpoint).option("checkpointLocation", checkpoint)
    to_its_end(lambda **trigger: writer.options(**options).trigger(**trigger).start())


def source(spark, endpoint, **options):
    return (
        spark.readStream.format(FORMAT)
        .option("endpoints", endpoint)
        .option("stream", "from")
        .option("startingId", "earliest")
        .options(**options)
        .load()
    )


def fill(server, count):
    pipeline = server.pipeline(transaction=False)
    for at in range(count):
        pipeline.xadd("from", {"n": at})
    pipeline.execute()


def numbers(server, key="s"):
    return sorted(int(fields[b"n"]) for _, fields in server.xrange(key))


def test_a_frame_is_written_and_its_markers_go(spark, server, endpoint):
    saved(spark.range(0, 5000, 1, 2).selectExpr("id AS n"), endpoint)

    assert numbers(server) == list(range(5000))
    assert server.keys() == [b"s"]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("delivery", ["exactly-once", "idmp"])
def test_a_task_with_a_process_that_dies_writes_no_row_twice(spark, server, server_port, endpoint, tmp_path, delivery):
    frame = rows_of(spark, 3_000, dying(str(tmp_path / "died"), server_port))
    saved(frame, endpoint, delivery=delivery, pipeline="70")

    assert (tmp_path / "died").exists()
    assert numbers(server) == list(range(3_000))


@pytest.mark.usefixtures("small_batches")
def test_rows_that_differ_at_the_second_try_are_told(spark, server, server_port, endpoint, tmp_path):
    die = dying(str(tmp_path / "died"), server_port)

    def chance(rows):
        return die(random.sample(list(rows), 3_000))

    with pytest.raises(PySparkException, match="not those that an earlier try wrote"):
        saved(rows_of(spark, 3_000, chance), endpoint)


def test_a_query_copies_a_stream_and_goes_on_where_it_was(spark, server, endpoint, checkpoint):
    fill(server, 500)
    streamed(source(spark, endpoint), endpoint, checkpoint, stream="s")
    fill(server, 300)
    streamed(source(spark, endpoint), endpoint, checkpoint, stream="s")

    assert numbers(server) == sorted([*range(500), *range(300)])


def test_a_server_that_lost_a_committed_batch_ends_the_query_before_it_writes(spark, server, endpoint, checkpoint):
    fill(server, 20)
    streamed(source(spark, endpoint), endpoint, checkpoint, stream="s")
    server.delete("s", *server.keys("__spark:*"))
    fill(server, 1)

    with pytest.raises(PySparkException, match="knows none of this query's batches, and batch 0 was committed"):
        streamed(source(spark, endpoint), endpoint, checkpoint, stream="s")
    assert numbers(server) == []
    streamed(source(spark, endpoint), endpoint, checkpoint, stream="s", failOnDataLoss="false")
    assert numbers(server) == [0]


def test_foreach_batch_writes_no_row_twice_where_the_job_names_its_batch(spark, server, endpoint, checkpoint):
    failures = iter([True])

    def copy(batch, number):
        for stream in ("s", "t"):
            saved(batch.selectExpr("fields['n'] AS n"), endpoint, stream=stream, txnAppId="copy", txnVersion=number)
        if next(failures, False):
            raise InterruptedError

    def run():
        query = source(spark, endpoint).writeStream.foreachBatch(copy).option("checkpointLocation", checkpoint)
        to_its_end(lambda **trigger: query.trigger(**trigger).start())

    fill(server, 50)
    with pytest.raises(PySparkException, match="InterruptedError"):
        run()
    run()
    fill(server, 10)
    run()

    assert numbers(server) == numbers(server, "t") == sorted([*range(50), *range(10)])


@pytest.mark.parametrize("delivery", ["exactly-once", "idmp"])
def test_a_query_killed_between_sink_and_commit_writes_no_row_twice(spark, server, endpoint, checkpoint, delivery):
    fill(server, 500)
    streamed(source(spark, endpoint), endpoint, checkpoint, stream="s", delivery=delivery)
    for commit in (Path(checkpoint) / "commits").iterdir():  # as if the driver had died before it wrote it
        commit.unlink()
    streamed(source(spark, endpoint), endpoint, checkpoint, stream="s", delivery=delivery)

    assert numbers(server) == list(range(500))


def test_a_query_that_cuts_an_open_batch_anew_is_told(spark, server, endpoint, checkpoint):
    fill(server, 500)
    streamed(source(spark, endpoint, minPartitions="4"), endpoint, checkpoint, stream="s")
    for commit in (Path(checkpoint) / "commits").iterdir():
        commit.unlink()

    with pytest.raises(PySparkException, match=r"was committed with|an earlier try|more partitions"):
        streamed(source(spark, endpoint, minPartitions="2"), endpoint, checkpoint, stream="s")


def test_poison_is_found_and_moved_and_the_second_run_finds_none(spark, server, endpoint):
    fill(server, 20)
    server.xgroup_create("from", "g", "0")
    entries = server.xreadgroup("g", "alice", {"from": ">"})[0][1]
    poison = [entry_id for entry_id, _ in entries[:5]]
    server.xclaim("from", "g", "bob", 0, poison, retrycount=9, justid=True)

    for _ in range(2):
        pending = spark.read.format(FORMAT).options(endpoints=endpoint, table="pending", stream="from").load()
        saved_to = pending.where("deliveries >= 5").write.format(FORMAT).option("endpoints", endpoint)
        saved_to.option("operation", "deadletter").mode("append").save()

    letters = [letter for _, letter in server.xrange("from:dead")]
    assert [letter[b"_id"] for letter in letters] == poison
    assert {(letter[b"_consumer"], letter[b"_deliveries"]) for letter in letters} == {(b"bob", b"9")}
    assert server.xpending("from", "g")["pending"] == 15


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delivry": "idmp"}, "did you mean 'delivery'"),
        ({"operation": "ack"}, "needs a column 'group'"),
        ({"ids": "column"}, "needs a column '_id'"),
    ],
    ids=["misspelt", "columns", "ids"],
)
def test_a_mistake_is_told_before_anything_is_written(spark, server, endpoint, options, text):
    with pytest.raises(PySparkException, match=text):
        saved(spark.range(1).selectExpr("id AS n"), endpoint, **options)
    assert server.keys() == []


def test_overwriting_a_stream_is_refused(spark, endpoint):
    with pytest.raises(PySparkException, match="only appended to"):
        spark.range(1).write.format(FORMAT).options(endpoints=endpoint, stream="s").mode("overwrite").save()


def test_a_thread_that_registers_the_format_writes(spark, server, endpoint):
    def write():
        register(spark)
        saved(spark.range(3), endpoint)

    in_a_new_thread(write)
    assert server.xlen("s") == 3


def test_jobs_of_a_thread_write(spark, server, endpoint):
    fill(server, 3)
    server.xgroup_create("from", "g", "0")
    server.xreadgroup("g", "alice", {"from": ">"})

    def move():
        pending = spark.read.format(FORMAT).options(endpoints=endpoint, table="pending", stream="from").load()
        return jobs.move_to_dead_letter(pending, {"endpoints": endpoint}).count()

    def redrive():
        dead = spark.read.format(FORMAT).schema(jobs.LETTERS).options(endpoints=endpoint, stream="from:dead").load()
        return jobs.redrive(dead, {"endpoints": endpoint}).count()

    assert in_a_new_thread(move) == 3
    assert in_a_new_thread(redrive) == 3
    assert server.xlen("from") == 6


# -- the log table ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a server that has really written it, with its pid's files still open."""
    directory = tmp_path_factory.mktemp("log")
    with running_server("--appendonly", "yes", "--aof-timestamp-enabled", "yes", dir=directory) as server:
        with redis.Redis(LOCALHOST, server.port) as client:
            for at in range(400):
                client.xadd("s", {"n": at, "text": "\r\n*1\r\n$4\r\nEXEC\r\n"}, f"{at + 1}-0")
            client.xgroup_create("s", "g", "0")
            client.xreadgroup("g", "alice", {"s": ">"}, count=10)
            client.xack("s", "g", "1-0", "2-0")
        yield directory


def read_log(spark, path, schema=None, **options):
    reader = spark.read.format(FORMAT).option("table", "aof").options(**options)
    return (reader.schema(schema) if schema else reader).load(str(path))


def test_a_log_is_a_table_of_its_lines(spark, log):
    rows = read_log(spark, log).collect()

    added = [row for row in rows if row.command == "XADD"]
    assert [bytes(row.args[1]) for row in added] == [b"%d-0" % (at + 1) for at in range(400)]
    assert {(bytes(row.key), row.db, row.in_multi) for row in added} == {(b"s", 0, False)}
    assert all(row.ts is not None for row in added)
    claim = next(row for row in rows if row.command == "XCLAIM")
    assert [bytes(word) for word in claim.args[:4]] == [b"s", b"g", b"alice", b"0"]
    assert claim.in_multi
    ack = next(row for row in rows if row.command == "XACK")
    assert [bytes(word) for word in ack.args] == [b"s", b"g", b"1-0", b"2-0"]
    assert next(bytes(row.key) for row in rows if row.command == "XGROUP") == b"s"


def test_splits_give_the_same_rows(spark, log):
    columns = "file string, file_seq int, offset bigint, command string, args array<string>"
    whole = read_log(spark, log, columns, splitBytes="0").orderBy("file_seq", "offset").collect()
    parted = read_log(spark, log, columns, splitBytes="6000").orderBy("file_seq", "offset").collect()

    assert parted == whole
    assert len(whole) > 400


def test_what_a_split_cannot_know_is_carried_over_to_it(spark, log):
    parted = log_table.filled(spark, str(log), 6000).orderBy("file_seq", "offset").collect()
    whole = read_log(spark, log, splitBytes="0").orderBy("file_seq", "offset").collect()

    assert parted == whole


def test_a_torn_end_is_left_out_and_a_torn_middle_is_told(spark, log, tmp_path):
    torn = tmp_path / "torn.aof"
    (increment,) = (log / "appendonlydir").glob("*.incr.aof")
    text = increment.read_bytes()
    torn.write_bytes(text + text[: len(text) // 2][:-3])
    assert read_log(spark, torn, "command string").where("command = 'XADD'").count() > 400

    torn.write_bytes(text[:500] + b"garbage" + text[500:])
    with pytest.raises(PySparkException, match=r"torn\.aof: expected .* at byte"):
        read_log(spark, torn, "command string").count()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("command string, when timestamp", "has no column 'when'"),
        ("command binary", "the column 'command' is string, not binary"),
    ],
    ids=["unknown", "type"],
)
def test_a_column_that_the_log_does_not_have_is_refused(spark, log, schema, text):
    with pytest.raises(PySparkException, match=text):
        read_log(spark, log, schema).collect()


def test_a_log_that_is_not_there_is_told(spark, tmp_path):
    with pytest.raises(PySparkException, match="there is no"):
        read_log(spark, tmp_path / "nowhere").collect()


def test_options_of_the_log_table_are_checked():
    with pytest.raises(PipelineError, match="needs the path of a log"):
        log_table.read_options({"table": "aof"})
    with pytest.raises(PipelineError, match="did you mean 'splitBytes'"):
        log_table.read_options({"path": "x", "splitbyte": "1"})
