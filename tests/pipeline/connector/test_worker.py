"""What a task leaves behind in Spark's worker process, which runs the next task too."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from penstock.pipeline.connector.worker import keep_modules

MANY = 10_000  # objects: a few modules have as many


class Collected(DataSource):
    """A row for each of two tasks: how many objects its worker's garbage collections pass over, before and after."""

    @classmethod
    def name(cls) -> str:
        return "collected"

    def schema(self) -> str:
        return "before long, after long"

    def reader(self, schema: Any) -> DataSourceReader:
        class Reader(DataSourceReader):
            def partitions(self) -> list[InputPartition]:
                return [InputPartition(number) for number in range(2)]

            def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
                before = gc.get_freeze_count()
                keep_modules()
                yield before, gc.get_freeze_count()

        return Reader()


def test_garbage_collections_of_a_worker_pass_its_modules_over(spark: Any) -> None:
    spark.dataSource.register(Collected)
    for _ in range(3):
        rows = spark.read.format("collected").load().collect()
        assert all(after > MANY for _, after in rows)
    assert any(before > MANY for before, _ in rows), "what a worker has passed over once it does for its next task"


def test_in_a_program_of_the_user_nothing_is_passed_over() -> None:
    before = gc.get_freeze_count()
    keep_modules()
    assert gc.get_freeze_count() == before
