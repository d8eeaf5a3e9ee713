"""The first stage: streams, a log directory or files as rows with `_stream`, `_id`, `_timestamp` and `fields`."""

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.pipeline.aof import log_table
from penstock.pipeline.connector.datasource import FORMAT
from penstock.pipeline.jobs import log_jobs
from penstock.pipeline.jobs.backfill import id_order
from penstock.pipeline.runner.pipeline_file import FILES, Ingest

ROW: Final = "_stream string, _id string, _timestamp timestamp, fields map<string,string>"


def streamed(spark: Any, ingest: Ingest) -> DataFrame:
    """A streaming frame of streams, or of a folder's files as they come."""
    if ingest.source == FILES:
        return _files(spark, ingest)
    found: DataFrame = spark.readStream.format(FORMAT).schema(ROW).options(**ingest.options).load()
    return found


def _files(spark: Any, ingest: Ingest) -> DataFrame:
    """A row's `_stream` is its file. The schema is inferred from the files that are there at the start."""
    options = {"header": "true", **ingest.options} if ingest.file_format == "csv" else dict(ingest.options)
    path = options.pop("path")
    if ingest.file_format == "json":
        options.setdefault("primitivesAsString", "true")
    schema = spark.read.format(ingest.file_format).options(**options).load(path).schema
    rows = spark.readStream.format(ingest.file_format).schema(schema).options(**options).load(path)
    pairs = [
        f.struct(f.lit(name).alias("name"), f.col(f"`{name}`").cast("string").alias("value")) for name in schema.names
    ]
    fields = f.map_from_entries(f.filter(f.array(*pairs), lambda pair: pair["value"].isNotNull()))
    none = f.lit(None)
    return rows.select(
        f.col("_metadata.file_path").alias("_stream"),
        none.cast("string").alias("_id"),
        none.cast("timestamp").alias("_timestamp"),
        fields.alias("fields"),
    )


def logged(spark: Any, ingest: Ingest, after: dict[str, str]) -> DataFrame:
    """The entries of some streams in a log, after the ids `after`."""
    streams = [word.strip() for word in ingest.options["stream"].split(",")]
    log = log_table.filled(spark, ingest.options["path"]).where("command = 'XADD'")
    found = log_jobs.entries(log).where(f.col("stream").isin(*streams))
    for stream, last in after.items():
        found = found.where((f.col("stream") != stream) | (id_order(f.col("id")) > id_order(f.lit(last))))
    return found.select(
        f.col("stream").alias("_stream"), f.col("id").alias("_id"), f.col("timestamp").alias("_timestamp"), "fields"
    )
