"""Streams as Spark tables: `register(spark)` where the automatic registration does not reach."""

from typing import Any


def register(spark: Any) -> None:
    """Make the format `redis_streams` known to a session: the code came by `addPyFile`, or another package of the
    name `pyspark_*` fails to import and stops Spark's own look-up.
    """
    from penstock.pipeline.connector.datasource import StreamsDataSource

    spark.dataSource.register(StreamsDataSource)
