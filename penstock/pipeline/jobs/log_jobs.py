"""What a server's log tells of its entries and groups: each a function of the table `aof`.

The log has the time of each delivery to the millisecond, in the words of its XCLAIM; the time of anything else is that
of the `#TS:` line before it, in whole seconds, and null if the server runs without `aof-timestamp-enabled yes`. After
a rewriting, what was before it is known only as far as the base tells it: entries and pending entries, not how these
came about.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

ORDER: Final = ("file_seq", "offset")  # which is the order of what happened
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

    An entry whose XADD a producer repeated (IDMP) is there once.
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

    A claim that changes only the owner (JUSTID) is told like one; its count is then that of the delivery before.
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
    """Every entry that XNACK gave back: `stream`, `group`, `id`, its `deliveries` from then on, `ts`."""
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
    """Deliveries, releases and acknowledgements of every pending entry, each with `event` and its line's place."""
    none = f.lit(None)
    delivered = deliveries(log).withColumn("event", f.lit(DELIVERED))
    released = releases(log).withColumn("event", f.lit(RELEASED))
    acked = acknowledgements(log).withColumn("event", f.lit(ACKNOWLEDGED)).withColumn("deliveries", none.cast("bigint"))
    for_all = {"consumer": none.cast("string"), "delivered_at": none.cast("timestamp")}
    return delivered.unionByName(released.withColumns(for_all)).unionByName(acked.withColumns(for_all))


def redelivery_latency(log: DataFrame) -> DataFrame:
    """Each delivery that was not an entry's first, and the milliseconds since the one before it.

    `cause` is `nacked` if the entry was given back in between and `claimed` if it was taken from `former`. A claim
    that left the count as it was (JUSTID) is no delivery.
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
    """Of each acknowledged entry, the seconds from its first delivery to its acknowledgement.

    A log without `#TS:` lines has no times of acknowledgements: `seconds` is null. It may be up to a second too short.
    """
    return _acknowledged(log).select(
        *PLACE,
        "first_delivered_at",
        "acked_at",
        (f.unix_millis("acked_at") / 1000 - f.unix_millis("first_delivered_at") / 1000).alias("seconds"),
    )


def attempts_at_ack(log: DataFrame) -> DataFrame:
    """How many entries of each group were acknowledged after how many deliveries."""
    return (
        _acknowledged(log)
        .groupBy("stream", "group", f.col("attempts").alias("deliveries"))
        .agg(f.count("*").alias("entries"))
        .orderBy("stream", "group", "deliveries")
    )


def _acknowledged(log: DataFrame) -> DataFrame:
    """A row for every entry that was delivered and then acknowledged, by its first acknowledgement."""
    told = events(log)
    acked = told.where(f.col("event") == ACKNOWLEDGED)
    first = acked.groupBy(*PLACE).agg(
        f.min(f.struct(*ORDER)).alias("acked_in"), f.min_by("ts", f.struct(*ORDER)).alias("acked_at")
    )
    before = (
        told.where(f.col("event") == DELIVERED).join(first, list(PLACE)).where(f.struct(*ORDER) < f.col("acked_in"))
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
    """When an entry was added, which its id says; null for an id beyond Spark's times."""
    ms = f.substring_index(entry_id, "-", 1).try_cast("bigint")
    return f.when(ms < 253_402_300_800_000, f.timestamp_millis(ms))
