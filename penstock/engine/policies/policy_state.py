"""The state of policies in a server: whether they are applied, and the counters since the start."""

from collections import deque
from typing import TypeAlias

from penstock.engine.conditions import Conditions
from penstock.engine.policies.policy_log import PolicyLog
from penstock.engine.state import FOLLOWING
from penstock.engine.table.client_compat import Compatibility

ReaderPlace: TypeAlias = tuple[int, bytes, bytes, bytes]  # database, key, group, consumer


class PolicyState:
    """kept: policies are applied; a named `compat-version` has none, so they sleep. used: some stream has had a policy.

    retry_ms: before that, no tick tries again what could not be logged.
    slept: since the last tick that applied them, policies were not applied for a while (this server was a replica).
    first_db: the database at which the next tick begins: the first that had to wait as the last one's budget was over.
    ended: ids of sessions that have ended, and as which consumers they read: those may have something to give back.
    log: lines about policies. The counters are those of INFO.
    """

    __slots__ = (
        "_conditions", "copied", "dead_lettered", "ended", "expired", "first_db", "forwarded", "kept", "log", "reaped",
        "redelivered", "redriven", "released", "retry_ms", "slept", "trimmed", "used",
    )  # fmt: skip

    def __init__(self, compatibility: Compatibility, conditions: Conditions) -> None:
        self._conditions = conditions
        self.kept = compatibility.is_newest
        self.used = False
        self.log = PolicyLog()
        self.retry_ms = 0
        self.slept = False
        self.first_db = 0
        self.trimmed = 0
        self.redelivered = 0
        self.reaped = 0
        self.dead_lettered = 0
        self.redriven = 0
        self.released = 0
        self.expired = 0
        self.ended: deque[tuple[int, ReaderPlace]] = deque()
        self.forwarded = 0
        self.copied = 0

    def are_applied(self) -> bool:
        """Not with a named compat-version, and on a replica the master applies them."""
        return self.kept and self._conditions.bits & FOLLOWING == 0
