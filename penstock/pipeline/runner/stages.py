"""The stages of a pipeline between ingest and publish, as functions of DataFrames.

An ingested row has `_stream`, `_id`, `_timestamp` and `fields`, a map of texts. A stage that rejects a row writes the
reason to `_reason`, which is empty until then.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.pipeline.errors import OptionError, PipelineError
from penstock.pipeline.runner.pipeline_file import METADATA, Aggregate, Lookup, Pipeline

REASON: Final = "_reason"
ROWS: Final = "rows"  # how many rows a window has
ROW: Final = "row"  # unique for each published row
FIELDS: Final = "fields"
QUARANTINE: Final = (*METADATA, FIELDS)
NOT_NULL: Final = " not null"
LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # to which PySpark writes its errors


@contextmanager
def _unlogged() -> Iterator[None]:
    """Silence PySpark's loggers, which would add a traceback to our one-sentence errors."""
    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


@_unlogged()
def check(rows: DataFrame, pipeline: Pipeline) -> None:
    """OptionError for a type, an expression or an interval that Spark does not read; `rows` are without rows.

    Spark parses and resolves them without a job. Expressions of later stages may name columns of lookups, which are
    not read yet: `enriched` and `windows` resolve them.
    """
    with placed("[pipeline] 'trigger'"):
        rows.select(f.expr(f"INTERVAL '{pipeline.trigger or '1 second'}'"))
    for name, declared in pipeline.columns.items():
        with placed(f"[validate.columns] {name!r}"):
            rows.select(f.col(FIELDS)[name].try_cast(split_type(declared)[0]))
    typed = rows.withColumns({name: f.lit(None).cast(split_type(kind)[0]) for name, kind in pipeline.columns.items()})
    for name, rule in pipeline.rules.items():
        with placed(f"[validate.rules] {name!r}"):
            typed.select(_holds(rule))
    for name, expression in pipeline.enriched.items():
        _parse(rows, expression, f"[enrich.columns] {name!r}")
    if pipeline.aggregate is not None:
        for name, words in (("watermark", pipeline.aggregate.watermark), ("window", pipeline.aggregate.window)):
            with placed(f"[aggregate] {name!r}"):
                rows.select(f.expr(f"INTERVAL '{words}'"))
        for name, measure in pipeline.aggregate.measures.items():
            _parse(rows, measure, f"[aggregate.measures] {name!r}")


def _parse(rows: DataFrame, expression: str, place: str) -> None:
    """OptionError for what is no SQL; names that are not known are left for later."""
    with placed(place):
        try:
            rows.select(f.expr(expression))
        except ParseException:
            raise
        except AnalysisException:
            pass


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Turn Spark's error about a table of the file into an OptionError with the place and Spark's sentence."""
    try:
        yield
    except AnalysisException as reason:  # and its subclass ParseException
        sentence = next(line.strip() for line in str(reason).splitlines() if line.strip())
        raise OptionError(f"{place}: {sentence}") from None


def validated(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the declared columns, and the reason for a row with a missing value, a wrong type, or a broken rule."""
    columns: dict[str, Column] = {}
    reasons = []
    for name, declared in pipeline.columns.items():
        kind, required = split_type(declared)
        written = f.col(FIELDS)[name]
        columns[name] = written.try_cast(kind)
        shown = f.concat(f.lit(f"{name}: '"), f.substring(written, 1, 60), f.lit(f"' is no {kind}"))
        reasons.append(f.when(written.isNotNull() & columns[name].isNull(), shown))
        if required:
            reasons.append(f.when(written.isNull(), f"{name} is missing"))
    typed = rows.withColumns(columns)
    fits = f.concat_ws("; ", *reasons)
    typed = typed.withColumn(REASON, fits)
    broken = [f.when(~f.coalesce(_holds(rule), f.lit(False)), name) for name, rule in pipeline.rules.items()]
    # Rules are evaluated only for rows with values of their types.
    return typed.withColumn(REASON, f.when(f.col(REASON) == "", f.concat_ws("; ", *broken)).otherwise(f.col(REASON)))


def _holds(rule: str) -> Column:
    return f.expr(f"try_cast(({rule}) AS boolean)")


def split_type(declared: str) -> tuple[str, bool]:
    """A declared type, and whether a value is required.

    >>> split_type("string NOT NULL")
    ('string', True)
    """
    words = " ".join(declared.split())
    required = words.lower().endswith(NOT_NULL)
    return (words[: -len(NOT_NULL)] if required else words), required


def read_lookup(spark: Any, lookup: Lookup) -> DataFrame:
    """The table of a lookup. PipelineError if a key is there twice: the join would double rows."""
    reader = spark.read.format(lookup.file_format)
    if lookup.file_format == "csv":
        reader = reader.option("header", "true")
    table: DataFrame = reader.load(lookup.path).select(*lookup.on, *lookup.columns)
    twice = table.groupBy(*lookup.on).count().where("count > 1").head()
    if twice is not None:
        key = ", ".join(str(twice[name]) for name in lookup.on)
        raise PipelineError(f"the lookup {lookup.name!r} has the key {key} {twice['count']} times: {lookup.path}")
    return table


def enriched(rows: DataFrame, pipeline: Pipeline, lookups: list[DataFrame]) -> DataFrame:
    """With the columns of the lookups (null where they have no such key), then the expressions, one after the other."""
    for lookup, table in zip(pipeline.lookups, lookups, strict=True):
        rows = rows.join(f.broadcast(table), list(lookup.on), "left")
    for name, expression in pipeline.enriched.items():
        with placed(f"[enrich.columns] {name!r}"):
            rows = rows.withColumn(name, f.expr(expression))
    return rows


def on_time(rows: DataFrame, aggregate: Aggregate, watermark_ms: int | None) -> DataFrame:
    """Adds the reason for rows without a time, and for late ones: their window was closed before they came."""
    moment = f.col(aggregate.time)
    late = f.lit(False)
    if watermark_ms is not None:
        late = f.unix_millis(f.window(moment, aggregate.window)["end"]) <= watermark_ms
    text = f"late: {aggregate.time} is in a window that was closed at "
    reason = f.when(moment.isNull(), f"{aggregate.time} has no value").when(
        late, f.concat(f.lit(text), f.timestamp_millis(f.lit(watermark_ms)).cast("string"))
    )
    return rows.withColumn(REASON, f.coalesce(reason, f.lit("")))


def windows(clean: DataFrame, pipeline: Pipeline) -> DataFrame:
    """A row for each window that has closed and each combination of `by`: the measures, and how many rows it has."""
    aggregate = pipeline.aggregate
    assert aggregate is not None, "the pipeline has this stage"
    for name, measure in aggregate.measures.items():
        with placed(f"[aggregate.measures] {name!r}"):
            clean.select(f.expr(measure))
    window = f.window(aggregate.time, aggregate.window)
    measures = [f.expr(measure).alias(name) for name, measure in aggregate.measures.items()]
    grouped = clean.withWatermark(aggregate.time, aggregate.watermark).groupBy(window.alias("window"), *aggregate.by)
    found = grouped.agg(*measures, f.count("*").alias(ROWS))
    start = f.col("window.start")
    row = f.concat_ws("/", f.lit(pipeline.name), f.unix_millis(start).cast("string"), *_texts(aggregate.by))
    return found.select(
        row.alias(ROW),
        start.alias("window_start"),
        f.col("window.end").alias("window_end"),
        *aggregate.by,
        *aggregate.measures,
        ROWS,
    )


def _texts(names: tuple[str, ...]) -> list[Column]:
    return [f.coalesce(f.col(name).cast("string"), f.lit("")) for name in names]
