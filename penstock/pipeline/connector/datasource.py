"""The format `redis_streams`: which reader or writer a query gets.

Readers and writers are imported when they are asked for: Spark also imports this module in processes that need none.
"""

from typing import Any

from pyspark.sql.datasource import DataSource

from penstock.pipeline.connector import schemas
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.connector.schemas import TABLES
from penstock.pipeline.errors import OptionError, ShortErrors

FORMAT = "redis_streams"
NO_OPTIONS = (
    "no option is given. Spark gives Python sources none of the options of CREATE TABLE: CREATE TEMPORARY VIEW v USING "
    "redis_streams OPTIONS (...) keeps them, and so does spark.read.options(...).table(name)"
)


class StreamsDataSource(ShortErrors, DataSource):
    """Streams of a Redis-compatible server as rows: the option `table` says which rows."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return schemas.DEFAULT[self._table()]

    def reader(self, schema: Any) -> Any:
        if not self.options:
            raise OptionError(NO_OPTIONS)
        table = self._table()
        if table == "entries":
            from penstock.pipeline.connector.source import readers

            return readers.batch_reader(self.options, schema)
        if table == "aof":
            from penstock.pipeline.aof import log_table

            return log_table.create_reader(self.options, schema)
        from penstock.pipeline.connector.tables import table_readers

        return table_readers.create_reader(table, self.options, schema)

    def streamReader(self, schema: Any) -> Any:  # noqa: N802 - Spark's name
        if self._table() == "aof":
            from penstock.pipeline.aof import log_stream

            return log_stream.create_reader(self.options, schema)
        if self._table() != "entries":
            raise OptionError(
                f"the table {self._table()!r} is read in batches: only 'entries' and 'aof' can be streamed"
            )
        from penstock.pipeline.connector.source import readers

        return readers.stream_reader(self.options, schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        from penstock.pipeline.connector.sink import sink_writer

        return sink_writer.batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802 - Spark's name
        from penstock.pipeline.connector.sink import sink_writer

        return sink_writer.stream_writer(self.options, schema, overwrite)

    def _table(self) -> str:
        return OptionReader(self.options, "source").choice("table", "entries", TABLES)
