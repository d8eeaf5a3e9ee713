"""`penstock pipeline markers`: the markers of exactly-once writing at the servers, by query; shown or removed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.client import Client
from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.connection_options import Keys, read_servers
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.connection.stream_info import find_keys
from penstock.pipeline.connector.sink.commits import Commit
from penstock.pipeline.connector.sink.ledger import COMMITS, newest_request
from penstock.pipeline.errors import PipelineError
from penstock.storage.streams import ids

PATTERN: Final = f"{schemas.MARKERS}:*"
COLUMNS: Final = ("endpoint", "query", "tasks", "newest batch", "committed", "rows", "expires in")
TAG: Final = re.compile(r"\A\{[0-9a-f]+\}:")  # of a marker in a cluster
UNKNOWN: Final = "-"
MS_OF_A_DAY: Final = 86_400_000


@dataclass(slots=True)
class QueryMarkers:
    """The markers of one query at one server; `newest` is the last batch of which a task has written."""

    endpoint: str
    query: str
    keys: list[bytes] = field(default_factory=list)
    tasks: set[str] = field(default_factory=set)
    newest: int = -1
    commits: list[Commit] = field(default_factory=list)
    age_left_ms: int = -1

    def row(self) -> tuple[str, ...]:
        rows = sum(mark.rows for mark in self.commits[-1].marks.values()) if self.commits else None
        known = f"{self.commits[0].batch} to {self.commits[-1].batch}" if self.commits else UNKNOWN
        age = f"{self.age_left_ms / MS_OF_A_DAY:.1f} d" if self.age_left_ms >= 0 else UNKNOWN
        newest = UNKNOWN if self.newest < 0 else str(self.newest)
        tasks, written = str(len(self.tasks)), UNKNOWN if rows is None else str(rows)
        return self.endpoint, self.query, tasks, newest, known, written, age


def run(options: Mapping[str, str], query: str | None, removes: bool) -> str:
    """The table of markers, or what was removed, as text. PipelineError if `query` has none, or is not named."""
    reader = OptionReader(options, "markers")
    servers = read_servers(reader)
    reader.end()
    if removes and query is None:
        raise PipelineError("--remove needs --query: the name that the table of markers shows")
    lines: list[tuple[str, ...]] = [COLUMNS]
    removed = 0
    for endpoint in servers.endpoints:
        with connect(endpoint, servers.access) as client:
            found = [one for one in _markers(client) if query is None or one.query == query]
            lines += [one.row() for one in found]
            if removes:
                removed += sum(client.call("DEL", key) for one in found for key in one.keys)
    if query is not None and len(lines) == 1:
        raise PipelineError(f"there are no markers of a query {query!r} (without --query, all are shown)")
    if removes:
        return f"removed {removed} markers of the query {query}\n"
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines]
    return "".join(text.rstrip() + "\n" for text in texts)


def _markers(client: Client) -> Iterator[QueryMarkers]:
    found: dict[str, QueryMarkers] = {}
    for key in find_keys(client, Keys((), PATTERN, 0)):
        name = TAG.sub("", key.decode(errors="replace").removeprefix(f"{schemas.MARKERS}:"))
        query, _, part = name.rpartition(":")
        one = found.setdefault(query, QueryMarkers(client.endpoint.name, query))
        one.keys.append(key)
        entries, left_ms = client.pipeline([newest_request(key.decode(errors="surrogateescape")), ["PTTL", key]])
        one.age_left_ms = max(one.age_left_ms, left_ms)
        if part == COMMITS:
            one.commits += [Commit.of(entry) for entry in client.call("XRANGE", key, "-", "+") if b"placed" in entry[1]]
            continue
        one.tasks.add(part)
        if entries:
            one.newest = max(one.newest, (ids.parse(entries[0][0]) >> 64) - 1)
    yield from found.values()
