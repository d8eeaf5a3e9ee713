"""Conditions that the table `pending` takes from Spark (`pushFilters`), so that fewer rows are asked for and made.

Names of streams and groups choose which pending entries lists are read. XPENDING takes a consumer and a least idle
time. Delivery counts are compared before columns are made.
"""

import operator
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from penstock.pipeline.connector.connection.client import Word
from penstock.pipeline.connector.tables.pending_pages import PendingPage

UNREADABLE: Final = "\ufffd"  # stands for bytes of a name that are not UTF-8
COMPARISONS: Final[dict[type, Callable[[Any, Any], Any]]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


class Conditions:
    """Conditions on the rows of a read; none before `take` is called."""

    def __init__(self) -> None:
        self._streams: frozenset[str] | None = None
        self._groups: frozenset[str] | None = None
        self._consumer: bytes | None = None
        self._least_idle_ms = 0
        self._deliveries: list[tuple[type, int]] = []

    def take(self, condition: Any) -> bool:
        """Use a condition of Spark's if it says something here. Whether Spark need not look at the rows again."""
        kind, column, value = type(condition), getattr(condition, "attribute", None), getattr(condition, "value", None)
        names = condition.value if kind is In else (value,)
        match column:
            case ("stream",) if kind in (EqualTo, In):
                self._streams = _both(self._streams, names)
                return True
            case ("group",) if kind in (EqualTo, In):
                self._groups = _both(self._groups, names)
                return True
            case ("consumer",) if kind is EqualTo and isinstance(value, str) and UNREADABLE not in value:
                self._consumer = self._consumer or value.encode() or None
            case ("idle_ms",) if kind in (EqualTo, GreaterThan, GreaterThanOrEqual) and isinstance(value, int):
                self._least_idle_ms = max(self._least_idle_ms, value)
            case ("deliveries",) if kind in COMPARISONS and isinstance(value, int):
                self._deliveries.append((kind, value))
                return True
        return False

    def allow(self, stream: str, group: str) -> bool:
        """Whether this list is read at all."""
        return (self._streams is None or stream in self._streams) and (self._groups is None or group in self._groups)

    def weight(self, entries: int, consumers: list[list[bytes]]) -> int:
        """How many of a list's pending entries are read, at the most, by what XPENDING says of its consumers."""
        if self._consumer is None:
            return entries
        return sum(int(count) for name, count in consumers or [] if name == self._consumer)

    def words(self) -> tuple[list[Word], list[Word]]:
        """XPENDING's words before the range, and behind the count."""
        idle: list[Word] = ["IDLE", self._least_idle_ms] if self._least_idle_ms else []
        return idle, [] if self._consumer is None else [self._consumer]

    def chosen(self, page: PendingPage) -> PendingPage:
        """The entries with delivery counts that fit."""
        for kind, count in self._deliveries:
            page = page.where(COMPARISONS[kind](page.deliveries, count))
        return page


def _both(before: frozenset[str] | None, names: Any) -> frozenset[str]:
    found = frozenset(name for name in names if isinstance(name, str))
    return found if before is None else before & found
