"""Reads a pipeline's description, `pipeline.toml`, into rows that nothing changes; errors name the table and the key.

Strings take environment variables (`$HOST`, `${HOST}`; `$$` is a dollar); paths are relative to where the pipeline is
started. Options are read as the source and the sink read them, so that their mistakes are known before Spark starts.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.sink.sink_options import read_sink
from penstock.pipeline.connector.source.source_options import read_entries
from penstock.pipeline.errors import OptionError, PipelineError

STREAMS, LOG, FILES = "streams", "log", "files"
SOURCES: Final = (STREAMS, LOG, FILES)
FORMATS: Final = ("csv", "json", "parquet")
VARIABLE: Final = re.compile(r"\$(?:(\$)|([A-Za-z_]\w*)|\{([^}]*)\})")
METADATA: Final = ("_stream", "_id", "_timestamp")  # columns that every row has


@dataclass(frozen=True, slots=True)
class Ingest:
    """`options` are the source's: those of `redis_streams`, `path` and `stream` of a log, `path` of files."""

    source: str
    file_format: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table that is left-joined to the rows by the columns `on`, and adds `columns`."""

    name: str
    path: str
    file_format: str
    on: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Windows of event time: one row for each window and each combination of `by`."""

    time: str
    watermark: str
    window: str
    by: tuple[str, ...]
    measures: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`columns` are declared types (`bigint`, `string not null`), `rules` and `enriched` SQL expressions."""

    name: str
    folder: str
    trigger: str | None  # None: process what is there now, then end
    ingest: Ingest
    columns: Mapping[str, str]
    rules: Mapping[str, str]
    lookups: tuple[Lookup, ...]
    enriched: Mapping[str, str]
    aggregate: Aggregate | None
    parquet: str
    stream: Mapping[str, str] | None


def read(path: Path) -> Pipeline:
    """The pipeline that a file describes; OptionError for a mistake in it."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise PipelineError(f"{path} cannot be read: {reason.strerror}") from None
    except ValueError as mistake:
        raise OptionError(f"{path} is no TOML: {mistake}") from None
    try:
        return parse(tables)
    except OptionError as mistake:
        raise OptionError(f"{path}: {mistake}") from None


def parse(tables: Mapping[str, Any]) -> Pipeline:
    top = Table("the file", tables)
    head, publish = top.table("pipeline"), top.table("publish", {})
    validate, enrich = top.table("validate"), top.table("enrich", {})
    folder = head.text("folder")
    lookups = enrich.table("lookups", {})
    pipeline = Pipeline(
        name=head.text("name"),
        folder=folder.rstrip("/"),
        trigger=head.text("trigger", None),
        ingest=_read_ingest(top.table("ingest")),
        columns=validate.texts("columns"),
        rules=validate.texts("rules", {}),
        lookups=tuple(_read_lookup(name, lookups.table(name)) for name in lookups.names()),
        enriched=enrich.texts("columns", {}),
        aggregate=_read_aggregate(top.table("aggregate")) if top.has("aggregate") else None,
        parquet=publish.text("parquet", f"{folder.rstrip('/')}/published").rstrip("/"),
        stream=publish.texts("stream") if publish.has("stream") else None,
    )
    for table in (top, head, publish, validate, enrich):
        table.end()
    _check(pipeline)
    return pipeline


def _read_ingest(table: "Table") -> Ingest:
    source = table.choice("from", SOURCES)
    file_format = table.choice("format", FORMATS) if source == FILES else ""
    options = table.texts("options")
    table.end()
    if source != STREAMS and "path" not in options:
        raise OptionError(f"[ingest.options] needs 'path' when 'from' is {source!r}")
    if source == LOG and "stream" not in options:
        raise OptionError("[ingest.options] needs 'stream': which stream of the log")
    if source == STREAMS:
        _placed("[ingest.options]", lambda: read_entries(options, streaming=True))
    elif source == LOG:
        _placed("[ingest.options]", lambda: _read_log(OptionReader(options, "log")))
    return Ingest(source, file_format, options)


def _read_log(reader: OptionReader) -> None:
    for name in ("path", "stream"):
        reader.text(name)
    reader.end()


def _placed(place: str, read: Callable[[], object]) -> None:
    """Read options; an OptionError says in which table they are."""
    try:
        read()
    except OptionError as mistake:
        raise OptionError(f"{place}: {mistake}") from None


def _read_lookup(name: str, table: "Table") -> Lookup:
    found = Lookup(name, table.text("path"), table.choice("format", FORMATS), table.list("on"), table.list("columns"))
    table.end()
    return found


def _read_aggregate(table: "Table") -> Aggregate:
    found = Aggregate(
        table.text("time"), table.text("watermark"), table.text("window"), table.list("by"), table.texts("measures")
    )
    table.end()
    return found


def _check(pipeline: Pipeline) -> None:
    """OptionError for parts that exclude each other, and for column names that are used twice or unknown."""
    if pipeline.trigger is not None and pipeline.ingest.source == LOG:
        raise OptionError("a log is read as it is now: leave [pipeline] 'trigger' out, and run the pipeline again")
    if pipeline.stream is not None and "stream" not in pipeline.stream:
        raise OptionError("[publish.stream] needs 'stream': where published rows go to")
    if pipeline.stream is not None:
        options = pipeline.stream
        _placed("[publish.stream]", lambda: read_sink(options, overwrite=False))
    taken: set[str] = {*METADATA, "fields", "row", "rows"}
    for name in (*pipeline.columns, *(column for lookup in pipeline.lookups for column in lookup.columns)):
        if name in taken:
            raise OptionError(f"the column {name!r} is there twice, or has a name of the pipeline's own")
        taken.add(name)
    aggregate = pipeline.aggregate
    if aggregate is not None:
        for name in (aggregate.time, *aggregate.by):
            if name not in taken | set(pipeline.enriched):
                near = difflib.get_close_matches(name, taken, 1)
                hint = f": did you mean {near[0]!r}?" if near else ""
                raise OptionError(f"[aggregate] names a column {name!r} that no stage makes{hint}")


class Table:
    """One table of the file. `end` refuses keys that were not read."""

    def __init__(self, name: str, words: Mapping[str, Any]) -> None:
        self._name = name
        self._words = words
        self._asked: list[str] = []

    def has(self, name: str) -> bool:
        return name in self._words

    def names(self) -> Iterable[str]:
        return self._words

    def table(self, name: str, default: Mapping[str, Any] | None = None) -> "Table":
        found = self._get(name) if default is None else self._get(name, default)
        if not isinstance(found, dict):
            raise OptionError(f"{name!r} in {self._name} is to be a table")
        return Table(f"[{name}]" if self._name == "the file" else f"{self._name[:-1]}.{name}]", found)

    def text(self, name: str, *default: Any) -> Any:
        found = self._get(name, *default)
        if found is not None and (not isinstance(found, str) or not found):
            raise OptionError(f"{name!r} in {self._name} is to be a text")
        return None if found is None else self._expanded(name, found)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        found: str = self.text(name)
        if found not in choices:
            raise OptionError(f"{name!r} in {self._name} is to be one of {', '.join(choices)}, not {found!r}")
        return found

    def list(self, name: str) -> tuple[str, ...]:
        found = self._get(name)
        words = [found] if isinstance(found, str) else found
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise OptionError(f"{name!r} in {self._name} is to be a list of names")
        return tuple(self._expanded(name, word) for word in words)

    def texts(self, name: str, *default: Any) -> dict[str, str]:
        """A table of texts; numbers and truths are taken as their text, for options of Spark's."""
        found = self._get(name, *default)
        if not isinstance(found, dict) or not all(isinstance(word, str | int | float) for word in found.values()):
            raise OptionError(f"{name!r} in {self._name} is to be a table of texts")
        return {key: self._expanded(key, _text(word)) for key, word in found.items()}

    def _expanded(self, name: str, word: str) -> str:
        """A text with the values of its environment variables; OptionError for one that is not set."""

        def value(found: re.Match[str]) -> str:
            variable = found[2] or found[3]
            if found[1]:
                return "$"
            braced = f"${{{variable}}}"
            known = os.path.expandvars(braced)  # leaves a variable as it is that is not set
            if known == braced:
                raise OptionError(
                    f"{name!r} in {self._name} names the environment variable {variable!r}, which is not set "
                    "($$ is a dollar)"
                )
            return known

        return VARIABLE.sub(value, word)

    def end(self) -> None:
        for name in self._words:
            if name not in self._asked:
                near = difflib.get_close_matches(name, self._asked, 1)
                hint = f"did you mean {near[0]!r}?" if near else "it takes " + ", ".join(sorted(self._asked))
                raise OptionError(f"{self._name} has no {name!r}: {hint}")

    def _get(self, name: str, *default: Any) -> Any:
        self._asked.append(name)
        if name in self._words:
            return self._words[name]
        if not default:
            raise OptionError(f"{self._name} needs {name!r}")
        return default[0]


def _text(word: str | int | float) -> str:
    return str(word).lower() if isinstance(word, bool) else str(word)
