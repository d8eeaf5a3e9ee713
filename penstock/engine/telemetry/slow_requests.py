"""Which requests took longer than a threshold: they go to the slow log, to LATENCY, or to both."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from penstock.engine.telemetry.latency_monitor import LatencyMonitor
from penstock.engine.telemetry.request_log import RequestLog
from penstock.engine.telemetry.statistics import Statistics

_NEVER_US: Final = 2**63


class SlowRequests:
    """`from_us`: the lower of the two thresholds, slowlog-log-slower-than and latency-monitor-threshold."""

    __slots__ = ("_latency", "_settings", "_slow_log", "_statistics", "from_us")

    def __init__(
        self, settings: Settings, slow_log: RequestLog, latency: LatencyMonitor, statistics: Statistics
    ) -> None:
        self._settings = settings
        self._slow_log = slow_log
        self._latency = latency
        self._statistics = statistics
        self.from_us = _NEVER_US
        self._set_thresholds()
        settings.watch("slowlog-log-slower-than", self._set_thresholds)
        settings.watch("latency-monitor-threshold", self._set_thresholds)

    def _set_thresholds(self) -> None:
        slow_us = self._settings.number("slowlog-log-slower-than")
        latency_ms = self._settings.number("latency-monitor-threshold")
        self.from_us = min(slow_us if slow_us >= 0 else _NEVER_US, latency_ms * 1000 if latency_ms else _NEVER_US)

    def note(self, session: Session, now_us: int, row: Row, request: list[bytes], usec: int) -> None:
        """A request took at least `from_us`."""
        settings = self._settings
        if usec >= settings.number("slowlog-log-slower-than") >= 0 and "skip_slowlog" not in row.flags:
            self._slow_log.add(session, row, request, now_us, usec)
            self._statistics.count_slow(row, usec)
        threshold_ms = settings.number("latency-monitor-threshold")
        if threshold_ms and usec >= threshold_ms * 1000:
            self._latency.ran(row, now_us, usec)
