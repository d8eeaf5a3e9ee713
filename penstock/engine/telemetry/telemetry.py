"""The measurements of a server: slow requests, delays, hot keys; and its identity."""

import random

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine.conditions import Conditions
from penstock.engine.session import Session
from penstock.engine.state import MEASURED
from penstock.engine.table.known_commands import KnownCommands
from penstock.engine.table.row import Row
from penstock.engine.telemetry.hot_keys import HotKeys
from penstock.engine.telemetry.identity import Identity
from penstock.engine.telemetry.large_requests import LargeRequests
from penstock.engine.telemetry.latency_monitor import LatencyMonitor
from penstock.engine.telemetry.request_log import RequestLog
from penstock.native.resp_sizes import request_bytes


class Telemetry:
    """hot_keys: what HOTKEYS collects. descriptions: the replies of COMMAND and COMMAND DOCS about all commands."""

    __slots__ = (
        "_clock", "_conditions", "_settings", "descriptions", "hot_keys", "identity", "large", "latency", "slow_log",
    )  # fmt: skip

    def __init__(
        self, settings: Settings, clock: Clock, chance: random.Random, conditions: Conditions, commands: KnownCommands
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._conditions = conditions
        self.identity = Identity(chance)
        self.slow_log = RequestLog(settings, commands, "slowlog-max-len")
        self.large = LargeRequests(settings, conditions, commands)
        self.latency = LatencyMonitor()
        self.hot_keys: HotKeys | None = None
        self.descriptions: dict[str, bytes] = {}

    def collect_hot_keys(self, hot_keys: HotKeys | None) -> None:
        """HOTKEYS began, ended or was reset; what was collected stays until it is reset."""
        self.hot_keys = hot_keys
        self._conditions.set(MEASURED, hot_keys is not None and hot_keys.is_active(self._clock.now_us() // 1000))

    def note_hot_keys(
        self, session: Session, now_ms: int, row: Row, request: list[bytes], usec: int, reply_bytes: int
    ) -> None:
        """HOTKEYS collects what the keys of a request took. A script counts as a whole, by the keys that it names."""
        if self.hot_keys is None or not self.hot_keys.is_active(now_ms):
            self.collect_hot_keys(self.hot_keys)
        elif session.asks_for is None:
            self.hot_keys.note(row, request, usec, request_bytes(request) + reply_bytes)

    def note_delay(self, event: bytes, began_us: int) -> None:
        """Something besides a command is over that began at a monotonic time: LATENCY notes it if it took long."""
        threshold_us = self._settings.number("latency-monitor-threshold") * 1000
        if not threshold_us:
            return
        usec = self._clock.monotonic_us() - began_us
        if usec >= threshold_us:
            self.latency.note(event, self._clock.now_us(), usec)
