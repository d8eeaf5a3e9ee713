"""Which reader a query on entries gets, by its options."""

from collections.abc import Mapping
from typing import Any

from penstock.pipeline.connector.source.batch_reader import BatchReader
from penstock.pipeline.connector.source.cursor_reader import CursorReader
from penstock.pipeline.connector.source.filtering_reader import FilteringReader
from penstock.pipeline.connector.source.shared_reader import SharedReader
from penstock.pipeline.connector.source.source_options import SHARED, read_entries
from penstock.pipeline.connector.source.stream_reader import StreamReader


def batch_reader(options: Mapping[str, str], schema: Any) -> BatchReader:
    """With `pushFilters`, one that takes conditions on ids, times and streams from Spark."""
    found = read_entries(options, streaming=False)
    return FilteringReader(found, schema) if found.push_filters else BatchReader(found, schema)


def stream_reader(options: Mapping[str, str], schema: Any) -> StreamReader:
    """By the `groupMode`."""
    found = read_entries(options, streaming=True)
    return SharedReader(found, schema) if found.group_mode == SHARED else CursorReader(found, schema)
