"""Jobs over pending entries and groups, and over dead letters: each is a function of a DataFrame.

`pending` and `groups` are the tables of those names (docs/pipeline.md), of any number of servers.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import MapType

from penstock.pipeline.connector.connection.connection_options import connection_options
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.datasource import FORMAT
from penstock.pipeline.connector.sink.sink_options import DEAD_LETTER_STREAM, KEY_HERE
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.session import make_active
from penstock.storage.streams import ids

POISON: Final = 5  # deliveries after which an entry is regarded as poison
STUCK_MS: Final = 60_000
WHERE: Final = ("endpoint", "stream", "group")
REPORTED: Final = ("stream", "group", "id", "deliveries", "consumer", "reason", "letter_stream", "letter_id")
LETTERS: Final = "_stream string, _id string, fields array<struct<name:binary,value:binary>>"  # a dead-letter stream
LETTER: Final = (
    "_stream",
    "_group",
    "_id",
    "_deliveries",
    "_consumer",
    "_reason",
)  # what a dead letter has beside the entry's fields


def delivery_histogram(pending: DataFrame) -> DataFrame:
    """For each group and delivery count, the number of pending entries; fatal entries in rows of their own."""
    return (
        pending.groupBy(*WHERE, "deliveries", "fatal").agg(f.count("*").alias("entries")).orderBy(*WHERE, "deliveries")
    )


def poison(pending: DataFrame, least: int = POISON) -> DataFrame:
    """The entries delivered `least` times or more, or marked fatal, with a column `reason`."""
    reason = f.when(f.col("fatal"), "fatal").otherwise(f.concat(f.lit("delivered "), "deliveries", f.lit(" times")))
    return pending.where((f.col("deliveries") >= least) | f.col("fatal")).withColumn("reason", reason)


def stuck(pending: DataFrame, idle_ms: int = STUCK_MS) -> DataFrame:
    """Consumers with entries idle for `idle_ms` or longer: the number, the longest idle time, and that entry's id."""
    return (
        pending.where(f.col("idle_ms") >= idle_ms)
        .groupBy(*WHERE, "consumer")
        .agg(
            f.count("*").alias("entries"),
            f.max("idle_ms").alias("longest_idle_ms"),
            f.max_by("id", "idle_ms").alias("id"),
            f.max("deliveries").alias("most_deliveries"),
        )
        .orderBy(f.desc("longest_idle_ms"))
    )


def oldest_pending(pending: DataFrame) -> DataFrame:
    """The pending entry with the smallest id in each group, and its age."""
    rank = f.row_number().over(Window.partitionBy(*WHERE).orderBy("timestamp", _sequence(f.col("id"))))
    first = pending.withColumn("rank", rank).where("rank = 1").drop("rank")
    return first.withColumn("age_ms", f.unix_millis(f.current_timestamp()) - f.unix_millis("timestamp"))


def lag(groups: DataFrame, earlier: DataFrame | None = None, between_s: float = 0) -> DataFrame:
    """Each group's lag; with the table as it was `between_s` seconds `earlier`, also the rates of reading and adding.

    `drained_s` is the time to catch up at these rates; null if it does not catch up.
    """
    columns = [*WHERE, "consumers", "pending", "lag"]
    if earlier is None:
        return groups.select(*columns).orderBy(f.desc("lag"))
    if between_s <= 0:
        raise PipelineError("two looks at the groups need the seconds between them")
    then = earlier.select(*WHERE, f.col("entries_read").alias("read_then"), f.col("entries_added").alias("added_then"))
    read = (f.col("entries_read") - f.col("read_then")) / between_s
    added = (f.col("entries_added") - f.col("added_then")) / between_s
    rates = groups.join(then, list(WHERE), "left").select(
        *columns, read.alias("read_per_s"), added.alias("added_per_s")
    )
    gain = f.col("read_per_s") - f.col("added_per_s")
    return rates.withColumn("drained_s", f.when(gain > 0, f.col("lag") / gain)).orderBy(f.desc("lag"))


# -- dead letters -----------------------------------------------------------------------------------------------------


def move_to_dead_letter(poisoned: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Move entries to their dead-letter stream; `options` are the sink's (`endpoints`, `minIdle`, ...).

    Returns the letters that were written, a row for each: `stream`, `group`, `id`, `deliveries`, `consumer`, `reason`,
    `letter_stream`, `letter_id`. An entry that was acknowledged, or claimed by a worker, in the meantime has none.
    """
    spark = poisoned.sparkSession
    poisoned = poisoned.persist()
    try:
        streams = [row["stream"] for row in poisoned.select("stream").distinct().collect()]
        name = {option.lower(): value for option, value in options.items()}.get("deadletterstream", DEAD_LETTER_STREAM)
        targets = sorted({name.replace(KEY_HERE, stream) for stream in streams})
        before = _last_ids(spark, targets, options) if targets else {}
        make_active(spark)
        poisoned.write.format(FORMAT).options(**options).option("operation", "deadletter").mode("append").save()
        written = _written_after(spark, before, options)
        found = written.join(poisoned.select("stream", "group", "id"), ["stream", "group", "id"], "left_semi")
        found = found.select(*REPORTED).persist()
        found.count()  # before others write to the dead-letter stream
        return found
    finally:
        poisoned.unpersist()


def _last_ids(spark: Any, names: list[str], options: Mapping[str, str]) -> dict[str, str]:
    """The last id of each stream, 0-0 where there is none; of several servers the smallest."""
    reader = spark.read.format(FORMAT).options(**connection_options(options)).option("table", "streams")
    found = dict.fromkeys(names, ids.MAX)
    rows = reader.option("stream", json.dumps(names)).load().select("stream", "last_id").collect()
    servers = len(OptionReader(options, "sink").names("endpoints")) or 1
    for name in names:
        last = [ids.parse(row["last_id"].encode()) for row in rows if row["stream"] == name]
        found[name] = min(last) if len(last) == servers else ids.ZERO
    return {name: ids.text(last).decode() for name, last in found.items()}


def _written_after(spark: Any, last_ids: Mapping[str, str], options: Mapping[str, str]) -> DataFrame:
    """The letters in dead-letter streams that come after these ids."""
    if not last_ids:
        return dead_letters(spark.createDataFrame([], LETTERS))
    places = {name: ids.text(ids.parse(last.encode()) + 1).decode() for name, last in last_ids.items()}
    reader = spark.read.format(FORMAT).options(**connection_options(options)).option("stream", json.dumps([*places]))
    return dead_letters(reader.option("startingId", json.dumps(places)).schema(LETTERS).load())


def dead_letters(dead: DataFrame) -> DataFrame:
    """A dead-letter stream's entries: the original `fields`, and what the move added as columns of their own.

    `dead` is the table `entries` of it, with the schema LETTERS, or with `fields map<string,string>`, which has a name
    once and no bytes that are not text. Of a name that the entry had, too, the last is what the move added.
    """
    is_map = isinstance(dead.schema["fields"].dataType, MapType)
    if is_map:
        pairs = "transform(map_entries(fields), pair -> named_struct('name', pair.key, 'value', pair.value))"
        dead = dead.withColumn("fields", f.expr(pairs))
    about = []
    for name in LETTER:
        text = f.expr(f"try_element_at(filter(fields, pair -> string(pair.name) = '{name}'), -1).value").cast("string")
        about.append((text.try_cast("bigint") if name == "_deliveries" else text).alias(name.removeprefix("_")))
    names = ", ".join(f"'{name}'" for name in LETTER)
    has_another = "exists(slice(fields, at + 2, size(fields)), later -> later.name = pair.name)"
    own = f"filter(fields, (pair, at) -> string(pair.name) NOT IN ({names}) OR {has_another})"
    fields = f.expr(f"map_from_entries({own})" if is_map else own).alias("fields")
    return dead.select(f.col("_stream").alias("letter_stream"), f.col("_id").alias("letter_id"), *about, fields)


def redrive(dead: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Add dead letters to the streams they came from, each once: a letter's id is its key there (IDMP).

    `dead` has the schema LETTERS. PipelineError for a map, which lacks bytes that are not text and repeated names.
    The letters stay where they are. A server remembers keys for a while only: delete what was re-driven. Returns the
    letters that were sent, with the columns of `move_to_dead_letter`; one that had been re-driven before is among
    them, because a server answers it as it did the first time.
    """
    if isinstance(dead.schema["fields"].dataType, MapType):
        raise PipelineError(f"a map of fields may lack some: read the letters with the schema {LETTERS!r}")
    letters = dead_letters(dead).persist()
    again = letters.select(
        f.col("stream").alias("_stream"), f.concat_ws(":", "letter_stream", "letter_id").alias("_id"), "fields"
    )
    make_active(dead.sparkSession)
    writer = again.write.format(FORMAT).options(**options).option("delivery", "idmp")
    writer.option("idempotencyColumn", "_id").mode("append").save()
    return letters.select(*REPORTED)


def _sequence(entry_id: Any) -> Any:
    return f.substring_index(entry_id, "-", -1).cast("decimal(20,0)")
