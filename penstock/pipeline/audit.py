"""The judge: what producers and workers say they did, joined with what the server's log says happened.

Each check (see checks.py) is a number of entries, and an example of one. checking.py judges the same without Spark.
"""

from functools import reduce
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from penstock.pipeline import logjobs
from penstock.pipeline.checks import CHECKS
from penstock.pipeline.journals import ACKED, PROCESSED, SENT, WORKED
from penstock.pipeline.logjobs import ACKNOWLEDGED, DELIVERED, ORDER, RELEASED

COLUMNS: Final = "check string, entries bigint, example string, must_be_zero boolean"
SERIAL: Final = "serial"


def audit(log: DataFrame, journals: DataFrame, stream: str, group: str, serial: str = SERIAL) -> DataFrame:
    """What became of the entries of `stream` in `group`: a row for each check, in the order of `checks.CHECKS`.

    `log` is the table `aof`, `journals` what `journals.journals` reads. `serial` is the field that producers number
    their entries with: two entries with one serial were sent twice.
    """
    added = (
        logjobs.entries(log)
        .where(f.col("stream") == stream)
        .select("id", f.col("fields")[serial].alias("serial"), *ORDER)
    )
    told = logjobs.events(log).where((f.col("stream") == stream) & (f.col("group") == group))
    told = told.drop("stream", "group", "ts")
    kept = [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in (added, told, journals)]
    added, told, journals = kept
    try:
        rows = _rows(added, told, journals)
    finally:
        for frame in kept:
            frame.unpersist()
    return log.sparkSession.createDataFrame(rows, COLUMNS)


def is_clean(verdict: DataFrame) -> bool:
    """Whether everything that must be zero is."""
    clean: bool = verdict.where("must_be_zero AND entries > 0").isEmpty()
    return clean


def _rows(added: DataFrame, told: DataFrame, journals: DataFrame) -> list[tuple[str, int, str | None, bool]]:
    place = f.struct(*ORDER)
    sent = journals.where(f.col("verb").isin(*SENT))
    processed = journals.where(f.col("verb") == PROCESSED)
    delivered = told.where(f.col("event") == DELIVERED)
    last = told.groupBy("id").agg(f.max_by("event", place).alias("event"))
    acked = told.where(f.col("event") == ACKNOWLEDGED).groupBy("id").agg(f.min(place).alias("acked_in"))
    frames = (
        added,
        processed.select("id").distinct(),
        _beyond_one(delivered, "id"),
        told.where(f.col("event") == RELEASED),
        _beyond_one(processed, "id"),
        sent.join(added, "id", "left_anti"),
        _unprocessed(added, processed, last),
        _beyond_one(added.where("serial IS NOT NULL"), "serial"),
        _out_of_order(sent),
        _beyond_one(processed.where("deliveries = 1"), "id"),
        delivered.join(acked, "id").where(place > f.col("acked_in")),
        _came_back(journals),
        acked.join(processed, "id", "left_anti"),
        last.where(f.col("event") != ACKNOWLEDGED),
    )
    numbered = [_count(at, frame) for at, frame in enumerate(frames)]
    found = {row["at"]: row for row in reduce(DataFrame.unionAll, numbered).collect()}  # one query for all of them
    return [(check.name, int(found[at]["n"]), found[at]["id"], check.must_be_zero) for at, check in enumerate(CHECKS)]


def _beyond_one(rows: DataFrame, column: str) -> DataFrame:
    """How often something is there again, and an id of it."""
    counts = rows.groupBy(f.col(column).alias("counted")).agg((f.count("*") - 1).alias("n"), f.max("id").alias("id"))
    return counts.where("n > 0")


def _unprocessed(added: DataFrame, processed: DataFrame, last: DataFrame) -> DataFrame:
    pending = last.where(f.col("event") != ACKNOWLEDGED)
    return added.join(processed, "id", "left_anti").join(pending, "id", "left_anti")


def _out_of_order(sent: DataFrame) -> DataFrame:
    """Ids that are not greater than that of the same producer's line before."""
    numbers = [f.split("id", "-")[at].cast("decimal(20,0)") for at in (0, 1)]
    ordered = sent.withColumn("number", f.struct(*numbers))
    line = Window.partitionBy("actor").orderBy("line")
    return ordered.withColumn("before", f.lag("number").over(line)).where("number <= before")


def _came_back(journals: DataFrame) -> DataFrame:
    """Work whose entry was asked for when an acknowledgement of it had been answered already."""
    replied = journals.where(f.col("verb") == ACKED).groupBy("id").agg(f.min("at_ns").alias("replied_ns"))
    handled = journals.where(f.col("verb").isin(*WORKED))
    return handled.join(replied, "id").where("at_ns > replied_ns")


def _count(at: int, frame: DataFrame) -> DataFrame:
    """How many, and the id of one of them."""
    many = f.sum("n") if "n" in frame.columns else f.count("*")
    return frame.agg(f.lit(at).alias("at"), f.coalesce(many, f.lit(0)).alias("n"), f.min("id").alias("id"))
