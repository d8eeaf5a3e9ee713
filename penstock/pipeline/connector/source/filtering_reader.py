"""Conditions on ids, times and streams that the batch source takes from Spark (`pushFilters`).

Spark must be told to offer them, too: spark.sql.python.filterPushdown.enabled.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from penstock.pipeline.connector.connection.client import Client
from penstock.pipeline.connector.connection.option_reader import milliseconds
from penstock.pipeline.connector.source.batch_reader import BatchReader
from penstock.storage.streams import ids

STREAM, TIME = ("_stream",), ("_timestamp",)


class FilteringReader(BatchReader):
    """A batch reader that narrows its range before it plans.

    Of conditions on `_id` only equality is used: Spark compares ids as strings, in another order.
    """

    streams: frozenset[bytes] | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Use what narrows the range. Spark evaluates the conditions that are returned row by row."""
        return [one for one in filters if not self._take(one)]

    def wanted_keys(self, client: Client) -> list[bytes]:
        keys = super().wanted_keys(client)
        return keys if self.streams is None else [key for key in keys if key in self.streams]

    def _take(self, condition: Any) -> bool:
        """Whether a condition needs no further check by Spark."""
        column, value = getattr(condition, "attribute", None), getattr(condition, "value", None)
        if column == STREAM and isinstance(condition, EqualTo | In):
            names = condition.value if isinstance(condition, In) else (value,)
            wanted = frozenset(name.encode() if isinstance(name, str) else bytes(name) for name in names if name)
            self.streams = wanted if self.streams is None else self.streams & wanted
            return True
        if column == TIME and isinstance(value, datetime):
            self._take_time(condition, value if value.tzinfo else value.replace(tzinfo=UTC))
            return False  # ids are whole milliseconds, times are not: Spark looks at the edges
        if column == ("_id",) and isinstance(condition, EqualTo) and isinstance(value, str):
            self._take_id(value)
            return False
        return False

    def _take_time(self, condition: Any, moment: datetime) -> None:
        first = milliseconds(moment) << 64
        if isinstance(condition, GreaterThan | GreaterThanOrEqual | EqualTo):
            self.after = max(self.after, first - 1, ids.ZERO)
        if isinstance(condition, LessThan | LessThanOrEqual | EqualTo):
            self.upto = min(self.upto, first | ids.HALF)

    def _take_id(self, word: str) -> None:
        try:
            wanted = ids.parse(word.encode())
        except ValueError:
            return
        self.after = max(self.after, wanted - 1)
        self.upto = min(self.upto, wanted)
