"""Which reader a query on one of the tables `groups`, `consumers`, `streams` and `pending` gets, by its options."""

from collections.abc import Mapping
from typing import Any, Final

from penstock.pipeline.connector.connection.connection_options import Keys, read_servers
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.schemas import TABLES
from penstock.pipeline.connector.source.source_options import read_sizing
from penstock.pipeline.connector.tables.pending_table import FilteringPendingReader, PendingReader
from penstock.pipeline.connector.tables.server_tables import RowsReader, Source, TableReader
from penstock.pipeline.errors import OptionError

FETCH: Final = 5_000  # pending entries in one reply
PER_TASK: Final = 100_000


def create_reader(table: str, options: Mapping[str, str], schema: Any) -> TableReader:
    """The reader of one of the tables; OptionError for a mistake, or for a column it does not have."""
    reader = OptionReader(options, f"table {table!r}")
    reader.choice("table", table, TABLES)
    names, pattern = reader.names("stream"), reader.text("streamPattern")
    if names and pattern is not None:
        raise OptionError("give only one of the options 'stream' (keys) and 'streamPattern' (a glob for SCAN)")
    group = reader.text("group")
    source = Source(
        table,
        read_servers(reader),
        Keys(tuple(dict.fromkeys(names)), None if names else pattern or "*", 0),
        None if group is None else group.encode(),
        read_sizing(reader, PER_TASK, FETCH),
    )
    push_filters = table == "pending" and reader.flag("pushFilters", False)
    reader.end()
    if table == "pending":
        return FilteringPendingReader(source, schema) if push_filters else PendingReader(source, schema)
    return RowsReader(source, schema)
