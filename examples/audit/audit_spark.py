"""The judge: what producers and workers say they did, joined with what the server's log says happened.

Each check (see checks.py) is a number of entries, and an example of one. audit_local.py judges the same without Spark.
"""

from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from examples.audit import checks
from examples.audit.checks import CHECKS
from examples.audit.journals import ACKED, PROCESSED, SENT, WORKED
from penstock.pipeline.jobs import log_jobs
from penstock.pipeline.jobs.log_jobs import ACKNOWLEDGED, DELIVERED, ORDER, RELEASED

COLUMNS: Final = "check string, entries bigint, example string, must_be_zero boolean"
SERIAL: Final = "serial"
ADDED: Final = "added"


def audit(log: DataFrame, journals: DataFrame, stream: str, group: str, serial: str = SERIAL) -> DataFrame:
    """What became of the entries of `stream` in `group`: a row for each check, in the order of `checks.CHECKS`.

    `log` is the table `aof`, `journals` what `journals.journals` reads. `serial` is the field that producers number
    their entries with: two entries with one serial were sent twice.
    """
    added = (
        log_jobs.entries(log)
        .where(f.col("stream") == stream)
        .select("id", f.col("fields")[serial].alias("serial"), *ORDER)
    )
    told = log_jobs.events(log).where((f.col("stream") == stream) & (f.col("group") == group))
    kept = [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in (added, journals)]
    added, journals = kept
    try:
        found = {**_of_ids(_facts(added, told, journals)), **_of_serials(added), **_of_order(journals)}
    finally:
        for frame in kept:
            frame.unpersist()
    rows = [(check.name, *found[check.key], check.must_be_zero) for check in CHECKS]
    return log.sparkSession.createDataFrame(rows, COLUMNS)


def is_clean(verdict: DataFrame) -> bool:
    """Whether everything that must be zero is."""
    clean: bool = verdict.where("must_be_zero AND entries > 0").isEmpty()
    return clean


Found = tuple[int, str | None]  # how many entries, and the id of one of them


def _facts(added: DataFrame, told: DataFrame, journals: DataFrame) -> DataFrame:
    """Everything that was said of an id, a row each: `id`, `fact`, `place` in the log, `deliveries`, `at_ns`."""
    place = f.struct(*ORDER).alias("place")
    nowhere = f.lit(None).cast("struct<file_seq:int,offset:bigint>").alias("place")
    none = f.lit(None).cast("bigint")
    by_log = [
        frame.select("id", fact.alias("fact"), place, none.alias("deliveries"), none.alias("at_ns"))
        for frame, fact in ((added, f.lit(ADDED)), (told, f.col("event")))
    ]
    by_journals = journals.select("id", f.col("verb").alias("fact"), nowhere, "deliveries", "at_ns")
    return by_log[0].unionByName(by_log[1]).unionByName(by_journals)


def _of_ids(facts: DataFrame) -> dict[str, Found]:
    """The checks that look at one id after the other: one pass over all of them."""
    events = f"fact IN ('{DELIVERED}', '{RELEASED}', '{ACKNOWLEDGED}')"
    worked = f"fact IN {WORKED}"
    ids = facts.groupBy("id").agg(
        *(
            f.expr(f"count_if({condition})").alias(name)
            for name, condition in (
                ("added", f"fact = '{ADDED}'"),
                ("sent", f"fact IN {SENT}"),
                ("processed", f"fact = '{PROCESSED}'"),
                ("first_time", f"fact = '{PROCESSED}' AND deliveries = 1"),
                ("delivered", f"fact = '{DELIVERED}'"),
                ("released", f"fact = '{RELEASED}'"),
                ("acked", f"fact = '{ACKNOWLEDGED}'"),
            )
        ),
        f.expr(f"max_by(fact, place) FILTER (WHERE {events})").alias("last"),
        f.expr(f"min(place) FILTER (WHERE fact = '{ACKNOWLEDGED}')").alias("acked_in"),
        f.expr(f"collect_list(place) FILTER (WHERE fact = '{DELIVERED}')").alias("delivered_in"),
        f.expr(f"min(at_ns) FILTER (WHERE fact = '{ACKED}')").alias("replied_ns"),
        f.expr(f"collect_list(at_ns) FILTER (WHERE {worked})").alias("asked_ns"),
    )
    is_pending = f"coalesce(last <> '{ACKNOWLEDGED}', false)"
    entries = {
        checks.ENTRIES: "added",
        checks.PROCESSED: "int(processed > 0)",
        checks.DELIVERED_AGAIN: "greatest(delivered - 1, 0)",
        checks.GIVEN_BACK: "released",
        checks.PROCESSED_AGAIN: "greatest(processed - 1, 0)",
        checks.NOT_IN_LOG: "IF(added = 0, sent, 0)",
        checks.NEVER_PROCESSED: f"int(added > 0 AND processed = 0 AND NOT {is_pending})",
        checks.PROCESSED_TWICE: "greatest(first_time - 1, 0)",
        checks.AFTER_ACK_BY_LOG: "size(filter(delivered_in, place -> place > acked_in))",
        checks.AFTER_ACK_BY_JOURNALS: "size(filter(asked_ns, at -> at > replied_ns))",
        checks.ACKED_ONLY: "int(acked > 0 AND processed = 0)",
        checks.LEFT_PENDING: f"int({is_pending})",
    }
    counted = ids.select("id", *(f.expr(f"bigint({many})").alias(key) for key, many in entries.items()))
    return _totals(counted, *entries)


def _of_serials(added: DataFrame) -> dict[str, Found]:
    """Entries beyond one for each serial."""
    many = (f.count("*") - 1).alias(checks.SENT_TWICE)
    return _totals(
        added.where("serial IS NOT NULL").groupBy("serial").agg(many, f.max("id").alias("id")), checks.SENT_TWICE
    )


def _of_order(journals: DataFrame) -> dict[str, Found]:
    """Ids that are not greater than that of the same producer's line before."""
    numbers = [f.split("id", "-")[at].cast("decimal(20,0)") for at in (0, 1)]
    ordered = journals.where(f.col("verb").isin(*SENT)).withColumn("number", f.struct(*numbers))
    line = Window.partitionBy("actor").orderBy("line")
    found = ordered.withColumn("before", f.lag("number").over(line)).where("number <= before")
    return _totals(found.select("id", f.lit(1).alias(checks.OUT_OF_ORDER)), checks.OUT_OF_ORDER)


def _totals(counted: DataFrame, *keys: str) -> dict[str, Found]:
    """The sum of each column, and the least id that counts in it."""
    sums = [f.coalesce(f.sum(key), f.lit(0)).alias(f"{key}_n") for key in keys]
    examples = [f.min(f.when(f.col(key) > 0, f.col("id"))).alias(f"{key}_id") for key in keys]
    (row,) = counted.agg(*sums, *examples).collect()
    return {key: (int(row[f"{key}_n"]), row[f"{key}_id"]) for key in keys}
