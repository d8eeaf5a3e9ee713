"""The table `aof`: a row for each request in a server's log, read by a task for each split."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from penstock.pipeline.aof import log_files, log_rows, log_splits
from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.placeholder import is_placeholder
from penstock.pipeline.connector.schemas import TABLES
from penstock.pipeline.connector.worker import keep_modules
from penstock.pipeline.errors import OptionError, ShortErrors

# What each column may be declared as; `split` is there only where it is asked for by name.
TYPES: Final[dict[str, tuple[DataType, ...]]] = {
    "file": (StringType(),),
    "file_seq": (IntegerType(), LongType()),
    "offset": (LongType(),),
    "ts": (TimestampType(),),
    "db": (IntegerType(), LongType()),
    "command": (StringType(),),
    "key": (BinaryType(), StringType()),
    "args": (ArrayType(BinaryType()), ArrayType(StringType())),
    "in_multi": (BooleanType(),),
    "split": (IntegerType(), LongType()),
}


@dataclass
class LogPartition(InputPartition):
    """What one task reads."""

    split: log_splits.Split


@dataclass(frozen=True, slots=True)
class LogOptions:
    path: str
    split_bytes: int  # 0: each file in one piece


def read_options(options: Mapping[str, str]) -> LogOptions:
    """The options of the table `aof`; OptionError for a mistake."""
    reader = OptionReader(options, "log table")
    reader.choice("table", "aof", TABLES)
    path = reader.text("path")
    split_bytes = reader.integer("splitBytes", log_splits.SPLIT_BYTES)
    reader.end()
    if path is None:
        raise OptionError("the table 'aof' needs the path of a log: its directory, its manifest, or one file")
    return LogOptions(path.removeprefix("file://"), split_bytes)


def create_reader(options: Mapping[str, str], schema: StructType) -> "LogTableReader":
    """The reader of `schema`'s columns; OptionError for a column that the table does not have."""
    check_schema(schema)
    return LogTableReader(read_options(options), schema)


def check_schema(schema: StructType) -> None:
    """OptionError for a column that the table does not have, or not in that type."""
    for field in schema:
        if field.name not in TYPES:
            raise OptionError(f"the table 'aof' has no column {field.name!r}: it has {', '.join(TYPES)}")
        if not any(field.dataType.simpleString() == allowed.simpleString() for allowed in TYPES[field.name]):
            allowed = " or ".join(allowed.simpleString() for allowed in TYPES[field.name])
            raise OptionError(f"the column {field.name!r} is {allowed}, not {field.dataType.simpleString()}")


class LogTask(ShortErrors):
    """The part of a reader that is pickled for the executors."""

    def __init__(self, schema: StructType) -> None:
        self.schema = schema

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        """The rows of one split."""
        keep_modules()
        if is_placeholder(partition):
            return
        assert isinstance(partition, LogPartition), "partitions() makes no others"
        yield from log_rows.batches(partition.split, to_arrow_schema(self.schema, timezone="UTC"))


class LogTableReader(LogTask, DataSourceReader):
    """Reads a log as it was when the read was planned; later writes are not seen."""

    def __init__(self, options: LogOptions, schema: StructType) -> None:
        super().__init__(schema)
        self.options = options

    def partitions(self) -> list[InputPartition]:
        parts, skipped = log_files.parts_of(self.options.path)
        for sentence in skipped:
            warnings.warn(sentence, stacklevel=1)
        return [LogPartition(split) for split in log_splits.splits_of(parts, self.options.split_bytes)]


def filled(spark: SparkSession, path: str, split_bytes: int = log_splits.SPLIT_BYTES) -> DataFrame:
    """The table `aof` with `db`, `ts` and `in_multi` filled in at the starts of splits too.

    The last values of each split are joined to the splits after it. The log is read twice; there is no global sort.
    """
    log = (
        spark.read.format("redis_streams")
        .schema(schemas.AOF + ", split int")
        .option("table", "aof")
        .option("splitBytes", split_bytes)
        .load(path)
    )
    carried = ("db", "ts", "in_multi")
    last = log.groupBy("file_seq", "split").agg(
        *(f.expr(f"max_by({name}, offset) FILTER (WHERE {name} IS NOT NULL)").alias(name) for name in ("db", "ts")),
        f.expr(
            "max_by(command != 'EXEC', offset) FILTER (WHERE command IN ('MULTI', 'EXEC'))"  # EXEC ends what it is in
        ).alias("in_multi"),
    )
    before = Window.partitionBy("file_seq").orderBy("split").rowsBetween(Window.unboundedPreceding, -1)
    heads = last.select(
        f.col("split").alias("of_split"),
        *(f.last(name, ignorenulls=True).over(before).alias(f"head_{name}") for name in carried),
    )
    joined = log.join(f.broadcast(heads), log["split"] == heads["of_split"], "left")
    columns = [column for column in log.columns if column != "split"]
    known = {name: f.coalesce(log[name], f.col(f"head_{name}")).alias(name) for name in carried}
    # No MULTI before means not in a transaction.
    known["in_multi"] = f.coalesce(log["in_multi"], f.col("head_in_multi"), f.lit(False)).alias("in_multi")
    return joined.select(*(known.get(column, log[column]) for column in columns))
