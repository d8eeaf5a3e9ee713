"""`penstock pipeline run`: runs a pipeline's stages as up to three streaming queries, connected by Parquet folders.

The first query reads, validates, enriches and finds late rows; each of its batches becomes one folder of clean rows and
one of quarantined rows. The second aggregates clean rows in windows. The third writes the published rows to a stream.
A folder is written under another name and then renamed, so it is complete or absent. A batch that Spark runs again
after a crash finds its folder and does nothing. So each stage has each row once, whichever process dies.

The first query decides which rows are late. Its watermark is never behind the second query's, so that the second one
drops no rows.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.pipeline.connector.connection.connection_options import connection_options
from penstock.pipeline.connector.datasource import FORMAT
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.jobs.backfill import id_order
from penstock.pipeline.runner import balance, ingest, stages
from penstock.pipeline.runner.balance import Stage
from penstock.pipeline.runner.batch_folders import BatchFolders
from penstock.pipeline.runner.pipeline_file import LOG, Pipeline
from penstock.pipeline.runner.stages import REASON, ROW, ROWS
from penstock.pipeline.session import make_active

NO_DATA: Final = "spark.sql.streaming.noDataMicroBatches.enabled"
TRIMS: Final = ("maxlen", "minid")

# Spark gives a Python process 10 s to start, which is too short on a busy machine. Nothing was done: start again.
LATE_WORKER: Final = "Python worker failed to connect back"
PATIENCE: Final = 15

# What Spark takes for an interruption, by a pattern that overflows its thread's stack on a batch's own long error.
INTERRUPTED: Final = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling a batch: java.lang.InterruptedException"
)

Start = Callable[..., Any]  # with a trigger as keyword; the query, or None where the pipeline has no such stage
Batch = Callable[[DataFrame, int], None]


def run_to_end(start: Start) -> None:
    """Run one query with Trigger.AvailableNow until it has read everything."""
    query = start(availableNow=True)
    for tries in range(PATIENCE):
        if query is None:
            return
        try:
            query.awaitTermination()
            return
        except StreamingQueryException as reason:
            if LATE_WORKER not in str(reason) or tries == PATIENCE - 1:
                raise
            query = start(availableNow=True)


class Runner:
    """One pipeline in one session.

    `say` is given the table of every batch as text. `is_interrupted` says that the queries are stopped from elsewhere.
    """

    def __init__(
        self,
        spark: Any,
        pipeline: Pipeline,
        say: Callable[[str], object] | None = None,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._is_interrupted = is_interrupted
        self._is_stopping = False
        self._say = say or (lambda text: sys.stderr.write(text + "\n\n"))
        self._folders = BatchFolders(spark)
        stages.check(spark.createDataFrame([], ingest.ROW), pipeline)
        self._lookups = [stages.read_lookup(spark, lookup) for lookup in pipeline.lookups]
        self._clean = f"{pipeline.folder}/clean"
        self._quarantine = f"{pipeline.folder}/quarantine"
        for folder in (self._clean, self._quarantine, pipeline.parquet):
            self._folders.make(folder)
        self._clean_schema = self._shape()
        self._published_schema()  # resolves the windows' expressions before a query starts
        self._watermark_ms = self._interval_ms(pipeline.aggregate.watermark) if pipeline.aggregate else 0
        self._running: list[tuple[Start, Any]] = []
        self._every = ""

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self) -> list[Stage]:
        """Process what is there now, stage by stage; returns the counts of all batches so far."""
        starts = [self._start_windows, self._start_stream]
        if self._pipeline.ingest.source == LOG:
            self._take_log()
        else:
            starts.insert(0, self._start_first)
        for start in starts:
            run_to_end(start)
        return self.totals()

    def start(self, every: str) -> None:
        """Start the queries in the background, with a batch every `every`, until `stop`."""
        self._every = every
        for start in (self._start_first, self._start_windows, self._start_stream):
            query = start(processingTime=every)
            if query is not None:
                self._running.append((start, query))

    def wait(self, seconds: float) -> None:
        """Wait; PipelineError once a query has failed."""
        if self._running:
            with contextlib.suppress(StreamingQueryException):  # told below, of whichever it is
                self._running[0][1].awaitTermination(seconds)
        for at, (start, query) in enumerate(self._running):
            reason = query.exception()
            if reason is not None:
                if LATE_WORKER not in str(reason):
                    raise PipelineError(f"the query {query.name} failed: {reason}")
                self._running[at] = (start, start(processingTime=self._every))

    def stop(self) -> None:
        self._is_stopping = True
        for _, query in self._running:
            query.stop()
        self._running = []
        self._is_stopping = False

    def _stoppable(self, batch: Batch) -> Batch:
        """A batch: while its query is being stopped, its error has a text that Spark recognizes as a stop."""

        def run(rows: DataFrame, number: int) -> None:
            try:
                batch(rows, number)
            except Exception:
                if self._is_stopping or self._is_interrupted():
                    raise InterruptedError(INTERRUPTED) from None
                raise

        return run

    # -- the first query ----------------------------------------------------------------------------------------------

    def _start_first(self, **trigger: Any) -> Any:
        rows = ingest.streamed(self._spark, self._pipeline.ingest)
        writer = rows.writeStream.foreachBatch(self._stoppable(self._take)).queryName(f"{self._pipeline.name}-rows")
        return writer.option("checkpointLocation", self._checkpoint("rows")).trigger(**trigger).start()

    def _take_log(self) -> None:
        """Process the log's entries after the last batch, as one more batch."""
        number = len(self._folders.names(self._clean))
        after = self._counts("clean", number - 1).get("last_ids", {}) if number else {}
        rows = ingest.logged(self._spark, self._pipeline.ingest, after)
        if not rows.isEmpty():
            self._take(rows, number)

    def _take(self, rows: DataFrame, number: int) -> None:
        """Process one batch into its two folders. PipelineError, and no folders, if its counts do not balance."""
        if self._folders.exists(_of_batch(self._clean, number)):
            self._say(f"batch {number} was done before")
            return
        before = self._counts("clean", number - 1) if number else {}
        rows = rows.persist()
        checked = stages.validated(rows, self._pipeline).persist()
        known = stages.enriched(checked.where(f.col(REASON) == ""), self._pipeline, self._lookups)
        if self._pipeline.aggregate is not None:
            newest = before.get("newest_ms")
            watermark = None if newest is None else newest - self._watermark_ms
            known = stages.on_time(known, self._pipeline.aggregate, watermark)
        known = known.persist()
        try:
            counts = self._write(rows, checked, known, before, number)
        finally:
            for frame in (known, checked, rows):
                frame.unpersist()
        self._say(balance.table(f"batch {number}", balance.of_batch(counts)))

    def _write(self, rows: DataFrame, checked: DataFrame, known: DataFrame, before: Any, number: int) -> dict[str, Any]:
        quarantined = [*(f.col(name) for name in stages.QUARANTINE), f.col(REASON).alias("reason")]
        bad = checked.where(f.col(REASON) != "").select(*quarantined)
        late = known.where(f.col(REASON) != "").select(*quarantined)
        clean = self._numbered(known.where(f.col(REASON) == "")).select(*self._clean_schema.names)
        counts: dict[str, Any] = {"ingested": rows.count()}
        counts["valid"], counts["bad"] = _fit_and_unfit(checked)
        on_time, counts["late"] = _fit_and_unfit(known)
        counts["enriched"] = on_time + counts["late"]
        aside = [self._aside(name, number) for name in ("quarantine", "clean")]
        for frame, path in zip((bad.unionByName(late), clean), aside, strict=True):
            frame.write.mode("overwrite").parquet(path)
        counts["quarantined"] = self._spark.read.parquet(aside[0]).count()
        counts["clean"], newest_ms = self._rows_and_newest(self._spark.read.parquet(aside[1]))
        counts["newest_ms"] = max((ms for ms in (newest_ms, before.get("newest_ms")) if ms is not None), default=None)
        if self._pipeline.ingest.source == LOG:
            last = rows.groupBy("_stream").agg(f.max_by("_id", id_order(f.col("_id"))).alias("id")).collect()
            counts["last_ids"] = {**before.get("last_ids", {}), **{row["_stream"]: row["id"] for row in last}}
        uneven = [stage for stage in balance.of_batch(counts) if not stage.balances]
        if uneven:
            raise PipelineError(balance.table(f"batch {number} does not balance", uneven))
        self._folders.write(self._counted("clean", number), counts)
        # The folder of clean rows comes last: while it is missing, the batch is processed again.
        self._folders.delete(_of_batch(self._quarantine, number))
        self._folders.move(aside[0], _of_batch(self._quarantine, number))
        self._folders.move(aside[1], _of_batch(self._clean, number))
        return counts

    def _rows_and_newest(self, written: DataFrame) -> tuple[int, int | None]:
        """How many clean rows a batch has, and the latest event time among them; None where there are no windows."""
        aggregate = self._pipeline.aggregate
        newest = f.lit(None) if aggregate is None else f.unix_millis(f.max(aggregate.time))
        (row,) = written.agg(f.count("*").alias("rows"), newest.alias("newest_ms")).collect()
        return row["rows"], row["newest_ms"]

    # -- the second and the third -------------------------------------------------------------------------------------

    def _start_windows(self, **trigger: Any) -> Any:
        if self._pipeline.aggregate is None:
            return None
        kept = self._spark.conf.get(NO_DATA)
        self._spark.conf.set(NO_DATA, "true")  # a window is published as soon as it closes, not with the next rows
        try:
            writer = stages.windows(self._stream_of(self._clean, self._clean_schema), self._pipeline).writeStream
            writer = writer.outputMode("append").foreachBatch(self._stoppable(self._publish))
            writer = writer.queryName(f"{self._pipeline.name}-windows")
            return writer.option("checkpointLocation", self._checkpoint("windows")).trigger(**trigger).start()
        finally:
            self._spark.conf.set(NO_DATA, kept)

    def _publish(self, windows: DataFrame, number: int) -> None:
        target = _of_batch(self._pipeline.parquet, number)
        if self._folders.exists(target):
            return
        aside = self._aside("published", number)
        windows.coalesce(1).sortWithinPartitions(ROW).write.mode("overwrite").parquet(aside)
        (counts,) = self._spark.read.parquet(aside).agg(f.count("*").alias("n"), f.sum(ROWS).alias("rows")).collect()
        if counts["n"]:
            self._folders.move(aside, target)
            self._say(f"windows: {counts['n']:,} closed with {counts['rows']:,} rows")

    def _start_stream(self, **trigger: Any) -> Any:
        options = self._pipeline.stream
        if options is None:
            return None
        published = self._stream_of(self._published, self._published_schema())
        if self._pipeline.aggregate is not None:
            published = published.coalesce(1)  # few rows, and always the same ones in the same task
        make_active(self._spark)
        writer = published.writeStream.format(FORMAT).options(**options)
        writer = writer.queryName(f"{self._pipeline.name}-stream")
        return writer.option("checkpointLocation", self._checkpoint("stream")).trigger(**trigger).start()

    @property
    def _published(self) -> str:
        return self._pipeline.parquet if self._pipeline.aggregate is not None else self._clean

    def _stream_of(self, folder: str, schema: Any) -> DataFrame:
        found: DataFrame = self._spark.readStream.schema(schema).option("recursiveFileLookup", "true").parquet(folder)
        return found

    # -- the end ------------------------------------------------------------------------------------------------------

    def totals(self) -> list[Stage]:
        """The counts of all batches, counted again in the folders and in the stream."""
        numbers = [int(name.partition("=")[2]) for name in self._folders.names(self._clean)]
        counted = [self._counts("clean", number) for number in numbers]
        sums = {name: sum(counts[name] for counts in counted) for name in balance.COUNTED}
        clean, quarantine = self._table(self._clean), self._table(self._quarantine)
        sums["clean"] = clean.count() if clean is not None else 0
        sums["quarantined"] = quarantine.count() if quarantine is not None else 0
        found = balance.of_batch(sums)
        published = self._table(self._published)
        if self._pipeline.aggregate is not None:
            found += self._windows_stages(sums["clean"], clean, published)
        if self._pipeline.stream is not None:
            found.append(self._stream_stage(published, self._pipeline.stream))
        return found

    def _windows_stages(self, rows: int, clean: DataFrame | None, published: DataFrame | None) -> list[Stage]:
        aggregate = self._pipeline.aggregate
        assert aggregate is not None, "asked for where there are windows"
        if clean is None:
            return []
        if published is None:
            return [Stage("windows", rows, 0, rows, "in open windows")]
        row = f.col(ROW)
        start = f.window(aggregate.time, aggregate.window)["start"].alias("window_start")
        closed = published.select("window_start", *aggregate.by)
        keys = ["window_start", *aggregate.by]
        same = [f.col(f"c.{name}").eqNullSafe(f.col(f"p.{name}")) for name in keys]
        still = clean.select(start, *aggregate.by).alias("c").join(closed.alias("p"), same, "left_anti").count()
        (sums,) = published.agg(
            f.sum(ROWS).alias("rows"), f.count("*").alias("n"), f.countDistinct(row).alias("d")
        ).collect()
        note = f"even, in {sums['n']:,} windows"
        return [
            Stage("windows", rows, sums["rows"], still, "in open windows", note),
            Stage("published once", sums["n"], sums["d"]),
        ]

    def _stream_stage(self, published: DataFrame | None, options: Any) -> Stage:
        """The published rows, and how many of them are in the stream; not checked if the sink trims the stream."""
        count = 0 if published is None else published.count()
        if published is None or any(name in options for name in TRIMS):
            return Stage("stream", count, count, note="not looked for: the stream is trimmed" if count else "")
        reading = connection_options(options)
        sent = (
            self._spark.read.format(FORMAT).schema(f"{ROW} string").options(**reading, stream=options["stream"]).load()
        )
        found = sent.join(published.select(ROW), ROW, "left_semi").count()
        return Stage("stream", count, found)

    def _table(self, folder: str) -> DataFrame | None:
        """A folder of batches as a table; None while there is none."""
        if not self._folders.names(folder):
            return None
        found: DataFrame = self._spark.read.option("recursiveFileLookup", "true").parquet(folder)
        return found

    # -- names --------------------------------------------------------------------------------------------------------

    def _shape(self) -> Any:
        """The clean rows' schema, found by passing an empty DataFrame through the stages."""
        empty = self._spark.createDataFrame([], ingest.ROW)
        known = self._numbered(stages.enriched(stages.validated(empty, self._pipeline), self._pipeline, self._lookups))
        return known.drop(stages.FIELDS, REASON).schema

    def _numbered(self, rows: DataFrame) -> DataFrame:
        """With the column `row`, unique for each row, if clean rows are published. A row of a file gets a UUID."""
        if self._pipeline.aggregate is not None:
            return rows
        place = f.when(f.col("_id").isNull(), f.expr("uuid()")).otherwise(f.concat_ws("/", "_stream", "_id"))
        return rows.withColumn(ROW, f.concat_ws("/", f.lit(self._pipeline.name), place))

    def _published_schema(self) -> Any:
        if self._pipeline.aggregate is None:
            return self._clean_schema
        return stages.windows(self._spark.createDataFrame([], self._clean_schema), self._pipeline).schema

    def _interval_ms(self, words: str) -> int:
        length = f.expr(f"unix_millis(timestamp_seconds(0) + INTERVAL '{words}')").alias("ms")
        (row,) = self._spark.range(1).select(length).collect()
        return int(row["ms"])

    def _checkpoint(self, query: str) -> str:
        return f"{self._pipeline.folder}/checkpoints/{query}"

    def _aside(self, stage: str, number: int) -> str:
        return f"{self._pipeline.folder}/unfinished/{stage}-{number:08d}"

    def _counted(self, stage: str, number: int) -> str:
        return f"{self._pipeline.folder}/counts/{stage}-{number:08d}.json"

    def _counts(self, stage: str, number: int) -> dict[str, Any]:
        return self._folders.read(self._counted(stage, number))


def _fit_and_unfit(rows: DataFrame) -> tuple[int, int]:
    """The number of rows without a reason, and with one."""
    (counts,) = rows.agg(f.count_if(f.col(REASON) == "").alias("fit"), f.count("*").alias("all")).collect()
    return counts["fit"], counts["all"] - counts["fit"]


def _of_batch(folder: str, number: int) -> str:
    return f"{folder}/batch={number:08d}"
