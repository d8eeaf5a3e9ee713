"""Jobs over a server's log: each is a function of the table `aof`.

The log has the time of each delivery in milliseconds, in its XCLAIM. The time of any other line is that of the `#TS:`
line before it, in whole seconds, and null if the server runs without `aof-timestamp-enabled yes`. After a log rewrite
the base file has the entries and pending entries of that moment, and not the commands before it.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

ORDER: Final = ("file_seq", "offset")  # the order in which commands were executed
PLACE: Final = ("stream", "group", "id")
DELIVERED, RELEASED, ACKNOWLEDGED = "delivered", "released", "acknowledged"

# Where the next of XADD's options begins, from the one at `at`; at the id it stays where it is.
_NEXT_OPTION: Final = """
    CASE WHEN upper(words[at]) IN ('NOMKSTREAM', 'KEEPREF', 'DELREF', 'ACKED') THEN at + 1
         WHEN upper(words[at]) IN ('IDMPAUTO', 'LIMIT') THEN at + 2
         WHEN upper(words[at]) = 'IDMP' THEN at + 3
         WHEN upper(words[at]) IN ('MAXLEN', 'MINID') THEN at + IF(words[at + 1] IN ('=', '~'), 3, 2)
         ELSE at END"""
_ID_AT: Final = f"aggregate(sequence(1, 6), 1, (at, _) -> {_NEXT_OPTION})"


def history(log: DataFrame, path: str) -> DataFrame:
    """Write the log to Parquet, in a folder for each day and command; lines without a time have the day null.

    Returns how many `lines` of each `day` and `command` were written, as read back from the files.
    """
    days = log.withColumn("day", f.to_date("ts"))
    days.write.partitionBy("day", "command").mode("overwrite").parquet(path)
    written = log.sparkSession.read.schema(days.schema).parquet(path)
    return written.groupBy("day", "command").agg(f.count("*").alias("lines")).orderBy("day", "command")


def entries(log: DataFrame) -> DataFrame:
    """Every entry that was added: `stream`, `id`, `timestamp`, `fields`, and the line's `file_seq` and `offset`.

    An entry with an XADD that its producer repeated (IDMP) appears once.
    """
    words = _words(log.where("command = 'XADD'")).withColumn("id_at", f.expr(_ID_AT))
    found = words.select(
        *ORDER,
        f.col("words")[0].alias("stream"),
        f.expr("words[id_at]").alias("id"),
        f.expr("slice(words, id_at + 2, size(words))").alias("pairs"),
    ).where("id RLIKE '^[0-9]+-[0-9]+$'")
    numbers = "sequence(0, size(pairs) - 2, 2)"
    named = f"transform({numbers}, at -> named_struct('name', pairs[at], 'value', pairs[at + 1]))"
    # An entry may have a field twice, a map not: the first one counts, as it does for a look-up in `entries`.
    once = f"filter({named}, (pair, i) -> array_position(transform({named}, p -> p.name), pair.name) = i + 1)"
    return found.dropDuplicates(["stream", "id"]).select(
        "stream",
        "id",
        _moment(f.col("id")).alias("timestamp"),
        f.expr(f"map_from_entries({once})").alias("fields"),
        *ORDER,
    )


def deliveries(log: DataFrame) -> DataFrame:
    """Every delivery: `stream`, `group`, `id`, `consumer`, `delivered_at` (to the millisecond), `deliveries` so far.

    A claim that changes only the owner (JUSTID) appears too; its count is that of the delivery before it.
    """
    words = (
        _words(log.where("command = 'XCLAIM'"))
        .withColumn("tail", f.expr("slice(words, 5, size(words))"))
        .withColumn("end", f.expr("array_position(tail, 'TIME')"))
        .where("end > 1")
    )
    option = "element_at(tail, CAST(array_position(tail, '{}') AS INT) + 1)"
    return words.select(
        f.col("words")[0].alias("stream"),
        f.col("words")[1].alias("group"),
        f.col("words")[2].alias("consumer"),
        f.expr("explode(slice(tail, 1, CAST(end AS INT) - 1))").alias("id"),
        f.timestamp_millis(f.expr(option.format("TIME")).cast("bigint")).alias("delivered_at"),
        f.expr(option.format("RETRYCOUNT")).cast("bigint").alias("deliveries"),
        "ts",
        *ORDER,
    )


def releases(log: DataFrame) -> DataFrame:
    """Every entry that XNACK released: `stream`, `group`, `id`, its delivery count after that, `ts`."""
    words = _words(log.where("command = 'XNACK'")).withColumn("ids_at", f.expr("array_position(words, 'IDS')"))
    return words.where("ids_at > 0").select(
        f.col("words")[0].alias("stream"),
        f.col("words")[1].alias("group"),
        f.expr("explode(slice(words, CAST(ids_at AS INT) + 2, CAST(words[ids_at] AS INT)))").alias("id"),
        f.expr(
            "IF(array_contains(words, 'RETRYCOUNT'), "
            "element_at(words, CAST(array_position(words, 'RETRYCOUNT') AS INT) + 1), NULL)"
        )
        .cast("bigint")
        .alias("deliveries"),
        "ts",
        *ORDER,
    )


def acknowledgements(log: DataFrame) -> DataFrame:
    """Every id that XACK or XACKDEL named: `stream`, `group`, `id`, `ts`."""
    words = _words(log.where("command IN ('XACK', 'XACKDEL')")).withColumn(
        "ids",
        f.expr(
            "IF(command = 'XACK', slice(words, 3, size(words)), "
            "slice(words, CAST(array_position(words, 'IDS') AS INT) + 2, size(words)))"
        ),
    )
    return words.select(
        f.col("words")[0].alias("stream"), f.col("words")[1].alias("group"), f.explode("ids").alias("id"), "ts", *ORDER
    )


def events(log: DataFrame) -> DataFrame:
    """Deliveries, releases and acknowledgements, each with `event` and the `file_seq` and `offset` of its line."""
    none = f.lit(None)
    delivered = deliveries(log).withColumn("event", f.lit(DELIVERED))
    released = releases(log).withColumn("event", f.lit(RELEASED))
    acked = acknowledgements(log).withColumn("event", f.lit(ACKNOWLEDGED)).withColumn("deliveries", none.cast("bigint"))
    for_all = {"consumer": none.cast("string"), "delivered_at": none.cast("timestamp")}
    return delivered.unionByName(released.withColumns(for_all)).unionByName(acked.withColumns(for_all))


def redelivery_latency(log: DataFrame) -> DataFrame:
    """Each delivery that was not an entry's first, and the milliseconds since the one before it.

    `cause` is `nacked` if the entry was released in between, and `claimed` if it was claimed from the consumer
    `former`. A claim that did not change the delivery count (JUSTID) is not a delivery.
    """
    line = Window.partitionBy(*PLACE).orderBy(*ORDER)
    known = (
        events(log)
        .where(f.col("event") != ACKNOWLEDGED)
        .select(
            *PLACE,
            "event",
            "consumer",
            "delivered_at",
            "deliveries",
            *ORDER,
            f.lag("event").over(line).alias("event_before"),
            f.lag("deliveries").over(line).alias("count_before"),
            f.last(f.when(f.col("event") == DELIVERED, f.col("delivered_at")), True)
            .over(line.rowsBetween(Window.unboundedPreceding, -1))
            .alias("delivered_before"),
            f.last(f.when(f.col("event") == DELIVERED, f.col("consumer")), True)
            .over(line.rowsBetween(Window.unboundedPreceding, -1))
            .alias("former"),
        )
    )
    again = known.where(
        (f.col("event") == DELIVERED)
        & f.col("delivered_before").isNotNull()
        & ((f.col("event_before") == RELEASED) | (f.col("deliveries") != f.col("count_before")))
    )
    return again.select(
        *PLACE,
        "consumer",
        "former",
        f.when(f.col("event_before") == RELEASED, "nacked").otherwise("claimed").alias("cause"),
        "deliveries",
        "delivered_at",
        (f.unix_millis("delivered_at") - f.unix_millis("delivered_before")).alias("latency_ms"),
    )


def time_to_ack(log: DataFrame) -> DataFrame:
    """For each acknowledged entry, the seconds from its first delivery to its acknowledgement.

    Acknowledgements have whole seconds, so the value may be up to a second too small. Without `#TS:` lines it is null.
    """
    return _acknowledged(log).select(
        *PLACE,
        "first_delivered_at",
        "acked_at",
        (f.unix_millis("acked_at") / 1000 - f.unix_millis("first_delivered_at") / 1000).alias("seconds"),
    )


def attempts_at_ack(log: DataFrame) -> DataFrame:
    """For each group and delivery count, the number of entries acknowledged after that many deliveries."""
    return (
        _acknowledged(log)
        .groupBy("stream", "group", f.col("attempts").alias("deliveries"))
        .agg(f.count("*").alias("entries"))
        .orderBy("stream", "group", "deliveries")
    )


def _acknowledged(log: DataFrame) -> DataFrame:
    """A row for every entry that was delivered and then acknowledged, by its first acknowledgement."""
    seen = events(log)
    acked = seen.where(f.col("event") == ACKNOWLEDGED)
    first = acked.groupBy(*PLACE).agg(
        f.min(f.struct(*ORDER)).alias("acked_in"), f.min_by("ts", f.struct(*ORDER)).alias("acked_at")
    )
    before = (
        seen.where(f.col("event") == DELIVERED).join(first, list(PLACE)).where(f.struct(*ORDER) < f.col("acked_in"))
    )
    return before.groupBy(*PLACE).agg(
        f.min("delivered_at").alias("first_delivered_at"),
        f.max("deliveries").alias("attempts"),
        f.first("acked_at").alias("acked_at"),
    )


def _words(log: DataFrame) -> DataFrame:
    """The lines with their words as strings."""
    words = f.transform("args", lambda word: word.cast("string")).alias("words")
    return log.select(*ORDER, "command", "ts", words)


def _moment(entry_id: Column) -> Column:
    """The time in an entry's id; null beyond the times that Spark can hold."""
    ms = f.substring_index(entry_id, "-", 1).try_cast("bigint")
    return f.when(ms < 253_402_300_800_000, f.timestamp_millis(ms))
