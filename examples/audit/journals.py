"""Journals: what producers and workers wrote down of their own doings, to be compared with the server's log.

A journal is a text file of lines, appended to with one write each batch, so that it outlives its writer; its name
without the ending is the writer's. The first word says how many follow, so that a piece of a line that a death cut
off is never taken for one:

    sent       id serial                               the server answered an XADD
    found      id serial                               the stream had it after a connection was lost
    lost       reason                                  a connection was lost
    processed  id serial deliveries source asked_ns    the work is done; the acknowledgement comes after it
    refused    id serial deliveries source asked_ns    the XNACK comes after it
    acked      id replied_ns                           the server answered the XACK

`asked_ns` is when the worker asked for the entry, `replied_ns` when it was told, both of `time.monotonic_ns()`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SENT: Final = ("sent", "found")
PROCESSED: Final = "processed"
REFUSED: Final = "refused"
ACKED: Final = "acked"
WORKED: Final = (PROCESSED, REFUSED)
COLUMNS: Final = "actor string, line bigint, verb string, id string, serial string, deliveries bigint, at_ns bigint"
ENDING: Final = ".journal"
_LENGTHS: Final = {"sent": 3, "found": 3, "lost": 2, "processed": 6, "refused": 6, "acked": 3}


Line = tuple[str, ...]


class Journal:
    """Appends lines of words with one write each batch: what was written stays when the process is killed."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # the last owner was killed while it wrote a line

    def write(self, lines: list[Line]) -> None:
        if lines:
            os.write(self._file, "".join(" ".join(line) + "\n" for line in lines).encode())


def lines(path: Path) -> Iterator[Line]:
    """The words of each line of one journal, without Spark. What no line's form fits is left out."""
    with path.open(encoding="utf-8") as file:
        for text in file:
            words = tuple(text.split())
            if text.endswith("\n") and words and len(words) == _LENGTHS.get(words[0], -1):
                yield words


def journals(spark: Any, path: str) -> "DataFrame":
    """The journals of a folder (`*.journal`): `actor`, `line`, `verb`, `id`, `serial`, `deliveries`, `at_ns`.

    `line` grows with the order in the file, and says nothing else. What no line's form fits is left out.
    """
    from pyspark.sql import functions as f

    files = path if path.endswith(ENDING) else f"{path.rstrip('/')}/*{ENDING}"
    text = spark.read.text(files, wholetext=True).select(
        f.regexp_extract(f.col("_metadata.file_name"), r"^(.*)\.journal$", 1).alias("actor"),
        f.posexplode(f.expr("slice(split(value, '\\n'), 1, size(split(value, '\\n')) - 1)")).alias("line", "text"),
    )
    words = text.select("actor", f.col("line").cast("bigint"), f.split("text", " ").alias("words"))
    lengths = f.create_map(*(f.lit(word) for pair in _LENGTHS.items() for word in pair))
    whole = words.where(f.try_element_at(lengths, f.col("words")[0]) == f.size("words"))
    worked = f.col("words")[0].isin(*WORKED)
    return whole.select(
        "actor",
        "line",
        f.col("words")[0].alias("verb"),
        f.col("words")[1].alias("id"),
        f.when(f.col("words")[0].isin(*SENT) | worked, f.col("words")[2]).alias("serial"),
        f.when(worked, f.get("words", f.lit(3))).cast("bigint").alias("deliveries"),
        f.when(worked, f.get("words", f.lit(5)))
        .when(f.col("words")[0] == ACKED, f.col("words")[2])
        .cast("bigint")
        .alias("at_ns"),
    )
