"""History and what comes after it in one streaming query: Parquet up to an id of each stream, then the stream itself.

The last id of each stream in the history is looked up once and kept beside the query's checkpoint. Older rows come from
the files, newer ones from the server; so a row that is in both appears once, also where files are added later.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.pipeline.connector.connection.connection_pool import Connections
from penstock.pipeline.connector.connection.stream_info import StreamState, find_keys, stream_states
from penstock.pipeline.connector.datasource import FORMAT
from penstock.pipeline.connector.source import source_options
from penstock.pipeline.connector.source.source_options import EARLIEST, EVERY_OTHER
from penstock.pipeline.errors import OptionError, report_loss
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId

ENDS: Final = "history-ends"  # in the checkpoint's folder
_ENDS: Final = "stream string, id string, entries bigint"


def backfill(
    spark: Any, history: str, schema: str, checkpoint: str, options: Mapping[str, str], up_to: str | None = None
) -> DataFrame:
    """A streaming frame of `history`, a folder of Parquet, and then of the streams that the source's `options` name.

    `schema` has `_stream` and `_id`, and holds for both. `checkpoint` is that of the query which is to be started.
    `up_to` is the last id taken from history, in every stream; without it all of it is taken. The first batch has the
    history and what the streams hold by then, in no order.

    DataLoss where entries may lie between history's end and the first one left in a stream (a warning with
    `failOnDataLoss` false). Start the query at once: what is trimmed between this look and its first offset is not
    noticed.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in ("startingid", "startingtimestamp", "group"):
        if name in given:
            raise OptionError(f"a backfill begins where the history ends: it takes no option {name!r}")
    found = source_options.read_entries(options, streaming=True)
    files = spark.read.schema(schema).parquet(history)
    _check_columns(files.schema, history)
    kept = _kept_ends(spark, f"{checkpoint}/{ENDS}")
    ends = _look_up(files, None if up_to is None else ids.parse(up_to.encode())) if kept is None else kept
    if not _has_begun(spark, checkpoint):  # later its offsets tell what is missing
        _refuse_gaps(found, {stream.encode(): end for stream, end in ends.items()})
    if kept is None:
        _keep(spark, ends, f"{checkpoint}/{ENDS}")
    texts = [(stream, ids.text(end).decode()) for stream, (end, _) in ends.items()]
    last = spark.createDataFrame(texts, "s string, e string")
    old = (
        spark.readStream.schema(schema)
        .parquet(history)
        .join(f.broadcast(last), f.col("_stream") == f.col("s"))
        .where(id_order(f.col("_id")) <= id_order(f.col("e")))
        .drop("s", "e")
    )
    starts = {stream: ids.text(end + 1).decode() for stream, (end, _) in ends.items()}
    source = spark.readStream.format(FORMAT).schema(schema).options(**options)
    new = source.option("startingId", json.dumps({**starts, EVERY_OTHER: EARLIEST})).load()
    both: DataFrame = old.unionByName(new)
    return both


def id_order(entry_id: Column) -> Column:
    """An id as a struct of two numbers, which compares as ids do."""
    return f.struct(*(f.split(entry_id, "-")[at].cast("decimal(20,0)").alias(f"part{at}") for at in (0, 1)))


def _check_columns(schema: StructType, history: str) -> None:
    for name in ("_stream", "_id"):
        if name not in schema.names:
            raise OptionError(f"the schema has no column {name!r}, by which {history} and the streams fit together")


def _look_up(files: DataFrame, up_to: StreamId | None) -> dict[str, tuple[StreamId, int]]:
    """The last id of each stream in the history, and how many ids it has up to there."""
    rows = files.where("_id IS NOT NULL AND _stream IS NOT NULL")
    if up_to is not None:
        rows = rows.where(id_order(f.col("_id")) <= id_order(f.lit(ids.text(up_to).decode())))
    last = f.max_by("_id", id_order(f.col("_id"))).alias("id")
    found = rows.groupBy("_stream").agg(last, f.countDistinct("_id").alias("entries")).collect()
    return {row["_stream"]: (ids.parse(row["id"].encode()), row["entries"]) for row in found}


def _kept_ends(spark: Any, path: str) -> dict[str, tuple[StreamId, int]] | None:
    """The ends that an earlier start of the query found; None at its first start."""
    try:
        rows = spark.read.schema(_ENDS).json(path).collect()
    except AnalysisException:
        return None
    if not rows:
        return None
    return {row["stream"]: (ids.parse(row["id"].encode()), row["entries"]) for row in rows if row["stream"] is not None}


def _has_begun(spark: Any, checkpoint: str) -> bool:
    """Whether the query has written an offset."""
    try:
        return not spark.read.text(f"{checkpoint}/offsets").isEmpty()
    except AnalysisException:
        return False


def _keep(spark: Any, ends: dict[str, tuple[StreamId, int]], path: str) -> None:
    """Write them in one file, with a row for no stream, so that a folder without rows is unfinished."""
    rows = [(stream, ids.text(end).decode(), entries) for stream, (end, entries) in sorted(ends.items())]
    spark.createDataFrame([*rows, (None, None, 0)], _ENDS).coalesce(1).write.mode("overwrite").json(path)


def _refuse_gaps(options: source_options.Entries, ends: dict[bytes, tuple[StreamId, int]]) -> None:
    """DataLoss, or a warning, for each stream of which entries may be neither in the history nor at the server."""
    connections = Connections(options.servers)
    try:
        found = connections.each(lambda client: stream_states(client, find_keys(client, options.keys)))
    finally:
        connections.close()
    for states in found.values():
        for key, state in states.items():
            end, entries = ends.get(key, (ids.ZERO, 0))
            if has_gap(end, entries, state):
                sentence = (
                    f"stream {key.decode(errors='replace')!r}: the history ends at {ids.text(end).decode()}, the first "
                    f"entry left is {ids.text(state.first).decode()}, and what was between them cannot be known"
                )
                report_loss(sentence, options.fail_on_loss)


def has_gap(end: StreamId, entries: int, state: StreamState) -> bool:
    """Whether entries may be missing between a history of `entries` ids up to `end`, and a stream.

    None are if the stream still holds an entry that the history has, or none after it, or if the two together are
    all that were ever added.
    """
    if state.last <= end or (state.length and state.first <= end):
        return False
    return entries + state.length < state.added
