"""Readers without Spark: what Spark would call, in its order, from a test."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import types
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from penstock.pipeline.connector.source import readers
from penstock.pipeline.runner.runner import LATE_WORKER, Start, run_to_end

TYPES = {
    "string": types.StringType(),
    "binary": types.BinaryType(),
    "int": types.IntegerType(),
    "bigint": types.LongType(),
    "double": types.DoubleType(),
    "boolean": types.BooleanType(),
    "date": types.DateType(),
    "timestamp": types.TimestampType(),
    "timestamp_ntz": types.TimestampNTZType(),
    "decimal(10,2)": types.DecimalType(10, 2),
    "decimal(20,0)": types.DecimalType(20, 0),
    "map<string,string>": types.MapType(types.StringType(), types.StringType()),
    "map<string,binary>": types.MapType(types.StringType(), types.BinaryType()),
    "map<binary,binary>": types.MapType(types.BinaryType(), types.BinaryType()),
    "map<string,bigint>": types.MapType(types.StringType(), types.LongType()),
    "array<struct<name:string,value:binary>>": types.ArrayType(
        types.StructType().add("name", types.StringType()).add("value", types.BinaryType())
    ),
}
IDS = "_stream string, _id string"


def schema(ddl: str) -> types.StructType:
    """A schema from DDL with the types above, without a JVM to parse it."""
    found = types.StructType()
    for column in ddl.split(", "):
        name, kind = column.strip().split(" ", 1)
        found.add(name.strip("`"), TYPES[kind])
    return found


def rows_of(reader: Any, tasks: Iterable[Any]) -> list[dict[str, Any]]:
    """What Spark would read: for a plan without tasks it makes one that holds None."""
    planned = list(tasks) or [InputPartition(None)]
    return [row for task in planned for page in reader.read(task) for row in page.to_pylist()]


def read(ddl: str = IDS, **options: str) -> list[dict[str, Any]]:
    """What `spark.read` would give."""
    reader = readers.batch_reader(options, schema(ddl))
    return rows_of(reader, reader.partitions())


def in_a_new_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises; the thread has no active session of Spark."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def to_its_end(start: Start) -> None:
    """A query of Spark's own, to the end of what there is.

    Spark waits ten seconds for the process that plans a stream, and no setting changes that; where even many tries are
    not enough, this machine is too busy for the test to say anything.
    """
    try:
        run_to_end(start)
    except StreamingQueryException as reason:
        if LATE_WORKER in str(reason):
            pytest.skip("the machine is too busy for Spark, which gives its Python ten seconds to start")
        raise


class Query:
    """A streaming query: its checkpoint, and a driver that can be replaced.

    `batch()` is one trigger: its rows, or None where there was nothing new.
    """

    def __init__(self, ddl: str = IDS, **options: str) -> None:
        self._ddl = ddl
        self.options = {"pollTimeout": "10ms", **options}
        self.log: list[dict[str, Any]] = []
        self.reader: Any = None
        self.start_driver()

    def start_driver(self, available_now: bool = False) -> None:
        """A new process with the same checkpoint, as after a crash."""
        if self.reader is not None:
            self.reader.stop()  # its process is gone, and with it its connections
        self.reader = readers.stream_reader(self.options, schema(self._ddl))
        if available_now:
            self.reader.prepareForTriggerAvailableNow()
        if not self.log:
            self.log.append(self.reader.initialOffset())

    def plan(self) -> Any:
        """The next offset, written to the log; None where there is nothing new."""
        end = self.reader.latestOffset(self.log[-1], self.reader.getDefaultReadLimit() or ReadAllAvailable())
        if end == self.log[-1]:
            return None
        self.log.append(end)
        return end

    def tasks(self) -> list[Any]:
        """The tasks of the last batch that was planned."""
        return list(self.reader.partitions(self.log[-2], self.log[-1]))

    def run(self) -> list[dict[str, Any]]:
        """The rows of the last batch that was planned."""
        return rows_of(self.reader, self.tasks())

    def batch(self) -> list[dict[str, Any]] | None:
        return None if self.plan() is None else self.run()

    def ids(self) -> list[str] | None:
        """`batch`, the ids only, in order."""
        found = self.batch()
        return (
            None
            if found is None
            else sorted((row["_id"] for row in found), key=lambda one: [*map(int, one.split("-"))])
        )

    def run_to_end(self, most: int = 100) -> list[dict[str, Any]]:
        """Batch after batch until there is nothing new."""
        rows: list[dict[str, Any]] = []
        for _ in range(most):
            found = self.batch()
            if found is None:
                return rows
            rows += found
        raise AssertionError(f"it goes on after {most} batches")

    def stop(self) -> None:
        self.reader.stop()
